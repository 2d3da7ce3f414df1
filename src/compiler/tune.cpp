#include "compiler/tune.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "compiler/kernel_timer.h"
#include "compiler/parts_timer.h"
#include "compiler/tune_inputs.h"

namespace weft {
namespace {

constexpr double kMostRepeats = 100;

using Operands = std::vector<std::optional<Meta>>;

// A call of the model that may be measured.
struct Candidacy {
  const Op* op = nullptr;
  Operands operands;  // as compiled; the count of rows is s0
  TuningEntry entry;  // without times

  bool has_weight() const { return entry.weight >= 0; }
  std::size_t weight() const { return static_cast<std::size_t>(entry.weight); }
};

template <class Change>
Meta changed(Meta meta, Change&& change) {
  for (Dim& dim : meta.shape) dim = change(dim);
  for (Dim& stride : meta.strides) stride = change(stride);
  return meta;
}

// Without packing, as Meta::strided gives it: what is strided for many rows may be contiguous for one.
Meta plain_at_rows(Meta meta, std::int64_t rows) {
  if (!meta.is_tensor()) return meta;
  meta = changed(std::move(meta), [&](const Dim& dim) { return dim.substitute({{kRowsSymbol, Dim(rows)}}); });
  meta.packed.clear();
  return meta.is_contiguous() ? meta : Meta::strided(meta.dtype, meta.shape, meta.strides);
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
  const Kernel* kernel = nullptr;  // null for kParts: the meaning, generated where it is so in a model
  std::string packing;
};

// Seconds of one run.
using Timer = std::function<double()>;

class Tuner {
 public:
  Tuner(const Context& context, const TuneOptions& options)
      : context_(context), options_(options), fused_ops_(fused_ops(context)) {}

  // The standard provider first, the others by name.
  std::vector<Contender> contenders(const Candidacy& call) const {
    const std::string& standard = call.entry.standard;
    const bool is_meaning = standard == kParts && !call.op->is_primitive();
    std::vector<Contender> all{{standard, is_meaning ? nullptr : &context_.kernel_for(call.entry.op, standard),
                                call.has_weight() ? call.operands[call.weight()]->packed : ""}};
    for (const std::string& provider : context_.kernels.providers(call.entry.op)) {
      const Kernel* kernel = context_.kernels.find(call.entry.op, provider);
      if (provider == standard || provider == "reference" || kernel == nullptr) continue;
      if (context_.options.batch_invariant && !kernel->batch_invariant) continue;
      for (const std::string& packing : layouts(call, provider)) {
        if (!takes(*kernel, call, packing)) continue;
        all.push_back({provider, kernel, packing});
        break;
      }
    }
    if (fused_ops_.contains(call.entry.op) && standard != kParts) all.push_back({.provider = kParts});
    return all;
  }

  // `share`: the seconds that all sizes may take together.
  void measure(Candidacy& call, const std::vector<Contender>& contenders, double share) const {
    TuningEntry& entry = call.entry;
    for (const Contender& contender : contenders)
      entry.times.push_back({.provider = contender.provider, .packing = contender.packing, .nanoseconds = {}});
    std::map<std::string, std::vector<Tensor>> weights;  // by packing
    for (const Contender& contender : contenders)
      if (weights.count(contender.packing) == 0) weights[contender.packing] = weight_copies(call, contender.packing);
    for (const std::int64_t rows : entry.rows)
      measure_size(entry, make_timers(call, contenders, weights, rows), share / static_cast<double>(entry.rows.size()));
    entry.measured = options_.now;
  }

 private:
  // In the order in which a weight is laid out at load: the provider's own packing, plain, as it is for the standard.
  std::vector<std::string> layouts(const Candidacy& call, const std::string& provider) const {
    if (!call.has_weight()) return {""};
    const Meta& weight = *call.entry.call.operands[call.weight()];
    std::vector<std::string> names;
    if (const Packing* own = own_packing(context_.kernels, provider, weight, context_.device)) names = {own->name};
    names.insert(names.end(), {"", call.operands[call.weight()]->packed});
    return names;
  }

  bool takes(const Kernel& kernel, const Candidacy& call, const std::string& packing) const {
    const TokenRange range = call.entry.call.range;
    const Attributes& attributes = call.entry.call.attributes;
    Operands operands = call.operands;
    if (call.has_weight()) operands[call.weight()]->packed = packing;
    const std::vector<Meta> results = infer_results(*call.op, context_.ops, operands, attributes);
    return range.lo >= kernel.rows.lo && range.hi <= kernel.rows.hi &&
           kernel.supports({operands, results, attributes, range});
  }

  Tensor in_layout(const Tensor& plain, const std::string& packing) const {
    if (packing.empty()) return plain;
    const Packing* found = context_.kernels.find_packing(packing);
    CHECK(found != nullptr, "there is no packing {}", packing);
    return pack_weight(*found, {&plain, 1}, *context_.threads);
  }

  // What takes turns; nothing for an op without a weight.
  std::vector<Tensor> weight_copies(const Candidacy& call, const std::string& packing) const {
    if (!call.has_weight()) return {};
    const Tensor plain = tune_inputs({call.entry.call.operands[call.weight()]}, 1)[0];
    return copies_beyond_caches(in_layout(plain, packing));
  }

  // The operands at this count of rows, all but the weight.
  std::vector<Tensor> inputs(const Candidacy& call, std::int64_t rows) const {
    Operands plain = call.operands;
    if (call.has_weight()) plain[call.weight()].reset();
    for (std::optional<Meta>& operand : plain)
      if (operand) operand = plain_at_rows(*operand, rows);
    std::vector<Tensor> all = tune_inputs(plain, rows);
    for (std::size_t i = 0; i < all.size(); ++i)
      if (all[i].defined()) all[i] = in_layout(all[i], call.operands[i]->packed);
    return all;
  }

  std::vector<Timer> make_timers(const Candidacy& call, const std::vector<Contender>& contenders,
                                 const std::map<std::string, std::vector<Tensor>>& weights, std::int64_t rows) const {
    std::vector<Timer> timers;
    for (const Contender& contender : contenders) {
      std::vector<Tensor> operands = inputs(call, rows);
      const Attributes& attributes = call.entry.call.attributes;
      if (contender.kernel == nullptr) {
        const auto parts =
            std::make_shared<PartsTimer>(context_, *call.op, operands, attributes, call.entry.call.range);
        timers.push_back([this, parts] { return parts->seconds(options_.clock); });
        continue;
      }
      const std::vector<Tensor>& copies = weights.at(contender.packing);
      if (!copies.empty()) operands[call.weight()] = copies[0];
      // Those of one layout share the copies, and none may find what another has just brought into the caches.
      const std::size_t first = timers.size() * copies.size() / contenders.size();
      const auto kernel =
          std::make_shared<KernelTimer>(context_, *call.op, *contender.kernel, std::move(operands), attributes);
      if (!copies.empty()) kernel->take_turns(call.weight(), copies, first);
      timers.push_back([this, kernel] { return kernel->seconds(options_.clock); });
    }
    return timers;
  }

  void measure_size(TuningEntry& entry, const std::vector<Timer>& timers, double share) const {
    double once = 0;  // the first runs also wake what sleeps; they are not kept
    for (const Timer& timer : timers) once += timer();
    const double fitting = once > 0 ? share / (static_cast<double>(kTuningRounds) * once) : kMostRepeats;
    const int repeats = static_cast<int>(std::clamp(fitting, 1.0, kMostRepeats));
    for (TunedTime& time : entry.times) time.nanoseconds.emplace_back();
    for (std::size_t round = 0; round < kTuningRounds; ++round) {
      std::vector<double> best(timers.size(), 1e6);
      for (int repeat = 0; repeat < repeats; ++repeat)
        for (std::size_t i = 0; i < timers.size(); ++i) best[i] = std::min(best[i], timers[i]());
      for (std::size_t i = 0; i < timers.size(); ++i)
        entry.times[i].nanoseconds.back().push_back(std::max<std::int64_t>(1, std::llround(best[i] * 1e9)));
    }
  }

  const Context& context_;
  const TuneOptions& options_;
  std::set<std::string> fused_ops_;
};

}  // namespace

TuneReport tune(const Context& context, std::span<const CompileRecord> records, TuningDatabase& database,
                const TuneOptions& options) {
  CHECK(context.priorities.user().empty() && context.priorities.tuned().empty(),
        "what is measured is compared with the default order");
  context.first_time_work->begin(FirstTime::tune, "the choice of kernels");
  TuneReport report;
  const double deadline = options.clock() + options.budget_seconds;
  const Tuner tuner(context, options);
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
    const double left = deadline - options.clock();
    if (left <= 0) {
      report.left = static_cast<int>(open.size() - i);
      break;
    }
    tuner.measure(*call, contenders, left / static_cast<double>(open.size() - i));
    ++report.measured;
    report.calls.push_back(call->entry.key());
    database.add(std::move(call->entry));
  }
  std::sort(report.calls.begin(), report.calls.end());
  return report;
}

}  // namespace weft
