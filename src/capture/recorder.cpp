#include "capture/recorder.h"

#include <algorithm>
#include <utility>

#include <fmt/ranges.h>

#include "base/error.h"
#include "capture/segment_program.h"
#include "ir/meta_evaluator.h"

namespace weft {
namespace {

bool is_same_memory(const Tensor& a, const Tensor& b) {
  return a.storage == b.storage && a.byte_offset == b.byte_offset;
}

std::string call_text(const Op& op, const std::vector<int>& operands, const Attributes& attributes) {
  std::vector<std::string> parts;
  for (const int operand : operands) parts.push_back(operand < 0 ? "none" : fmt::format("%{}", operand));
  for (const auto& [name, value] : attributes.entries())
    if (!value.is_none()) parts.push_back(fmt::format("{}={}", name, value.text()));
  return fmt::format("{}({})", op.name, fmt::join(parts, ", "));
}

// RecordedStep::defaults
std::uint64_t default_attributes(const Op& op, const Attributes& complete) {
  std::uint64_t bits = 0;
  const std::size_t first = op.schema.tensor_count();
  for (std::size_t i = 0; i < complete.entries().size() && i < 64; ++i)
    if (const auto& usual = op.schema.parameters[first + i].default_value;
        usual.has_value() && *usual == complete.entries()[i].second)
      bits |= std::uint64_t{1} << i;
  return bits;
}

// Runs use this many homes in rotation. If the caller keeps a value for an exact multiple of this many runs and uses it
// in none of them, it is mistaken for a value of the current run. The number is prime, so that a program is unlikely to
// repeat anything after this many runs.
constexpr std::size_t kRunsToldApart = 4093;

}  // namespace

Recorder::Recorder(const Context& context, std::string function, std::string graph_name, bool fullgraph,
                   std::size_t most_ways)
    : context_(context),
      function_(std::move(function)),
      graph_name_(std::move(graph_name)),
      fullgraph_(fullgraph),
      most_ways_(most_ways),
      eager_(context, {1, context.options.max_num_batched_tokens}) {
  homes_.emplace_back(*this);  // the home of inputs before a run begins
}

Recorder::Running Recorder::begin(RecordedTree& tree, std::vector<Tensor> tensors, Bindings sizes, Purpose purpose) {
  tree_ = &tree;
  home_ = runs_ < kRunsToldApart ? &homes_.emplace_back(*this) : &homes_[1 + runs_ % kRunsToldApart];
  home_->run = runs_++;
  purpose_ = purpose;
  sizes_ = std::move(sizes);
  numbers_.clear();
  values_.clear();
  for (Value& input : tree.inputs) {
    values_.push_back(input.graph_value());
    input.set_home(*home_);
  }
  tensors_ = std::move(tensors);
  tensors_.resize(values_.size());
  decisions_.clear();
  read_.clear();
  path_.clear();
  gone_.clear();
  fresh_.reset();
  why_not_kept_.clear();
  enter(tree.starts);
  return Running(*this);
}

void Recorder::end_run() {
  tree_ = nullptr;
  home_ = nullptr;
  used_values_ = kept_values_;
}

void Recorder::enter(std::vector<std::unique_ptr<Segment>>& ways) {
  ways_ = &ways;
  position_ = 0;
  draft_ = nullptr;
  segment_ = ways.empty() ? nullptr : ways.front().get();
  if (segment_ == nullptr) start_drafting("");
}

void Recorder::start_drafting(const std::string& what) {
  if (purpose_ == Purpose::check) {
    std::string before = "the return";
    if (segment_ != nullptr && position_ < segment_->steps.size()) {
      const RecordedStep& step = segment_->steps[position_];
      before = step.op == nullptr ? "a tensor that it brought" : call_text(*step.op, step.operands, step.attributes);
    }
    fail_user(
        "[{}] wanted a function that does the same in every call, but step {} was {} and is now {}: it reads something "
        "besides its arguments that has changed",
        function_, position_, before, what);
  }
  if (ways_->size() >= most_ways_ && why_not_kept_.empty())
    why_not_kept_ = fmt::format("there are {} ways to go on before {}", ways_->size(), what);
  auto draft = std::make_unique<Segment>();
  draft_ = draft.get();
  draft_->first = static_cast<int>(values_.size());
  if (segment_ != nullptr) {
    draft_->first = segment_->first;
    draft_->steps.assign(segment_->steps.begin(), segment_->steps.begin() + static_cast<std::ptrdiff_t>(position_));
    segment_ = nullptr;
  }
  if (fresh_ == nullptr) {
    fresh_ = std::move(draft);
    fresh_belongs_to_ = ways_;
  } else {
    ways_->push_back(std::move(draft));
  }
}

template <class Fits>
RecordedStep* Recorder::next_known(const Fits& fits) {
  if (position_ < segment_->steps.size() && fits(segment_->steps[position_])) return &segment_->steps[position_];
  for (const auto& way : *ways_)
    if (way.get() != segment_ && position_ < way->steps.size() && fits(way->steps[position_]) &&
        way->begins_like(*segment_, position_)) {
      segment_ = way.get();
      return &segment_->steps[position_];
    }
  return nullptr;
}

template <class Fits>
bool Recorder::ends_as_known(const Fits& fits) {
  const auto ends_here = [&](const Segment& way) { return position_ == way.steps.size() && fits(way); };
  if (ends_here(*segment_)) return true;
  for (const auto& way : *ways_)
    if (ends_here(*way) && way->begins_like(*segment_, position_)) {
      segment_ = way.get();
      return true;
    }
  return false;
}

const Values& Recorder::accept(RecordedStep& step) {
  ++position_;
  for (Value& result : step.results) {
    values_.push_back(result.graph_value());
    result.set_home(*home_);
  }
  return step.results;
}

inline bool Recorder::are_operands_of(const RecordedStep& step, const Operands& operands) const {
  if (step.operands.size() != operands.size()) return false;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    // The graph value alone does not identify an operand: numbers start at 0 again under other guards, and every run
    // reuses the same graph values. The value and its home together do.
    const int number = step.operands[i];
    const GraphValue* wanted = number < 0 ? nullptr : values_[static_cast<std::size_t>(number)];
    if (operands[i].graph_value() != wanted || operands[i].present() != (number >= 0)) return false;
    if (number >= 0 && &operands[i].home() != home_) return false;
  }
  return true;
}

const Values* Recorder::repeated(const Home& home, Literal op, const Operands& operands, const GivenAttributes& given,
                                 bool inplace) {
  if (&home == home_ && segment_ != nullptr && position_ != segment_->steps.size()) {
    RecordedStep& next = segment_->steps[position_];
    if (next.is_of(op) && next.maybe_inplace == inplace && are_operands_of(next, operands) &&
        next.would_have(op, given))
      return &accept(next);
  }
  check_one_run(op, operands);
  return nullptr;
}

std::vector<Meta> Recorder::infer(const Op& op, const Values& operands, const Attributes& attributes) {
  std::vector<std::optional<Meta>> metas = operand_metas(operands);
  if (numbers_.empty()) {
    try {
      return infer_results(op, context_.ops, metas, attributes);
    } catch (const Error& error) {
      if (!may_go_on_by_numbers()) throw;
      go_on_by_numbers(error.what());
    }
  }
  for (std::optional<Meta>& meta : metas)
    if (meta) meta = with_numbers(*meta, numbers_);
  return infer_results(op, context_.ops, metas, with_numbers(attributes, numbers_));
}

// Whether the op has no meaning and none of its kernels may be captured, as for a plugin's op that does not mention
// captures.
bool Recorder::ends_a_graph(const Op& op) const {
  if (!op.is_primitive()) return false;
  const std::vector<std::string> providers = context_.kernels.providers(op.name);
  return !providers.empty() && std::all_of(providers.begin(), providers.end(), [&](const std::string& provider) {
    const Kernel* kernel = context_.kernels.find(op.name, provider);
    return kernel == nullptr || kernel->launch_graph == LaunchGraphClass::never;
  });
}

Values Recorder::evaluate(const Op& op, const Values& operands, const Attributes& attributes, bool inplace) {
  if (ends_a_graph(op)) {
    const auto run = [&](const Values& concrete) {
      return eager_.evaluate(op, concrete, with_numbers(attributes, Numbers(sizes_.begin(), sizes_.end())), inplace);
    };
    return run_eagerly(operands, run, {op.name.c_str(), std::exchange(site_, {})});
  }
  if (segment_ != nullptr) {
    RecordedStep* known = next_known(
        [&](const RecordedStep& step) { return step.is_call(op, operands, inplace) && step.attributes == attributes; });
    if (known != nullptr) return accept(*known);
  }
  if (segment_ != nullptr) {
    std::vector<int> numbers;
    for (const Value& operand : operands) numbers.push_back(number_of(operand));
    start_drafting(call_text(op, numbers, attributes));
  }
  RecordedStep step{.op = &op,
                    .attributes = attributes,
                    .maybe_inplace = inplace,
                    .site = std::exchange(site_, {}),
                    .defaults = default_attributes(op, attributes)};
  for (const Value& operand : operands) step.operands.push_back(number_of(operand));
  check_one_device(op, operands);
  for (Meta& meta : infer(op, operands, attributes)) {
    const auto number = static_cast<int>(values_.size());
    step.results.push_back(fresh_value(std::move(meta), "", number, &op, step.site));
    values_.push_back(step.results.back().graph_value());
  }
  draft_->steps.push_back(std::move(step));
  return draft_->steps.back().results;
}

Value Recorder::bring(Tensor tensor, Meta meta) {
  const auto number = static_cast<int>(values_.size());
  set_tensor(number, tensor);
  if (segment_ != nullptr) {
    RecordedStep* known = next_known([&](const RecordedStep& step) {
      return step.op == nullptr && step.results[0].meta() == meta &&
             (purpose_ != Purpose::check || is_same_memory(step.tensor, tensor));
    });
    if (known != nullptr) return accept(*known)[0];
    start_drafting("another tensor that it brought");
  }
  RecordedStep step{.tensor = std::move(tensor), .results = {fresh_value(std::move(meta), "", number)}};
  values_.push_back(step.results[0].graph_value());
  draft_->steps.push_back(std::move(step));
  return draft_->steps.back().results[0];
}

Tensor Recorder::read(const Value& value, const Reading& reading) {
  const int number = checked_number(value, reading.what);
  USER_CHECK(!fullgraph_,
             "[{}] {} asks what a value holds, which ends the graph; with fullgraph there is one graph: compute "
             "with ops instead, read after the function, or leave fullgraph out",
             function_, reading.what);
  if (purpose_ == Purpose::trace) throw Stopped();
  if (purpose_ == Purpose::check) start_drafting(reading.what);
  if (purpose_ == Purpose::attempt) purpose_ = Purpose::run;
  tree_->has_reads = true;
  read_.push_back(number);
  const bool is_made_here = number >= (segment_ != nullptr ? segment_ : draft_)->first;
  const bool is_known =
      static_cast<std::size_t>(number) < tensors_.size() && tensors_[static_cast<std::size_t>(number)].defined();
  if (!is_made_here || is_known) return tensor_of(number);
  const auto is_this_end = [&](const Segment& way) {
    return way.end == Segment::End::read && way.ends_in.front() == number;
  };
  if (segment_ != nullptr && ends_as_known(is_this_end)) {
    leave_segment();
  } else {
    if (segment_ != nullptr) start_drafting(reading.what);
    end_draft(Segment::End::read, {number}, reading);
  }
  return tensor_of(number);
}

bool Recorder::decide(const DimCondition& condition, const Reading& reading) {
  const Truth truth = condition.truth(tree_->bounds);
  const std::string unbacked = truth == Truth::unknown ? unbacked_text({condition.left, condition.right}) : "";
  USER_CHECK(unbacked.empty(),
             "[{}] {} asks for {}, which is not the same for all of {}: an unbacked size decides nothing; narrow its "
             "range, or mark it with mark_dynamic",
             function_, reading.what, condition.text(), unbacked);
  const bool holds = truth == Truth::unknown ? condition.holds(sizes_) : truth == Truth::yes;
  decisions_.push_back({.condition = holds ? condition : condition.negated(), .is_proved = truth != Truth::unknown});
  return holds;
}

std::string Recorder::unbacked_text(std::initializer_list<Dim> sizes) const {
  std::set<std::string> symbols;
  for (const Dim& size : sizes) size.collect_symbols(symbols);
  std::vector<std::string> ranges;
  for (const std::string& symbol : symbols)
    if (tree_->unbacked.contains(symbol) && (purpose_ != Purpose::run || !tree_->droppable.contains(symbol))) {
      const Interval& range = tree_->bounds.at(symbol);
      ranges.push_back(fmt::format("{} in [{}, {}]", symbol, range.lo, range.hi));
    }
  return fmt::format("{}", fmt::join(ranges, ", "));
}

std::int64_t Recorder::settle(const Dim& size, const Reading& reading) {
  if (size.is_number()) return size.number();
  const std::string unbacked = unbacked_text({size});
  USER_CHECK(unbacked.empty(),
             "[{}] {} asks for the number that {} is, but it may be any of {}: an unbacked size has none; mark it with "
             "mark_dynamic, and it is compiled number by number",
             function_, reading.what, size.text(), unbacked);
  const std::int64_t number = size.evaluate(sizes_);
  decisions_.push_back({.condition = equal(size, number), .is_settled = true});
  return number;
}

bool Recorder::may_go_on_by_numbers() const {
  return purpose_ == Purpose::run && tree_->has_choice && numbers_.empty();
}

void Recorder::go_on_by_numbers(const std::string& why) {
  numbers_ = Numbers(sizes_.begin(), sizes_.end());
  why_not_kept_ = why;
}

void Recorder::keep_path() {
  const auto check = [&] { check_donated(path_, values_, tree_->bounds, graph_name_, context_, numbers_); };
  if (why_not_kept_.empty()) {
    try {
      check();
      note_wanted();
      compile_path();
    } catch (const UserError& error) {
      if (!may_go_on_by_numbers()) throw;
      go_on_by_numbers(error.what());
    }
  }
  if (!why_not_kept_.empty()) check();
  for (Segment* segment : path_)
    for (RecordedStep& step : segment->steps) step.tensor = {};  // every run brings its own tensors
}

void Recorder::finish(const Values& results) {
  std::vector<int> numbers;
  for (const Value& result : results) numbers.push_back(checked_number(result, "return"));
  const auto is_this_end = [&](const Segment& way) {
    return way.end == Segment::End::returned && way.ends_in == numbers;
  };
  if (segment_ != nullptr && ends_as_known(is_this_end)) {
    path_.push_back(segment_);
  } else {
    if (segment_ != nullptr) start_drafting("the return");
    end_draft(Segment::End::returned, std::move(numbers), {"return", {}});
    if (tree_->has_reads || !why_not_kept_.empty()) keep_path();
  }
  if (tree_->has_reads || !why_not_kept_.empty()) run_segment(*path_.back());
  if (!why_not_kept_.empty()) return;
  if (tree_->has_reads) keep();
  if (fresh_ != nullptr) fresh_belongs_to_->push_back(std::move(fresh_));
}

}  // namespace weft
