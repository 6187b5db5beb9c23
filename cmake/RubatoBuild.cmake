# How every target of the project is compiled. Nothing here reaches the targets of a user.

if(PROJECT_IS_TOP_LEVEL)
  if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
  endif()
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}")
  find_program(RUBATO_CCACHE ccache)
  if(RUBATO_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    # A precompiled header changes its time stamp with each build; its content decides.
    set(CMAKE_CXX_COMPILER_LAUNCHER
        "${CMAKE_COMMAND}" -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
        "${RUBATO_CCACHE}")
  endif()
  # With few CPUs the headers are parsed once for each target, with many a target's files are compiled side by side.
  cmake_host_system_information(RESULT cpus QUERY NUMBER_OF_LOGICAL_CORES)
  if(cpus LESS_EQUAL 4 AND NOT DEFINED CMAKE_UNITY_BUILD_BATCH_SIZE)
    set(CMAKE_UNITY_BUILD_BATCH_SIZE 0)
  endif()
endif()

add_library(rubato_build INTERFACE)
target_compile_features(rubato_build INTERFACE cxx_std_20)
# Headers that are not installed: "numbers/scaling/rules.hpp".
target_include_directories(rubato_build INTERFACE "${PROJECT_SOURCE_DIR}/src")
target_compile_options(rubato_build INTERFACE
  -Wall -Wextra -Wconversion -Wshadow $<$<CXX_COMPILER_ID:Clang>:-Wreserved-identifier>
  # A sum must not depend on whether the compiler fused a multiply with an add (docs/adr/0002).
  -ffp-contract=off)
if(RUBATO_SANITIZE)
  target_compile_options(rubato_build INTERFACE
    -fsanitize=${RUBATO_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(rubato_build INTERFACE -fsanitize=${RUBATO_SANITIZE})
  target_compile_definitions(rubato_build INTERFACE RUBATO_SANITIZED)
  if(RUBATO_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(rubato_build INTERFACE
      "-fsanitize-ignorelist=${PROJECT_SOURCE_DIR}/cmake/tsan_ignored.txt")
  endif()
endif()

# For what runs once, not once a step: compiles in four fifths of the time, and in half of it for AddressSanitizer.
add_library(rubato_cold INTERFACE)
if(RUBATO_SANITIZE MATCHES "address")
  target_compile_options(rubato_cold INTERFACE -O0)
else()
  target_compile_options(rubato_cold INTERFACE $<$<CONFIG:Release>:-O1>)
endif()

# The language and the compiler extensions, for every target made below this line.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# Programs too are compiled as libraries are, so that those of the tests can share one precompiled header.
set(CMAKE_CXX_COMPILE_OPTIONS_PIE -fPIC)
