# The headers that row programs as CUDA C++ include (src/codegen/cuda_row_text.h), as text within the program: NVRTC is
# handed all that it reads.

set(headers "")
foreach(name codegen/row_math.h tensor/bfloat16.h tensor/float16.h tensor/float8.h tensor/float_bits.h
             tensor/float_rounding.h tensor/house_math.h)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name})
  file(READ ${CMAKE_SOURCE_DIR}/src/${name} text)
  string(APPEND headers "    {\"${name}\", R\"__(${text})__\"},\n")
endforeach()
weft_write_if_changed(${WEFT_GENERATED}/codegen/cuda_row_headers.h "#pragma once

// Made by the build from headers below src: their names and texts.

#include <string_view>
#include <utility>

namespace weft {
inline constexpr std::pair<std::string_view, std::string_view> kCudaRowHeaders[] = {
${headers}};
}
")
