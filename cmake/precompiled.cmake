# What makes a build of everything fast: heavy headers that most sources include are parsed once, about a second less for
# each file, and sources are compiled in groups, of which six together take the time of two. What the sources of one
# target name in anonymous namespaces must differ from file to file then; a file of tests has a namespace of its own.
#
# A group may not stand in for an #include, nor lend a function: tools/check_alone.py (make check) reads each source by
# itself. The dev preset does without both, so that a change compiles no more than it touches.
#
# weft_precompiled(TARGET) and weft_precompiled_tests(TARGET) give a target the headers, weft_grouped(TARGET SIZE n)
# the groups.

set(default ON)
if(CMAKE_BUILD_TYPE STREQUAL "Debug")
  set(default OFF)
endif()
option(WEFT_PRECOMPILE "Precompile heavy headers and compile sources in groups" ${default})

set(WEFT_HEAVY_HEADERS <algorithm> <array> <cstdint> <functional> <map> <memory> <optional> <span> <string>
                       <string_view> <utility> <variant> <vector> <fmt/core.h>)

function(weft_precompile name)
  set(empty ${WEFT_GENERATED}/${name}.cpp)
  file(CONFIGURE OUTPUT ${empty} CONTENT "// Carries the precompiled headers.\n")
  add_library(${name} OBJECT ${empty})
  target_link_libraries(${name} PRIVATE weft_libraries)
  target_precompile_headers(${name} PRIVATE ${ARGN})
endfunction()

function(weft_grouped target)
  cmake_parse_arguments(PARSE_ARGV 1 group "" "SIZE" "")
  if(NOT group_SIZE)
    set(group_SIZE 12)
  endif()
  if(WEFT_PRECOMPILE)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${group_SIZE})
    # g++ takes what a group includes for headers, which should not have members of anonymous types.
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()

function(weft_precompiled target)
  if(WEFT_PRECOMPILE)
    if(NOT TARGET weft_precompiled_headers)
      weft_precompile(weft_precompiled_headers ${WEFT_HEAVY_HEADERS})
    endif()
    target_precompile_headers(${target} REUSE_FROM weft_precompiled_headers)
  endif()
endfunction()

function(weft_precompiled_tests target)
  if(WEFT_PRECOMPILE)
    if(NOT TARGET weft_precompiled_test_headers)
      weft_precompile(weft_precompiled_test_headers ${WEFT_HEAVY_HEADERS} <gtest/gtest.h>)
      target_link_libraries(weft_precompiled_test_headers PRIVATE GTest::gtest)
      target_compile_options(weft_precompiled_test_headers PRIVATE ${WEFT_TEST_OPTIONS})
    endif()
    target_precompile_headers(${target} REUSE_FROM weft_precompiled_test_headers)
  endif()
endfunction()
