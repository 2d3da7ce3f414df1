// CWM: Llama's layers, three of four of which have a sliding window, all but the first one of each period.

#include "models/llama_layers.h"

namespace weft {
namespace {

constexpr const char* kCwmDefaults = R"({
  "rms_norm_eps": 1e-5, "max_position_embeddings": 131072, "head_dim": 128, "sliding_window": 8192,
  "rope_parameters": {"rope_type": "llama3", "rope_theta": 1000000.0, "factor": 16.0, "low_freq_factor": 1.0,
                      "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
})";

}  // namespace
}  // namespace weft

MODEL(cwm) {
  using namespace weft;
  models.add(llama_layers("cwm",
                          {.defaults = kCwmDefaults,
                           .window = WindowFacts{.period = 4, .begins_without = true},
                           .switches = {{&ModelConfig::mlp_bias, "mlp_bias", "", "blk.0.ffn_up.bias"}}},
                          llama_sample("CwmForCausalLM", "cwm", R"("head_dim": 32, "sliding_window": 9)")));
}
