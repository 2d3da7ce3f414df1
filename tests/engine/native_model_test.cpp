// A model whose ops are computed as their meanings, each alone and all of them: the bits of the same model run op by
// op, and of the default kernels where these sum in the order of the meaning.

#include <set>

#include <gtest/gtest.h>

#include "builtin/context.h"
#include "builtin/models.h"
#include "codegen/row_program.h"
#include "compiler/pieces.h"
#include "engine/model_runner.h"
#include "engine/open_checkpoint.h"
#include "tests/engine/tiny_model.h"
#include "tests/test_context.h"

namespace weft::native_model_test {

using Settings = std::vector<std::pair<std::string, std::string>>;
using Logits = std::vector<std::vector<float>>;

class NativeModel : public ::testing::Test {
 protected:
  Logits logits(Settings settings, bool is_eager = false) const {
    if (is_eager) settings.emplace_back("enforce-eager", "true");
    return all_logits(*tiny_engine(path_, settings), some_ids(5));
  }
  // What the model's code calls, and what stands in its graphs when they are lowered.
  std::set<std::string> ops() const {
    const auto engine = tiny_engine(path_);
    std::set<std::string> names;
    for (const Graph* traced :
         {engine->runner().model().forward().traced.get(), engine->runner().model().head().traced.get()})
      for (const auto& node : traced->nodes())
        if (!node->op->is_view) names.insert(node->name);
    for (const CompileRecord& record : engine->runner().records())
      for (const auto& [name, nodes] : selected_impls(record)) names.insert(name);
    return names;
  }

  TemporaryFolder folder_;
  std::string path_ = write_tiny_model(folder_);
};

TEST_F(NativeModel, EachOpGivesTheBitsOfItsMeaning) {
  const Logits wanted = logits({});
  const std::set<std::string> names = ops();
  EXPECT_TRUE(names.contains("attention") && names.contains("kv_cache_update"));
  for (const std::string& name : names) {
    const Settings native{{"ir-op-priority." + name, "native"}};
    const Logits came = logits(native);
    if (name == "attention") {
      EXPECT_EQ(came, logits(native, true)) << "attention sums in another order than its kernel";
    } else {
      EXPECT_EQ(came, wanted) << name;
    }
  }
}

TEST_F(NativeModel, AllOpsGiveTheBitsOfTheirMeaning) {
  Settings native;
  for (const std::string& name : ops()) native.emplace_back("ir-op-priority." + name, "native");
  EXPECT_EQ(logits(native), logits(native, true));
  for (const char* mode : {"NONE", "PIECEWISE"}) {
    native.emplace_back("cc.cudagraph_mode", mode);
    EXPECT_EQ(logits(native), logits(native, true)) << mode;
    native.pop_back();
  }
}

// What a row program can compute is in one: nothing of a model whose heads are whole vectors is left to the reference
// kernels, one op after another.
TEST_F(NativeModel, LeavesNothingToTheReference) {
  if (!generates_code(*test_context())) GTEST_SKIP() << "libweft_llvm.so was not built";
  const ModelRegistry models = make_model_registry();
  Options options;
  options.load_format = "dummy";
  for (const std::string& name : ops())
    if (!name.starts_with("linear") && !name.starts_with("attention") && !name.starts_with("kv_cache"))
      set_option(options, "ir-op-priority." + name, "native", "test");
  const std::string path = write_config_only(folder_, "llama",
                                             {{"hidden_size", 128},
                                              {"num_attention_heads", 4},
                                              {"num_key_value_heads", 2},
                                              {"head_dim", 32},
                                              {"intermediate_size", 256}});
  ModelRunner runner(make_context(options), open_checkpoint(path, options, models), models);
  std::size_t generated = 0;
  for (const PlanStep& step : runner.forward_plan()->steps) {
    EXPECT_NE(step.kernel->provider, "reference") << step.op;
    generated += step.op.starts_with(kRowFunctionPrefix) ? 1 : 0;
  }
  EXPECT_GT(generated, 0u);
}

}  // namespace weft::native_model_test
