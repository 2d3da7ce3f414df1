// A chat template, a zero byte, a JSON object of its variables. Whatever they are, rendering ends in a text or in a
// UserError, and the same text each time.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/chat_template.h"

namespace {

constexpr const char* kVariables =
    R"({"messages": [{"role": "user", "content": " Gr\u00fc\u00dfe "}, {"role": "assistant", "content": "a\nb"}],
        "tools": [{"type": "function", "function": {"name": "add", "parameters": {"a": 1.5}}}], "bos_token": "<s>",
        "add_generation_prompt": true, "none_value": null, "d": {"x": 1, "y": [1, 2, 3]}})";

// "" stands for an error.
std::string render(const weft::ChatTemplate& chat, const nlohmann::ordered_json& variables) {
  try {
    return chat.render(variables, {.steps = 50'000, .allocated_bytes = 8 << 20, .text_bytes = 1 << 20});
  } catch (const weft::UserError&) {
    return "";
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = input.find('\0');
  try {
    const weft::ChatTemplate chat{std::string(input.substr(0, end))};
    auto variables = nlohmann::ordered_json::parse(kVariables);
    if (end != std::string_view::npos) {
      auto given = nlohmann::ordered_json::parse(input.substr(end + 1), nullptr, false);
      if (given.is_object()) variables = std::move(given);
    }
    const std::string text = render(chat, variables);
    const bool tells_time = input.find("strftime_now") != std::string_view::npos;
    if (!tells_time && render(chat, variables) != text) std::abort();
  } catch (const weft::UserError&) {
  }
  return 0;
}
