#pragma once

// Switches of the biases of linear layers, which many families have.

#include <string_view>
#include <vector>

#include "io/architecture_facts.h"
#include "io/model_config.h"

namespace weft {

// Of attention, by the keys of config.json for queries, keys and values and for the projection of the result. GGUF
// files have the biases or not.
inline std::vector<SwitchKey> attention_biases(std::string_view inputs = "attention_bias",
                                               std::string_view output = "attention_bias") {
  return {{&ModelConfig::attention_bias, inputs, "", "blk.0.attn_q.bias"},
          {&ModelConfig::attention_output_bias, output, "", "blk.0.attn_output.bias"}};
}

// The same and of the feed-forward.
inline std::vector<SwitchKey> all_biases(std::string_view inputs = "attention_bias",
                                         std::string_view output = "attention_bias") {
  std::vector<SwitchKey> switches = attention_biases(inputs, output);
  switches.push_back({&ModelConfig::mlp_bias, "mlp_bias", "", "blk.0.ffn_up.bias"});
  return switches;
}

}  // namespace weft
