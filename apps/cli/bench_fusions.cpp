#include "apps/cli/bench_fusions.h"

#include <algorithm>
#include <array>
#include <optional>

#include "apps/cli/bench_copy.h"
#include "apps/cli/bench_ops_calls.h"
#include "base/error.h"
#include "compiler/kernel_timer.h"
#include "compiler/sample_call.h"
#include "ir/trace.h"

namespace weft {
namespace {

constexpr std::int64_t kOwnCaches = 256 << 10;           // of a core; what is smaller is timed there
constexpr std::int64_t kBeyondSharedCaches = 128 << 20;  // four times what the cores of a server share
constexpr double kMostRepeatsInPlace = 200;              // in place sums grow with every run

// The meaning of a call as a graph, its inputs the operands that are there; null unless it is two ops of which the
// second reads a result of the first.
std::unique_ptr<Graph> two_calls(const Op& op, const OpTable& ops, const std::vector<std::optional<Meta>>& operands,
                                 const Attributes& attributes) {
  if (op.is_primitive()) return nullptr;
  auto graph = std::make_unique<Graph>("meaning", Stage::traced);
  Trace trace(ops, *graph);
  Values values;
  for (std::size_t i = 0; i < operands.size(); ++i)
    values.push_back(operands[i] ? trace.input(op.schema.parameters[i].name, *operands[i]) : Value());
  trace.finish(op.meaning(trace, values, attributes));
  if (graph->nodes().size() != 2) return nullptr;
  const Node& first = *graph->nodes().front();
  const Node& second = *graph->nodes().back();
  const bool linked = std::any_of(second.operands.begin(), second.operands.end(), [&](const GraphValue* operand) {
    return operand != nullptr && operand->producer == &first;
  });
  const bool computes = std::none_of(graph->nodes().begin(), graph->nodes().end(), [](const auto& node) {
    return node->op == nullptr || node->op->is_view || node->op->is_allocation;
  });
  return linked && computes ? std::move(graph) : nullptr;
}

std::unique_ptr<Graph> two_calls(const Op& op, const OpTable& ops) {
  if (op.samples.empty()) return nullptr;
  const SampleCall call = make_sample_call(op, op.samples[0], DType::f32);
  return two_calls(op, ops, metas_of(call.operands), call.attributes);
}

std::int64_t bytes_of_metas(const std::vector<Meta>& metas) {
  std::int64_t bytes = 0;
  for (const Meta& meta : metas) bytes += meta.bytes().number();
  return bytes;
}

// One call of one op by the kernel that is chosen for it.
struct ChosenCall {
  const Op* op;
  Attributes attributes;
  std::vector<std::optional<Meta>> operands;
  std::vector<Meta> results;
  const Kernel* kernel = nullptr;  // null where none takes the call
  std::string provider = {};

  ChosenCall(const Context& context, const Op& chosen_op, const Attributes& given,
             std::vector<std::optional<Meta>> metas, std::int64_t rows)
      : op(&chosen_op),
        attributes(given),
        operands(std::move(metas)),
        results(infer_results(*op, context.ops, operands, attributes)) {
    const Choice choice = select_kernel(context.kernels, context.priorities, op->name,
                                        {operands, results, attributes, {rows, rows}}, context.options.batch_invariant);
    kernel = choice.kernel;
    provider = choice.provider;
  }

  std::string name() const { return fmt::format("{}@{}", op->name, provider); }
  std::int64_t bytes_read() const {
    std::int64_t bytes = 0;
    for (const std::optional<Meta>& meta : operands) bytes += meta ? meta->bytes().number() : 0;
    return bytes;
  }
  std::int64_t bytes() const { return bytes_read() + bytes_of_metas(results); }
};

PlainCopy copy_beside(ThreadPool& threads, const ChosenCall& call) {
  std::int64_t over = 0;
  for (const Donation& donation : call.op->donates)
    if (std::count(call.kernel->writes.begin(), call.kernel->writes.end(), donation.argument) > 0)
      over += call.results[static_cast<std::size_t>(donation.result)].bytes().number();
  return {threads, call.bytes_read() - over, over, bytes_of_metas(call.results) - over};
}

// One fused op on one call.
class FusionBench {
 public:
  FusionBench(const Context& context, const FusionBenchOptions& options, const Op& op, const SampleCall& call,
              const Graph& meaning, std::int64_t rows)
      : context_(context),
        options_(options),
        call_(call),
        meaning_(meaning),
        fused_(context, op, call.attributes, metas_of(call.operands), rows),
        first_(chosen(*meaning.nodes().front(), rows)),
        second_(chosen(*meaning.nodes().back(), rows)) {}

  // Nothing where one of the three has no kernel.
  std::optional<FusionBenchRow> run(std::int64_t rows, std::int64_t columns) {
    if (fused_.kernel == nullptr || first_.kernel == nullptr || second_.kernel == nullptr) return std::nullopt;
    FusionBenchRow row{.op = fused_.op->name, .call = call_.text, .rows = rows, .columns = columns};
    row.unfused = {.kernels = first_.name() + "+" + second_.name(), .bytes = first_.bytes() + second_.bytes()};
    row.fused = {.kernels = fused_.name(), .bytes = fused_.bytes()};
    row.copy = {.kernels = "copy", .bytes = row.fused.bytes};
    row.turns = row.fused.bytes < kOwnCaches ? 1 : kBeyondSharedCaches / row.fused.bytes + 1;
    std::vector<Turn> turns;
    for (std::int64_t turn = 0; turn < row.turns; ++turn) turns.push_back(make_turn());
    time(turns, row);
    return row;
  }

 private:
  // Memory of its own for each of the ways.
  struct Turn {
    KernelTimer fused, first, second;
    PlainCopy copy;
  };

  ChosenCall chosen(const Node& node, std::int64_t rows) const {
    std::vector<std::optional<Meta>> metas;
    for (const GraphValue* operand : node.operands)
      metas.push_back(operand != nullptr ? std::optional(operand->meta) : std::nullopt);
    return ChosenCall(context_, *node.op, node.attributes, std::move(metas), rows);
  }

  std::vector<Tensor> operands_of(const Node& node, const std::vector<Tensor>& made) const {
    std::vector<Tensor> operands;
    for (const GraphValue* operand : node.operands) {
      if (operand == nullptr) {
        operands.emplace_back();
      } else if (operand->producer != nullptr) {
        operands.push_back(made.at(static_cast<std::size_t>(operand->index)));
      } else {
        operands.push_back(duplicate(given(operand->index)));
      }
    }
    return operands;
  }

  // The operand that is the meaning's input of this number: absent ones have none.
  const Tensor& given(int input) const {
    for (const Tensor& operand : call_.operands)
      if (operand.defined() && input-- == 0) return operand;
    CHECK(false, "the meaning of {} has more inputs than operands", fused_.op->name);
    return call_.operands[0];
  }

  Turn make_turn() const {
    std::vector<Tensor> operands;
    for (const Tensor& operand : call_.operands) operands.push_back(operand.defined() ? duplicate(operand) : operand);
    KernelTimer first(context_, *first_.op, *first_.kernel, operands_of(*meaning_.nodes().front(), {}),
                      first_.attributes);
    KernelTimer second(context_, *second_.op, *second_.kernel, operands_of(*meaning_.nodes().back(), first.results()),
                       second_.attributes);
    return {KernelTimer(context_, *fused_.op, *fused_.kernel, std::move(operands), fused_.attributes), std::move(first),
            std::move(second), copy_beside(*context_.threads, fused_)};
  }

  void time(std::vector<Turn>& turns, FusionBenchRow& row) const {
    const std::function<double()> still = [] { return 0.0; };
    const std::array<std::function<void(Turn&)>, 3> ways = {[&](Turn& turn) {
                                                              turn.first.seconds(still);
                                                              turn.second.seconds(still);
                                                            },
                                                            [&](Turn& turn) { turn.fused.seconds(still); },
                                                            [](Turn& turn) { turn.copy.run(); }};
    const std::array<FusionContender*, 3> contenders = {&row.unfused, &row.fused, &row.copy};
    std::array<std::size_t, 3> next{};
    std::array<int, 3> repeats{1, 1, 1};
    const auto seconds = [&](std::size_t way) {
      const double start = options_.clock();
      for (int i = 0; i < repeats[way]; ++i) ways[way](turns[next[way]++ % turns.size()]);
      return (options_.clock() - start) / repeats[way];
    };
    for (std::size_t way = 0; way < ways.size(); ++way) {
      for (std::size_t turn = 0; turn < turns.size(); ++turn) ways[way](turns[turn]);  // pages come to be
      repeats[way] =
          static_cast<int>(std::clamp(kTimingBatchSeconds / std::max(seconds(way), 1e-9), 1.0, kMostRepeatsInPlace));
    }
    for (std::int64_t round = 0; round < options_.rounds; ++round)
      for (std::size_t way = 0; way < ways.size(); ++way) contenders[way]->seconds.push_back(seconds(way));
  }

  const Context& context_;
  const FusionBenchOptions& options_;
  const SampleCall& call_;
  const Graph& meaning_;
  ChosenCall fused_, first_, second_;
};

}  // namespace

double FusionContender::best() const { return std::max(1e-9, *std::min_element(seconds.begin(), seconds.end())); }

std::vector<std::string> fused_ops(const OpTable& ops) {
  std::vector<std::string> fused;
  for (const auto& [name, op] : ops.all())
    if (two_calls(op, ops)) fused.push_back(name);
  return fused;
}

void check_fusion_bench(const Context& context, const FusionBenchOptions& options) {
  const std::vector<std::string> known = fused_ops(context.ops);
  for (const std::string& op : options.ops)
    USER_CHECK(std::count(known.begin(), known.end(), context.ops.at(op).name) > 0,
               "[--op] {} is not a fused op: its meaning is not two ops", op);
}

void bench_fusions(const Context& context, const FusionBenchOptions& options,
                   const std::function<void(const FusionBenchRow&)>& on_row) {
  for (const std::string& name : options.ops.empty() ? fused_ops(context.ops) : options.ops) {
    const Op& op = context.ops.at(name);
    for (const std::int64_t columns : options.columns)
      for (const std::int64_t rows : options.rows)
        for (const SampleCall& call : sample_calls(op, resized(op, context.ops, rows, columns, options.group))) {
          infer_results(op, context.ops, metas_of(call.operands), call.attributes);
          const auto meaning = two_calls(op, context.ops, metas_of(call.operands), call.attributes);
          if (meaning == nullptr) continue;
          if (const auto row = FusionBench(context, options, op, call, *meaning, rows).run(rows, columns)) on_row(*row);
        }
  }
}

}  // namespace weft
