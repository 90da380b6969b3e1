# How every target of the project is built: language level, warnings as errors, sanitizers, where things go.
include(GNUInstallDirs)

# Debian's interpreter, which python3-yaml belongs to, not another one that comes first in PATH.
if(EXISTS /usr/bin/python3)
  set(Python3_EXECUTABLE /usr/bin/python3 CACHE FILEPATH "runs the generators")
endif()

option(LBF_BUILD_TESTS "unit, golden, mpi and cluster tests" ON)
option(LBF_BUILD_BENCH "benchmarks" ON)
option(LBF_WERROR "warnings are errors" ON)
option(LBF_UNITY "several sources of a target are compiled as one; OFF compiles each by itself" ON)
set(LBF_SANITIZE "" CACHE STRING "sanitizers: address,undefined or thread")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/archive)
set(CMAKE_UNITY_BUILD ${LBF_UNITY})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 12)
# A compiler cache and a fast linker, where they are installed.
find_program(LBF_CCACHE ccache)
if(LBF_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${LBF_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${LBF_CCACHE})
endif()
find_program(LBF_MOLD mold)
if(LBF_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

# What the thread sanitizer is for: the tests in which threads meet, and the programs that these start (lbf_test, THREADS).
if(LBF_SANITIZE STREQUAL "thread")
  add_custom_target(thread_tests)
endif()

set(LBF_PARTS "" CACHE STRING "build these folders only, e.g. base;event;tests/unit/event (empty: everything)")

# lbf_part(FOLDER): adds a folder of the project by its path from the root.
function(lbf_part folder)
  if(NOT EXISTS ${CMAKE_SOURCE_DIR}/${folder}/CMakeLists.txt)
    return()
  endif()
  if(LBF_PARTS AND NOT folder IN_LIST LBF_PARTS)
    return()
  endif()
  add_subdirectory(${CMAKE_SOURCE_DIR}/${folder} ${CMAKE_BINARY_DIR}/${folder})
endfunction()

# lbf_target(NAME): warnings, include root. Everything includes from the project's root: "event/event.h".
function(lbf_target name)
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR})
  target_compile_options(${name} PRIVATE -Wall -Wextra -Wshadow -Wcast-align
                                         $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor> $<$<COMPILE_LANGUAGE:CXX>:-Woverloaded-virtual>)
  if(LBF_UNITY)
    # A type of an anonymous namespace in one of a class is right in a source file, which in a unity build is included.
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
  endif()
  if(LBF_WERROR)
    target_compile_options(${name} PRIVATE -Werror)
  endif()
  if(LBF_SANITIZE)
    # What is found ends the test.
    target_compile_options(${name} PRIVATE -fsanitize=${LBF_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    if(LBF_SANITIZE STREQUAL "thread")
      # Boost.Asio has fences, which the sanitizer does not understand (and gcc says so). Instrumented code has
      # gcc 12 warn of optionals that are set.
      target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-tsan>
                                             $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
    endif()
    target_link_options(${name} PRIVATE -fsanitize=${LBF_SANITIZE})
  endif()
endfunction()

# lbf_library(NAME SOURCES ... LINKS ...): a static library of the project. LINKS are PUBLIC only where the
# headers need them: give those as PUBLIC_LINKS.
function(lbf_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS;PUBLIC_LINKS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC ${ARG_PUBLIC_LINKS} PRIVATE ${ARG_LINKS})
  lbf_target(${name})
endfunction()

# lbf_command(NAME SOURCES ... LINKS ... [DESTINATION ...] [COMPONENT ...]): a command, in build/PRESET/bin, installed; COMPONENT says
# with which package (packaging/CMakeLists.txt), tools unless given.
function(lbf_command name)
  cmake_parse_arguments(ARG "" "DESTINATION;COMPONENT" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINKS})
  target_compile_definitions(${name} PRIVATE LBF_VERSION="${PROJECT_VERSION}")
  target_link_options(${name} PRIVATE -Wl,-z,relro -Wl,-z,now)
  lbf_target(${name})
  if(NOT ARG_DESTINATION)
    set(ARG_DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
  if(NOT ARG_COMPONENT)
    set(ARG_COMPONENT tools)
  endif()
  install(TARGETS ${name} DESTINATION ${ARG_DESTINATION} COMPONENT ${ARG_COMPONENT})
endfunction()

# lbf_test(NAME SOURCES ... LINKS ... [SLOW PATTERN] [THREADS PATTERN]): a GoogleTest program; each of its tests is one ctest
# test. Those whose names match PATTERN (of --gtest_filter) are labelled slow: they run with ./check --all only. In those of
# THREADS several threads meet, of the test or of a program that it starts: with the thread sanitizer their label is threads.
function(lbf_test name)
  cmake_parse_arguments(ARG "" "LABEL;TIMEOUT;SLOW;THREADS" "SOURCES;LINKS" ${ARGN})
  find_package(GTest REQUIRED)
  include(GoogleTest)
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_LINKS} GTest::gmock GTest::gtest GTest::gtest_main)
  lbf_target(${name})
  # Lines for a stack trace, no variables, and -O1: a test compiles faster, and runs as long. gcc 12 warns of optionals
  # that are set.
  target_compile_options(${name} PRIVATE -g1 $<$<CONFIG:Release,RelWithDebInfo>:-O1>
                                         $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  if(NOT ARG_LABEL)
    set(ARG_LABEL unit)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  set(apart "${ARG_SLOW}")
  set(label_apart slow)
  if(ARG_THREADS AND TARGET thread_tests)
    add_dependencies(thread_tests ${name})
    math(EXPR ARG_TIMEOUT "4 * ${ARG_TIMEOUT}")
    set(apart "${ARG_THREADS}")
    set(label_apart threads)
  endif()
  set(properties LABELS ${ARG_LABEL} TIMEOUT ${ARG_TIMEOUT})
  if(ARG_LABEL STREQUAL mpi)
    # MPICH's UCX opens every interface of the machine, and those of a cluster that ends meanwhile are gone.
    list(APPEND properties ENVIRONMENT UCX_NET_DEVICES=lo)
  endif()
  if(apart)
    gtest_discover_tests(${name} TEST_FILTER "-${apart}" DISCOVERY_TIMEOUT 60
                         PROPERTIES ${properties})
    gtest_discover_tests(${name} TEST_FILTER "${apart}" TEST_LIST ${name}_${label_apart} DISCOVERY_TIMEOUT 60
                         PROPERTIES ${properties} LABELS ${label_apart})
    return()
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES ${properties})
endfunction()
