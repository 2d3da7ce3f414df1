#pragma once

// Identifies the build of the program or library that contains this code.

#include <string>

namespace weft {

// The build id that the linker wrote into it, in hexadecimal. It differs for any other code or data. "" if there is
// none.
std::string build_id();

}  // namespace weft
