#include "capture/captured_function.h"

#include <algorithm>

#include "base/error.h"
#include "capture/range_boundary.h"
#include "capture/segment_program.h"
#include "options/effective_options.h"

namespace weft {
namespace {

std::string function_name(const CompileOptions& options, const std::source_location& where) {
  if (!options.name.empty()) return options.name;
  const std::string_view file = where.file_name();
  return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), where.line());
}

// The name with only the characters that a graph name may have.
std::string graph_name(const CompileOptions& options) {
  std::string name = options.name.empty() ? "captured" : options.name;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return std::isdigit(static_cast<unsigned char>(name[0])) != 0 ? "_" + name : name;
}

bool is_empty(const Leaf& leaf) {
  if (leaf.kind != Leaf::Kind::tensor) return false;
  const Shape& shape = leaf.value->meta().shape;
  return std::find(shape.begin(), shape.end(), Dim(0)) != shape.end();
}

DynamicShapes dynamic_shapes(const Options& options) {
  return options.dynamic_shapes_type == "unbacked" ? DynamicShapes::unbacked : DynamicShapes::backed;
}

Tensor tensor_of(const Leaf& leaf) { return leaf.value->tensor(); }

// Thrown if a trace fails and the function's own code may have used a symbol as a number. An attempt with fewer symbols
// may succeed.
struct TookSymbolForNumber {
  std::string why;
  bool has_written_over = false;
};

}  // namespace

void check_is_for_cpu(const Context& context) {
  USER_CHECK(context.device.id.type == DeviceType::cpu,
             "[compile] functions are compiled for the CPU alone: wanted the device cpu, but is {}",
             device_text(context.device.id));
}

CapturedFunction::CapturedFunction(std::shared_ptr<const Context> context, CompileOptions options,
                                   std::source_location where)
    : context_(std::move(context)),
      options_(std::move(options)),
      compiles_(eager_option(context_->options).empty()),
      check_retrace_(options_.check_retrace.value_or(context_->options.check_retrace)),
      name_(function_name(options_, where)),
      recorder_(*context_, name_, graph_name(options_), options_.fullgraph, options_.recompile_limit) {
  check_is_for_cpu(*context_);
  USER_CHECK(options_.recompile_limit >= 1, "[{}] recompile_limit must be at least 1", name_);
  USER_CHECK(!options_.wants_own_context(),
             "[{}] mode, backend and options of one function are for weft::Compiler; here they are the Context's",
             name_);
  USER_CHECK(check_retrace_ >= 0, "[{}] check_retrace must not be negative, but is {}", name_, check_retrace_);
}

CapturedFunction::CallLock::CallLock(CapturedFunction& function) : function_(function) {
  USER_CHECK(function.owner_.load(std::memory_order_relaxed) != std::this_thread::get_id(),
             "[{}] is called from within itself: what is compiled calls the plain function instead", function.name_);
  function.mutex_.lock();
  function.owner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
}

CapturedFunction::CallLock::~CallLock() {
  function_.owner_.store(std::thread::id(), std::memory_order_relaxed);
  function_.mutex_.unlock();
}

void CapturedFunction::mark_dynamic(const std::string& argument, int dim, const DynamicDim& range,
                                    DynamicShapes shapes) {
  USER_CHECK(entries_.empty(), "[{}] mark_dynamic must be called before the first call", name_);
  dynamic_dims_.mark(argument, dim, range, shapes);
}

std::vector<std::string> CapturedFunction::guard_texts(std::size_t entry) const {
  return entries_.at(entry)->guards.texts(entries_[entry]->names);
}

std::size_t CapturedFunction::find(std::span<const Leaf> leaves) const {
  std::size_t entry = 0;
  while (entry < entries_.size() && !entries_[entry]->guards.hold(leaves)) ++entry;
  return entry;
}

CapturedFunction::Outcome CapturedFunction::call(std::span<const Leaf> leaves, FunctionRun& run) {
  ++counts_.calls;
  check(leaves, run);
  if (!compiles_) return run_op_by_op(leaves, run);
  const std::size_t entry = find(leaves);
  return entry < entries_.size() ? use(entry, leaves, run) : miss(leaves, run, true);
}

void CapturedFunction::prepare(std::span<const Leaf> leaves, FunctionRun& run) {
  check(leaves, run);
  if (compiles_ && find(leaves) == entries_.size()) miss(leaves, run, false);
}

void CapturedFunction::check(std::span<const Leaf> leaves, FunctionRun& run) const {
  const Leaf* first = nullptr;
  for (const Leaf& leaf : leaves) {
    if (leaf.kind != Leaf::Kind::tensor) continue;
    if (first == nullptr) first = &leaf;
    if (&leaf.value->home() != &first->value->home()) refuse_homes(*first, leaf, leaves, run);
  }
  // If functions are compiled, the guards or miss() make this check.
  if (!compiles_ && dynamic_dims_.has_marks()) dynamic_dims_.check(leaves, run.names(), name_);
}

void CapturedFunction::refuse_homes(const Leaf& first, const Leaf& other, std::span<const Leaf> leaves,
                                    const FunctionRun& run) const {
  const std::vector<std::string> names = run.names();
  const auto name_of = [&](const Leaf& leaf) { return names[static_cast<std::size_t>(&leaf - leaves.data())]; };
  fail_user(
      "[{}] wanted values of one home, but argument {} is of another than argument {}: values of two Compilers do not "
      "meet; value(tensor) of one takes a tensor of the other",
      name_, name_of(other), name_of(first));
}

CapturedFunction::Outcome CapturedFunction::run_op_by_op(std::span<const Leaf> leaves, FunctionRun& run) {
  ++counts_.op_by_op;
  Values values;
  for (const Leaf& leaf : leaves)
    if (leaf.kind == Leaf::Kind::tensor) values.push_back(*leaf.value);
  run.run(values);
  return {};
}

CapturedFunction::Outcome CapturedFunction::use(std::size_t index, std::span<const Leaf> leaves, FunctionRun& run) {
  Entry& entry = *entries_[index];
  ++entry.calls;
  const auto tensors = [&] {
    std::vector<Tensor> given;
    for (const std::size_t leaf : entry.tensors) given.push_back(tensor_of(leaves[leaf]));
    return given;
  };
  if (!entry.tree.has_reads) {
    if (check_retrace_ > 0 && entry.calls % check_retrace_ == 0) {
      ++counts_.retraces;
      const auto running =
          recorder_.begin(entry.tree, tensors(), entry.guards.bindings(leaves), Recorder::Purpose::check);
      recorder_.finish(run.run(entry.tree.inputs));
    }
    return {index, whole_results(entry, leaves)};
  }
  const auto running = recorder_.begin(entry.tree, tensors(), entry.guards.bindings(leaves), Recorder::Purpose::run);
  const Values results = run.run(entry.tree.inputs);
  recorder_.finish(results);
  if (!recorder_.why_not_kept().empty()) {
    ++counts_.op_by_op;
    warn_of_ways();
  }
  return {std::nullopt, values_of(recorder_.results(results), leaves)};
}

CapturedFunction::Outcome CapturedFunction::miss(std::span<const Leaf> leaves, FunctionRun& run, bool wants_results) {
  const std::vector<std::string> names = run.names();
  dynamic_dims_.check(leaves, names, name_);
  dynamic_dims_.note(leaves);
  if (std::any_of(leaves.begin(), leaves.end(), is_empty)) return run_op_by_op(leaves, run);
  if (!entries_.empty()) log_recompile(leaves);
  if (entries_.size() >= options_.recompile_limit) {
    warn_of_limit();
    return run_op_by_op(leaves, run);
  }
  const Options& options = context_->options;
  const auto choices = dynamic_dims_.choices(leaves, names, options_.dynamic, options.max_num_batched_tokens,
                                             options_.dynamic_shapes.value_or(dynamic_shapes(options)));
  for (std::size_t i = first_choice_; i + 1 < choices.size(); ++i) {
    try {
      const Outcome outcome = add_entry(choices[i], &choices.back(), leaves, run, wants_results);
      if (recorder_.why_not_kept().empty()) return outcome;
      log_fewer_symbols(choices[i], choices[i + 1], recorder_.why_not_kept());
      first_choice_ = i + 1;
      return outcome;
    } catch (const UserError& error) {
      // After the function has read a value it may have had side effects, so it must not run again.
      if (recorder_.has_read()) throw;
      log_fewer_symbols(choices[i], choices[i + 1], error.what());
    } catch (const TookSymbolForNumber& failure) {
      const std::size_t next = recorder_.has_read() ? choices.size() - 1 : i + 1;
      log_fewer_symbols(choices[i], choices[next], failure.why);
      if (!recorder_.has_read()) continue;
      first_choice_ = next;
      if (failure.has_written_over) refuse_another_try(failure.why);
      break;
    }
  }
  return add_entry(choices.back(), nullptr, leaves, run, wants_results);
}

std::unique_ptr<CapturedFunction::Entry> CapturedFunction::begin_entry(const std::vector<SymbolicDim>& dims,
                                                                       std::span<const Leaf> leaves,
                                                                       std::vector<std::string> names) {
  auto entry = std::make_unique<Entry>();
  entry->names = std::move(names);
  std::vector<Meta> metas;
  std::vector<std::string> input_names;
  for (std::size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    if (leaves[leaf].kind != Leaf::Kind::tensor) continue;
    entry->tensors.push_back(leaf);
    metas.push_back(leaves[leaf].value->meta());
    for (const SymbolicDim& dim : dims)
      if (dim.leaf == leaf) metas.back().shape[dim.dim] = Dim::symbol(dim.symbol);
    std::string name = "argument_" + entry->names[leaf];
    std::replace(name.begin(), name.end(), '.', '_');
    input_names.push_back(std::move(name));
  }
  for (const SymbolicDim& dim : dims) {
    entry->tree.bounds[dim.symbol] = dim.bounds;
    if (dim.shapes == DynamicShapes::unbacked) entry->tree.unbacked.insert(dim.symbol);
  }
  entry->tree.inputs = recorder_.inputs(metas, input_names);
  return entry;
}

Values CapturedFunction::traced(FunctionRun& run, const Entry& entry, bool is_attempt) {
  try {
    return run.run(entry.tree.inputs);
  } catch (const InternalError& error) {
    if (!is_attempt) throw;
    throw TookSymbolForNumber{error.what(), recorder_.has_written_over()};
  }
}

CapturedFunction::Outcome CapturedFunction::add_entry(const std::vector<SymbolicDim>& dims,
                                                      const std::vector<SymbolicDim>* least,
                                                      std::span<const Leaf> leaves, FunctionRun& run,
                                                      bool wants_results) {
  const bool is_attempt = least != nullptr;
  has_read_ = has_read_ || recorder_.has_read();  // in the previous run
  std::unique_ptr<Entry> entry = begin_entry(dims, leaves, run.names());
  entry->tree.has_choice = is_attempt;
  if (is_attempt) {
    for (const SymbolicDim& dim : dims) entry->tree.droppable.insert(dim.symbol);
    for (const SymbolicDim& dim : *least) entry->tree.droppable.erase(dim.symbol);
  }
  Bindings sizes;
  for (const SymbolicDim& dim : dims) sizes[dim.symbol] = leaves[dim.leaf].value->meta().shape[dim.dim].number();
  std::vector<Tensor> tensors;
  for (const std::size_t leaf : entry->tensors) tensors.push_back(tensor_of(leaves[leaf]));
  const auto running = recorder_.begin(entry->tree, std::move(tensors), sizes,
                                       is_attempt && !has_read_ ? Recorder::Purpose::attempt : Recorder::Purpose::run);
  const Values results = traced(run, *entry, is_attempt);
  recorder_.finish(results);
  if (!recorder_.why_not_kept().empty()) {
    ++counts_.op_by_op;
    return {std::nullopt, values_of(recorder_.results(results), leaves)};
  }
  const bool is_whole = !entry->tree.has_reads;
  if (is_whole) {
    finish_whole(*entry, dims, leaves, sizes);
    recorder_.keep();
  } else {
    entry->guards = make_guards(entry->tree.bounds, dims, leaves, false);
    // A later call may take another path and branch on these symbols. The function's code runs in every call, so the
    // call's own sizes may decide, unless the user marked the dim as unbacked and thus asked for a proof.
    for (const SymbolicDim& dim : dims)
      if (!dim.is_marked) entry->tree.unbacked.erase(dim.symbol);
  }
  const std::size_t index = entries_.size();
  entries_.push_back(std::move(entry));
  ++counts_.compiled;
  log_entry(index);
  if (!is_whole) return {std::nullopt, values_of(recorder_.results(results), leaves)};
  run.keep(index);
  compile_other_sides(dims, leaves, run, index);
  if (!wants_results) return {index, std::nullopt};
  return {index, whole_results(*entries_[index], leaves)};
}

void CapturedFunction::finish_whole(Entry& entry, const std::vector<SymbolicDim>& dims, std::span<const Leaf> leaves,
                                    const Bindings& sizes) {
  Bounds& bounds = entry.tree.bounds;
  std::vector<DimCondition> checks;
  for (const Decision& decision : recorder_.decisions()) {
    entry.is_settled = entry.is_settled || decision.is_settled;
    if (decision.is_proved || decision.condition.truth(bounds) == Truth::yes) {
      ++counts_.proved;
    } else if (const auto boundary = range_boundary(decision.condition, bounds, sizes)) {
      ++counts_.boundaries;
      bounds[boundary->symbol] = boundary->range;
    } else {
      ++counts_.checks;
      checks.push_back(decision.condition);
    }
  }
  entry.guards = make_guards(entry.tree.bounds, dims, leaves, true);
  for (const DimCondition& check : checks) entry.guards.add_condition(check);

  Segment& segment = *entry.tree.starts.front();
  for (const int number : segment.donated)
    USER_CHECK(
        number < segment.first || recorder_.values()[static_cast<std::size_t>(number)]->meta.kind == MetaKind::kv,
        "[{}] donates a tensor that is no argument, so that the next call would find it overwritten: make it an "
        "argument, or donate a value that was computed from it",
        name_);
  std::set<int> brought;
  for (const RecordedStep& step : segment.steps)
    if (step.op == nullptr) brought.insert(number_of(step.results[0]));
  for (const int number : segment.ends_in)
    if (number >= segment.first && !brought.contains(number)) segment.wanted.insert(number);
  if (segment.wanted.empty()) return;
  const std::vector<int> wanted(segment.wanted.begin(), segment.wanted.end());
  segment.program = std::make_unique<SegmentProgram>(
      *context_, graph_of(segment, recorder_.values(), wanted, bounds, graph_name(options_), context_->ops));
}

void CapturedFunction::compile_other_sides(const std::vector<SymbolicDim>& dims, std::span<const Leaf> leaves,
                                           FunctionRun& run, std::size_t first) {
  Bounds all;
  for (const SymbolicDim& dim : dims) {
    if (!dim.is_marked) return;  // the user announced no other sizes for this dim
    all[dim.symbol] = dim.bounds;
  }
  if (entries_[first]->is_settled) return;
  std::vector<Bounds> open = other_sides(all, entries_[first]->tree.bounds);
  while (!open.empty() && entries_.size() < options_.recompile_limit) {
    const Bounds bounds = open.back();
    open.pop_back();
    std::vector<SymbolicDim> part = dims;
    for (SymbolicDim& dim : part) dim.bounds = bounds.at(dim.symbol);
    Bindings sizes;
    for (const auto& [symbol, range] : bounds) sizes[symbol] = range.lo;
    std::unique_ptr<Entry> entry = begin_entry(part, leaves, run.names());
    try {
      const auto running = recorder_.begin(entry->tree, {}, sizes, Recorder::Purpose::trace);
      recorder_.finish(traced(run, *entry, true));
      finish_whole(*entry, part, leaves, sizes);
      recorder_.keep();
    } catch (const InternalError&) {
      throw;
    } catch (...) {
      continue;  // this side reads values or fails: it is compiled, or its error reported, when it is called
    }
    if (!entry->is_settled)
      for (Bounds& side : other_sides(bounds, entry->tree.bounds)) open.push_back(std::move(side));
    entries_.push_back(std::move(entry));
    ++counts_.compiled;
    run.keep(entries_.size() - 1);
    log_entry(entries_.size() - 1);
  }
}

Values CapturedFunction::whole_results(Entry& entry, std::span<const Leaf> leaves) {
  const Segment& segment = *entry.tree.starts.front();
  const auto given = [&](int number) -> const Tensor& {
    const auto index = static_cast<std::size_t>(number);
    if (index < entry.tensors.size()) return leaves[entry.tensors[index]].value->tensor();
    const auto step = std::find_if(segment.steps.begin(), segment.steps.end(), [&](const RecordedStep& brought) {
      return brought.op == nullptr && number_of(brought.results[0]) == number;
    });
    CHECK(step != segment.steps.end(), "value {} of {} is neither given nor made", number, name_);
    return step->tensor;
  };
  std::vector<Tensor> made;
  if (segment.program != nullptr) {
    const std::vector<int>& inputs = segment.program->inputs();
    entry.taken.resize(inputs.size());  // reuses the vector of the previous call, so nothing is allocated
    for (std::size_t i = 0; i < inputs.size(); ++i) entry.taken[i] = given(inputs[i]);
    made = segment.program->run(entry.taken);
  }
  std::vector<Tensor> results;
  results.reserve(segment.ends_in.size());
  for (const int number : segment.ends_in) {
    if (!segment.wanted.contains(number)) {
      results.push_back(given(number));
      continue;
    }
    const std::vector<int>& numbers = segment.program->results();
    const auto place = std::find(numbers.begin(), numbers.end(), number) - numbers.begin();
    results.push_back(owned(made[static_cast<std::size_t>(place)], entry.taken, pool_));
  }
  return values_of(std::move(results), leaves);
}

Values CapturedFunction::values_of(std::vector<Tensor> tensors, std::span<const Leaf> leaves) {
  if (tensors.empty()) return {};
  const auto first =
      std::find_if(leaves.begin(), leaves.end(), [](const Leaf& leaf) { return leaf.kind == Leaf::Kind::tensor; });
  Evaluator& home = first->value->home();
  Values values;
  values.reserve(tensors.size());
  for (Tensor& tensor : tensors) values.push_back(home.value(std::move(tensor)));
  return values;
}

}  // namespace weft
