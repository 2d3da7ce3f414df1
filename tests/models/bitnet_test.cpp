// BitNet as transformers runs it in each form of its files: weights of codes -1, 0 and 1, and inputs of linear layers
// that have a scale for each token (tests/data/bitnet).

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/files.h"
#include "builtin/context.h"
#include "builtin/models.h"
#include "engine/engine.h"
#include "tests/base/temporary_folder.h"
#include "tests/thrown_message.h"

namespace weft::bitnet_test {

using Rows = std::vector<std::vector<float>>;
using Settings = std::vector<std::pair<std::string, std::string>>;

constexpr const char* kForms[] = {"packed", "divided", "rounded"};

std::string path_of(const std::string& form) { return std::string(WEFT_TEST_DATA "/bitnet/") + form; }

Rows logits_of(const std::string& folder, const Settings& more = {}) {
  const auto recorded = nlohmann::json::parse(read_file(folder + "/logits.json", 1 << 20));
  Settings settings{{"dtype", "f32"}, {"kv-cache-dtype", "f32"}};
  settings.insert(settings.end(), more.begin(), more.end());
  Options options;
  for (const auto& [name, value] : settings) set_option(options, name, value, "test");
  Engine engine(make_context(options), Checkpoint::open(folder), make_model_registry());
  Rows rows;
  engine.score(recorded.at("ids"), recorded.at("positions"),
               [&](int, std::span<const float> row) { rows.emplace_back(row.begin(), row.end()); });
  return rows;
}

double largest_difference(const Rows& a, const Rows& b) {
  double largest = 0;
  EXPECT_EQ(a.size(), b.size());
  for (std::size_t row = 0; row < std::min(a.size(), b.size()); ++row)
    for (std::size_t i = 0; i < a[row].size(); ++i) {
      const double apart = std::abs(static_cast<double>(a[row][i]) - b[row].at(i));
      largest = std::max(largest, std::isnan(apart) ? INFINITY : apart);
    }
  return largest;
}

TEST(Bitnet, GivesTheLogitsOfTransformersInEachForm) {
  for (const char* form : kForms) {
    SCOPED_TRACE(form);
    const auto recorded = nlohmann::json::parse(read_file(path_of(form) + "/logits.json", 1 << 20));
    const Rows got = logits_of(path_of(form));
    EXPECT_LT(largest_difference(got, recorded.at("logits").get<Rows>()), 1e-4);
    for (const auto& way : Settings{{"enforce-eager", "true"}, {"max-num-batched-tokens", "9"}, {"block-size", "7"}})
      EXPECT_EQ(logits_of(path_of(form), {way}), got) << way.first;
    // Inputs that are not quantized change the logits, but little.
    const double exact = largest_difference(logits_of(path_of(form), {{"activation-precision", "exact"}}), got);
    EXPECT_GT(exact, 1e-3);
    EXPECT_LT(exact, 0.3);
  }
}

class BitnetFolder : public ::testing::Test {
 protected:
  // The error of opening a copy of the folder with other words in its quantization_config.
  std::string refusal(const std::string& form, const nlohmann::json& changes) const {
    for (const char* file : {"model.safetensors", "tokenizer.json", "logits.json"})
      write_then_rename(folder_ / file, read_file(path_of(form) + "/" + file, 1 << 22));
    auto config = nlohmann::json::parse(read_file(path_of(form) + "/config.json", 1 << 20));
    config["quantization_config"].update(changes);
    write_then_rename(folder_ / "config.json", config.dump());
    return message_of([&] { logits_of(folder_.path()); });
  }
  void expect_refusal(const std::string& form, const nlohmann::json& changes, const std::string& part) const {
    const std::string message = refusal(form, changes);
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }

  const TemporaryFolder folder_;
};

TEST_F(BitnetFolder, IsRefusedWhereTensorsAndConfigDisagree) {
  expect_refusal("packed", {{"quantization_mode", "online"}},
                 "self_attn.q_proj.weight must be numbers [32, 32] as quantization_config says, but is u8[8, 32]");
  expect_refusal("rounded", {{"quantization_mode", "offline"}}, "self_attn.q_proj.weight");
  expect_refusal("packed", {{"use_rms_norm", true}}, "quantization_config.use_rms_norm must be false");
  expect_refusal("packed", {{"linear_class", "linear"}},
                 "quantization_config.linear_class must be bitlinear or autobitlinear");
}

}  // namespace weft::bitnet_test
