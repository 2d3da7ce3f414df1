#include "io/architecture_name.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "io/text_config.h"

namespace weft {

std::string architecture_of(const JsonFields& fields) {
  const auto architecture = fields.find_text("model_type");
  USER_CHECK(architecture && !architecture->empty(), "[{}] wanted model_type, the architecture's name, but it is {}",
             fields.where(), architecture ? "empty" : "missing");
  return *architecture;
}

std::string first_class_of(const JsonFields& fields) {
  const Json* classes = fields.value("architectures");
  if (classes == nullptr || !classes->is_array() || classes->empty() || !classes->front().is_string()) return "";
  return classes->front();
}

std::string architecture_from_gguf(const Gguf& gguf) { return std::string(gguf.text("general.architecture")); }

void check_architecture(std::string_view architecture, std::span<const std::string> known, const std::string& where) {
  USER_CHECK(std::find(known.begin(), known.end(), architecture) != known.end(),
             "[{}] the architecture {} is not implemented{}; wanted one of {}", where, quote(architecture),
             suggestion(architecture, known), fmt::join(known, ", "));
}

}  // namespace weft
