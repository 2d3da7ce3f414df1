// A model whose ops are computed as their meanings, each alone and all of them: the bits are those of the same model
// run op by op, and of the default kernels where these sum in the order of the meaning.

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "builtin/context.h"
#include "builtin/models.h"
#include "codegen/row_program.h"
#include "compiler/pieces.h"
#include "engine/compile/model_compilation.h"
#include "engine/open_checkpoint.h"
#include "tests/engine/model_forms.h"
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
  // The ops that the model's code calls, and those of its lowered graphs.
  std::set<std::string> ops() const {
    const auto engine = tiny_engine(path_);
    std::set<std::string> names;
    for (const Graph* traced : {engine->runner().model().phases()[0].forward.traced.get(),
                                engine->runner().model().phases()[0].head.traced.get()})
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

// Halves of heads are whole vectors, also where only a part of a head is rotated.
std::vector<ModelForm> forms(const TemporaryFolder& folder) {
  return sample_forms(folder, {{"hidden_size", 128},
                               {"num_attention_heads", 4},
                               {"num_key_value_heads", 2},
                               {"head_dim", 128},
                               {"intermediate_size", 256}});
}

// Matrix products, attention, the pages and the choice of experts are kernels' work; all else is a row program's.
bool is_opaque(const std::string& op) {
  const auto has = [&](const char* part) { return op.find(part) != std::string::npos; };
  return has("linear") || op.starts_with("attention") || has("kv_cache") || has("topk") || has("moe_") ||
         has("take_along");
}

using Plans = std::vector<std::shared_ptr<const Plan>>;

struct CompiledForm {
  std::shared_ptr<Context> context;  // has the kernels that the Plans name
  std::map<std::string, Plans> plans;
};

// The Plans of the forward and of the head, for each of their ranges. No weight is loaded.
CompiledForm compiled(const ModelForm& form, const Options& options) {
  const ModelRegistry models = make_model_registry();
  const auto context = make_context(options);
  ModelCompilation model(context, open_checkpoint(form.path, options, models), models);
  model.compile();
  return {context, {{"forward", model.phases()[0].forward.plans}, {"head", model.phases()[0].head.plans}}};
}

// All that a row program can compute is in one, and no op is left to the reference kernels. Exceptions are listed here
// with their reasons and must exist in every Plan of their graph: an exception that is repaired must be removed.
std::vector<std::string> left_to_the_reference(const ModelForm& form, const std::string& graph) {
  const std::string& architecture = form.architecture;
  // Rows of a table whose row count is a symbol: functions compare indices with a size that they know.
  if (graph == "head") return {"index_select"};
  // The rows of a program have one width, but the rotated part of a head is not half of it: query and key of two
  // layers.
  if (architecture == "phi3" || architecture == "stablelm") return {"concat", "concat", "concat", "concat"};
  // The rows of sorted experts are rows of a table, as above. In latent attention the parts of a head differ in width.
  static const std::map<std::string, std::vector<std::string>> kOfMixtures{
      {"mixtral", {"index_select", "index_select"}},
      {"olmoe", {"index_select", "index_select"}},
      {"qwen2_moe", {"index_select", "index_select"}},
      {"qwen3_moe", {"index_select", "index_select"}},
      {"gpt_oss", {"index_select", "index_select"}},
      {"granitemoe", {"index_select", "index_select"}},
      {"glm4_moe", {"index_select"}},
      {"deepseek_v2",
       {"concat", "concat", "concat", "mul", "mul", "mul", "mul", "concat", "concat", "concat", "concat", "concat",
        "mul", "mul", "mul", "mul", "concat", "concat", "index_select"}},
      {"deepseek_v3",
       {"concat", "concat", "concat", "mul", "mul", "mul", "mul", "concat", "concat", "concat", "concat", "concat",
        "mul", "mul", "mul", "mul", "concat", "concat", "index_select"}}};
  // The table of the layers' embeddings keeps the blocks of the file, which row programs do not read.
  const bool has_layer_inputs = architecture == "gemma3n_text" || architecture == "gemma4_text";
  if (has_layer_inputs && form.form == "q4_1") return {"index_select", "cast"};
  const auto found = kOfMixtures.find(architecture);
  if (found == kOfMixtures.end()) return {};
  // Of tokens that are quantized for their experts, codes and scales are taken.
  std::vector<std::string> left;
  for (const std::string& op : found->second)
    left.insert(left.end(), op == "index_select" && form.form == "q4_1" ? 2 : 1, op);
  return left;
}

TEST_F(NativeModel, LeavesNothingToTheReference) {
  const auto context = test_context();
  if (!generates_code(*context)) GTEST_SKIP() << "libweft_llvm.so was not built";
  for (const ModelForm& form : forms(folder_)) {
    Options options = form.options;
    for (const auto& [name, op] : context->ops.all())
      if (!is_opaque(name)) set_option(options, "ir-op-priority." + name, "native", "test");
    const CompiledForm model = compiled(form, options);
    for (const auto& [graph, plans] : model.plans) {
      SCOPED_TRACE(form.name() + ", " + graph);
      EXPECT_FALSE(plans.empty());
      for (const auto& plan : plans) {
        std::vector<std::string> left;
        std::size_t generated = 0;
        for (const PlanStep& step : plan->steps) {
          if (step.kernel->provider == "reference") left.push_back(step.op);
          generated += step.op.starts_with(kRowFunctionPrefix) ? 1 : 0;
        }
        EXPECT_EQ(left, left_to_the_reference(form, graph));
        EXPECT_TRUE(generated > 0 || graph == "head");
      }
    }
  }
}

// With the default priorities. In the formats that are left out here, kernels that normalize or activate and quantize
// in one step come first.
TEST_F(NativeModel, EachLayerRunsThreeGeneratedFunctionsOnVectors) {
  if (!generates_code(*test_context())) GTEST_SKIP() << "libweft_llvm.so was not built";
  const std::vector<std::string> tried = cpu_features_to_try();
  std::set<std::string> levels{tried.back()};
  if (tried.size() > 1) levels.insert(tried[1]);  // the least that has vectors
  levels.erase(cpu_features_text(CpuFeatures::baseline));
  if (levels.empty()) GTEST_SKIP() << "this processor has no vectors";
  const std::set<std::string> wanted{"f32", "bf16", "fp8-block", "q4_1", "q8_0"};
  std::size_t layers = 0;
  for (const ModelForm& form : forms(folder_)) {
    if (!wanted.contains(form.form)) continue;
    for (const std::string& level : levels) {
      Options options = form.options;
      options.cpu_features = level;
      const CompiledForm model = compiled(form, options);
      for (const auto& plan : model.plans.at("forward")) {
        std::map<std::string, int> generated;  // by layer
        for (const PlanStep& step : plan->steps)
          if (step.op.starts_with(kRowFunctionPrefix)) ++generated[step.layer];
        for (const char* layer : {"0", "1"}) {
          EXPECT_GE(generated[layer], 3) << form.name() << " on " << level << ", layer " << layer;
          ++layers;
        }
      }
    }
  }
  EXPECT_GE(layers, make_model_registry().architectures().size() * levels.size() * 2);
}

}  // namespace weft::native_model_test
