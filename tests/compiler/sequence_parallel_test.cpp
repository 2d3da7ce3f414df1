// A model in tensor-parallel form on 2 and 4 ranks, which are threads: with and without sequence parallelism every rank
// has the bits of one process that adds the parts itself.

#include <gtest/gtest.h>

#include "base/error.h"
#include "builtin/context.h"
#include "compiler/run/graph_program.h"
#include "ir/parse.h"
#include "tests/test_context.h"
#include "tests/thrown_message.h"

namespace weft::sequence_parallel_test {

constexpr std::int64_t kRows = 8, kWidth = 64, kInner = 32;  // kInner: of all ranks
constexpr int kLayers = 2, kNorms = 2 * kLayers + 1;
const std::vector<std::string> kGroups = {"tp"};

struct Form {
  int ranks = 2;
  bool is_quantized = false;  // inputs of products, with a static scale
  bool is_whole = false;      // one process has the parts of all ranks, and adds them
};

// The text of the model: an embedding in parts, and blocks of an up product, an activation and a down product.
class ModelText {
 public:
  explicit ModelText(Form form) : form_(form) {}

  std::string text() {
    std::string rows = sum("e", 0);
    line("%n0 = rms_norm({}, {}, epsilon=1e-05)", rows, input("norm0", {kWidth}));
    for (int block = 0; block < 2 * kLayers; ++block) {
      const std::string into = form_.is_quantized ? quantized(block) : fmt::format("%n{}", block);
      const std::int64_t part = kInner / form_.ranks;
      for (const int rank : parts()) {
        line("%u{0}.{1} = linear({2}, {3})", block, rank, into, weight("up", block, rank, {2 * part, kWidth}));
        line("%g{0}.{1} = silu_and_mul(%u{0}.{1})", block, rank);
        line("%d{0}.{1} = linear(%g{0}.{1}, {2})", block, rank, weight("down", block, rank, {kWidth, part}));
      }
      const std::string added = sum("d" + std::to_string(block), block + 1);
      line("%n{0}, %r{0} = fused_add_rms_norm({1}, {2}, {3}, epsilon=1e-05)", block + 1, added, rows,
           input("norm" + std::to_string(block + 1), {kWidth}));
      rows = fmt::format("%r{}", block + 1);
    }
    std::string inputs;
    for (const auto& [name, meta] : metas_)
      inputs += fmt::format("{}%{}: {}", inputs.empty() ? "" : ", ", name, meta.text());
    return fmt::format("graph model({}) stage=traced where s0 in [{}, {}] {{\n{}  return %n{}\n}}\n", inputs, kRows,
                       kRows, lines_, 2 * kLayers);
  }

  const std::vector<std::pair<std::string, Meta>>& inputs() const { return metas_; }

 private:
  template <class... Arguments>
  void line(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    lines_ += "  " + fmt::format(format, std::forward<Arguments>(arguments)...) + "\n";
  }

  // The parts that the process has: its own, called 0, or all.
  std::vector<int> parts() const {
    std::vector<int> parts;
    for (int rank = 0; rank < (form_.is_whole ? form_.ranks : 1); ++rank) parts.push_back(rank);
    return parts;
  }

  std::string input(const std::string& name, Shape shape) {
    metas_.emplace_back(name, Meta::tensor(DType::f32, std::move(shape)));
    return "%" + name;
  }
  std::string weight(const std::string& name, int block, int rank, Shape shape) {
    return input(fmt::format("{}{}.{}", name, block, rank), std::move(shape));
  }

  std::string sum(const std::string& name, int number) {
    if (name == "e")
      for (const int rank : parts()) input(fmt::format("e.{}", rank), {Dim::symbol("s0"), kWidth});
    if (!form_.is_whole) {
      line("%s{} = all_reduce(%{}.0, world_size={}, group_name=tp)", number, name, form_.ranks);
      return fmt::format("%s{}", number);
    }
    std::string total = "%" + name + ".0";
    for (int rank = 1; rank < form_.ranks; ++rank) {
      line("%s{}.{} = add({}, %{}.{})", number, rank, total, name, rank);
      total = fmt::format("%s{}.{}", number, rank);
    }
    return total;
  }

  std::string quantized(int block) {
    line("%c{0} = static_scaled_fp8_quant(%n{0}, {1})", block, input("scale" + std::to_string(block), {1}));
    line("%v{0} = cast(%c{0}, dtype=f32)", block);
    return fmt::format("%v{}", block);
  }

  Form form_;
  std::string lines_;
  std::vector<std::pair<std::string, Meta>> metas_;
};

// The same for a name on every rank, but for parts: there the rank's own.
Tensor tensor_of(const std::string& name, const Meta& meta, int rank) {
  std::string key = name;
  if (const std::size_t dot = name.find('.'); dot != std::string::npos && rank >= 0)
    key = name.substr(0, dot + 1) + std::to_string(rank);
  std::uint64_t seed = 11;
  for (const char c : key) seed = seed * 131 + static_cast<unsigned char>(c);
  std::vector<std::int64_t> shape;
  for (const Dim& dim : meta.shape) shape.push_back(dim.is_number() ? dim.number() : kRows);
  const Fill fill = name.starts_with("scale") ? Fill::codes : Fill::normal;
  Tensor tensor = make_sample_tensor({"x", shape, DType::f32, fill}, DType::f32, seed);
  if (name.starts_with("up") || name.starts_with("down"))
    for (std::int64_t i = 0; i < tensor.meta.bytes().number() / 4; ++i) tensor.as<float>()[i] /= 8;
  return tensor;
}

struct Ran {
  std::vector<Tensor> results;  // by rank
  RankTraffic traffic;          // of rank 0
  int shared_norms = 0;
  int gathered_codes = 0;
};

std::shared_ptr<Context> context_of(const std::vector<std::pair<std::string, std::string>>& chosen) {
  Options options;
  options.threads = 1;
  for (const auto& [name, value] : chosen) set_option(options, name, value, "test");
  return make_context(options);
}

Tensor copy_of(const Tensor& tensor) { return Tensor::from_bytes(tensor.meta, tensor.data()); }

// `rank` -1: the whole model.
Tensor run_model(const Context& context, Form form, int rank, Ran* ran) {
  ModelText model(form);
  GraphProgram program(context, parse_graph(model.text(), context.ops));
  std::vector<Tensor> inputs;
  for (const auto& [name, meta] : model.inputs()) inputs.push_back(tensor_of(name, meta, rank));
  const Tensor result = copy_of(contiguous(program.run(inputs)[0]));
  if (rank == 0 && program.record() != nullptr)
    for (const PassRecord& pass : program.record()->passes)
      for (const PatternReport& report : pass.result.patterns) {
        if (report.pattern.starts_with("sequence_parallel")) ran->shared_norms += report.matched;
        if (report.pattern.starts_with("gather_codes")) ran->gathered_codes += report.matched;
      }
  return result;
}

Ran run_on_ranks(Form form, const std::vector<std::pair<std::string, std::string>>& chosen) {
  Ran ran;
  ran.results.resize(static_cast<std::size_t>(form.ranks));
  run_ranks(form.ranks, kGroups, [&](int rank, const RankGroups& groups) {
    const auto context = context_of(chosen);
    context->groups = groups;
    ran.results[static_cast<std::size_t>(rank)] = run_model(*context, form, rank, &ran);
    if (rank == 0) ran.traffic = groups.all().at("tp")->traffic();
  });
  return ran;
}

Tensor whole(Form form) {
  form.is_whole = true;
  return run_model(*context_of({}), form, -1, nullptr);
}

const std::pair<std::string, std::string> kOn = {"cc.pass_config.enable_sp", "true"};

TEST(SequenceParallel, ThreadsGiveTheBitsOfOneProcess) {
  for (const int ranks : {2, 4})
    for (const bool is_quantized : {false, true}) {
      const Form form{.ranks = ranks, .is_quantized = is_quantized};
      const Tensor wanted = whole(form);
      std::vector<std::vector<std::pair<std::string, std::string>>> choices = {{}, {kOn}};
      if (ranks == 2) choices.push_back({{"enforce-eager", "true"}});
      if (ranks == 2) choices.push_back({kOn, {"cc.splitting_ops", R"(["linear"])"}});
      for (const auto& chosen : choices)
        for (const Tensor& came : run_on_ranks(form, chosen).results)
          EXPECT_EQ(difference(wanted, came, {}, true), "") << ranks << " ranks, " << chosen.size() << " options";
    }
}

// Sharing the rows of norms moves as much as before; to gather codes instead of values, a quarter of their part.
TEST(SequenceParallel, ThreadsMoveAsManyBytesAsCounted) {
  for (const int ranks : {2, 4}) {
    // The bytes of one reduce-scatter, or one all-gather.
    const std::int64_t bytes = kRows * kWidth * 4 * (ranks - 1) / ranks;
    const Ran off = run_on_ranks({.ranks = ranks}, {});
    EXPECT_EQ(off.shared_norms, 0);
    EXPECT_EQ(off.traffic.meetings, 2 * kNorms);  // an all-reduce is both
    EXPECT_EQ(off.traffic.bytes, 2 * kNorms * bytes);
    const Ran on = run_on_ranks({.ranks = ranks}, {kOn});
    EXPECT_EQ(on.shared_norms, kNorms);
    EXPECT_EQ(on.traffic.meetings, 2 * kNorms) << "a share is cut out of nothing, and no residual is gathered";
    EXPECT_EQ(on.traffic.bytes, 2 * kNorms * bytes);
    const Ran codes = run_on_ranks({.ranks = ranks, .is_quantized = true}, {kOn});
    EXPECT_EQ(codes.shared_norms, kNorms);
    EXPECT_EQ(codes.gathered_codes, kNorms - 1);
    EXPECT_EQ(codes.traffic.meetings, 2 * kNorms);
    EXPECT_EQ(codes.traffic.bytes, (kNorms + 1) * bytes + (kNorms - 1) * bytes / 4);
  }
}

TEST(SequenceParallel, OneThreadThatFailsEndsTheOthers) {
  const Form form{.ranks = 4};
  EXPECT_EQ(message_of([&] {
              run_ranks(4, kGroups, [&](int rank, const RankGroups& groups) {
                const auto context = context_of({kOn});
                context->groups = groups;
                USER_CHECK(rank != 2, "[rank 2] has no weights");
                run_model(*context, form, rank, nullptr);
              });
            }),
            "[rank 2] has no weights");
}

TEST(SequenceParallel, IsForTheExactSizesAmongTheRanges) {
  const auto context = context_of({kOn});
  const auto traced = parse_graph(
      "graph g(%x: f32[s0, 64]) stage=traced where s0 in [1, 16] {\n"
      "  %s = all_reduce(%x, world_size=2, group_name=tp)\n"
      "  %n = rms_norm(%s, none, epsilon=1e-05)\n  return %n\n}\n",
      context->ops);
  const CompiledRanges compiled = compile_ranges(*traced, *context, {{8, 8}, {6, 6}, {1, 16}}, {});
  std::vector<std::string> results;
  for (const auto& plan : compiled.plans) results.push_back(plan->steps[0].results[0].meta.text());
  EXPECT_EQ(results, (std::vector<std::string>{"f32[4, 64]", "f32[3, 64]", "f32[s0, 64]"}));
}

TEST(SequenceParallel, SaysWhyItDoesNothing) {
  const auto reason_of = [](const std::vector<std::pair<std::string, std::string>>& chosen, const std::string& where,
                            int ranks) -> std::string {
    const auto context = context_of(chosen);
    const auto graph = parse_graph(fmt::format("graph g(%x: f32[s0, 64]) stage=traced where s0 in {} {{\n"
                                               "  %s = all_reduce(%x, world_size={}, group_name=tp)\n"
                                               "  %n = rms_norm(%s, none, epsilon=1e-05)\n  return %n\n}}\n",
                                               where, ranks),
                                   context->ops);
    GraphProgram program(*context, graph);
    for (const PassRecord& pass : program.record()->passes)
      for (const PatternReport& report : pass.result.patterns)
        if (report.pattern == "sequence_parallel_rms_norm")
          return report.off ? *report.off : report.near_misses.empty() ? "it did" : report.near_misses[0].reason;
    return "there is no such pattern";
  };
  EXPECT_EQ(reason_of({}, "[8, 8]", 2), "-cc.pass_config.enable_sp is not on");
  EXPECT_EQ(reason_of({kOn}, "[8, 8]", 1), "no op of the graph is over several ranks");
  EXPECT_EQ(reason_of({kOn}, "[1, 8]", 2),
            "s0 in [1, 8] need not divide by the ranks; exact sizes (-cc.compile_sizes) may");
  EXPECT_EQ(reason_of({kOn, {"cc.pass_config.sp_min_token_num", "16"}}, "[8, 8]", 2),
            "-cc.pass_config.sp_min_token_num is 16, and the range begins at 8");
  EXPECT_EQ(missing_part(reason_of({kOn}, "[7, 7]", 2), {"[reduce_scatter] dim 0 of x", "2 ranks", "f32[7, 64]"}), "");
  EXPECT_EQ(reason_of({kOn}, "[8, 8]", 2), "it did");
}

}  // namespace weft::sequence_parallel_test
