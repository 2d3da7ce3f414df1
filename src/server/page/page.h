#pragma once

// The page for people, which the build makes of the files beside this one.

#include <string_view>

namespace weft {

// HTML with its style and its script; UTF-8.
extern const std::string_view kPage;
// "sha256-" and the hash of the script, as a content security policy names it.
extern const std::string_view kPageScriptHash;

}  // namespace weft
