# One folder is one target. assay_library(NAME SOURCES ... PUBLIC ... PRIVATE ...) and
# assay_program(NAME SOURCES ... PRIVATE ...) give every target the same warnings and include root;
# assay_test(NAME SOURCES ... LINKS ... LABELS ... [TIMEOUT S] [SERIAL] [LOCK L]) registers each GoogleTest case
# with CTest; in sanitized builds the whole program as one, since starting hundreds of them would take
# longer than what they do (what is skipped shows by name in the release build). SERIAL: it needs the
# machine for itself. LOCK: never beside another test with the same lock.

add_library(assay_options INTERFACE)
target_include_directories(assay_options INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/gen)
target_compile_options(assay_options INTERFACE -Wall -Wextra -Wno-unused-parameter -Werror=return-type
  -Wnon-virtual-dtor -Woverloaded-virtual)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(assay_options INTERFACE -Wthread-safety -Werror=thread-safety)
else()
  # GCC 12 reports false maybe-uninitialized and dangling warnings inside libstdc++ at -O2.
  target_compile_options(assay_options INTERFACE -Wno-maybe-uninitialized -Wno-restrict)
endif()
if(ASSAY_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined
    -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(ASSAY_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(ASSAY_SANITIZE)
  message(FATAL_ERROR "ASSAY_SANITIZE is '${ASSAY_SANITIZE}': use 'address', 'thread' or nothing")
endif()

function(assay_library name)
  cmake_parse_arguments(A "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  if(A_SOURCES)
    add_library(${name} STATIC ${A_SOURCES})
    target_link_libraries(${name} PUBLIC ${A_PUBLIC} PRIVATE assay_options ${A_PRIVATE})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE ${A_PUBLIC})
  endif()
endfunction()

function(assay_program name)
  cmake_parse_arguments(A "" "" "SOURCES;PRIVATE" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  target_link_libraries(${name} PRIVATE assay_options ${A_PRIVATE})
  # DT_RPATH, not DT_RUNPATH: it also serves the dependencies of the copied libraries.
  set_target_properties(${name} PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
  target_link_options(${name} PRIVATE -Wl,--disable-new-dtags)
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

function(assay_test name)
  cmake_parse_arguments(A "SERIAL" "TIMEOUT;LOCK" "SOURCES;LINKS;LABELS;ENVIRONMENT" ${ARGN})
  if(NOT ASSAY_TESTS)
    return()
  endif()
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 60)
  endif()
  add_executable(${name} ${A_SOURCES})
  target_link_libraries(${name} PRIVATE assay_options ${A_LINKS} GTest::gtest GTest::gmock GTest::gtest_main)
  # Tests are compiled for speed of compilation, not of running: each program as one unit, since
  # most of the time goes into headers.
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
  target_compile_options(${name} PRIVATE -O0)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  # Only what is set: an empty value is dropped on the way to CTest, and the next key taken for it.
  set(more)
  if(A_LOCK)
    list(APPEND more RESOURCE_LOCK ${A_LOCK})
  endif()
  if(A_ENVIRONMENT)
    list(APPEND more ENVIRONMENT "${A_ENVIRONMENT}")
  endif()
  if(A_SERIAL)
    list(APPEND more RUN_SERIAL TRUE)
  endif()
  if(ASSAY_SANITIZE)
    add_test(NAME ${ASSAY_TEST_PREFIX}${name} COMMAND ${name})
    math(EXPR A_TIMEOUT "5 * ${A_TIMEOUT}")
    set_tests_properties(${ASSAY_TEST_PREFIX}${name} PROPERTIES LABELS "${A_LABELS}"
      TIMEOUT ${A_TIMEOUT} ${more})
  else()
    gtest_discover_tests(${name} TEST_PREFIX "${ASSAY_TEST_PREFIX}${name}." DISCOVERY_TIMEOUT 60
      PROPERTIES LABELS "${A_LABELS}" TIMEOUT ${A_TIMEOUT} ${more})
  endif()
endfunction()
