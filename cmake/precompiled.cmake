# Heavy headers that most sources include, parsed once: about a second less for each file. It never stands in for an
# #include: the thread sanitizer's build goes without, so that a source that lacks one fails there. Nor does it group
# the sources of folders with many small ones, of which eight together take the time of two.
#
# weft_precompiled(TARGET) and weft_precompiled_tests(TARGET) let a target use them; weft_grouped(TARGET) groups its
# sources: what they name in anonymous namespaces must differ from file to file then.

if(WEFT_SANITIZE STREQUAL "thread")
  set(default OFF)
else()
  set(default ON)
endif()
option(WEFT_PRECOMPILE "Precompile heavy headers" ${default})

set(WEFT_HEAVY_HEADERS <algorithm> <array> <cstdint> <functional> <map> <memory> <optional> <span> <string>
                       <string_view> <utility> <variant> <vector> <fmt/core.h>)

function(weft_precompile name)
  set(empty ${WEFT_GENERATED}/${name}.cpp)
  file(CONFIGURE OUTPUT ${empty} CONTENT "// Carries the precompiled headers.\n")
  add_library(${name} OBJECT ${empty})
  target_link_libraries(${name} PRIVATE weft_libraries)
  target_precompile_headers(${name} PRIVATE ${ARGN})
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

function(weft_grouped target)
  if(WEFT_PRECOMPILE)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  endif()
endfunction()
