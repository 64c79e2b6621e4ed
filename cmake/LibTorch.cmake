# LibTorch as imported targets of our own, since Caffe2Config.cmake of a CUDA wheel stops where there
# is no CUDA toolkit.
#
#   ASSAY_LIBTORCH   a folder with include/ and lib/: torch/ of an unpacked wheel or of a Python
#                    installation, or an unpacked LibTorch archive. Default: the newest that
#                    cmake/fetch_libtorch.py left in .deps/.
#   ASSAY_CUDA       AUTO (default), ON or OFF. AUTO is ON where libtorch_cuda.so and the
#                    libraries it needs are there and nvcc's major version is theirs.
#   ASSAY_CUDA_ROOT  the toolkit (bin/nvcc, include/); default: that of nvcc on the PATH.
#
# Gives libtorch::cpu and, with CUDA, libtorch::cuda; ASSAY_LIBTORCH_VERSION ("2.11.0"),
# ASSAY_WITH_CUDA; ASSAY_NVCC and ASSAY_CUDA_INCLUDE of the toolkit, or, with ASSAY_CUDA_FETCH ON, where
# `fetch_libtorch.py --cuda-headers` will put nvcc and headers where there is no toolkit.

set(ASSAY_LIBTORCH "" CACHE PATH "Folder with LibTorch's include/ and lib/")
set(ASSAY_CUDA AUTO CACHE STRING "Build the CUDA device: AUTO, ON or OFF")
set(ASSAY_CUDA_ROOT "" CACHE PATH "CUDA toolkit; empty: that of nvcc on the PATH")

set(_torch "${ASSAY_LIBTORCH}")
if(NOT _torch)
  file(GLOB _found LIST_DIRECTORIES true ${CMAKE_SOURCE_DIR}/.deps/libtorch-*/torch)
  list(SORT _found COMPARE NATURAL ORDER DESCENDING)
  if(_found)
    list(GET _found 0 _torch)
  endif()
endif()
if(NOT EXISTS "${_torch}/lib/libtorch_cpu.so" OR NOT EXISTS "${_torch}/include/ATen/ATen.h")
  message(FATAL_ERROR "no LibTorch at '${_torch}': run cmake/fetch_libtorch.py, which prints the "
    "folder to give as -DASSAY_LIBTORCH=, or build with -DASSAY_RUNNERS=OFF")
endif()

# "2.11.0+cu130" of a wheel, or the file of a LibTorch archive.
set(_version "")
foreach(_file version.py build-version)
  if(NOT _version AND EXISTS "${_torch}/${_file}")
    file(STRINGS "${_torch}/${_file}" _line REGEX "[0-9]+\\.[0-9]+\\.[0-9]+" LIMIT_COUNT 1)
    string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+[^']*" _version "${_line}")
  endif()
endforeach()
string(REGEX MATCH "^[0-9]+\\.[0-9]+\\.[0-9]+" ASSAY_LIBTORCH_VERSION "${_version}")
set(ASSAY_LIBTORCH_FULL_VERSION "${_version}")
if(NOT ASSAY_LIBTORCH_VERSION OR ASSAY_LIBTORCH_VERSION VERSION_LESS 2.7)
  message(FATAL_ERROR "LibTorch at ${_torch} is version '${_version}'; Assay needs 2.7 or newer")
endif()

set(_abi 1)
if(EXISTS "${_torch}/share/cmake/Torch/TorchConfig.cmake")
  file(STRINGS "${_torch}/share/cmake/Torch/TorchConfig.cmake" _line
    REGEX "_GLIBCXX_USE_CXX11_ABI=[01]" LIMIT_COUNT 1)
  if(_line MATCHES "_GLIBCXX_USE_CXX11_ABI=([01])")
    set(_abi ${CMAKE_MATCH_1})
  endif()
endif()
if(NOT _abi EQUAL 1)
  message(FATAL_ERROR "LibTorch at ${_torch} uses the old C++ ABI of libstdc++; take a newer one")
endif()

add_library(libtorch::c10 SHARED IMPORTED)
set_target_properties(libtorch::c10 PROPERTIES IMPORTED_LOCATION ${_torch}/lib/libc10.so
  INTERFACE_INCLUDE_DIRECTORIES ${_torch}/include)
add_library(libtorch::cpu SHARED IMPORTED)
set_target_properties(libtorch::cpu PROPERTIES IMPORTED_LOCATION ${_torch}/lib/libtorch_cpu.so
  # What LibTorch's own libraries need they find by their own paths.
  INTERFACE_LINK_LIBRARIES libtorch::c10
  INTERFACE_LINK_OPTIONS "-Wl,--allow-shlib-undefined")
# Where the wheels put the libraries that LibTorch itself loads; empty for an archive.
file(GLOB ASSAY_LIBTORCH_PATHS LIST_DIRECTORIES true ${_torch}/../nvidia/*/lib)
list(PREPEND ASSAY_LIBTORCH_PATHS ${_torch}/lib)

# ---- CUDA toolkit
set(_cuda_root "${ASSAY_CUDA_ROOT}")
if(NOT _cuda_root)
  find_program(_nvcc nvcc PATHS /usr/local/cuda/bin NO_CACHE)
  if(_nvcc)
    file(REAL_PATH "${_nvcc}" _nvcc)
    get_filename_component(_cuda_root "${_nvcc}/../.." ABSOLUTE)
  endif()
endif()
set(ASSAY_NVCC "")
set(ASSAY_CUDA_INCLUDE "")
if(_cuda_root)
  foreach(_dir include targets/x86_64-linux/include)
    if(NOT ASSAY_CUDA_INCLUDE AND EXISTS "${_cuda_root}/${_dir}/cuda_runtime_api.h")
      set(ASSAY_CUDA_INCLUDE "${_cuda_root}/${_dir}")
    endif()
  endforeach()
  if(EXISTS "${_cuda_root}/bin/nvcc")
    set(ASSAY_NVCC "${_cuda_root}/bin/nvcc")
  endif()
endif()
set(ASSAY_CUDA_FETCH OFF)
if(NOT ASSAY_NVCC OR NOT ASSAY_CUDA_INCLUDE)
  set(ASSAY_CUDA_FETCH ON)
  set(ASSAY_NVCC ${CMAKE_SOURCE_DIR}/.deps/cuda-headers/nvidia/cu13/bin/nvcc)
  set(ASSAY_CUDA_INCLUDE ${CMAKE_SOURCE_DIR}/.deps/cuda-headers/nvidia/cu13/include)
endif()
set(_toolkit_version "")
if(ASSAY_CUDA_FETCH)
  # Of CUDA_HEADER_WHEELS; enough to build with, since libcudart.so comes with LibTorch's wheels.
  set(_major 13)
  set(_toolkit_version 13.0)
else()
  file(STRINGS "${ASSAY_CUDA_INCLUDE}/cuda_runtime_api.h" _line REGEX "define CUDART_VERSION" LIMIT_COUNT 1)
  if(_line MATCHES "([0-9]+)")
    math(EXPR _major "${CMAKE_MATCH_1} / 1000")
    math(EXPR _minor "${CMAKE_MATCH_1} % 1000 / 10")
    set(_toolkit_version ${_major}.${_minor})
  endif()
endif()

# ---- may CUDA be built?
set(_why "")
# Of its own line: a condition's ${CMAKE_MATCH_1} is expanded before its MATCHES is evaluated.
string(REGEX REPLACE "^.*cu([0-9]+)[0-9]$" "\\1" _torch_cuda_major "${_version}")
file(GLOB _cudart ${_torch}/../nvidia/*/lib/libcudart.so.* ${_torch}/lib/libcudart*.so.*
  ${_cuda_root}/lib64/libcudart.so ${_cuda_root}/targets/x86_64-linux/lib/libcudart.so)
if(_cudart)
  list(GET _cudart 0 _cudart)
endif()
file(GLOB _cudnn ${_torch}/../nvidia/*/lib/libcudnn.so.* ${_torch}/lib/libcudnn.so.*
  /usr/lib/x86_64-linux-gnu/libcudnn.so.* ${_cuda_root}/lib64/libcudnn.so.*)
if(NOT EXISTS "${_torch}/lib/libtorch_cuda.so")
  set(_why "LibTorch at ${_torch} has no libtorch_cuda.so")
elseif(NOT _cudart)
  set(_why "libcudart.so was found neither beside LibTorch nor in ${_cuda_root}")
elseif(NOT _cudnn)
  set(_why "libcudnn.so, which libtorch_cuda.so needs, was not found")
elseif(_version MATCHES "cu[0-9]+$" AND NOT "${_torch_cuda_major}" STREQUAL "${_major}")
  set(_why "LibTorch ${_version} and the CUDA toolkit ${_toolkit_version} differ in major version")
endif()
if(ASSAY_CUDA STREQUAL "AUTO")
  if(_why)
    set(ASSAY_WITH_CUDA OFF)
  else()
    set(ASSAY_WITH_CUDA ON)
  endif()
elseif(ASSAY_CUDA)
  if(_why)
    message(FATAL_ERROR "ASSAY_CUDA is ON, but ${_why}")
  endif()
  set(ASSAY_WITH_CUDA ON)
else()
  set(ASSAY_WITH_CUDA OFF)
  set(_why "ASSAY_CUDA is OFF")
endif()

if(ASSAY_WITH_CUDA)
  # A folder that an imported target names must be there when CMake runs; it may be fetched later.
  file(MAKE_DIRECTORY ${ASSAY_CUDA_INCLUDE})
  add_library(libtorch::cudart SHARED IMPORTED)
  set_target_properties(libtorch::cudart PROPERTIES IMPORTED_LOCATION ${_cudart}
    INTERFACE_INCLUDE_DIRECTORIES ${ASSAY_CUDA_INCLUDE})
  add_library(libtorch::c10_cuda SHARED IMPORTED)
  set_target_properties(libtorch::c10_cuda PROPERTIES
    IMPORTED_LOCATION ${_torch}/lib/libc10_cuda.so
    INTERFACE_LINK_LIBRARIES "libtorch::c10;libtorch::cudart")
  # Its kernels register themselves when it is loaded; no symbol of it is named, so the linker must
  # be told to keep it.
  add_library(libtorch::cuda INTERFACE IMPORTED)
  set_target_properties(libtorch::cuda PROPERTIES INTERFACE_LINK_LIBRARIES
    "-Wl,--no-as-needed;${_torch}/lib/libtorch_cuda.so;-Wl,--as-needed;libtorch::c10_cuda;libtorch::cpu")
  message(STATUS "LibTorch ${_version} with CUDA ${_toolkit_version} at ${_torch}")
else()
  message(STATUS "LibTorch ${_version} for the CPU at ${_torch} (${_why})")
endif()
