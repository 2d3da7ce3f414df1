// Any text is a manifest that prints to one that reads back to the same, or a UserError.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "engine/artifact/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  std::string text;
  try {
    text = json_text(manifest_json(parse_manifest({reinterpret_cast<const char*>(data), size}, "fuzz")), 2);
  } catch (const UserError&) {
    return 0;
  }
  if (json_text(manifest_json(parse_manifest(text, "again")), 2) != text) std::abort();
  return 0;
}
