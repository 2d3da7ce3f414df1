#pragma once

// JSON from the text of a Python value, as vLLM's log prints its configurations.

#include <optional>
#include <string>
#include <string_view>

namespace weft {

// Rewrites strings, True, False, None and tuples. A member of an enum, `<CompilationMode.VLLM_COMPILE: 3>`, becomes its
// name, another object in angle brackets its text, and a call such as PosixPath('x') its argument, or null if it has
// none. Everything else stays, so the result is JSON only if the rest of the text is; nullopt if brackets or quotes are
// not closed.
std::optional<std::string> json_of_python(std::string_view text);

}  // namespace weft
