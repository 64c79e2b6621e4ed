# Target header_check: every header of ours compiles by itself. The builds do not prove it, since they
# compile a folder as one unit. Headers of runners/train need LibTorch and are left out.
file(GLOB_RECURSE headers RELATIVE ${CMAKE_SOURCE_DIR} CONFIGURE_DEPENDS
  common/*.h coordinator/*.h agent/*.h cli/*.h launch/*.h runners/*.h)
list(FILTER headers EXCLUDE REGEX "^runners/train/")
set(units)
foreach(header ${headers})
  string(REPLACE "/" "." name ${header})
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/headers/${name}.cc CONTENT "#include \"${header}\"\n" @ONLY)
  list(APPEND units ${CMAKE_BINARY_DIR}/headers/${name}.cc)
endforeach()
add_library(header_check OBJECT EXCLUDE_FROM_ALL ${units})
target_link_libraries(header_check PRIVATE assay_options assay_proto assay_results assay_net
  assay_runner_common OpenSSL::SSL SQLite::SQLite3)
target_compile_options(header_check PRIVATE -Wno-unused)
