#pragma once

// The sampling defaults that the publisher of a model recommends: generation_config.json of a Hugging Face folder.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

// A value that the file does not give is absent.
struct GenerationConfig {
  std::optional<bool> do_sample;  // false: greedy; the numbers below have no effect
  std::optional<double> temperature;
  std::optional<std::int64_t> top_k;  // 0, -1: off
  std::optional<double> top_p;
  std::optional<double> min_p;
  std::optional<double> repetition_penalty;
  std::optional<std::int64_t> max_new_tokens;
  std::vector<std::int64_t> eos_token_ids;  // any of them ends generation; unchecked
  std::vector<std::string> unknown_keys;    // keys that no table has (io/known_keys.h)
};

// Checks each number against its bounds; a UserError begins with [where] and names the key. Keys in `overridden` are
// skipped because the caller has its own values for them.
GenerationConfig generation_config_from_json(std::string_view text, const std::string& where,
                                             std::span<const std::string_view> overridden = {});

}  // namespace weft
