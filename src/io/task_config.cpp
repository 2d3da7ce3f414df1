#include "io/task_config.h"

#include "base/error.h"
#include "base/text.h"

namespace weft {

void check_is_causal(const JsonFields& fields) {
  constexpr const char* kKey = "use_bidirectional_attention";
  const Json* value = fields.value(kKey);
  USER_CHECK(value == nullptr || *value == false || *value == "vision",
             "[{}] {} must be false or vision: attention over text is causal, but is {}", fields.where(), kKey,
             shown_json(*value));
}

std::string architecture_class(const JsonFields& fields) {
  const auto* classes = fields.value("architectures");
  if (classes == nullptr || !classes->is_array() || classes->empty() || !classes->front().is_string()) return "";
  const std::string name = classes->front();
  const bool has_task = name.find("For") != std::string::npos;
  const bool generates = name.ends_with("ForCausalLM") || name.ends_with("ForConditionalGeneration");
  USER_CHECK(
      (generates || !has_task) && name.find("Bidirectional") == std::string::npos,
      "[{}] architectures must be a class that generates text (...ForCausalLM, ...ForConditionalGeneration), but "
      "is {}",
      fields.where(), quote(name));
  return name;
}

}  // namespace weft
