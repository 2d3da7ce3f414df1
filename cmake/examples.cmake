# examples/*.cpp: one program each over include/weft, in examples/ of the build folder. Tests run them. (The examples in
# C have a folder and a Makefile each, for what `make install` puts somewhere.)

weft_sources(sources IN examples)
foreach(source IN LISTS sources)
  get_filename_component(name ${source} NAME_WE)
  add_executable(example_${name} EXCLUDE_FROM_ALL ${source})
  target_link_libraries(example_${name} PRIVATE weft_all)
  set_target_properties(example_${name} PROPERTIES OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY
                                                                       ${CMAKE_BINARY_DIR}/examples)
  if(TARGET weft_llvm)
    add_dependencies(example_${name} weft_llvm)  # opened when code is generated
  endif()
endforeach()
