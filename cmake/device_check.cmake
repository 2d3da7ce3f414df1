# weft_device_check: recorded launches, faults and times of the kernels, on the fake device and with -DWEFT_CUDA=ON on a
# GPU. tools/gpu_check.sh packs it for a machine that has one.

weft_sources(sources IN apps/device_check EXCEPT main.cpp)
add_library(weft_device_check_parts STATIC ${sources})
target_link_libraries(weft_device_check_parts PUBLIC weft_builtin)
target_include_directories(weft_device_check_parts PUBLIC ${CMAKE_SOURCE_DIR})
weft_runs_once(weft_device_check_parts)

add_executable(weft_device_check apps/device_check/main.cpp)
target_link_libraries(weft_device_check PRIVATE weft_device_check_parts)
set_target_properties(weft_device_check PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})

# All of what it packs, on the fake device.
enable_testing()
if(Python3_FOUND AND NOT WEFT_SANITIZE)
  add_test(NAME gpu_check COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tests/gpu_check/gpu_check_test.py
                                  ${CMAKE_BINARY_DIR})
  set_tests_properties(gpu_check PROPERTIES LABELS slow TIMEOUT 900)
endif()
