// Any text is a grammar whose texts can be completed, or a UserError.

#include <cstddef>
#include <cstdint>

#include "base/error.h"
#include "fuzz/grammar_walk.h"
#include "grammar/ebnf.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  if (size > 2000) return 0;
  try {
    walk_grammar(grammar::read_ebnf({reinterpret_cast<const char*>(data), size}), data, size);
  } catch (const UserError&) {
  }
  return 0;
}
