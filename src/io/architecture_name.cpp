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
  // Folders of Jina's BERT have BERT's word.
  const Json* classes = fields.value("architectures");
  const bool is_jina = classes != nullptr && classes->is_array() && !classes->empty() && classes->front().is_string() &&
                       classes->front().get<std::string>().starts_with("JinaBert");
  if (*architecture == "bert" && (is_jina || fields.find_text("position_embedding_type") == "alibi"))
    return "jina_bert_v2";
  return *architecture;
}

std::string architecture_from_json(std::string_view text, const std::string& where) {
  const Json json = text_config(parse_config_json(text, where), where);
  return architecture_of(JsonFields(json, where));
}

std::string architecture_from_gguf(const Gguf& gguf) { return std::string(gguf.text("general.architecture")); }

void check_architecture(std::string_view architecture, std::span<const std::string> known, const std::string& where) {
  USER_CHECK(std::find(known.begin(), known.end(), architecture) != known.end(),
             "[{}] the architecture must be one of {}, but is {}{}", where, fmt::join(known, ", "), quote(architecture),
             suggestion(architecture, known));
}

}  // namespace weft
