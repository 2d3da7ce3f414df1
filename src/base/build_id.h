#pragma once

// Identifies the build of the program or library that contains this code.

#include <string>

namespace weft {

// In hexadecimal, another one for any other code or data of Weft. It is the stamp that the program and libweft.so share
// (cmake/build_stamp.cmake), because each takes what the other has compiled. A program that is linked from Weft's
// libraries without the stamp, such as a test, has the build id that the linker wrote into it, and "" if there is none.
std::string build_id();

}  // namespace weft
