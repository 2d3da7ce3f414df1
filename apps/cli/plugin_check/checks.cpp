#include "apps/cli/plugin_check/checks.h"

#include <cstring>

#include <fmt/core.h>

#include "apps/cli/plugin_check/sample_run.h"
#include "base/error.h"
#include "builtin/context.h"
#include "compiler/pipeline.h"
#include "compiler/run/interpret.h"
#include "ir/trace.h"

namespace weft::plugin_check {
namespace {

constexpr std::byte kFill{0xA5}, kOtherFill{0x5A};

// One check: keeps what was found first.
struct Finding {
  std::string check;
  std::string first = {};
  int tried = 0;

  void note(const std::string& problem, const std::string& where) {
    ++tried;
    if (first.empty() && !problem.empty()) first = problem + " in " + where;
  }
  CheckRow row(const std::string& subject, const std::string& unit) const {
    return {subject, check, first.empty(), first.empty() ? fmt::format("{} {}", tried, unit) : first};
  }
};

std::vector<Tensor> meaning_of(const Context& context, const Op& op, const SampleCall& call) {
  Interpreter interpreter(context);
  const Values operands = values_of(interpreter, call.operands);
  std::vector<Tensor> results;
  for (const Value& value : weft::call(op.name.c_str(), operands, call.attributes.entries(), false, &interpreter))
    results.push_back(value.tensor());
  return results;
}

// Bit for bit.
std::string changed_bits(const std::vector<Tensor>& wanted, const std::vector<Tensor>& came) {
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const auto bytes = static_cast<std::size_t>(wanted[i].storage->bytes());
    if (std::memcmp(wanted[i].data(), came[i].data(), bytes) == 0) continue;
    const std::string problem = difference(wanted[i], came[i], {}, true);
    return fmt::format("result {}: {}", i, problem.empty() ? "other bits" : problem);
  }
  return "";
}

// The types with the symbol in place of the number of rows.
std::vector<std::optional<Meta>> with_symbolic_rows(const std::vector<std::optional<Meta>>& metas, const Dim& rows,
                                                    const Dim& symbol) {
  std::vector<std::optional<Meta>> symbolic = metas;
  for (std::optional<Meta>& meta : symbolic)
    if (meta && meta->is_tensor() && meta->rank() > 0 && meta->shape[0] == rows) meta->shape[0] = symbol;
  return symbolic;
}

bool all_are_tensors(const std::vector<Tensor>& tensors) {
  return std::all_of(tensors.begin(), tensors.end(),
                     [](const Tensor& tensor) { return !tensor.defined() || tensor.meta.is_tensor(); });
}

// All checks of one kernel, call by call.
class KernelTrial {
 public:
  KernelTrial(const Context& context, const Kernel& kernel, FaultRecord& record)
      : context_(context), op_(context.ops.at(kernel.op)), kernel_(kernel), record_(record) {
    // The kernel of an opaque op is its meaning.
    has_meaning_ = !op_.is_primitive() || context.kernel_for(op_.name, "reference").origin != kernel.origin;
  }

  const Op& op() const { return op_; }

  void run(const SampleCall& call) {
    const TrialRun first = attempt(call, kFill, *context_.threads);
    if (first.refusal) {
      ++refused_;
      refusal_ = *first.refusal;
      return;
    }
    memory_.note(first.breach, call.text);
    if (op_.is_allocation) return;  // undefined contents
    same_.note(changed_bits(first.results, attempt(call, kOtherFill, one_thread_).results), call.text);
    if (has_meaning_) compare(call, first.results);
    if (kernel_.batch_invariant && with_rows(op_, call, 0, 1)) run_rows(call, first.results);
  }

  void report(const std::string& subject, const ReportCheck& report) const {
    const bool ran = memory_.tried > 0;
    report({subject, "supports a sample of its op", ran,
            ran ? fmt::format("{} calls, {} refused", memory_.tried, refused_)
                : fmt::format("refuses all {}, the last for this: {}", refused_, refusal_)});
    if (!ran) return;
    report(memory_.row(subject, "calls"));
    report(same_.row(subject, "calls, on one thread and on several"));
    if (has_meaning_) report(meaning_.row(subject, "results"));
    if (kernel_.batch_invariant) report(alone_.row(subject, "rows"));
  }

 private:
  TrialRun attempt(const SampleCall& call, std::byte fill, ThreadPool& threads) {
    return run_guarded(op_, kernel_, context_.ops, call, fill, record_, threads);
  }

  void compare(const SampleCall& call, const std::vector<Tensor>& results) {
    const std::vector<Tensor> wanted = meaning_of(context_, op_, call);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const std::string problem = difference(wanted[i], results[i], op_.tolerance(results[i].view().dtype));
      meaning_.note(problem.empty() ? "" : fmt::format("result {}: {}", i, problem), call.text);
    }
  }

  void run_rows(const SampleCall& call, const std::vector<Tensor>& all) {
    const std::int64_t rows = call.operands[static_cast<std::size_t>(op_.rows_of)].meta.shape[0].number();
    for (std::int64_t row = 0; row < rows; ++row) {
      const TrialRun single = attempt(*with_rows(op_, call, row, 1), kFill, *context_.threads);
      if (single.refusal) continue;
      std::vector<Tensor> part = all;
      for (Tensor& result : part) {
        if (result.meta.rank() == 0 || result.meta.shape[0] != Dim(rows)) return;
        const std::int64_t bytes = result.storage->bytes() / rows;
        result.storage = Storage::view_of(result.data() + row * bytes, bytes, result.storage);
        result.meta.shape[0] = 1;
      }
      alone_.note(changed_bits(part, single.results), fmt::format("row {} of {}", row, call.text));
    }
  }

  const Context& context_;
  const Op& op_;
  const Kernel& kernel_;
  FaultRecord& record_;
  ThreadPool one_thread_{1};
  bool has_meaning_ = true;
  int refused_ = 0;
  std::string refusal_;
  Finding memory_{"stays inside its buffers and operands"}, same_{"gives the same bits again"},
      meaning_{"agrees with the op's meaning"}, alone_{"gives a row the same bits alone as among others"};
};

}  // namespace

PluginChecks::PluginChecks(const std::string& path, Options options, FaultRecord& record)
    : plugin_(load_plugin(path)), record_(record) {
  std::erase(options.plugin, path);
  context_ = make_context(std::move(options), plugin_.registrations, std::nullopt, &patterns_);
  const auto add = [&](std::string name, std::function<void(const ReportCheck&)> body) {
    subjects_.push_back(std::move(name));
    bodies_.push_back(std::move(body));
  };
  for (const auto& row : plugin_.registrations.ops())
    add("op " + row.name,
        [this, &op = context_->ops.at(row.name)](const ReportCheck& report) { check_op(op, report); });
  for (const Kernel& kernel : plugin_.registrations.kernels())
    add(fmt::format("kernel {}@{}", kernel.op, kernel.provider),
        [this, &kernel](const ReportCheck& report) { check_kernel(kernel, report); });
  for (const PassRow& pass : context_->passes)
    add("pass " + pass.name, [this, &pass](const ReportCheck& report) { check_pass(pass, report); });
}

void PluginChecks::run(std::size_t subject, const ReportCheck& report) {
  try {
    bodies_[subject](report);
  } catch (const Error& error) {
    report({subjects_[subject], "runs", false, error.what()});
  }
}

// What the shape rule says for a number of rows it must say for the symbol, and for no rows at all.
void PluginChecks::check_op(const Op& op, const ReportCheck& report) const {
  Finding rule{"the shape rule accepts its samples"}, symbolic{"the shape rule holds for every number of rows"};
  const Dim symbol = Dim::symbol("s0");
  for (const SampleCall& call : sample_calls(op)) {
    const std::vector<std::optional<Meta>> metas = metas_of(call.operands);
    const std::vector<Meta> results = infer_results(op, context_->ops, metas, call.attributes);
    rule.note("", call.text);
    if (op.rows_of < 0 || !metas[static_cast<std::size_t>(op.rows_of)] || !all_are_tensors(call.operands)) continue;
    const Meta& counted = *metas[static_cast<std::size_t>(op.rows_of)];
    if (counted.rank() == 0) continue;
    const Dim rows = counted.shape[0];
    const auto open = with_symbolic_rows(metas, rows, symbol);
    const std::vector<Meta> general = infer_results(op, context_->ops, open, call.attributes);
    for (std::size_t i = 0; i < general.size(); ++i) {
      const bool counts = general[i].is_tensor() && general[i].rank() > 0 && general[i].shape[0] == rows;
      symbolic.note(counts ? fmt::format("result {} has {} rows, for any number of input rows", i, rows.text()) : "",
                    call.text);
    }
    for (const auto& [name, count] : {std::pair("these rows", rows), std::pair("no rows", Dim(0))}) {
      const auto closed = with_symbolic_rows(metas, rows, count);
      const std::vector<Meta> special = infer_results(op, context_->ops, closed, call.attributes);
      for (std::size_t i = 0; i < special.size(); ++i) {
        Meta wanted = general[i];
        for (Dim& dim : wanted.shape) dim = dim.substitute({{"s0", count}});
        for (Dim& stride : wanted.strides) stride = stride.substitute({{"s0", count}});
        symbolic.note(wanted == special[i] ? ""
                                           : fmt::format("result {} is {} with {}, but {} with s0 rows", i,
                                                         special[i].text(), name, general[i].text()),
                      call.text);
      }
    }
  }
  const std::string subject = "op " + op.name;
  report(rule.row(subject, "calls"));
  if (op.rows_of >= 0) report(symbolic.row(subject, "results"));
}

void PluginChecks::check_kernel(const Kernel& registered, const ReportCheck& report) {
  const std::string subject = fmt::format("kernel {}@{}", registered.op, registered.provider);
  const Kernel* kernel = context_->kernels.find(registered.op, registered.provider);
  if (kernel == nullptr) {
    const std::string reason = context_->kernels.refusal(registered.op, registered.provider);
    report({subject, "supports this device", true, "refuses it: " + reason});
    return;
  }
  KernelTrial trial(*context_, *kernel, record_);
  for (const SampleCall& call : sample_calls(trial.op())) trial.run(call);
  trial.report(subject, report);
}

// A graph of one op for each op of the program: it must stay legal, and mean the same.
void PluginChecks::check_pass(const PassRow& pass, const ReportCheck& report) {
  Finding legal{"leaves graphs legal that mean the same"};
  int changed = 0;
  for (const auto& [name, op] : context_->ops.all()) {
    const std::vector<SampleCall> calls = sample_calls(op);
    if (calls.empty() || op.is_allocation || !all_are_tensors(calls[0].operands)) continue;
    const SampleCall& call = calls[0];
    Graph graph("check_" + name, Stage::traced);
    Trace trace(context_->ops, graph);
    Values operands;
    std::vector<Tensor> tensors;
    for (const Tensor& tensor : call.operands) {
      operands.push_back(tensor.defined() ? trace.input(fmt::format("x{}", operands.size()), tensor.meta) : Value());
      if (tensor.defined()) tensors.push_back(tensor);
    }
    trace.finish(weft::call(name.c_str(), operands, call.attributes.entries(), false, &trace));
    PassRunnerOptions options;
    options.stop_after = Stage::split;
    const Compiled compiled = compile(graph, *context_, {1, 4096}, options);
    for (const PassRecord& record : compiled.record.passes)
      if (record.name == pass.name)
        for (const auto& [what, count] : record.result.counts) changed += count;
    Interpreter interpreter(*context_);
    const Values results = run_graph(*compiled.record.split, interpreter, values_of(interpreter, tensors));
    const std::vector<Tensor> wanted = meaning_of(*context_, op, call);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      legal.note(difference(wanted[i], results[i].tensor(), op.tolerance(wanted[i].view().dtype)), call.text);
  }
  CheckRow row = legal.row("pass " + pass.name, "graphs");
  if (row.passed) row.detail += fmt::format(", {} changed", changed);
  report(row);
}

}  // namespace weft::plugin_check
