#include "io/task_config.h"

#include "base/error.h"
#include "base/text.h"
#include "io/architecture_name.h"

namespace weft {

bool is_causal(const JsonFields& fields, Bidirectional bidirectional) {
  if (bidirectional == Bidirectional::always) return false;
  constexpr const char* kKey = "use_bidirectional_attention";
  const Json* value = fields.value(kKey);
  if (value != nullptr && *value == true && bidirectional == Bidirectional::if_stated) return false;
  USER_CHECK(value == nullptr || *value == false || *value == "vision",
             "[{}] {} must be false or vision: attention over text is causal, but is {}", fields.where(), kKey,
             shown_json(*value));
  return true;
}

bool is_causal(const GgufFields& fields, Bidirectional bidirectional) {
  if (bidirectional != Bidirectional::if_stated) return bidirectional == Bidirectional::never;
  return fields.find_boolean("attention.causal").value_or(true);
}

std::string architecture_class(const JsonFields& fields, Bidirectional bidirectional) {
  const std::string name = first_class_of(fields);
  const bool has_task = name.find("For") != std::string::npos;
  const bool generates = name.ends_with("ForCausalLM") || name.ends_with("ForConditionalGeneration");
  const bool is_encoder = bidirectional == Bidirectional::always;
  for (const char* task : {"ForMaskedLM", "ForPreTraining", "ForSequenceClassification"})
    if (is_encoder && name.ends_with(task)) return name;
  USER_CHECK(!is_encoder || !has_task,
             "[{}] architectures must be a class that computes hidden states or scores of texts (...Model, "
             "...ForMaskedLM, ...ForSequenceClassification), but is {}",
             fields.where(), quote(name));
  const bool scores = name.ends_with("ForSequenceClassification");
  USER_CHECK((generates || scores || !has_task) && name.find("Bidirectional") == std::string::npos,
             "[{}] architectures must be a class that generates text or scores it (...ForCausalLM, "
             "...ForConditionalGeneration, ...ForSequenceClassification), but is {}",
             fields.where(), quote(name));
  return name;
}

}  // namespace weft
