#pragma once

// A Llama of random weights small enough for every test: 2 layers, width 64, 4 heads over 2, q4_1 matrices, a q8_0
// embedding that is also the head, and the 256 bytes (and one end token) as its vocabulary.

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/engine.h"
#include "tests/base/temporary_folder.h"

namespace weft {

// Writes the model as a GGUF file and returns its path. Tokens that are added are texts that encode to them, and not
// control tokens; their ids begin at 257.
std::string write_tiny_model(const TemporaryFolder& folder, std::uint64_t seed = 1,
                             const std::vector<std::string>& added_tokens = {});

// Writes a model that has only a config, the architecture's sample with these changes, for `--load-format dummy`, where
// results do not matter. Returns its path.
std::string write_config_only(const TemporaryFolder& folder, const std::string& architecture,
                              const nlohmann::json& changes);

// An engine over a model by its path. `options` are pairs as on the command line: {"block-size", "1"}.
std::unique_ptr<Engine> tiny_engine(const std::string& path,
                                    const std::vector<std::pair<std::string, std::string>>& options = {});

// Logits of every position.
std::vector<std::vector<float>> all_logits(Engine& engine, const std::vector<int>& ids);

// The root mean square of the difference, divided by that of the wanted logits.
double logit_difference(const std::vector<std::vector<float>>& came, const std::vector<std::vector<float>>& wanted);

// `count` ids of the vocabulary, the same each time.
std::vector<int> some_ids(int count, int seed = 3);

}  // namespace weft
