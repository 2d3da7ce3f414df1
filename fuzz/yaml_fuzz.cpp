// Any text is YAML of a limited size, which is also JSON, or a UserError.

#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "base/yaml.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace weft;
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    const Json value = json_of_yaml(text, "fuzz");
    if (parse_json(json_text(value)) != value) std::abort();
  } catch (const UserError&) {
  }
  return 0;
}
