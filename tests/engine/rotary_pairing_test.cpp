// What an architecture states about rotary pairs in each format: folder and GGUF file of one model give the same
// logits.

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "builtin/context.h"
#include "builtin/models.h"
#include "tests/engine/tiny_model.h"
#include "tests/sample_checkpoint.h"

namespace weft::rotary_pairing_test {

using enum RotaryPairing;

// Logits of the folder and of the GGUF file.
std::vector<std::vector<std::vector<float>>> logits_of(RotaryPairing in_folders, RotaryPairing in_gguf) {
  ModelDefinition definition = make_model_registry().find("llama", "test");
  definition.architectures = {"turned"};
  definition.facts.pairing_in_folders = in_folders;
  definition.facts.pairing_in_gguf = in_gguf;
  nlohmann::json config = nlohmann::json::parse(definition.sample_config);
  config["model_type"] = "turned";
  definition.sample_config = config.dump();
  ModelRegistry models;
  models.add(definition);
  const TemporaryFolder folder;
  const SampleCheckpoint sample(definition);
  std::vector<std::vector<std::vector<float>>> logits;
  for (const std::string& path :
       {sample.write_folder(folder, "folder", DType::f32), sample.write_gguf(folder, "file.gguf", DType::f32)}) {
    Options options;
    set_option(options, "activation-precision", "exact", "test");
    set_option(options, "kv-cache-dtype", "f32", "test");
    Engine engine(make_context(options), Checkpoint::open(path), models);
    logits.push_back(all_logits(engine, some_ids(9)));
  }
  return logits;
}

double distance(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b) {
  double largest = 0;
  for (std::size_t row = 0; row < a.size(); ++row)
    for (std::size_t i = 0; i < a[row].size(); ++i)
      largest = std::max(largest, std::abs(static_cast<double>(a[row][i]) - b[row][i]));
  return largest;
}

TEST(RotaryPairingOfFormats, GivesTheSameLogits) {
  const auto llama = logits_of(halves, neighbours), neox = logits_of(halves, halves);
  const auto adjacent = logits_of(neighbours, neighbours);
  EXPECT_LT(distance(llama[0], llama[1]), 1e-4) << "rows are reordered in the file";
  EXPECT_LT(distance(neox[0], neox[1]), 1e-4);
  EXPECT_LT(distance(adjacent[0], adjacent[1]), 1e-4) << "no rows are reordered";
  EXPECT_EQ(neox[0], llama[0]);
  EXPECT_GT(distance(neox[0], adjacent[0]), 1e-2);
}

}  // namespace weft::rotary_pairing_test
