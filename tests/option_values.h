#pragma once

// What options can be set to, for tests that try each row of the table.

#include <string>

#include "options/options.h"

namespace weft {

// Values that the option can be given besides its default, as text; of paths one in `folder`, which no other option is
// given. None where there is no other value.
Words other_values(const OptionRow& row, const std::string& folder);

}  // namespace weft
