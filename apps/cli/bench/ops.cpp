#include "apps/cli/bench/ops.h"

#include <algorithm>
#include <set>

#include "apps/cli/bench/ops_calls.h"
#include "base/error.h"
#include "base/text.h"
#include "compiler/tune/kernel_timer.h"
#include "kernels/provider.h"

namespace weft {
namespace {

using Metas = std::vector<std::optional<Meta>>;

constexpr std::int64_t kLargeWeight = 256 << 10;
constexpr double kMostRepeats = 1000;

struct Contender {
  std::string provider;
  const Kernel* kernel = nullptr;
  Metas operands;  // with the weight in the provider's layout
  bool is_shown = true;
};

// How one contender is timed.
struct Run {
  KernelTimer timer;
  int repeats = 1;
  std::vector<double> seconds;
};

bool names(const std::vector<std::string>& list, const std::string& name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

std::vector<std::string> benched_ops(const Context& context) {
  std::vector<std::string> ops;
  for (const std::string& name : context.kernels.ops()) {
    const Op* op = context.ops.find(name);
    if (op != nullptr && !op->samples.empty() && !op->is_allocation && !op->is_view) ops.push_back(name);
  }
  return ops;
}

// One call of one op, by all of its providers.
class CallBench {
 public:
  CallBench(const Context& context, const OpBenchOptions& options, const Op& op, const SampleCall& call)
      : context_(context), options_(options), op_(op), call_(call), plain_(metas_of(call.operands)) {
    const auto counted = static_cast<std::size_t>(std::max(op.rows_of, 0));
    if (op.rows_of >= 0 && counted < plain_.size() && plain_[counted] && plain_[counted]->rank() > 0)
      rows_ = std::max<std::int64_t>(1, plain_[counted]->shape[0].number());
  }

  void run(const std::function<void(const OpBenchRow&)>& on_row,
           const std::function<void(const OpBenchRefusal&)>& on_refusal) {
    const std::vector<Meta> metas = results(plain_);
    if (std::all_of(metas.begin(), metas.end(),
                    [](const Meta& meta) { return meta.is_tensor() && element_count(meta.shape) == Dim(0); }))
      return;  // there is nothing to run
    std::vector<OpBenchRefusal> refused;
    std::vector<Contender> all = contenders(refused);
    for (const OpBenchRefusal& refusal : refused)
      if (options_.providers.empty() || names(options_.providers, refusal.provider)) on_refusal(refusal);
    std::optional<InvarianceCost> invariance;
    if (context_.options.batch_invariant) invariance = {chosen(all, true), chosen(all, false), std::nullopt};
    std::erase_if(all, [&](Contender& contender) {
      contender.is_shown = is_shown(contender, all.size());
      return !contender.is_shown &&
             (!invariance || (!runs(contender, invariance->chosen) && !runs(contender, invariance->without)));
    });
    if (std::none_of(all.begin(), all.end(), [](const Contender& contender) { return contender.is_shown; })) return;
    const std::vector<Run> timed = time(all);
    std::vector<OpBenchRow> rows;
    for (std::size_t i = 0; i < all.size(); ++i) rows.push_back(row(all[i], timed[i]));
    if (invariance) invariance->cost = cost(*invariance, all, rows);
    for (std::size_t i = 0; i < all.size(); ++i) {
      rows[i].invariance = invariance;
      if (all[i].is_shown) on_row(rows[i]);
    }
  }

 private:
  std::vector<Meta> results(const Metas& operands) const {
    return infer_results(op_, context_.ops, operands, call_.attributes);
  }

  // "" or why it does not take the call.
  std::string refusal(const Kernel& kernel, const Metas& operands) const {
    if (rows_ < kernel.rows.lo || rows_ > kernel.rows.hi)
      return fmt::format("is for {} to {} rows", kernel.rows.lo, kernel.rows.hi);
    const std::vector<Meta> metas = results(operands);
    const Verdict verdict = kernel.supports({operands, metas, call_.attributes, {rows_, rows_}});
    return verdict ? "" : verdict.reason();
  }

  // All that take the call, and the others with their reason.
  std::vector<Contender> contenders(std::vector<OpBenchRefusal>& refused) const {
    std::vector<Contender> all;
    for (const std::string& provider : context_.kernels.providers(op_.name)) {
      const Kernel* kernel = context_.kernels.find(op_.name, provider);
      std::string reason = kernel == nullptr ? context_.kernels.refusal(op_.name, provider) : "";
      if (kernel != nullptr) {
        for (const Metas& operands : layouts(provider)) {
          reason = refusal(*kernel, operands);
          if (!reason.empty()) continue;
          all.push_back({provider, kernel, operands});
          break;
        }
      }
      if (!reason.empty()) refused.push_back({op_.name, call_.text, provider, reason});
    }
    return all;
  }

  // In the order in which a weight is laid out at load: the provider's own packing, plain.
  std::vector<Metas> layouts(const std::string& provider) const {
    std::vector<Metas> layouts;
    if (const int weight = weight_operand(op_.name); weight >= 0) {
      Metas packed = plain_;
      Meta& meta = *packed[static_cast<std::size_t>(weight)];
      if (const Packing* own = own_packing(context_.kernels, provider, meta, context_.device)) {
        meta.packed = own->name;
        layouts.push_back(std::move(packed));
      }
    }
    layouts.push_back(plain_);
    return layouts;
  }

  bool is_shown(const Contender& contender, std::size_t count) const {
    if (!options_.providers.empty()) return names(options_.providers, contender.provider);
    return contender.provider != "reference" || count == 1;
  }

  bool runs(const Contender& contender, const std::string& chosen) const {
    return contender.provider == (chosen == "native" && op_.is_primitive() ? "reference" : chosen);
  }

  std::string chosen(const std::vector<Contender>& contenders, bool batch_invariant) const {
    const std::vector<Meta> metas = results(plain_);
    const KernelRequest request{plain_, metas, call_.attributes, {rows_, rows_}};
    for (const Candidate& candidate :
         list_candidates(context_.kernels, context_.priorities, op_.name, batch_invariant)) {
      if (!candidate.refusal.empty() || (candidate.tuned != nullptr && candidate.tuned_for(request) == nullptr))
        continue;
      if (candidate.kernel == nullptr) return candidate.provider;
      for (const Contender& contender : contenders)
        if (contender.provider == candidate.provider) return candidate.provider;
    }
    CHECK(false, "the candidates of {} do not end with native", op_.name);
    return "";
  }

  std::optional<double> cost(const InvarianceCost& invariance, const std::vector<Contender>& contenders,
                             const std::vector<OpBenchRow>& rows) const {
    if (invariance.chosen == invariance.without) return 1.0;
    std::optional<double> with, without;
    for (std::size_t i = 0; i < contenders.size(); ++i) {
      if (runs(contenders[i], invariance.chosen)) with = rows[i].best();
      if (runs(contenders[i], invariance.without)) without = rows[i].best();
    }
    return with && without ? std::optional(*with / *without) : std::nullopt;
  }

  // Each has operands of its own, because it may overwrite some.
  KernelTimer make_timer(const Contender& contender) const {
    std::vector<Tensor> operands;
    for (const Tensor& given : call_.operands) operands.push_back(given.defined() ? duplicate(given) : given);
    std::vector<Tensor> turns;
    const auto weight = static_cast<std::size_t>(weight_operand(op_.name));
    if (weight < operands.size()) {
      const Packing* packing = context_.kernels.find_packing(contender.operands[weight]->packed);
      if (packing != nullptr) operands[weight] = pack_weight(*packing, {&operands[weight], 1}, *context_.threads);
      if (operands[weight].storage->bytes() >= kLargeWeight) turns = copies_beyond_caches(operands[weight]);
    }
    KernelTimer timer(context_, op_, *contender.kernel, std::move(operands), call_.attributes);
    if (!turns.empty()) timer.take_turns(weight, std::move(turns));
    return timer;
  }

  std::vector<Run> time(const std::vector<Contender>& contenders) const {
    std::vector<Run> all;
    for (const Contender& contender : contenders) {
      Run run{.timer = make_timer(contender)};
      double once = run.timer.seconds(options_.clock);  // which also wakes what sleeps
      if (once < kTimingBatchSeconds) once = run.timer.seconds(options_.clock);
      run.repeats =
          static_cast<int>(once > 0 ? std::clamp(kTimingBatchSeconds / once, 1.0, kMostRepeats) : kMostRepeats);
      all.push_back(std::move(run));
    }
    for (std::int64_t round = 0; round < options_.rounds; ++round)
      for (Run& run : all) run.seconds.push_back(run.timer.seconds(options_.clock, run.repeats));
    return all;
  }

  OpBenchRow row(const Contender& contender, const Run& run) const {
    OpBenchRow row{.op = op_.name, .call = call_.text, .provider = contender.provider, .rows = rows_};
    row.seconds = run.seconds;
    const std::vector<Meta> metas = results(plain_);
    for (std::size_t i = 0; i < call_.operands.size(); ++i) row.bytes += bytes_read(static_cast<int>(i));
    for (const Meta& result : metas)
      if (result.is_tensor()) row.bytes += result.bytes().number();
    if (const int weight = weight_operand(op_.name); weight >= 0) {
      const Shape& shape = plain_[static_cast<std::size_t>(weight)]->shape;
      row.operations = 2 * element_count(plain_[0]->shape).number() * shape[shape.size() - 2].number();
      row.operand = plain_[0]->dtype;
    }
    return row;
  }

  std::int64_t bytes_read(int index) const {
    const Tensor& operand = call_.operands[static_cast<std::size_t>(index)];
    if (!operand.defined() || operand.meta.kind == MetaKind::batch) return 0;
    const bool is_written_over = std::any_of(op_.donates.begin(), op_.donates.end(),
                                             [&](const Donation& donation) { return donation.argument == index; });
    if (operand.meta.kind == MetaKind::kv && is_written_over) return 0;
    const std::int64_t all = operand.storage->bytes();
    if (!op_.gathers || op_.gathers->table != index) return all;
    const Meta& indices = call_.operands[static_cast<std::size_t>(op_.gathers->indices)].meta;
    const Dim gathered = gathered_elements(operand.meta, indices, call_.attributes);
    return std::min(all, bytes_of(operand.meta.dtype, gathered.number()));
  }

  const Context& context_;
  const OpBenchOptions& options_;
  const Op& op_;
  const SampleCall& call_;
  Metas plain_;
  std::int64_t rows_ = 1;
};

void check_providers(const Context& context, const std::vector<std::string>& providers) {
  std::set<std::string> sorted;
  context.kernels.for_each([&](const Kernel& kernel) { sorted.insert(kernel.provider); });
  const std::vector<std::string> known(sorted.begin(), sorted.end());
  for (const std::string& provider : providers) {
    if (names(known, provider)) continue;
    for (const ProviderEntry& entry : provider_table())
      USER_CHECK(entry.name != provider || *entry.absent == 0, "[--provider] {} is not in this program: {}", provider,
                 entry.absent);
    fail_user("[--provider] there is no provider {}{}", quote(provider), suggestion(provider, known));
  }
}

}  // namespace

double OpBenchRow::best() const { return std::max(1e-9, *std::min_element(seconds.begin(), seconds.end())); }

double OpBenchRow::median() const {
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  return (sorted[(sorted.size() - 1) / 2] + sorted[sorted.size() / 2]) / 2;
}

void check_op_bench(const Context& context, const OpBenchOptions& options) {
  const std::vector<std::string> known = benched_ops(context);
  for (const std::string& op : options.ops)
    USER_CHECK(names(known, context.ops.at(op).name), "[--op] {} has nothing to measure: no kernel computes it", op);
  check_providers(context, options.providers);
}

void bench_ops(const Context& context, const OpBenchOptions& options,
               const std::function<void(const OpBenchRow&)>& on_row,
               const std::function<void(const OpBenchRefusal&)>& on_refusal) {
  for (const std::string& name : options.ops.empty() ? benched_ops(context) : options.ops) {
    const Op& op = context.ops.at(name);
    for (const SampleCall& call : bench_calls(op, context.ops, options.rows))
      CallBench(context, options, op, call).run(on_row, on_refusal);
  }
}

}  // namespace weft
