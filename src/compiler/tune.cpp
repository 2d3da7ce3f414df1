#include "compiler/tune.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "compiler/eager.h"
#include "compiler/tune_inputs.h"

namespace weft {
namespace {

constexpr std::int64_t kBeyondCaches = 64 << 20;
constexpr std::int64_t kMostCopies = 64;
constexpr double kMostRepeats = 100;

using Operands = std::vector<std::optional<Meta>>;

// A call of the model that may be measured.
struct Candidacy {
  const Op* op = nullptr;
  Operands operands;  // as compiled; the count of rows is s0
  TuningEntry entry;  // without times
};

template <class Change>
Meta changed(Meta meta, Change&& change) {
  for (Dim& dim : meta.shape) dim = change(dim);
  for (Dim& stride : meta.strides) stride = change(stride);
  return meta;
}

// The operands of a node with its symbol as s0; nothing where there are several symbols, or none stands for itself.
std::optional<Operands> canonical_operands(const Node& node) {
  std::set<std::string> symbols;
  bool stands_alone = false;
  for (const GraphValue* operand : node.operands)
    if (operand != nullptr)
      for (const Shape* dims : {&operand->meta.shape, &operand->meta.strides})
        for (const Dim& dim : *dims) {
          dim.collect_symbols(symbols);
          stands_alone = stands_alone || (dims == &operand->meta.shape && !dim.symbol_name().empty());
        }
  if (symbols.size() > 1 || (!symbols.empty() && !stands_alone)) return std::nullopt;
  Operands operands;
  for (const GraphValue* operand : node.operands) {
    operands.emplace_back();
    if (operand == nullptr) continue;
    operands.back() = symbols.empty() ? operand->meta : changed(operand->meta, [&](const Dim& dim) {
      return dim.substitute({{*symbols.begin(), Dim::symbol(kRowsSymbol)}});
    });
  }
  return operands;
}

bool holds_rows(const Operands& operands) {
  return std::any_of(operands.begin(), operands.end(), [](const std::optional<Meta>& operand) {
    return operand &&
           std::any_of(operand->shape.begin(), operand->shape.end(), [](const Dim& dim) { return !dim.is_number(); });
  });
}

void collect(const Node& node, TokenRange range, std::map<std::string, Candidacy>& calls) {
  if (node.kind != NodeKind::op || node.op == nullptr || node.op->is_view) return;
  const std::optional<Operands> operands = canonical_operands(node);
  if (!operands) return;
  Candidacy call{.op = node.op, .operands = *operands};
  call.entry.op = node.name;
  call.entry.standard = node.provider;
  for (const std::optional<Meta>& operand : *operands)
    call.entry.call.operands.push_back(operand ? std::optional(plain_meta(*operand)) : std::nullopt);
  call.entry.call.attributes = node.attributes;
  call.entry.call.range = range;
  call.entry.weight = weight_operand(node.name);
  if (!holds_rows(*operands)) {
    call.entry.rows = {0};
  } else if (range.lo == range.hi) {
    call.entry.rows = {range.lo};
  } else {
    call.entry.rows = {range.lo, range.hi};
  }
  calls.emplace(call.entry.key(), std::move(call));
}

std::map<std::string, Candidacy> collect_calls(std::span<const CompileRecord> records) {
  std::map<std::string, Candidacy> calls;
  for (const CompileRecord& record : records) {
    CHECK(record.split != nullptr && record.split->stage == Stage::split, "{} was not compiled", record.graph);
    for (const auto& piece : record.split->pieces)
      for (const auto& node : piece->nodes()) collect(*node, record.range, calls);
  }
  return calls;
}

// A provider and the layout it would be given.
struct Contender {
  std::string provider;
  const Kernel* kernel = nullptr;
  std::string packing;
};

class Tuner {
 public:
  Tuner(const Context& context, const TuneOptions& options)
      : context_(context), options_(options), deadline_(options.clock() + options.budget_seconds) {}

  bool is_over() const { return options_.clock() >= deadline_; }
  double seconds_left() const { return std::max(0.0, deadline_ - options_.clock()); }

  // The standard provider first, the others by name.
  std::vector<Contender> contenders(const Candidacy& call) const {
    const int weight = call.entry.weight;
    const auto packing_of = [&](const Operands& operands) {
      return weight < 0 ? std::string() : operands[static_cast<std::size_t>(weight)]->packed;
    };
    std::vector<Contender> all{
        {call.entry.standard, &context_.kernel_for(call.entry.op, call.entry.standard), packing_of(call.operands)}};
    for (const std::string& provider : context_.kernels.providers(call.entry.op)) {
      const Kernel* kernel = context_.kernels.find(call.entry.op, provider);
      if (provider == call.entry.standard || provider == "reference" || kernel == nullptr) continue;
      if (context_.options.batch_invariant && !kernel->batch_invariant) continue;
      for (const std::string& packing : layouts(call, provider)) {
        const Operands operands = with_packing(call, packing);
        if (!takes(*kernel, call, operands)) continue;
        all.push_back({provider, kernel, packing_of(operands)});
        break;
      }
    }
    return all;
  }

  // `share`: the seconds that all sizes may take together.
  void measure(Candidacy& call, const std::vector<Contender>& contenders, double share) {
    TuningEntry& entry = call.entry;
    for (const Contender& contender : contenders)
      entry.times.push_back({.provider = contender.provider, .packing = contender.packing, .nanoseconds = {}});
    std::map<std::string, std::vector<Tensor>> weights;  // by packing: copies that take turns
    if (entry.weight >= 0)
      for (const Contender& contender : contenders)
        if (weights.count(contender.packing) == 0) weights[contender.packing] = copies(call, contender.packing);
    for (std::int64_t rows : entry.rows)
      measure_size(call, contenders, weights, rows, share / static_cast<double>(entry.rows.size()));
    entry.measured = options_.now;
  }

 private:
  struct Run {
    PreparedCall prepared;
    std::vector<Values> turns;
    std::size_t turn = 0;
  };

  // In the order in which a weight is laid out at load: the provider's own packing, plain, as it is for the standard.
  std::vector<std::string> layouts(const Candidacy& call, const std::string& provider) const {
    if (call.entry.weight < 0) return {""};
    const Meta& weight = *call.entry.call.operands[static_cast<std::size_t>(call.entry.weight)];
    std::vector<std::string> names;
    if (const Packing* own = own_packing(context_.kernels, provider, weight, context_.device)) names = {own->name};
    names.insert(names.end(), {"", call.operands[static_cast<std::size_t>(call.entry.weight)]->packed});
    return names;
  }

  static Operands with_packing(const Candidacy& call, const std::string& packing) {
    Operands operands = call.operands;
    if (call.entry.weight >= 0) operands[static_cast<std::size_t>(call.entry.weight)]->packed = packing;
    return operands;
  }

  bool takes(const Kernel& kernel, const Candidacy& call, const Operands& operands) const {
    const TokenRange range = call.entry.call.range;
    const std::vector<Meta> results = infer_results(*call.op, context_.ops, operands, call.entry.call.attributes);
    return range.lo >= kernel.rows.lo && range.hi <= kernel.rows.hi &&
           kernel.supports({operands, results, call.entry.call.attributes, range});
  }

  Tensor in_layout(const Tensor& plain, const std::string& packing) const {
    if (packing.empty()) return plain;
    const Packing* found = context_.kernels.find_packing(packing);
    CHECK(found != nullptr, "there is no packing {}", packing);
    return packed_weight(plain, *found, *context_.threads);
  }

  // Copies of the weight that together exceed the caches.
  std::vector<Tensor> copies(const Candidacy& call, const std::string& packing) const {
    const Tensor plain = tune_inputs({call.entry.call.operands[static_cast<std::size_t>(call.entry.weight)]}, 1)[0];
    std::vector<Tensor> all{in_layout(plain, packing)};
    const std::int64_t count = std::clamp<std::int64_t>(kBeyondCaches / all[0].storage->bytes(), 1, kMostCopies);
    while (static_cast<std::int64_t>(all.size()) < count) all.push_back(duplicate(all[0]));
    return all;
  }

  Run make_run(const Candidacy& call, const Contender& contender, const std::vector<Tensor>* weights, std::int64_t rows,
               Evaluator& home) const {
    Operands operands = with_packing(call, contender.packing);
    for (std::optional<Meta>& operand : operands) {
      if (!operand || !operand->is_tensor()) continue;
      const std::string packing = operand->packed;
      *operand = changed(*operand, [&](const Dim& dim) { return dim.substitute({{kRowsSymbol, Dim(rows)}}); });
      if (!operand->strides.empty()) *operand = Meta::strided(operand->dtype, operand->shape, operand->strides);
      operand->packed = packing;
    }
    Operands made = operands;
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (made[i]) made[i]->packed.clear();
      if (weights != nullptr && i == static_cast<std::size_t>(call.entry.weight)) made[i].reset();
    }
    std::vector<Tensor> inputs = tune_inputs(made, rows);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].defined() && operands[i]) inputs[i] = in_layout(inputs[i], operands[i]->packed);
    Run run{prepare_call(*call.op, *contender.kernel, operands, call.entry.call.attributes,
                         infer_results(*call.op, context_.ops, operands, call.entry.call.attributes)),
            {}};
    const std::size_t turns = weights == nullptr ? 1 : weights->size();
    for (std::size_t turn = 0; turn < turns; ++turn) {
      if (weights != nullptr) inputs[static_cast<std::size_t>(call.entry.weight)] = (*weights)[turn];
      run.turns.emplace_back();
      for (const Tensor& input : inputs)
        run.turns.back().push_back(input.defined() ? Value::concrete(home, input) : Value());
    }
    return run;
  }

  double seconds_of(Run& run, const Attributes& attributes) {
    const Values& operands = run.turns[run.turn++ % run.turns.size()];
    const double start = options_.clock();
    run_call(run.prepared, operands, attributes, true, pool_, *context_.threads);
    return options_.clock() - start;
  }

  void measure_size(Candidacy& call, const std::vector<Contender>& contenders,
                    const std::map<std::string, std::vector<Tensor>>& weights, std::int64_t rows, double share) {
    EagerEvaluator home(context_, call.entry.call.range);
    const Attributes& attributes = call.entry.call.attributes;
    std::vector<Run> runs;
    for (const Contender& contender : contenders)
      runs.push_back(
          make_run(call, contender, call.entry.weight < 0 ? nullptr : &weights.at(contender.packing), rows, home));
    // Those of one layout share the copies, and none may find what another has just brought into the caches.
    for (std::size_t i = 0; i < runs.size(); ++i) runs[i].turn = i * runs[i].turns.size() / runs.size();
    double once = 0;  // the first runs also wake what sleeps; they are not kept
    for (Run& run : runs) once += seconds_of(run, attributes);
    const double fitting = once > 0 ? share / (static_cast<double>(kTuningRounds) * once) : kMostRepeats;
    const int repeats = static_cast<int>(std::clamp(fitting, 1.0, kMostRepeats));
    for (TunedTime& time : call.entry.times) time.nanoseconds.emplace_back();
    for (std::size_t round = 0; round < kTuningRounds; ++round) {
      std::vector<double> best(runs.size(), 1e6);
      for (int repeat = 0; repeat < repeats; ++repeat)
        for (std::size_t i = 0; i < runs.size(); ++i) best[i] = std::min(best[i], seconds_of(runs[i], attributes));
      for (std::size_t i = 0; i < runs.size(); ++i)
        call.entry.times[i].nanoseconds.back().push_back(std::max<std::int64_t>(1, std::llround(best[i] * 1e9)));
    }
  }

  const Context& context_;
  const TuneOptions& options_;
  double deadline_;
  StoragePool pool_;
};

}  // namespace

TuneReport tune(const Context& context, std::span<const CompileRecord> records, TuningDatabase& database,
                const TuneOptions& options) {
  CHECK(context.priorities.user().empty() && context.priorities.tuned().empty(),
        "what is measured is compared with the default order");
  TuneReport report;
  Tuner tuner(context, options);
  std::map<std::string, Candidacy> calls = collect_calls(records);
  std::vector<std::pair<Candidacy*, std::vector<Contender>>> open;
  for (auto& [key, call] : calls) {
    std::vector<Contender> contenders = tuner.contenders(call);
    if (contenders.size() < 2) {
      ++report.unrivalled;
    } else if (database.entries.count(key) != 0) {
      ++report.known;
      report.calls.push_back(key);
    } else {
      open.emplace_back(&call, std::move(contenders));
    }
  }
  for (std::size_t i = 0; i < open.size(); ++i) {
    auto& [call, contenders] = open[i];
    if (tuner.is_over()) {
      report.left = static_cast<int>(open.size() - i);
      break;
    }
    tuner.measure(*call, contenders, tuner.seconds_left() / static_cast<double>(open.size() - i));
    ++report.measured;
    report.calls.push_back(call->entry.key());
    database.add(std::move(call->entry));
  }
  std::sort(report.calls.begin(), report.calls.end());
  return report;
}

}  // namespace weft
