// Views that begin between the vectors that kernels of a device read: they have the bits of a copy, compiled and not,
// and a remaining copy reports its reason.

#include <algorithm>
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "builtin/context.h"
#include "compiler/pipeline.h"
#include "compiler/run/eager.h"
#include "compiler/run/interpret.h"
#include "ir/parse.h"
#include "runtime/cuda/stream_device.h"
#include "runtime/replay.h"
#include "tests/small_layer.h"

namespace weft::odd_views_test {

constexpr TokenRange kRange{1, 3};
constexpr int kRows = 3;

// Weights of a norm that begin at element `start`.
std::string norm(int start) {
  return fmt::format(
      "graph g(%x: f32[s0, 128], param %w: f32[136]) stage=traced {{\n"
      "  %v = slice(%w, dim=0, start={}, end={})\n  %y = rms_norm(%x, %v, epsilon=1e-05)\n  return %y\n}}\n",
      start, start + 128);
}

class OddViews : public testing::Test {
 protected:
  OddViews() {
    Options options;
    options.device = "fake-cuda";
    options.threads = 1;
    context_ = make_context(std::move(options));
    context_->priorities.set("rms_norm", {"cuda_reference"});
  }

  std::shared_ptr<Graph> parsed(const std::string& text) const {
    auto graph = std::shared_ptr<Graph>(parse_graph(text, context_->ops));
    graph->bounds[graph->governing_symbol()] = {kRange.lo, kRange.hi};
    return graph;
  }
  // x, and weights that begin `by` elements later.
  std::vector<Tensor> inputs_of(const Graph& graph, int by) const {
    std::vector<Tensor> inputs = layer_inputs(graph, kRows).copies();
    auto* weights = reinterpret_cast<float*>(inputs[1].data());
    std::memmove(weights + by, weights, 128 * sizeof(float));
    return inputs;
  }
  std::string run(const std::string& text, int by) const {
    const auto graph = parsed(text);
    const auto plan = compile(*graph->clone(), *context_, kRange, {}).plan;
    ReplaySettings settings;
    settings.device = context_->stream_device.get();
    Replay replay(plan, *context_->threads, nullptr, settings);
    const std::vector<Tensor> inputs = inputs_of(*graph, by);
    for (std::size_t i = 0; i < inputs.size(); ++i) replay.bind(i, context_->stream_device->upload(inputs[i]));
    replay.run();
    return bytes_of(context_->stream_device->download(replay.result(0)));
  }
  static std::string bytes_of(const Tensor& tensor) {
    return {reinterpret_cast<const char*>(tensor.data()), static_cast<std::size_t>(tensor.meta.bytes().number())};
  }
  std::string eager(const std::string& text, int by) const {
    const auto graph = parsed(text);
    EagerEvaluator evaluator(*context_, kRange);
    Values inputs;
    for (const Tensor& input : inputs_of(*graph, by)) inputs.push_back(evaluator.value(input));
    return bytes_of(run_graph(*graph, evaluator, inputs)[0].tensor());
  }
  // For rows of f32: the largest difference, and the allowed one.
  static double difference(const std::string& came, const std::string& wanted) {
    const auto number = [](const std::string& bytes, std::size_t i) {
      float value = 0;
      std::memcpy(&value, bytes.data() + i * sizeof value, sizeof value);
      return static_cast<double>(value);
    };
    if (came.size() != wanted.size()) return HUGE_VAL;
    double most = 0, largest = 0;
    for (std::size_t i = 0; i < wanted.size() / sizeof(float); ++i) {
      most = std::max(most, std::fabs(number(came, i) - number(wanted, i)));
      largest = std::max(largest, std::fabs(number(wanted, i)));
    }
    return most / largest;
  }
  std::vector<std::pair<std::string, std::string>> kept_clones(const std::string& text) const {
    std::vector<std::pair<std::string, std::string>> kept;
    for (const PassRecord& pass : compile(*parsed(text), *context_, kRange, {}).record.passes)
      kept.insert(kept.end(), pass.result.kept_clones.begin(), pass.result.kept_clones.end());
    return kept;
  }

  std::shared_ptr<Context> context_;
};

TEST_F(OddViews, AreCopiedForAKernelThatCouldNotReadThem) {
  const std::string wanted = run(norm(0), 0);
  for (const int start : {1, 2, 3, 4, 5, 8}) EXPECT_EQ(run(norm(start), start), wanted) << start;
  EXPECT_NE(run(norm(1), 2), wanted) << "other weights";
}

TEST_F(OddViews, AreCopiedWhereTheyMustBeAndSayWhy) {
  for (const int start : {0, 4, 8}) EXPECT_TRUE(kept_clones(norm(start)).empty()) << start;
  for (const int start : {1, 6}) {
    const auto kept = kept_clones(norm(start));
    ASSERT_EQ(kept.size(), 1u) << start;
    EXPECT_EQ(kept[0].second, "%v begins between the vectors of 16 bytes that rms_norm@cuda_reference reads");
  }
  context_->priorities.set("rms_norm", {"cpu"});
  EXPECT_TRUE(kept_clones(norm(1)).empty()) << "the host reads it";
}

// A kernel that reads less at once needs fewer copies: pairs of f32 here, of the heads that are rotated.
TEST_F(OddViews, AreCopiedForWhatTheKernelReadsAtOnceAlone) {
  const auto rotation = [](int start) {
    return fmt::format(R"(
graph g(%x: f32[s0, 128], param %w: f32[768], param %table: f32[8, 16], param %positions: i64[3]) stage=traced {{
  %flat = slice(%w, dim=0, start={}, end={})
  %q = reshape(%flat, shape=[3, 128])
  %last = slice(%w, dim=0, start=512, end=704)
  %k = reshape(%last, shape=[3, 64])
  %q1, %k1 = rotary_embedding(%positions, %q, %k, %table, head_size=16, rotary_dim=16)
  return %q1, %k1, %x
}}
)",
                       start, start + 384);
  };
  context_->priorities.set("rotary_embedding", {"cuda"});
  for (const int start : {0, 2, 4, 6}) EXPECT_TRUE(kept_clones(rotation(start)).empty()) << start;
  for (const int start : {1, 3}) {
    const auto kept = kept_clones(rotation(start));
    ASSERT_EQ(kept.size(), 1u) << start;
    EXPECT_EQ(kept[0].second, "%q begins between the vectors of 8 bytes that rotary_embedding@cuda reads");
  }
}

TEST_F(OddViews, AreCopiedWhereNothingIsCompiled) {
  const std::string wanted = eager(norm(0), 0);
  for (const int start : {1, 3, 4}) EXPECT_EQ(eager(norm(start), start), wanted) << start;
}

// A copy is stored by rows; the library's product reads scales of groups by columns.
TEST_F(OddViews, WhoseLayoutAKernelWantsAreNotCopiedIntoAnother) {
  const auto product = [](int start) {
    return fmt::format(R"(
graph g(%x: f32[s0, 128], param %w: f32[32768]) stage=traced {{
  %rows = slice(%w, dim=0, start=0, end=2048)
  %a = reshape(%rows, shape=[8, 256])
  %q, %s = per_token_group_quant_fp8(%a, group_size=128, column_major_scales=true, tma_aligned_scales=true)
  %b = reshape(%w, shape=[128, 256])
  %wq, %ws = per_token_group_quant_fp8(%b, group_size=128)
  %blocks = slice(%ws, dim=0, start=0, end=1)
  %q1 = slice(%q, dim=0, start={}, end={})
  %s1 = slice(%s, dim=0, start={}, end={})
  %y = linear_fp8_block(%q1, %s1, %wq, %blocks, none, block=[128, 128], dtype=f32)
  return %y, %x
}}
)",
                       start, start + 7, start, start + 7);
  };
  const auto provider = [&](int start) {
    const auto plan = compile(*parsed(product(start)), *context_, kRange, {}).plan;
    const auto step = std::find_if(plan->steps.begin(), plan->steps.end(),
                                   [](const PlanStep& one) { return one.op == "linear_fp8_block"; });
    return step == plan->steps.end() ? "" : step->kernel->provider;
  };
  context_->priorities.set("linear_fp8_block", {"reference"});
  const std::vector<std::string> wanted = {run(product(0), 0), run(product(1), 0)};
  context_->priorities.set("linear_fp8_block", {"cublaslt"});
  EXPECT_EQ(provider(0), "cublaslt");
  EXPECT_NE(provider(1), "cublaslt");
  for (const int start : {0, 1}) {
    const auto& expected = wanted[static_cast<std::size_t>(start)];
    EXPECT_LT(difference(run(product(start), 0), expected), 1e-2) << start;
    EXPECT_LT(difference(eager(product(start), 0), expected), 1e-2) << start;
  }
}

// A kernel of the device reads data that a kernel of the host wrote through such a view.
TEST_F(OddViews, AreCopiedBeforeAKernelWritesOverThemForAnother) {
  const std::string text = R"(
graph g(%x: f32[s0, 128], param %w: f32[1024]) stage=traced {
  %b = mul(%w, %w)
  %slice = slice(%b, dim=0, start=1, end=385)
  %residual = reshape(%slice, shape=[3, 128])
  %last = slice(%w, dim=0, start=512, end=896)
  %a = reshape(%last, shape=[3, 128])
  %weight = slice(%w, dim=0, start=0, end=128)
  %n, %sum = fused_add_rms_norm(%a, %residual, %weight, epsilon=1e-05)
  %y = rms_norm(%sum, %weight, epsilon=1e-05)
  return %y, %x
}
)";
  context_->priorities.set("fused_add_rms_norm", {"reference"});
  const std::string wanted = run(text, 0);
  context_->priorities.set("fused_add_rms_norm", {"cpu"});
  EXPECT_LT(difference(run(text, 0), wanted), 1e-5);
}

}  // namespace weft::odd_views_test
