#include "io/generation_config.h"

#include "base/error.h"
#include "io/config_fields.h"

namespace weft {

GenerationConfig generation_config_from_json(std::string_view text, std::int64_t vocab_size, const std::string& where) {
  const auto json = parse_config_json(text, where);
  const JsonFields fields(json, where);
  GenerationConfig config;
  config.do_sample = fields.find_boolean("do_sample");
  config.temperature = real_in(fields, "temperature", {0, 100});
  config.top_k = integer_in(fields, "top_k", {0, INT32_MAX});
  config.top_p = real_in(fields, "top_p", {0, 1});
  config.min_p = real_in(fields, "min_p", {0, 1});
  config.repetition_penalty = real_in(fields, "repetition_penalty", {1e-3, 1e3});
  config.bos_token_id = integer_in(fields, "bos_token_id", {0, vocab_size - 1});
  config.eos_token_ids = fields.find_integers("eos_token_id");
  for (const auto id : config.eos_token_ids)
    USER_CHECK(id >= 0 && id < vocab_size, "[{}] eos_token_id must be 0 to {}, but is {}", where, vocab_size - 1, id);
  return config;
}

}  // namespace weft
