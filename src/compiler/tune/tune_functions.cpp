#include "compiler/tune/tune_functions.h"

#include <algorithm>
#include <map>
#include <memory>

#include "base/error.h"
#include "codegen/row_tuning.h"
#include "compiler/functions/generated_kernels.h"
#include "compiler/tune/tune_inputs.h"
#include "tensor/convert.h"

namespace weft {
namespace {

// A function shorter than this runs several times per measurement, because the clock is too coarse for one run.
constexpr double kShortestSeconds = 20e-6;
constexpr double kMostRunsAtATime = 256;
// The part of a function's budget for the screening, which selects the best of a few variants. The selected variant is
// measured again.
constexpr double kScreeningShare = 0.2;

// The number of elements from the first that a function touches in a buffer to the last, inclusive.
std::int64_t extent_of(const RowProgram& program, const RowBuffer& buffer, std::int64_t rows) {
  const RowPlacement& placement = buffer.placement;
  const std::int64_t runs = placement.run == 0 ? 0 : program.columns / placement.run * placement.run_stride;
  // The elements of an output row are adjacent, whatever the order.
  const std::int64_t row = buffer.is_output ? buffer.row_stride : runs + program.columns * placement.stride;
  if (buffer.numbers >= 0) rows = buffer.taken_from;
  return (rows - 1) * buffer.row_stride + buffer.begin + std::max(row, buffer.row_stride);
}

// The number of rows that row indices in this buffer may select; 0 if it has no row indices.
std::int64_t row_limit(const RowProgram& program, std::size_t buffer) {
  std::int64_t limit = 0;
  for (const RowBuffer& taken : program.buffers)
    if (taken.numbers == static_cast<int>(buffer))
      limit = limit == 0 ? taken.taken_from : std::min(limit, taken.taken_from);
  return limit;
}

TuningEntry entry_of(const FunctionAtSize& function) {
  TuningEntry entry;
  entry.op = function.program->name();
  for (const RowBuffer& buffer : function.program->buffers) {
    if (buffer.is_output) continue;
    const Dim columns(buffer.row_stride == 0 ? extent_of(*function.program, buffer, 1) : buffer.row_stride);
    const Shape shape = buffer.row_stride == 0 ? Shape{columns} : Shape{Dim::symbol(kRowsSymbol), columns};
    entry.call.operands.emplace_back(Meta::tensor(buffer.dtype, shape));
  }
  entry.call.attributes.set(kComputes, function.computes);
  entry.call.range = {function.rows, function.rows};
  entry.rows = {function.rows};
  entry.standard = kDefaultTuning;
  return entry;
}

bool has_variants(const FunctionAtSize& function, const Context& context) {
  const int threads = context.threads->threads();
  return !unrolled_variants(*function.program).empty() ||
         !shared_variants(*function.program, 1, function.rows, threads).empty();
}

// The operands and results of a function at one row count. All variants share them.
class FunctionMemory {
 public:
  FunctionMemory(const RowProgram& program, std::int64_t rows) {
    for (const RowBuffer& buffer : program.buffers) {
      const Meta meta = Meta::tensor(buffer.dtype, {Dim(extent_of(program, buffer, rows))});
      tensors_.push_back(buffer.is_output ? Tensor::empty(meta) : tune_inputs({meta}, rows)[0]);
      if (const std::int64_t limit = row_limit(program, tensors_.size() - 1); limit > 0)
        for (std::int64_t i = 0; i < rows; ++i) store_integer(buffer.dtype, tensors_.back().data(), i, i % limit);
      TensorView view = tensors_.back().view();
      view.size[0] = rows;  // the kernel reads the row count only from results
      (buffer.is_output ? results_ : operands_).push_back(view);
    }
  }
  std::span<const TensorView> operands() const { return operands_; }
  std::span<const TensorView> results() const { return results_; }

 private:
  std::vector<Tensor> tensors_;
  std::vector<TensorView> operands_, results_;
};

// Times one variant.
class FunctionTimer {
 public:
  FunctionTimer(const Kernel& kernel, std::shared_ptr<FunctionMemory> memory, ThreadPool& threads)
      : kernel_(kernel), memory_(std::move(memory)), threads_(threads) {
    const Attributes none;
    if (kernel.scratch_bytes) scratch_ = Storage::allocate(kernel.scratch_bytes({{}, {}, none, {1, 1}}).number());
  }

  double seconds(TuningTimer& timer) {
    if (runs_ == 0) {
      const double once = run(timer, 1);
      runs_ = static_cast<int>(std::clamp(kShortestSeconds / std::max(once, 1e-9), 1.0, kMostRunsAtATime));
    }
    return run(timer, runs_);
  }

 private:
  double run(TuningTimer& timer, int runs) {
    std::span<std::byte> scratch;
    if (scratch_) scratch = {scratch_->data(), static_cast<std::size_t>(scratch_->bytes())};
    const Attributes none;
    const double start = timer.now();
    for (int i = 0; i < runs; ++i) kernel_.run({memory_->operands(), memory_->results(), none, scratch, threads_});
    return (timer.now() - start) / runs;
  }

  const Kernel& kernel_;
  std::shared_ptr<FunctionMemory> memory_;
  ThreadPool& threads_;
  std::shared_ptr<Storage> scratch_;
  int runs_ = 0;
};

class FunctionTuner {
 public:
  FunctionTuner(const Context& context, const TuneOptions& options) : context_(context), options_(options) {}

  // Returns false if no code can be generated.
  bool measure(const FunctionAtSize& function, TuningEntry& entry, double share) {
    const double end = options_.timer->now() + share;
    const auto memory = std::make_shared<FunctionMemory>(*function.program, function.rows);
    const std::vector<RowTuning> unrolled = unrolled_variants(*function.program);
    const RowTuning best = screen(function, memory, unrolled, kScreeningShare * share);
    std::vector<RowTuning> tunings{RowTuning()};
    if (best != RowTuning()) tunings.push_back(best);
    for (const RowTuning& shared :
         shared_variants(*function.program, best.unroll, function.rows, context_.threads->threads()))
      tunings.push_back(shared);
    // If no other variant is left, keep those that lost the screening, to record that there was a choice.
    if (tunings.size() < 2) tunings.insert(tunings.end(), unrolled.begin(), unrolled.end());
    const std::vector<Contender> contenders = make_contenders(function, memory, tunings);
    if (contenders.empty()) return false;
    const auto times = time_rounds(contenders, std::max(0.0, end - options_.timer->now()));
    for (std::size_t i = 0; i < times.size(); ++i)
      entry.times.push_back({.provider = tunings[i].text(), .packing = "", .nanoseconds = {times[i]}});
    entry.measured = options_.now;
    return true;
  }

 private:
  // The fastest of the default and these variants in a short measurement.
  RowTuning screen(const FunctionAtSize& function, const std::shared_ptr<FunctionMemory>& memory,
                   std::vector<RowTuning> tunings, double share) {
    tunings.insert(tunings.begin(), RowTuning());
    const std::vector<Contender> contenders = make_contenders(function, memory, tunings);
    if (contenders.size() < 2) return {};
    const auto times = time_rounds(contenders, share);
    std::size_t best = 0;
    const auto least = [&](std::size_t i) { return *std::min_element(times[i].begin(), times[i].end()); };
    for (std::size_t i = 1; i < times.size(); ++i)
      if (least(i) < least(best)) best = i;
    return tunings[best];
  }

  // Returns none if no code can be generated.
  std::vector<Contender> make_contenders(const FunctionAtSize& function, const std::shared_ptr<FunctionMemory>& memory,
                                         const std::vector<RowTuning>& tunings) {
    std::vector<RowProgram> programs;
    for (const RowTuning& tuning : tunings) {
      std::optional<RowProgram> program = tuned_program(*function.program, tuning);
      CHECK(program.has_value(), "{} cannot have {}", function.program->name(), tuning.text());
      programs.push_back(*std::move(program));
    }
    std::vector<const RowProgram*> wanted;
    for (const RowProgram& program : programs) wanted.push_back(&program);
    if (!generated_.compile(wanted, context_).empty()) return {};
    std::vector<Contender> contenders;
    for (std::size_t i = 0; i < programs.size(); ++i) {
      const auto runner =
          std::make_shared<FunctionTimer>(*generated_.find(programs[i].kernel_name()), memory, *context_.threads);
      contenders.push_back([this, runner, run = TimedRun{function.program->name(), tunings[i].text(), function.rows}] {
        return options_.timer->seconds(run, [&] { return runner->seconds(*options_.timer); });
      });
    }
    return contenders;
  }

  const Context& context_;
  const TuneOptions& options_;
  GeneratedKernels generated_;  // for variants that may never be chosen
};

}  // namespace

bool is_function(const TuningEntry& entry) { return entry.op.starts_with(kRowFunctionPrefix); }

TuneReport tune_functions(const Context& context, std::span<const FunctionAtSize> functions, TuningDatabase& database,
                          const TuneOptions& options) {
  CHECK(options.timer != nullptr, "there is no timer");
  TuneReport report;
  const double deadline = options.timer->now() + options.budget_seconds;
  FunctionTuner tuner(context, options);
  std::map<std::string, std::pair<const FunctionAtSize*, TuningEntry>> open;  // by key
  for (const FunctionAtSize& function : functions) {
    TuningEntry entry = entry_of(function);
    std::string key = entry.key();
    if (entry.call.operands.empty() || !has_variants(function, context)) continue;
    if (database.entries.count(key) != 0) continue;
    open.try_emplace(std::move(key), &function, std::move(entry));
  }
  int left = static_cast<int>(open.size());
  for (auto& [key, item] : open) {
    auto& [function, entry] = item;
    const double seconds = deadline - options.timer->now();
    if (seconds <= 0) break;
    context.first_time_work->begin(FirstTime::tune, entry.op);
    if (!tuner.measure(*function, entry, seconds / left)) break;
    --left;
    ++report.measured;
    report.calls.push_back(key);
    database.add(std::move(entry));
  }
  report.left = left;
  return report;
}

}  // namespace weft
