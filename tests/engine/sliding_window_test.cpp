// Models whose layers see a window of the tokens before them: one text however they are run, and another one than
// without the window.

#include <gtest/gtest.h>

#include "builtin/context.h"
#include "builtin/models.h"
#include "tests/engine/tiny_model.h"
#include "tests/sample_checkpoint.h"

namespace weft::sliding_window_test {

using nlohmann::json;
using Settings = std::vector<std::pair<std::string, std::string>>;

// The tokens of all modes of this test.
const Settings kNumbers = {{"dtype", "f32"}, {"activation-precision", "exact"}, {"kv-cache-dtype", "f16"}};

class SlidingWindow : public ::testing::Test {
 protected:
  // A folder of the architecture's sample with these members of its config changed.
  std::string folder_of(const std::string& architecture, const json& changes) const {
    const SampleCheckpoint sample(models_.find(architecture, "test"), changes, 7);
    return sample.write_folder(folder_, "m" + std::to_string(count_++), DType::bf16);
  }
  // Tokens after two prompts of different length, in steps of at most 16 tokens.
  std::vector<std::vector<int>> tokens_of(const std::string& path, Settings settings) const {
    settings.insert(settings.end(), kNumbers.begin(), kNumbers.end());
    settings.emplace_back("max-num-batched-tokens", "16");
    settings.emplace_back("max-num-seqs", "4");
    const auto engine = tiny_engine(path, settings);
    std::vector<std::vector<int>> tokens(2);
    std::map<int, std::size_t> places;
    for (std::size_t i = 0; i < tokens.size(); ++i)
      places[engine->add(some_ids(7 + 30 * static_cast<int>(i), static_cast<int>(i)),
                         {.temperature = 0, .max_tokens = 8, .ignore_end = true, .stop = {}})] = i;
    while (!engine->is_idle())
      for (const RequestEvent& event : engine->step()) tokens[places.at(event.request)].push_back(event.token);
    return tokens;
  }

  const ModelRegistry models_ = make_model_registry();
  const TemporaryFolder folder_;
  mutable int count_ = 0;
};

TEST_F(SlidingWindow, GivesOneTextHoweverTheModelIsRunAndAnotherWithoutIt) {
  const json windows{{"sliding_window", 6}};
  const json of_one_layer{{"use_sliding_window", true}, {"sliding_window", 6}, {"max_window_layers", 1}};
  const json none{{"sliding_window", nullptr}};
  for (const auto& [architecture, changes] : {std::pair{"mistral", windows}, {"qwen3", of_one_layer}}) {
    SCOPED_TRACE(architecture);
    const std::string path = folder_of(architecture, changes);
    const auto wanted = tokens_of(path, {{"device", "cpu"}, {"enforce-eager", "true"}});
    EXPECT_EQ(tokens_of(path, {{"device", "cpu"}}), wanted) << "compiled";
    EXPECT_EQ(tokens_of(path, {{"device", "cpu"}, {"block-size", "1"}}), wanted) << "pages of one token";
    for (const char* mode : {"NONE", "FULL_AND_PIECEWISE"})
      EXPECT_EQ(tokens_of(path, {{"device", "fake-cuda"}, {"cc.cudagraph_mode", mode}}), wanted) << mode;
    EXPECT_NE(tokens_of(folder_of(architecture, none), {{"device", "cpu"}}), wanted) << "without a window";
  }
}

TEST_F(SlidingWindow, GivesTheTextOfNoneWhereItHoldsAllThereIs) {
  const json none{{"sliding_window", nullptr}}, all{{"sliding_window", 128}};
  EXPECT_EQ(tokens_of(folder_of("mistral", all), {{"device", "cpu"}}),
            tokens_of(folder_of("mistral", none), {{"device", "cpu"}}));
}

}  // namespace weft::sliding_window_test
