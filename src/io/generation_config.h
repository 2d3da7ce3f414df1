#pragma once

// How the makers of a model want text drawn from it: a Hugging Face folder's generation_config.json.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

// What the file does not say is absent.
struct GenerationConfig {
  std::optional<bool> do_sample;  // false: greedy, whatever the numbers below say
  std::optional<double> temperature;
  std::optional<std::int64_t> top_k;  // 0: off
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
  std::optional<std::int64_t> bos_token_id;
  std::vector<std::int64_t> eos_token_ids;  // any of them ends generation
};

// Checks every number against its bounds and token ids against the vocabulary; UserError that begins with [where] and
// names the key.
GenerationConfig generation_config_from_json(std::string_view text, std::int64_t vocab_size, const std::string& where);

}  // namespace weft
