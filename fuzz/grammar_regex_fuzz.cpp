// Any text is a regular expression whose texts can be completed, or a UserError; within JSON strings, too.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "fuzz/grammar_walk.h"
#include "grammar/json_parts.h"
#include "grammar/regex.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (size > 500) return 0;
  try {
    grammar::Grammar whole, within;
    whole.root = whole.add("root", grammar::read_regex(text));
    walk_grammar(whole, data, size);
    within.root = within.add("root", grammar::quoted(grammar::json_encoded(grammar::read_search_regex(text))));
    walk_grammar(within, data, size);
  } catch (const UserError&) {
  }
  return 0;
}
