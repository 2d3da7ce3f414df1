# weft_sources(OUT BELOW|IN FOLDER [EXCEPT NAME...])
#
# The .cpp files in a folder (IN), or in it and below it (BELOW), sorted, as full paths. Every list of sources of the
# build comes from here; a file that appears or goes is noticed at the next build.
function(weft_sources out depth folder)
  cmake_parse_arguments(PARSE_ARGV 3 argument "" "" "EXCEPT")
  if(depth STREQUAL "BELOW")
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.cpp)
  elseif(depth STREQUAL "IN")
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/*.cpp)
  else()
    message(FATAL_ERROR "weft_sources: wanted BELOW or IN, but is ${depth}")
  endif()
  foreach(name IN LISTS argument_EXCEPT)
    list(FILTER sources EXCLUDE REGEX "/${name}$")
  endforeach()
  set(${out} ${sources} PARENT_SCOPE)
endfunction()
