# weft_layers(): one static library per line of tools/layers.txt that lies in src/, linked against the layers it may
# include. A folder with no source becomes a library of nothing, so that the lines may be ahead of the tree.

function(weft_layer name depth)
  weft_sources(sources ${depth} src/${name})
  string(REPLACE "/" "_" target weft_${name})
  set(dependencies ${ARGN})
  list(REMOVE_ITEM dependencies include/weft)  # headers alone, found below include/
  list(TRANSFORM dependencies REPLACE "/" "_")
  list(TRANSFORM dependencies PREPEND "weft_")
  if(sources)
    add_library(${target} STATIC ${sources})
    weft_instruction_set_flags("${sources}")
    weft_precompiled(${target})
    # Each file of kernels has a function `run`; tools/relink.py replaces single objects of the emulator.
    if(NOT name MATCHES "^(kernels/|emulator$)")
      weft_grouped(${target})
    endif()
    if(name MATCHES "^(builtin|capi|plugin|quantize|report)$")
      weft_runs_once(${target})
    endif()
    if(name STREQUAL "server")
      weft_asynchronous(${target})
    endif()
    set(visibility PUBLIC)
  else()
    add_library(${target} INTERFACE)
    set(visibility INTERFACE)
  endif()
  target_include_directories(${target} ${visibility} $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/src>
                                                     $<BUILD_INTERFACE:${WEFT_GENERATED}>)
  target_link_libraries(${target} ${visibility} ${dependencies} weft_libraries)
  if("include/weft" IN_LIST ARGN)
    target_include_directories(${target} ${visibility} $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>)
  endif()
endfunction()

# Beast and Asio take up to 20 s to compile: the sources that include them are in no group, so that a change to another
# source does not compile them again.
function(weft_asynchronous target)
  target_include_directories(${target} SYSTEM PRIVATE ${WEFT_BOOST_HEADERS})
  target_link_libraries(${target} PRIVATE OpenSSL::SSL)
  set_source_files_properties(
    ${CMAKE_SOURCE_DIR}/src/server/body_reader.cpp ${CMAKE_SOURCE_DIR}/src/server/connection_stream.cpp
    ${CMAKE_SOURCE_DIR}/src/server/http_connection.cpp ${CMAKE_SOURCE_DIR}/src/server/http_server.cpp
    ${CMAKE_SOURCE_DIR}/src/server/stream_client.cpp
    PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

function(weft_layers)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tools/layers.txt)
  file(STRINGS ${CMAKE_SOURCE_DIR}/tools/layers.txt lines REGEX "^[^#]+:")
  add_library(weft_all INTERFACE)
  foreach(line IN LISTS lines)
    string(REGEX MATCH "^([^:]+[^:/])(/?): *(.*)$" matched "${line}")
    set(name ${CMAKE_MATCH_1})
    string(REPLACE " " ";" dependencies "${CMAKE_MATCH_3}")
    set(depth IN)
    if(CMAKE_MATCH_2)
      set(depth BELOW)
    endif()
    string(REGEX REPLACE "^kernels/" "" provider ${name})
    # codegen/llvm is a shared library of its own (llvm.cmake).
    if(name MATCHES "^(apps|bench|examples|fuzz|include|python|tests)(/|$)" OR name STREQUAL "codegen/llvm"
       OR provider IN_LIST WEFT_ABSENT_PROVIDERS)
      continue()
    endif()
    weft_layer(${name} ${depth} ${dependencies})
    string(REPLACE "/" "_" target weft_${name})
    target_link_libraries(weft_all INTERFACE ${target})
  endforeach()
  target_include_directories(weft_all INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_SOURCE_DIR}/include)
endfunction()
