# fuzz/<name>_fuzz.cpp with its seeds in fuzz/corpus/<name>/: the program fuzz/<name> and the test fuzz_replay_<name>.
# The program replays the seeds and files it is given; under the fuzz preset it is the fuzzer itself, and no test.
#
# Debian has libFuzzer only as clang's runtime. What g++ lacks for it are inline counters; it calls a function per edge
# instead, which fuzz/edge_counters.cpp turns into the counters that libFuzzer reads.

if(WEFT_FUZZ)
  file(GLOB libfuzzer /usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-x86_64.a)
  if(NOT libfuzzer)
    message(FATAL_ERROR "[fuzz] wanted libFuzzer (Debian's libclang-rt-14-dev), but it is not installed")
  endif()
  list(GET libfuzzer 0 libfuzzer)
  add_library(weft_fuzz_main STATIC fuzz/edge_counters.cpp)
  target_link_libraries(weft_fuzz_main PUBLIC ${libfuzzer})
  target_link_options(weft_fuzz_main PUBLIC -Wl,--wrap=__sanitizer_cov_trace_pc)
else()
  add_library(weft_fuzz_main STATIC fuzz/replay_main.cpp)
endif()

add_custom_target(fuzz_targets)
weft_sources(targets IN fuzz)
list(FILTER targets INCLUDE REGEX "_fuzz[.]cpp$")
foreach(source IN LISTS targets)
  get_filename_component(name ${source} NAME_WE)
  string(REGEX REPLACE "_fuzz$" "" name ${name})
  add_executable(fuzz_${name} ${source})
  # Only the libraries that it includes, so that a sanitizer is built into few of them for the readers of files.
  file(STRINGS ${source} rooms REGEX "^#include \"[a-z]+/")
  list(TRANSFORM rooms REPLACE "^#include \"([a-z]+)/.*" "weft_\\1")
  list(REMOVE_DUPLICATES rooms)
  list(REMOVE_ITEM rooms weft_fuzz)
  target_link_libraries(fuzz_${name} PRIVATE ${rooms} weft_fuzz_main)
  target_include_directories(fuzz_${name} PRIVATE ${CMAKE_SOURCE_DIR})
  set_target_properties(fuzz_${name} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
  add_dependencies(fuzz_targets fuzz_${name})
  if(NOT WEFT_FUZZ)
    add_test(NAME fuzz_replay_${name} COMMAND fuzz_${name} ${CMAKE_SOURCE_DIR}/fuzz/corpus/${name})
    set_tests_properties(fuzz_replay_${name} PROPERTIES LABELS "fast;replay" TIMEOUT 600)
  endif()
endforeach()
