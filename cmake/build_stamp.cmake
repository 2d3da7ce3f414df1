# The program and libweft.so have the same compiler and kernels, so each takes what the other has stored. The stamp of
# the libraries that both are linked from is their build id (src/base/build_id.h).

get_property(targets DIRECTORY PROPERTY BUILDSYSTEM_TARGETS)
set(stamped "")
foreach(target IN LISTS targets)
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "STATIC_LIBRARY" AND NOT target STREQUAL "weft_cli")
    list(APPEND stamped ${target})
  endif()
endforeach()
set(files ${stamped})
list(TRANSFORM files REPLACE "(.+)" "$<TARGET_FILE:\\1>")
add_custom_command(
  OUTPUT ${WEFT_GENERATED}/build_stamp.cpp
  COMMAND ${CMAKE_COMMAND} "-DFILES=${files}" -DOUTPUT=${WEFT_GENERATED}/build_stamp.cpp
          -P ${CMAKE_SOURCE_DIR}/cmake/write_build_stamp.cmake
  DEPENDS ${stamped} ${CMAKE_SOURCE_DIR}/cmake/write_build_stamp.cmake
  COMMENT "Writing the build stamp"
  VERBATIM)
add_library(weft_build_stamp OBJECT ${WEFT_GENERATED}/build_stamp.cpp)
target_link_libraries(weft_build_stamp PRIVATE weft_libraries)
foreach(target weft weft_shared)
  target_link_libraries(${target} PRIVATE weft_build_stamp)
endforeach()
