# -DWEFT_CUDA=ON: nvcc makes device code of src/kernels/cuda/device/*.cu, which the program then carries. Nothing of a
# toolkit is linked, and the program runs where there is no driver. Without it the tables are empty.

option(WEFT_CUDA "Compile the CUDA kernels for GPUs; needs nvcc of CUDA 13" OFF)

set(tool ${CMAKE_SOURCE_DIR}/tools/device_code.sh)
set(folder ${CMAKE_BINARY_DIR}/device_code)
set(names "")
set(fatbins "")
if(WEFT_CUDA)
  if(NOT WEFT_NVCC)
    message(FATAL_ERROR "[WEFT_CUDA] wanted nvcc of CUDA 13 in PATH, in $CUDA_HOME/bin, in /usr/local/cuda/bin or where "
                        "tools/fetch_nvcc.py brings it from PyPI, but there is none: run tools/fetch_nvcc.py and "
                        "configure anew, or give -DWEFT_NVCC=PATH")
  endif()
  file(MAKE_DIRECTORY ${folder})
  foreach(source IN LISTS cuda_sources)
    get_filename_component(name ${source} NAME_WE)
    list(APPEND names ${name})
    list(APPEND fatbins ${folder}/${name}.fatbin)
    add_custom_command(
      OUTPUT ${folder}/${name}.fatbin
      COMMAND ${tool} compile ${WEFT_NVCC} ${source} ${folder}/${name}.fatbin ${folder}/${name}.d
      DEPENDS ${source} ${tool} DEPFILE ${folder}/${name}.d
      COMMENT "Compiling ${name}.cu for GPUs" VERBATIM)
  endforeach()
endif()
execute_process(COMMAND ${tool} table ${folder} ${names} OUTPUT_VARIABLE table COMMAND_ERROR_IS_FATAL ANY)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${tool})
weft_write_if_changed(${WEFT_GENERATED}/device_code_table.cpp "${table}")
# The assembler reads the fatbins: neither the compiler nor its cache knows.
set_source_files_properties(${WEFT_GENERATED}/device_code_table.cpp PROPERTIES OBJECT_DEPENDS "${fatbins}"
                                                                               SKIP_UNITY_BUILD_INCLUSION ON)
target_sources(weft_kernels_cuda PRIVATE ${WEFT_GENERATED}/device_code_table.cpp)
