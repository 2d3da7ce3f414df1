// Any JSON is a schema whose shortest texts can be completed, or a UserError.

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "fuzz/grammar_walk.h"
#include "grammar/json_schema.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  try {
    const Json schema =
        parse_json({reinterpret_cast<const char*>(data), size}, "fuzz", {.most_bytes = 1 << 16, .deepest = 128});
    walk_grammar(grammar::schema_grammar(schema, {}), data, size);
  } catch (const UserError&) {
  }
  return 0;
}
