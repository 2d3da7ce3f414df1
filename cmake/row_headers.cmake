# The headers that row programs as CUDA C++ include (src/codegen/cuda_row_text.h), as text within the program: NVRTC is
# handed all that it reads.

set(names codegen/row_math.h tensor/bfloat16.h tensor/float16.h tensor/float4.h tensor/float8.h
          tensor/float_bits.h tensor/float_rounding.h tensor/reference_math.h)
list(TRANSFORM names PREPEND ${CMAKE_SOURCE_DIR}/src/ OUTPUT_VARIABLE headers)
list(JOIN names "," joined)
set(header ${WEFT_GENERATED}/codegen/cuda_row_headers.h)
set(script ${CMAKE_CURRENT_LIST_DIR}/write_row_headers.cmake)
set(command ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR}/src -DNAMES=${joined} -DTO=${header} -P ${script})
if(NOT EXISTS ${header})  # for who reads sources before anything was built
  execute_process(COMMAND ${command} COMMAND_ERROR_IS_FATAL ANY)
endif()
add_custom_command(
  OUTPUT ${header} COMMAND ${command} DEPENDS ${headers} ${script} ${CMAKE_CURRENT_LIST_FILE}
  COMMENT "Texts of the headers of row programs" VERBATIM)
target_sources(weft_codegen PRIVATE ${header})
