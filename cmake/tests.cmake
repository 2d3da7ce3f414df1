# The suite: one executable per folder of tests/, and one more for its *_slow_test.cpp. Files below a folder that are
# not tests are support code of that folder; .cpp files directly in tests/ are support code of all, but for
# check_*.cpp, which are programs of their own.
#
# Labels: fast or slow (end_to_end and *_slow_test.cpp); threaded where a test has Thread or Concurrent in its name:
# under ThreadSanitizer only files with such tests are built. The suite of the kernels runs once under each ceiling of
# instruction sets; one that the machine cannot reach repeats the highest it has.
#
# Tests are compiled with little optimisation, unlike what they test: a third of all time to compile is theirs.

find_package(GTest)
find_package(rapidcheck CONFIG QUIET)
find_path(WEFT_Z3_HEADERS z3++.h NO_CACHE)
find_library(WEFT_Z3 z3 NO_CACHE)
enable_testing()
add_custom_target(threaded_tests)

function(weft_program_of_tests name source)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE weft_test_support)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
endfunction()

function(weft_run name program labels)
  # Properties draw the same cases on every run; started by hand without RC_PARAMS they draw new ones and name the seed.
  # What programs they start compile is not kept in the folder of whoever runs the tests.
  set(environment GTEST_OUTPUT=json:${CMAKE_BINARY_DIR}/test-reports/${name}.json RC_PARAMS=seed=1
                  WEFT_DISABLE_COMPILE_CACHE=1 ${ARGN})
  if(WEFT_SANITIZE STREQUAL "thread")
    list(APPEND environment GTEST_FILTER=*Thread*:*Concurrent*)
  endif()
  # For what hangs; a busy machine and a sanitizer together make the longest programs take an hour.
  set(limit 1200)
  if(WEFT_SANITIZE)
    set(limit 7200)
  endif()
  add_test(NAME ${name} COMMAND ${program} WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT ${limit} ENVIRONMENT "${environment}")
endfunction()

# Whether a file has tests of threads, the host's or the emulator's.
function(weft_is_threaded out source)
  file(STRINGS ${source} threaded REGEX "^TEST.*(Thread|Concurrent)")
  set(${out} OFF PARENT_SCOPE)
  if(threaded)
    set(${out} ON PARENT_SCOPE)
  endif()
endfunction()

function(weft_test_target target)
  target_compile_options(${target} PRIVATE ${WEFT_TEST_OPTIONS})
  target_link_libraries(${target} PRIVATE weft_test_support GTest::gtest_main rapidcheck)
  weft_precompiled_tests(${target})
  weft_grouped(${target} SIZE 6)
endfunction()

# What is not a test in a folder of tests. Sources that define macros for what they include, as
# instruction sets and their emulations do, are compiled alone.
function(weft_suite_support folder sources)
  set(alone ${sources})
  list(FILTER alone INCLUDE REGEX "/(emulated|amx_tile_calls)_")
  set_source_files_properties(${alone} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  add_library(test_support_${folder} STATIC ${sources})
  weft_test_target(test_support_${folder})
endfunction()

# The program test_<folder> or test_<folder>_slow.
function(weft_suite name folder label sources)
  if(WEFT_SANITIZE STREQUAL "thread")
    foreach(source IN LISTS sources)
      weft_is_threaded(threaded ${source})
      if(NOT threaded)
        list(REMOVE_ITEM sources ${source})
      endif()
    endforeach()
    if(NOT sources)
      return()
    endif()
  endif()
  add_executable(test_${name} ${sources})
  weft_test_target(test_${name})
  if(TARGET test_support_${folder})
    target_link_libraries(test_${name} PRIVATE test_support_${folder})
  endif()
  target_compile_definitions(test_${name} PRIVATE WEFT_PROGRAM="$<TARGET_FILE:weft>")
  set_target_properties(test_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  if(name MATCHES "^(end_to_end|errors|cli|server)")
    add_dependencies(test_${name} weft)
  endif()
  if(name MATCHES "^capture")
    add_dependencies(test_${name} example_capture)
    target_compile_definitions(test_${name} PRIVATE WEFT_EXAMPLE="$<TARGET_FILE:example_capture>")
  endif()
  if(name STREQUAL "tensor" AND WEFT_Z3_HEADERS AND WEFT_Z3)
    target_compile_definitions(test_tensor PRIVATE WEFT_Z3)
    target_link_libraries(test_tensor PRIVATE ${WEFT_Z3})
  endif()
  # What links what a sanitizer is built into needs it, too.
  if(name STREQUAL "capture_slow" AND NOT WEFT_SANITIZE)
    add_dependencies(test_${name} weft weft_shared ${package_libraries})
    target_compile_definitions(
      test_${name} PRIVATE WEFT_CMAKE="${CMAKE_COMMAND}" WEFT_BUILD_FOLDER="${CMAKE_BINARY_DIR}"
                           WEFT_CXX_COMPILER="${CMAKE_CXX_COMPILER}")
  endif()
  if(name STREQUAL "cuda")
    target_compile_definitions(test_support_cuda PRIVATE WEFT_PTX_FOLDER="${CMAKE_BINARY_DIR}/ptx")
    # The PTX interpreter is most of what runs.
    target_compile_options(test_support_cuda PRIVATE $<$<CONFIG:Release>:-O2>)
    # g++ 12 crashes on headers that were precompiled with less optimization.
    set_target_properties(test_support_cuda PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
    target_link_libraries(test_cuda PRIVATE test_support_codegen)
    if(TARGET cuda_ptx)
      add_dependencies(test_cuda cuda_ptx)
    endif()
  endif()
  if(name STREQUAL "server")
    target_link_libraries(test_server PRIVATE test_support_engine)  # which writes models
  endif()
  if(name STREQUAL "engine")
    target_link_libraries(test_engine PRIVATE test_support_cuda)  # which executes PTX
  endif()
  # A program of plain C cannot load what a sanitizer is built into.
  if(name STREQUAL "capi" AND NOT WEFT_SANITIZE)
    add_dependencies(test_${name} weft_shared weft)
    target_compile_definitions(test_${name} PRIVATE WEFT_SHARED_LIBRARY="$<TARGET_SONAME_FILE:weft_shared>")
  endif()
  set(labels ${label})
  foreach(source IN LISTS sources)
    weft_is_threaded(threaded ${source})
    if(threaded)
      list(APPEND labels threaded)
      add_dependencies(threaded_tests test_${name})
      break()
    endif()
  endforeach()
  if(name STREQUAL "kernels" AND NOT WEFT_SANITIZE)
    foreach(ceiling baseline avx2 avx512 vnni bf16 amx)
      weft_run(${name}_${ceiling} test_${name} "${labels}" WEFT_CPU_FEATURES=${ceiling})
    endforeach()
  else()
    weft_run(${name} test_${name} "${labels}")
  endif()
  # A completion on the fake device is to take less; all of them together take 13 seconds.
  if(name STREQUAL "cuda_slow" AND NOT WEFT_SANITIZE)
    set_tests_properties(${name} PROPERTIES TIMEOUT 90)
  endif()
endfunction()

function(weft_tests)
  weft_sources(all BELOW tests)
  list(FILTER all EXCLUDE REGEX "/tests/data/")

  set(support ${all})
  list(FILTER support INCLUDE REGEX "/tests/[^/]+[.]cpp$")
  set(programs ${support})
  list(FILTER programs INCLUDE REGEX "/check_[^/]+$")
  list(FILTER support EXCLUDE REGEX "/check_[^/]+$")
  if(support)
    add_library(weft_test_support STATIC ${support})
    target_compile_options(weft_test_support PRIVATE ${WEFT_TEST_OPTIONS})
    weft_grouped(weft_test_support SIZE 6)
    set(visibility PUBLIC)
  else()
    add_library(weft_test_support INTERFACE)
    set(visibility INTERFACE)
  endif()
  target_link_libraries(weft_test_support ${visibility} weft_cli weft_device_check_parts OpenSSL::SSL)
  target_compile_definitions(weft_test_support ${visibility} WEFT_TEST_DATA="${CMAKE_SOURCE_DIR}/tests/data"
                                               WEFT_SOURCE_ROOT="${CMAKE_SOURCE_DIR}")
  foreach(program IN LISTS programs)
    get_filename_component(name ${program} NAME_WE)
    weft_program_of_tests(${name} ${program})
  endforeach()

  # The vectors and references that other programs gave: all families of which ops exist here, by the meanings and by
  # every provider under every level of instruction sets; and the cases that are known to differ must go on differing;
  # tests/data/README.md says why. The same compiled, where the number is of cases that generated functions compute if
  # every op is native: of families of ops all but those without elements. Code without AVX2 takes long to make. Generated
  # code is not built with a sanitizer, so there the highest level is enough.
  set(ceilings baseline=slow avx2=fast bf16=fast)
  if(WEFT_SANITIZE)
    set(ceilings bf16=fast)
  endif()
  foreach(row activations=384 block_linear=10 fused=119 ir_ops=116 numbers=6 quant_fp8=194 quant_int8=120
              quant_kernels=117 quant_mx=72 rope=22)
    string(REPLACE "=" ";" row ${row})
    list(GET row 0 family)
    list(GET row 1 generated)
    if(NOT TARGET weft_llvm)
      set(generated 0)
    endif()
    set(check check_vectors ${CMAKE_SOURCE_DIR}/tests/data/ops --every --family ${family}
              --expect-failing ${CMAKE_SOURCE_DIR}/tests/check_vectors_differing.txt)
    add_test(NAME vectors_${family} COMMAND ${check})
    set_tests_properties(vectors_${family} PROPERTIES LABELS fast)
    foreach(ceiling IN LISTS ceilings)
      string(REPLACE "=" ";" ceiling ${ceiling})
      list(GET ceiling 0 features)
      list(GET ceiling 1 label)
      set(name vectors_${family}_compiled_${features})
      add_test(NAME ${name} COMMAND ${check} --compiled --least-generated ${generated})
      set_tests_properties(${name} PROPERTIES LABELS ${label} ENVIRONMENT WEFT_CPU_FEATURES=${features})
    endforeach()
  endforeach()
  add_test(NAME parity COMMAND check_parity ${CMAKE_SOURCE_DIR}/tests/data/parity smollm2-135m)
  set_tests_properties(parity PROPERTIES LABELS slow TIMEOUT 1200)
  if(Python3_FOUND AND NOT WEFT_SANITIZE)
    # The server under load, and the clients of others.
    add_test(NAME load COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/load/load_check.py $<TARGET_FILE:weft>
                               ${CMAKE_SOURCE_DIR}/tests/data/models/qwen2)
    add_test(NAME real_clients COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/load/real_clients_check.py
                                       $<TARGET_FILE:weft> ${CMAKE_SOURCE_DIR}/tests/data/models/qwen2
                                       ${CMAKE_BINARY_DIR}/real_clients)
    set_tests_properties(load real_clients PROPERTIES LABELS slow TIMEOUT 900 SKIP_REGULAR_EXPRESSION "is skipped")
  endif()

  if(NOT GTest_FOUND OR NOT rapidcheck_FOUND)
    message(STATUS "GoogleTest or RapidCheck is not installed: the suite is not built (make test installs them)")
    return()
  endif()
  set(folders ${all})
  list(FILTER folders INCLUDE REGEX "/tests/[^/]+/")
  list(TRANSFORM folders REPLACE "^.*/tests/([^/]+)/.*$" "\\1")
  list(REMOVE_DUPLICATES folders)
  foreach(folder IN LISTS folders)
    set(fast ${all})
    list(FILTER fast INCLUDE REGEX "/tests/${folder}/")
    set(slow ${fast})
    set(shared ${fast})
    list(FILTER shared EXCLUDE REGEX "_test[.]cpp$")
    list(FILTER slow INCLUDE REGEX "_slow_test[.]cpp$")
    list(FILTER fast EXCLUDE REGEX "_slow_test[.]cpp$")
    list(FILTER fast INCLUDE REGEX "_test[.]cpp$")
    if(shared)
      weft_suite_support(${folder} "${shared}")
    endif()
    if(slow)
      weft_suite(${folder}_slow ${folder} slow "${slow}")
    endif()
    if(fast)
      set(label fast)
      if(folder STREQUAL "end_to_end")
        set(label slow)
      endif()
      weft_suite(${folder} ${folder} ${label} "${fast}")
    endif()
  endforeach()
endfunction()

weft_tests()
