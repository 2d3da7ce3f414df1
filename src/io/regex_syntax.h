#pragma once

// Rewrites a pattern from Oniguruma's syntax into PCRE2's, construct by construct; regex.h says what is kept,
// translated and refused. Sources: Oniguruma's doc/RE, pcre2pattern(3) of 10.42.

#include <string>
#include <string_view>

namespace weft {

// UserError: a construct outside the subset, named. The result may still be malformed, which PCRE2 will say.
std::string translate_oniguruma(std::string_view pattern);

}  // namespace weft
