# cmake -DSOURCE=ROOT -DNAMES=a.h,b.h -DTO=FILE -P write_row_headers.cmake
#
# A header with the names and texts of headers below ROOT.

string(REPLACE "," ";" names "${NAMES}")
set(headers "")
foreach(name IN LISTS names)
  file(READ ${SOURCE}/${name} text)
  string(APPEND headers "    {\"${name}\", R\"__(${text})__\"},\n")
endforeach()
file(WRITE ${TO} "#pragma once

// Made by the build from headers below src: their names and texts.

#include <string_view>
#include <utility>

namespace weft {
inline constexpr std::pair<std::string_view, std::string_view> kCudaRowHeaders[] = {
${headers}};
}
")
