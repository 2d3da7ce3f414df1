# weft_device_check: what runs on a machine with a GPU. There tools/build_device_check.sh builds it of the same sources;
# here it is for the fake device, and with -DWEFT_CUDA=ON for a GPU too.

weft_sources(sources IN apps/device_check EXCEPT main.cpp)
add_library(weft_device_check_parts STATIC ${sources})
target_link_libraries(weft_device_check_parts PUBLIC weft_builtin)
target_include_directories(weft_device_check_parts PUBLIC ${CMAKE_SOURCE_DIR})
weft_runs_once(weft_device_check_parts)

add_executable(weft_device_check apps/device_check/main.cpp)
target_link_libraries(weft_device_check PRIVATE weft_device_check_parts)
set_target_properties(weft_device_check PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})

enable_testing()
if(NOT WEFT_SANITIZE)
  add_test(NAME device_check_alone COMMAND ${CMAKE_SOURCE_DIR}/tools/check_device_check.sh $<TARGET_FILE:check_launches>
                                           ${CMAKE_BINARY_DIR}/device_check_alone)
  set_tests_properties(device_check_alone PROPERTIES LABELS slow TIMEOUT 1200)
  if(WEFT_CCACHE)
    set_tests_properties(device_check_alone PROPERTIES ENVIRONMENT "CXX=${WEFT_CCACHE} ${CMAKE_CXX_COMPILER}")
  else()
    set_tests_properties(device_check_alone PROPERTIES ENVIRONMENT "CXX=${CMAKE_CXX_COMPILER}")
  endif()
endif()
