#pragma once

// Which build of the program or library this code is part of.

#include <string>

namespace weft {

// The build id that the linker wrote into it, in hexadecimal: another for any other code or data. "" where there is
// none.
std::string build_id();

}  // namespace weft
