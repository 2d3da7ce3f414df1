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
         has("take_along") || has("conv1d");
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
using Ops = std::set<std::string>;

// By architecture, in forwards; of models whose weights are in blocks, or not.
std::map<std::string, Ops> left_of_forwards(bool has_blocks) {
  // Rows of sorted experts are rows of a table: functions compare indices with a size that they know.
  const Ops experts{"index_select"};
  // The rows of a program have one width, but the rotated part of a head is not half of it.
  const Ops parts{"concat"};
  // Parts of the columns of a product that are sorted by key head are copied.
  const Ops groups{"clone"};
  // softplus computes in f64.
  const Ops steps{"cast", "abs", "neg", "exp", "log1p", "clamp", "add"};
  // The table of positions, or of the layers' embeddings, keeps the blocks of the file, which programs do not read.
  const Ops table{"index_select", "cast"};
  const auto all = [](std::initializer_list<Ops> sets) {
    Ops ops;
    for (const Ops& one : sets) ops.insert(one.begin(), one.end());
    return ops;
  };
  // Mamba 2 multiplies steps by a column of heads.
  const Ops mamba = all({steps, {"mul"}}), gates = all({steps, groups, parts});
  // In latent attention the parts of a head differ in width. Groups of a row of heads are quantized by ops.
  const Ops latents = all({experts, parts, {"mul"}}), of_heads = has_blocks ? Ops{"amax", "div"} : Ops();
  return {
      {"bamba", all({mamba, of_heads})},
      {"deepseek_v2", latents},
      {"deepseek_v3", latents},
      {"dots1", experts},
      {"ernie4_5_moe", experts},
      {"falcon", has_blocks ? Ops() : groups},
      {"falcon_h1", all({mamba, of_heads})},
      {"gemma3n_text", has_blocks ? table : Ops()},
      {"gemma4_text", has_blocks ? table : Ops()},
      {"glm4_moe", experts},
      {"gpt2", has_blocks ? table : Ops()},
      {"gpt_bigcode", has_blocks ? table : groups},
      {"gpt_neo", has_blocks ? table : Ops()},
      {"gpt_neox", has_blocks ? Ops() : groups},
      {"gpt_oss", experts},
      {"granitemoe", experts},
      {"granitemoehybrid", all({mamba, of_heads})},
      {"granitemoeshared", experts},
      {"hunyuan_v1_moe", experts},
      {"lfm2_moe", experts},
      {"llama4_text", experts},
      {"mamba2", all({mamba, of_heads})},
      {"minimax_m2", latents},
      {"mixtral", experts},
      {"nemotron_h", all({mamba, of_heads, experts})},
      {"olmoe", experts},
      {"opt", has_blocks ? table : Ops()},
      {"phi3", parts},
      {"phimoe", all({parts, experts})},
      {"qwen2_moe", experts},
      {"qwen3_5_moe_text", all({gates, experts})},
      {"qwen3_5_text", gates},
      {"qwen3_moe", experts},
      {"qwen3_next", all({gates, experts})},
      {"stablelm", parts},
  };
}

Ops left_to_the_reference(const ModelForm& form, const std::string& graph) {
  if (graph == "head") return {"index_select"};  // rows of a table whose row count is a symbol
  const std::map<std::string, Ops> left = left_of_forwards(form.form == "q4_1");
  const auto found = left.find(form.architecture);
  return found == left.end() ? Ops() : found->second;
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
        Ops left;
        std::size_t generated = 0;
        for (const PlanStep& step : plan->steps) {
          if (step.kernel->provider == "reference") left.insert(step.op);
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
        // A layer whose halves share a norm has two.
        const int least = form.architecture == "cohere" ? 2 : 3;
        for (const char* layer : {"0", "1"}) {
          if (form.architecture == "nemotron_h" && layer[0] == '1') {  // one half, of experts
            ++layers;
            continue;
          }
          EXPECT_GE(generated[layer], least) << form.name() << " on " << level << ", layer " << layer;
          ++layers;
        }
      }
    }
  }
  EXPECT_GE(layers, make_model_registry().architectures().size() * levels.size() * 2);
}

}  // namespace weft::native_model_test
