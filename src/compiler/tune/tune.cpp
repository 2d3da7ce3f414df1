#include "compiler/tune/tune.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "compiler/functions/generated_calls.h"
#include "compiler/pieces.h"
#include "compiler/tune/kernel_timer.h"
#include "compiler/tune/parts_timer.h"
#include "compiler/tune/tune_inputs.h"

namespace weft {
namespace {

using Operands = std::vector<std::optional<Meta>>;

// A call of the model that may be measured.
struct Candidacy {
  const Op* op = nullptr;
  Operands operands;  // as compiled; the row count is s0
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

// The type at this row count, without packing and with normalized strides: a type that is strided for many rows may be
// contiguous for one.
Meta plain_at_rows(Meta meta, std::int64_t rows) {
  if (!meta.is_tensor()) return meta;
  meta = changed(std::move(meta), [&](const Dim& dim) { return dim.substitute({{kRowsSymbol, Dim(rows)}}); });
  meta.packed.clear();
  return meta.is_contiguous() ? meta : Meta::strided(meta.dtype, meta.shape, meta.strides);
}

// The operands of a node with its symbol renamed to s0. Returns nullopt if there are several symbols, or if the symbol
// is no dim by itself.
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

// A provider and the layout that the weight would have for it.
struct Rival {
  std::string provider;
  const Kernel* kernel = nullptr;  // null for kParts: the meaning, as a model would run it
  std::string packing;
};

// Whether the user or earlier measurements already decide who computes the call.
bool is_settled(const Candidacy& call, const Context& context) {
  if (context.priorities.user().count(call.entry.op) != 0) return true;
  const auto tuned = context.priorities.tuned().find(call.entry.op);
  if (tuned == context.priorities.tuned().end()) return false;
  const KernelRequest request{call.operands, {}, call.entry.call.attributes, call.entry.call.range};
  for (const auto& [provider, known] : tuned->second)
    for (const TunedCall& one : known)
      if (one.holds_for(request)) return true;
  return false;
}

class Tuner {
 public:
  Tuner(Context& context, const TuneOptions& options)
      : context_(context), options_(options), fused_ops_(fused_ops(context)) {}

  // The standard provider first, the others by name.
  std::vector<Rival> rivals(const Candidacy& call) const {
    const std::string& standard = call.entry.standard;
    // Generated code joins a primitive with its neighbours, so timing it alone is not useful.
    if (standard == kParts && call.op->is_primitive() && generates_code(context_)) return {};
    const bool is_meaning = standard == kParts && !call.op->is_primitive();
    std::vector<Rival> all{{standard, is_meaning ? nullptr : &context_.kernel_for(call.entry.op, standard),
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
    if (standard != kParts && (is_fusion(call) || may_be_generated(call))) all.push_back({.provider = kParts});
    return all;
  }

  // `share` is the number of seconds that all measurements of this call may take.
  void measure(Candidacy& call, const std::vector<Rival>& rivals, double share) const {
    TuningEntry& entry = call.entry;
    const double end = options_.timer->now() + share;
    for (const Rival& rival : rivals)
      entry.times.push_back({.provider = rival.provider, .packing = rival.packing, .nanoseconds = {}});
    std::map<std::string, std::vector<Tensor>> weights;  // by packing
    for (const Rival& rival : rivals)
      if (weights.count(rival.packing) == 0) weights[rival.packing] = weight_copies(call, rival.packing);
    for (std::size_t size = 0; size < entry.rows.size(); ++size) {
      const std::vector<Contender> contenders = make_contenders(call, rivals, weights, entry.rows[size]);
      const double left = std::max(0.0, end - options_.timer->now());
      const auto times = time_rounds(contenders, left / static_cast<double>(entry.rows.size() - size));
      for (std::size_t i = 0; i < times.size(); ++i) entry.times[i].nanoseconds.push_back(times[i]);
    }
    entry.measured = options_.now;
  }

 private:
  bool is_fusion(const Candidacy& call) const { return fused_ops_.contains(call.entry.op); }

  bool may_be_generated(const Candidacy& call) const {
    if (!options_.tries_generated || call.has_weight() || call.op->is_primitive() || !generates_code(context_))
      return false;
    const Attributes& attributes = call.entry.call.attributes;
    const std::vector<Meta> results = infer_results(*call.op, context_.ops, call.operands, attributes);
    const KernelRequest request{call.operands, results, attributes, call.entry.call.range};
    return GeneratedCalls(context_).extent(call.entry.op, request) == GeneratedExtent::whole;
  }

  // If a kernel computes a fusion, times the parts before fusion. Otherwise times the op as `native` computes it in a
  // model.
  std::shared_ptr<PartsTimer> meaning_timer(const Candidacy& call, const std::vector<Tensor>& operands) const {
    const auto timer = [&](TimedForm form) {
      return std::make_shared<PartsTimer>(context_, *call.op, operands, call.entry.call.attributes,
                                          call.entry.call.range, form);
    };
    if (is_fusion(call) && call.entry.standard != kParts) return timer(TimedForm::parts);
    const PriorityScope native(context_, call.entry.op, {"native"});
    return timer(TimedForm::op);
  }

  // The layouts in the order in which loading tries them: the provider's own packing, plain, the packing of the
  // standard.
  std::vector<std::string> layouts(const Candidacy& call, const std::string& provider) const {
    if (!call.has_weight()) return {""};
    if (!options_.may_repack) return {call.operands[call.weight()]->packed};
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

  // Copies of the weight, which successive runs use in rotation. Empty for an op without a weight.
  std::vector<Tensor> weight_copies(const Candidacy& call, const std::string& packing) const {
    if (!call.has_weight()) return {};
    const Tensor plain = tune_inputs({call.entry.call.operands[call.weight()]}, 1)[0];
    return copies_beyond_caches(in_layout(plain, packing));
  }

  // The operands at this row count, without the weight.
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

  std::vector<Contender> make_contenders(const Candidacy& call, const std::vector<Rival>& rivals,
                                         const std::map<std::string, std::vector<Tensor>>& weights,
                                         std::int64_t rows) const {
    std::vector<Contender> contenders;
    const auto add = [&](const Rival& rival, auto runner) {
      contenders.push_back([this, run = TimedRun{call.entry.op, rival.provider, rows}, runner = std::move(runner)] {
        const auto clock = [this] { return options_.timer->now(); };
        return options_.timer->seconds(run, [&] { return runner->seconds(clock); });
      });
    };
    for (const Rival& rival : rivals) {
      std::vector<Tensor> operands = inputs(call, rows);
      const Attributes& attributes = call.entry.call.attributes;
      if (rival.kernel == nullptr) {
        add(rival, meaning_timer(call, operands));
        continue;
      }
      const std::vector<Tensor>& copies = weights.at(rival.packing);
      if (!copies.empty()) operands[call.weight()] = copies[0];
      // Contenders with the same layout share the copies. Each starts at another copy, so that none finds data in the
      // caches that another has just loaded.
      const std::size_t first = contenders.size() * copies.size() / rivals.size();
      const auto kernel =
          std::make_shared<KernelTimer>(context_, *call.op, *rival.kernel, std::move(operands), attributes);
      if (!copies.empty()) kernel->take_turns(call.weight(), copies, first);
      add(rival, kernel);
    }
    return contenders;
  }

  Context& context_;
  const TuneOptions& options_;
  std::set<std::string> fused_ops_;
};

}  // namespace

TuneReport tune(Context& context, std::span<const CompileRecord> records, TuningDatabase& database,
                const TuneOptions& options) {
  CHECK(options.timer != nullptr, "there is no timer");
  context.first_time_work->begin(FirstTime::tune, "the choice of kernels");
  TuneReport report;
  const double deadline = options.timer->now() + options.budget_seconds;
  const Tuner tuner(context, options);
  std::map<std::string, Candidacy> calls = collect_calls(records);
  std::vector<std::pair<Candidacy*, std::vector<Rival>>> open;
  for (auto& [key, call] : calls) {
    if (is_settled(call, context)) continue;
    std::vector<Rival> rivals = tuner.rivals(call);
    if (rivals.size() < 2) {
      ++report.unrivalled;
    } else if (database.entries.count(key) != 0) {
      ++report.known;
      report.calls.push_back(key);
    } else {
      open.emplace_back(&call, std::move(rivals));
    }
  }
  for (std::size_t i = 0; i < open.size(); ++i) {
    auto& [call, rivals] = open[i];
    const double left = deadline - options.timer->now();
    if (left <= 0) {
      report.left = static_cast<int>(open.size() - i);
      break;
    }
    tuner.measure(*call, rivals, left / static_cast<double>(open.size() - i));
    ++report.measured;
    report.calls.push_back(call->entry.key());
    database.add(std::move(call->entry));
  }
  std::sort(report.calls.begin(), report.calls.end());
  return report;
}

}  // namespace weft
