// Any text is a config.json and a generation_config.json with numbers in their bounds, or a UserError.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/error.h"
#include "io/generation_config.h"
#include "io/model_config.h"

namespace {

using namespace weft;

void read_model(std::string_view text) {
  try {
    const auto config = model_config_from_json(text, "fuzz", {});
    if (config.head_count % config.kv_head_count != 0 || config.rope.rotary_dim % 2 != 0 ||
        config.rope.rotary_dim > config.head_dim || config.architecture.empty())
      std::abort();
  } catch (const UserError&) {
  }
}

void read_generation(std::string_view text) {
  try {
    const GenerationConfig config = generation_config_from_json(text, "fuzz");
    if (config.temperature.value_or(0) < 0 || config.top_p.value_or(1) > 1 || config.min_p.value_or(0) > 1 ||
        config.repetition_penalty.value_or(1) <= 0)
      std::abort();
  } catch (const UserError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  read_model(text);
  read_generation(text);
  return 0;
}
