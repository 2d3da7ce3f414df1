#include "apps/cli/bench/functions.h"

#include <algorithm>
#include <set>

#include <fmt/ranges.h>

#include "apps/cli/bench/copy.h"
#include "apps/cli/bench/ops_calls.h"
#include "base/error.h"
#include "compiler/pipeline.h"
#include "compiler/tune/kernel_timer.h"
#include "ir/trace.h"
#include "runtime/symbolic_view.h"
#include "tensor/convert.h"

namespace weft {
namespace {

constexpr std::int64_t kLine = 64, kOwnCacheBytes = 24 << 10;
constexpr std::int64_t kSampledRows = 64;  // values of the row symbol whose cache lines are counted

std::string types_text(const std::vector<PlanView>& views) {
  std::vector<std::string> types;
  for (const PlanView& view : views) types.push_back(view.meta.text());
  return fmt::format("{}", fmt::join(types, ", "));
}

// The cache lines of a view, as numbers from the slot's beginning; none of what all rows share.
void add_lines(const TensorView& view, const std::byte* base, std::set<std::int64_t>& lines) {
  if (view.rank == 0 || view.meta->shape[0].is_number() || view.stride[0] == 0) return;
  const std::int64_t element_bytes = dtype_info(view.dtype).block_bytes;
  std::int64_t index[kMaxRank] = {};
  while (index[0] < view.size[0]) {
    std::int64_t place = 0;
    for (int i = 0; i < view.rank; ++i) place += index[i] * view.stride[i];
    lines.insert((view.data - base + place * element_bytes) / kLine);
    int dim = view.rank - 1;
    while (++index[dim] == view.size[dim] && dim > 0) index[dim--] = 0;
  }
}

// Small numbers of both signs, or small codes; whole numbers that are rows of any table.
void fill(const Tensor& tensor) {
  const std::int64_t bytes = tensor.storage->bytes(), block = std::min<std::int64_t>(bytes, 64 << 10);
  const DType dtype = tensor.meta.dtype;
  std::byte* data = tensor.data();
  for (std::int64_t k = 0; k < block; ++k) data[k] = static_cast<std::byte>(k % 61);
  if (dtype == DType::i64 || dtype == DType::i32)
    for (std::int64_t k = 0; k < block; ++k)
      data[k] = static_cast<std::byte>(k % dtype_info(dtype).block_bytes == 0 ? k / 8 % 7 : 0);
  if (is_floating(dtype))
    for (std::int64_t k = 0; k < block / dtype_info(dtype).block_bytes; ++k)
      store_float(dtype, data, k, static_cast<float>(k * 7919 % 2003) / 500.0f - 2.0f);
  for (std::int64_t done = block; done < bytes; done += block)
    std::copy_n(data, std::min(block, bytes - done), data + done);
}

// One function with memory of its own.
class FunctionBench {
 public:
  FunctionBench(const Context& context, const Plan& plan, const PlanStep& step, const FunctionBenchOptions& options)
      : context_(context),
        step_(step),
        options_(options),
        bound_{.plan = alone(plan, step), .threads = *context.threads} {
    for (const std::vector<PlanView>* views : {&step.operands, &step.results})
      for (const PlanView& view : *views)
        if (!view.meta.shape.empty()) view.meta.shape[0].collect_symbols(symbols_);
    USER_CHECK(symbols_.size() <= 1, "[bench functions] {} has rows of {}", step.op, fmt::join(symbols_, " and "));
  }

  std::optional<FunctionBenchRow> run() {
    allocate(kSampledRows);
    const Traffic few = traffic();
    const std::int64_t few_rows = results_[0].size[0];  // of the function: several for a row of the model, perhaps
    if (few.bytes() == 0 || few_rows == 0) return std::nullopt;
    FunctionBenchRow row{
        .function = step_.op,
        .call = fmt::format("{}({}) -> {}", step_.op, types_text(step_.operands), types_text(step_.results)),
        .row_bytes = few.bytes() / few_rows};
    row.row_seconds =
        seconds_in_cache(std::clamp<std::int64_t>(kOwnCacheBytes * kSampledRows / few.bytes(), 1, kSampledRows));
    const std::int64_t many = options_.bytes * kSampledRows / few.bytes() + 1;
    allocate(many);
    row.rows = results_[0].size[0];
    const auto all = [&](std::int64_t lines) { return lines * kLine * many / kSampledRows; };
    PlainCopy copy(*context_.threads, all(few.read), all(few.over), all(few.written));
    call();
    copy.run();  // pages come to be
    for (std::int64_t round = 0; round < options_.rounds; ++round) {
      row.seconds.push_back(seconds([&] { call(); }));
      row.copy_seconds.push_back(seconds([&] { copy.run(); }));
    }
    return row;
  }

 private:
  // Cache lines that are only read, read and written, only written.
  struct Traffic {
    std::int64_t read = 0, over = 0, written = 0;
    std::int64_t bytes() const { return (read + 2 * over + written) * kLine; }
  };

  // A Plan of one step whose slots are all inputs but for scalars, so that each may have any memory; the arena is its
  // scratch.
  static std::shared_ptr<const Plan> alone(const Plan& plan, const PlanStep& step) {
    auto alone = std::make_shared<Plan>();
    alone->slots = plan.slots;
    for (PlanSlot& slot : alone->slots)
      if (slot.kind != SlotKind::scalar) slot.kind = SlotKind::input;
    alone->bounds = plan.bounds;
    alone->steps = {step};
    alone->steps[0].scratch_offset = 0;
    return alone;
  }

  void allocate(std::int64_t rows) {
    use(rows);
    std::vector<std::int64_t> bytes(bound_.plan->slots.size());
    std::vector<const PlanView*> first(bytes.size());
    for (const std::vector<PlanView>* views : {&step_.operands, &step_.results})
      for (const PlanView& view : *views) {
        if (view.slot < 0) continue;
        const auto slot = static_cast<std::size_t>(view.slot);
        bytes[slot] = std::max(bytes[slot], (view.byte_offset + view.meta.bytes()).evaluate(values_) + kLine);
        if (first[slot] == nullptr) first[slot] = &view;
      }
    bound_.tensors.assign(bytes.size(), {});
    for (std::size_t slot = 0; slot < bytes.size(); ++slot) {
      if (first[slot] == nullptr) continue;
      bound_.tensors[slot] = {first[slot]->meta, Storage::allocate(bytes[slot])};
      if (const PlanSlot& planned = bound_.plan->slots[slot]; planned.kind == SlotKind::scalar) {
        store_float(DType::f32, bound_.tensors[slot].data(), 0, planned.scalar);
      } else {
        fill(bound_.tensors[slot]);
      }
    }
    bound_.arena = Storage::allocate(step_.scratch_bytes.evaluate(values_) + kLine);
    use(rows);
  }

  // From here on calls have this many rows, the first ones of the allocated buffers.
  void use(std::int64_t rows) {
    for (const std::string& symbol : symbols_) values_[symbol] = rows;
    operands_.clear();
    results_.clear();
    if (bound_.tensors.empty()) return;
    const std::vector<std::string> names(symbols_.begin(), symbols_.end());
    const std::vector<std::int64_t> counts(names.size(), rows);
    for (const PlanView& view : step_.operands) operands_.push_back(SymbolicView(view, names).resolve(bound_, counts));
    for (const PlanView& view : step_.results) results_.push_back(SymbolicView(view, names).resolve(bound_, counts));
  }

  Traffic traffic() const {
    Traffic traffic;
    for (std::size_t slot = 0; slot < bound_.tensors.size(); ++slot) {
      if (!bound_.tensors[slot].defined()) continue;
      std::set<std::int64_t> read, written;
      for (std::size_t i = 0; i < operands_.size(); ++i)
        if (step_.operands[i].slot == static_cast<int>(slot)) add_lines(operands_[i], bound_.base(slot), read);
      for (std::size_t i = 0; i < results_.size(); ++i)
        if (step_.results[i].slot == static_cast<int>(slot)) add_lines(results_[i], bound_.base(slot), written);
      for (const std::int64_t line : written) ++(read.erase(line) > 0 ? traffic.over : traffic.written);
      traffic.read += static_cast<std::int64_t>(read.size());
    }
    return traffic;
  }

  void call() {
    const std::span<std::byte> scratch = bound_.scratch(bound_.plan->steps[0]);
    step_.kernel->run({operands_, results_, step_.attributes, scratch, *context_.threads});
  }

  double seconds(const std::function<void()>& work) const {
    const double start = options_.clock();
    work();
    return options_.clock() - start;
  }

  // Of one row of the function. Where two calls fit into the cache, what a call takes besides its rows is left out.
  double seconds_in_cache(std::int64_t rows) {
    const std::int64_t half = rows / 2;
    const double all = seconds_of_call(rows);
    const auto function_rows = static_cast<double>(results_[0].size[0]);
    if (half == 0) return all / function_rows;
    const double part = static_cast<double>(rows - half) / static_cast<double>(rows);
    return std::max(all - seconds_of_call(half), 1e-12) / (function_rows * part);
  }

  double seconds_of_call(std::int64_t rows) {
    use(rows);
    call();
    int repeats = 1;
    const auto batch = [&] {
      return seconds([&] {
        for (int i = 0; i < repeats; ++i) call();
      });
    };
    while (batch() < kTimingBatchSeconds / 2) repeats *= 2;
    double best = batch();
    for (std::int64_t round = 0; round < 4 * options_.rounds; ++round) best = std::min(best, batch());
    return best / repeats;
  }

  const Context& context_;
  const PlanStep& step_;
  const FunctionBenchOptions& options_;
  BoundPlan bound_;
  std::set<std::string> symbols_;
  Bindings values_;
  std::vector<TensorView> operands_, results_;
};

double least(const std::vector<double>& seconds) {
  return std::max(1e-9, *std::min_element(seconds.begin(), seconds.end()));
}

}  // namespace

double FunctionBenchRow::best() const { return least(seconds); }
double FunctionBenchRow::copy_best() const { return least(copy_seconds); }

std::vector<const PlanStep*> generated_steps(const Plan& plan) {
  std::vector<const PlanStep*> steps;
  std::set<const Kernel*> seen;
  for (const PlanStep& step : plan.steps)
    if (step.kernel->origin == "generated" && seen.insert(step.kernel).second) steps.push_back(&step);
  return steps;
}

std::optional<FunctionBenchRow> bench_function(const Context& context, const Plan& plan, const PlanStep& step,
                                               const FunctionBenchOptions& options) {
  return FunctionBench(context, plan, step, options).run();
}

std::shared_ptr<const Plan> native_plan(Context& context, const Op& op, DType dtype, std::int64_t columns) {
  constexpr std::int64_t kRows = 509;  // a prime: no other extent of a sample
  if (op.samples.empty() || op.is_view || op.is_allocation) return nullptr;
  const std::vector<DType> dtypes = sample_dtypes(op.samples[0]);
  if (std::count(dtypes.begin(), dtypes.end(), dtype) == 0) return nullptr;
  const SampleCall call = make_sample_call(op, resized(op, context.ops, kRows, columns, 0), dtype);
  Graph graph(op.name, Stage::traced);
  Trace trace(context.ops, graph);
  Values values;
  for (std::size_t i = 0; i < call.operands.size(); ++i) {
    values.emplace_back();
    if (!call.operands[i].defined()) continue;
    Meta meta = call.operands[i].meta;
    for (Dim& dim : meta.shape)
      if (dim == Dim(kRows)) dim = Dim::symbol("s0");
    values.back() = trace.input(op.schema.parameters[i].name, meta);
  }
  trace.finish(trace.evaluate(op, values, call.attributes, false));
  graph.bounds["s0"] = {1, context.options.max_num_batched_tokens};
  PassRunnerOptions passes;
  passes.fuse = false;
  return compile(graph, context, {1, context.options.max_num_batched_tokens}, passes).plan;
}

}  // namespace weft
