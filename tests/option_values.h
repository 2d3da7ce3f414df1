#pragma once

// Values of options, for tests that try each row of the table.

#include <string>

#include "options/options.h"

namespace weft {

// Values of the option other than its default, as text. A path is in `folder` and not used for another option. Empty if
// there is no other value.
Words other_values(const OptionRow& row, const std::string& folder);

}  // namespace weft
