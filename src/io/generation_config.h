#pragma once

// How the makers of a model want text drawn from it: a Hugging Face folder's generation_config.json.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

// What the file does not say is absent.
struct GenerationConfig {
  std::optional<bool> do_sample;  // false: greedy, whatever the numbers below say
  std::optional<double> temperature;
  std::optional<std::int64_t> top_k;  // 0, -1: off
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
  std::vector<std::int64_t> eos_token_ids;  // any of them ends generation; unchecked
  std::vector<std::string> unknown_keys;    // of which nothing is known (io/known_keys.h)
};

// Checks every number against its bounds; UserError that begins with [where] and names the key. The keys of
// `overridden` are not looked at: the caller has values of its own for them.
GenerationConfig generation_config_from_json(std::string_view text, const std::string& where,
                                             std::span<const std::string_view> overridden = {});

}  // namespace weft
