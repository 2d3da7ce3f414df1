# libweft.so: the C interface with all that it uses, of which nothing is exported. Its name carries the
# version that src/capi/weft.h states.

file(STRINGS src/capi/weft.h abi_version REGEX "^#define WEFT_ABI_VERSION ")
string(REGEX REPLACE "^.* ([0-9]+)u$" "\\1" abi_version "${abi_version}")

file(CONFIGURE OUTPUT ${WEFT_GENERATED}/shared_library.cpp CONTENT "// A shared library wants a source of its own.\n")
add_library(weft_shared SHARED ${WEFT_GENERATED}/shared_library.cpp)
target_link_libraries(weft_shared PRIVATE $<LINK_LIBRARY:WHOLE_ARCHIVE,weft_capi>)
target_link_options(weft_shared PRIVATE -Wl,--version-script=${CMAKE_SOURCE_DIR}/src/capi/exports.map)
if(NOT WEFT_SANITIZE)
  target_link_options(weft_shared PRIVATE -Wl,--no-undefined)
endif()
set_target_properties(
  weft_shared
  PROPERTIES OUTPUT_NAME weft
             VERSION ${PROJECT_VERSION}
             SOVERSION ${abi_version}
             LINK_DEPENDS ${CMAKE_SOURCE_DIR}/src/capi/exports.map
             LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
