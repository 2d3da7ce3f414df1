# What nvcc makes of the CUDA kernels, for the interpreter of the tests: build/ptx/NAME.ARCHITECTURE.ptx. Where there is
# no nvcc of the pinned release absent.txt says so, and the tests skip. So they do under sanitizers, which would see the
# same texts run more slowly; the interpreter's own tests run there.

set(WEFT_PTX_ARCHITECTURES 80 89)  # 89 converts to f8e4m3 itself

set(folder ${CMAKE_BINARY_DIR}/ptx)
set(tool ${CMAKE_SOURCE_DIR}/tools/make_ptx.py)
set(nvcc "the build has no Python")
set(problem 1)
if(WEFT_SANITIZE)
  set(nvcc "the build has a sanitizer")
elseif(Python3_FOUND)
  execute_process(COMMAND ${Python3_EXECUTABLE} ${tool} find ${WEFT_NVCC} OUTPUT_VARIABLE nvcc
                  OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE problem)
endif()
file(MAKE_DIRECTORY ${folder})
set(texts "")
if(problem)
  weft_write_if_changed(${folder}/absent.txt "${nvcc}")
else()
  file(REMOVE ${folder}/absent.txt)
  weft_write_if_changed(${folder}/nvcc.txt "${nvcc}")
  foreach(source IN LISTS cuda_sources)
    get_filename_component(name ${source} NAME_WE)
    foreach(architecture IN LISTS WEFT_PTX_ARCHITECTURES)
      set(text ${folder}/${name}.${architecture}.ptx)
      add_custom_command(
        OUTPUT ${text}
        COMMAND ${Python3_EXECUTABLE} ${tool} compile ${nvcc} ${architecture} ${source} ${text}
        DEPENDS ${source} ${tool} ${CMAKE_SOURCE_DIR}/tools/cuda_code.py ${nvcc} DEPFILE ${folder}/${name}.${architecture}.d
        COMMENT "Compiling ${name}.cu to PTX for sm_${architecture}" VERBATIM)
      list(APPEND texts ${text})
    endforeach()
  endforeach()
  add_custom_target(cuda_ptx DEPENDS ${texts})
endif()
# Of sources that are gone.
file(GLOB stale ${folder}/*.ptx)
foreach(text IN LISTS stale)
  if(NOT text IN_LIST texts)
    file(REMOVE ${text})
  endif()
endforeach()
