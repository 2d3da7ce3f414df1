# The kernels in CUDA C++, src/kernels/cuda/device/*.cu. The host's compiler makes plain code of them for the emulator;
# where there is an nvcc the contract test (tools/check_cuda.py) has it compile them, too. Nothing else needs a toolkit.

file(GLOB cuda_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/kernels/cuda/device/*.cu)
set_source_files_properties(${cuda_sources} PROPERTIES LANGUAGE CXX)

# emulated_kernels(): what each file defines.
set(cuda_declarations "")
set(cuda_rows "")
foreach(source IN LISTS cuda_sources)
  get_filename_component(stem ${source} NAME_WE)
  string(APPEND cuda_declarations "std::span<const EmulatedKernel> emulated_${stem}();\n")
  string(APPEND cuda_rows "      emulated_${stem}(),\n")
endforeach()
weft_write_if_changed(${WEFT_GENERATED}/emulated_kernels.cpp "// Made by the build from the files of src/kernels/cuda/device

#include \"kernels/cuda/code/kernel_table.h\"

namespace weft::cuda {

${cuda_declarations}
std::span<const std::span<const EmulatedKernel>> emulated_kernels() {
  static const std::span<const EmulatedKernel> kFiles[] = {
${cuda_rows}  };
  return kFiles;
}

}  // namespace weft::cuda
")
target_sources(weft_kernels_cuda PRIVATE ${cuda_sources} ${WEFT_GENERATED}/emulated_kernels.cpp)

# nvcc's part: what the kernels compile to must keep its contract, and the check itself must see a breach. And bugs that
# are seeded in the kernels must be seen by their tests.
find_package(GTest QUIET)
find_package(rapidcheck CONFIG QUIET)
# Where tools/fetch_nvcc.py puts one.
set(cache $ENV{XDG_CACHE_HOME})
if(NOT cache)
  set(cache $ENV{HOME}/.cache)
endif()
file(GLOB fetched ${cache}/weft/nvcc-*/nvidia/cu13/bin)
find_program(WEFT_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin ${fetched})
find_package(Python3 COMPONENTS Interpreter)
enable_testing()
if(Python3_FOUND AND NOT WEFT_SANITIZE)
  set(check ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/check_cuda.py)
  if(WEFT_NVCC)
    list(APPEND check --nvcc ${WEFT_NVCC})
  endif()
  add_test(NAME cuda_contract COMMAND ${check} --results ${CMAKE_BINARY_DIR}/cuda_contract.json ${cuda_sources}
                                      ${CMAKE_SOURCE_DIR}/src/kernels/cuda/device/contract.json)
  set_tests_properties(cuda_contract PROPERTIES LABELS slow TIMEOUT 3600)
  # Compiles with the build's own commands.
  if(GTest_FOUND AND rapidcheck_FOUND AND CMAKE_GENERATOR STREQUAL "Ninja")
    add_test(NAME seeded_faults COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/check_seeded_faults.py --build
                                       ${CMAKE_BINARY_DIR} --results ${CMAKE_BINARY_DIR}/seeded_faults.json)
    set_tests_properties(seeded_faults PROPERTIES LABELS slow TIMEOUT 3600)
    # Compiles every kernel anew, where the program is another one than it was.
    add_test(NAME cuda_sanitized COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/check_sanitized.py --build
                                         ${CMAKE_BINARY_DIR} --results ${CMAKE_BINARY_DIR}/cuda_sanitized.txt)
    set_tests_properties(cuda_sanitized PROPERTIES LABELS slow TIMEOUT 1200)
    add_test(NAME cuda_device_code COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/check_device_code.py --build
                                           ${CMAKE_BINARY_DIR} --nvcc "${WEFT_NVCC}")
    set_tests_properties(cuda_device_code PROPERTIES LABELS fast TIMEOUT 600 SKIP_REGULAR_EXPRESSION "is skipped")
  endif()
  if(WEFT_NVCC)
    set(broken ${CMAKE_SOURCE_DIR}/tests/cuda/contract/broken)
    add_test(NAME cuda_contract_broken COMMAND ${check} ${broken}.cu ${broken}.json)
    set_tests_properties(cuda_contract_broken PROPERTIES LABELS fast TIMEOUT 600 PASS_REGULAR_EXPRESSION ": 29 breaches"
                                                         SKIP_REGULAR_EXPRESSION "is skipped")
    set(steps ${CMAKE_SOURCE_DIR}/tests/cuda/steps)
    add_test(NAME cuda_contract_steps COMMAND ${check} ${steps}/silu_and_mul_steps.cu ${steps}/steps.json)
    set_tests_properties(cuda_contract_steps PROPERTIES LABELS fast TIMEOUT 600 SKIP_REGULAR_EXPRESSION "is skipped")
  endif()
  add_test(NAME cuda_contract_old_nvcc COMMAND ${check} --nvcc ${CMAKE_SOURCE_DIR}/tests/cuda/contract/old_nvcc
                                               ${cuda_sources} ${CMAKE_SOURCE_DIR}/src/kernels/cuda/device/contract.json)
  set_tests_properties(cuda_contract_old_nvcc PROPERTIES LABELS fast ENVIRONMENT XDG_CACHE_HOME=${CMAKE_BINARY_DIR}
                       PASS_REGULAR_EXPRESSION "is skipped: .*/old_nvcc is of release 11.8, not ")
endif()
