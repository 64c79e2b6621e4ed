# One folder is one target. assay_library(NAME SOURCES ... PUBLIC ... PRIVATE ...) and
# assay_program(NAME SOURCES ... PRIVATE ...) give every target the same warnings and include root;
# assay_test(NAME SOURCES ... LINKS ... LABELS ... [TIMEOUT S] [WHOLE] [LOCK L] [PROCESSORS N]) registers
# each GoogleTest case with CTest; in sanitized builds the whole program as one, since starting
# hundreds of them would take longer than what they do (what is skipped shows by name in the release
# build). WHOLE: so here too, where a start is dear. LOCK: never beside another test with the same
# lock. PROCESSORS: how many of CTest's slots it takes, of which ./test has eight a core; 4 where nothing
# is said, 1 is for what mostly waits.

add_library(assay_options INTERFACE)
target_include_directories(assay_options INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/gen)
target_compile_options(assay_options INTERFACE -Wall -Wextra -Wno-unused-parameter -Werror=return-type
  -Wnon-virtual-dtor -Woverloaded-virtual)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # Deprecated: what GCC 12's library uses in itself.
  target_compile_options(assay_options INTERFACE -Wthread-safety -Werror=thread-safety
    -Wno-deprecated-declarations)
else()
  # GCC 12 reports false maybe-uninitialized and dangling warnings inside libstdc++ at -O2.
  target_compile_options(assay_options INTERFACE -Wno-maybe-uninitialized -Wno-restrict)
endif()
if(ASSAY_SANITIZE STREQUAL "address")
  target_compile_options(assay_options INTERFACE -fsanitize=address,undefined
    -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # One runtime a process, whatever is loaded into it (libfaketime comes before it).
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libclang_rt.asan-x86_64.so
      OUTPUT_VARIABLE runtime OUTPUT_STRIP_TRAILING_WHITESPACE)
    get_filename_component(runtime ${runtime} DIRECTORY)
    add_link_options(-shared-libasan -Wl,-rpath,${runtime})
  endif()
elseif(ASSAY_SANITIZE STREQUAL "thread")
  target_compile_options(assay_options INTERFACE -fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(ASSAY_SANITIZE)
  message(FATAL_ERROR "ASSAY_SANITIZE is '${ASSAY_SANITIZE}': use 'address', 'thread' or nothing")
endif()

# Sets `out` to the sources of a target as one unit, since most of the time goes into headers; what lies
# outside the target's folder (generated files) stays by itself. Not CMake's own UNITY_BUILD, which
# names sources by absolute paths, so that a compiler cache never hits in another folder.
function(assay_one_unit out name)
  set(text "// The sources of ${name}, compiled as one (cmake/AssayTargets.cmake).\n")
  set(alone)
  set(members 0)
  foreach(source ${ARGN})
    get_source_file_property(apart ${source} SKIP_UNITY_BUILD_INCLUSION)
    if(source MATCHES "^[^/$].*\\.cc$" AND NOT apart)
      file(RELATIVE_PATH path ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/${source})
      string(APPEND text "#include \"${path}\"\n")
      math(EXPR members "${members} + 1")
    else()
      list(APPEND alone ${source})
    endif()
  endforeach()
  if(ASSAY_UNITY AND members GREATER 1)
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/units/${name}.cc CONTENT "${text}" @ONLY)
    set(${out} ${CMAKE_BINARY_DIR}/units/${name}.cc ${alone} PARENT_SCOPE)
  else()
    set(${out} ${ARGN} PARENT_SCOPE)
  endif()
endfunction()

function(assay_library name)
  cmake_parse_arguments(A "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  if(A_SOURCES)
    assay_one_unit(sources ${name} ${A_SOURCES})
    add_library(${name} STATIC ${sources})
    target_link_libraries(${name} PUBLIC ${A_PUBLIC} PRIVATE assay_options ${A_PRIVATE})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE ${A_PUBLIC})
  endif()
endfunction()

function(assay_program name)
  cmake_parse_arguments(A "" "" "SOURCES;PRIVATE" ${ARGN})
  assay_one_unit(sources ${name} ${A_SOURCES})
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE assay_options ${A_PRIVATE})
  # DT_RPATH, not DT_RUNPATH: it also serves the dependencies of the copied libraries.
  set_target_properties(${name} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
  target_link_options(${name} PRIVATE -Wl,--disable-new-dtags)
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

function(assay_test name)
  cmake_parse_arguments(A "WHOLE" "TIMEOUT;LOCK;PROCESSORS" "SOURCES;LINKS;LABELS;ENVIRONMENT" ${ARGN})
  if(NOT ASSAY_TESTS)
    return()
  endif()
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 60)
  endif()
  assay_one_unit(sources ${name} ${A_SOURCES})
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE assay_options ${A_LINKS} GTest::gtest GTest::gmock GTest::gtest_main)
  # Tests are compiled for speed of compilation, not of running.
  target_compile_options(${name} PRIVATE -O0)
  # For what would take minutes under a sanitizer and show nothing more.
  target_compile_definitions(${name} PRIVATE ASSAY_SANITIZED=$<NOT:$<STREQUAL:${ASSAY_SANITIZE},>>
    ASSAY_SANITIZED_THREAD=$<STREQUAL:${ASSAY_SANITIZE},thread>)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  if(NOT A_PROCESSORS)
    set(A_PROCESSORS 4)
  endif()
  # Only what is set: an empty value is dropped on the way to CTest, and the next key taken for it.
  set(more PROCESSORS ${A_PROCESSORS})
  if(A_LOCK)
    list(APPEND more RESOURCE_LOCK ${A_LOCK})
  endif()
  if(A_ENVIRONMENT)
    list(APPEND more ENVIRONMENT "${A_ENVIRONMENT}")
  endif()
  if(ASSAY_SANITIZE OR A_WHOLE)
    add_test(NAME ${ASSAY_TEST_PREFIX}${name} COMMAND ${name})
    if(ASSAY_SANITIZE)
      math(EXPR A_TIMEOUT "5 * ${A_TIMEOUT}")
    endif()
    set_tests_properties(${ASSAY_TEST_PREFIX}${name} PROPERTIES LABELS "${A_LABELS}"
      TIMEOUT ${A_TIMEOUT} ${more})
  else()
    gtest_discover_tests(${name} TEST_PREFIX "${ASSAY_TEST_PREFIX}${name}." DISCOVERY_TIMEOUT 60
      PROPERTIES LABELS "${A_LABELS}" TIMEOUT ${A_TIMEOUT} ${more})
  endif()
endfunction()
