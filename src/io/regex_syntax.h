#pragma once

// Rewrites a pattern from Oniguruma's syntax into PCRE2's, construct by construct; regex.h lists what is kept,
// translated and refused. Sources: Oniguruma's doc/RE, pcre2pattern(3) of 10.42.

#include <string>
#include <string_view>

namespace weft {

// UserError, which names it, for a construct outside the subset. The result may still be malformed; PCRE2 then reports
// it.
std::string translate_oniguruma(std::string_view pattern);

}  // namespace weft
