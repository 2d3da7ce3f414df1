// How a Recorder runs segments: compiled, or op by op if no program exists yet.

#include <algorithm>

#include "base/error.h"
#include "capture/recorder.h"
#include "capture/segment_program.h"
#include "compiler/run/eager.h"
#include "compiler/run/interpret.h"
#include "tensor/footprint.h"

namespace weft {
namespace {

bool is_brought(const Segment& segment, int number) {
  return std::any_of(segment.steps.begin(), segment.steps.end(), [&](const RecordedStep& step) {
    return step.op == nullptr && number_of(step.results[0]) == number;
  });
}

// The numbers of all values whose memory the steps donate, views included.
std::set<int> donated_values(const Segment& segment) {
  std::map<int, int> roots;
  const auto root_of = [&](int number) {
    const auto known = roots.find(number);
    return known == roots.end() ? number : known->second;
  };
  std::set<int> given;
  for (const RecordedStep& step : segment.steps) {
    if (step.op == nullptr) continue;
    if (step.op->is_view) roots[number_of(step.results[0])] = root_of(step.operands[0]);
    for (const Donation& donation : step.op->donates) {
      const int number = step.operands[static_cast<std::size_t>(donation.argument)];
      const bool is_state = step.results[static_cast<std::size_t>(donation.result)].meta().kind == MetaKind::kv;
      if (number >= 0 && (step.maybe_inplace || is_state)) given.insert(root_of(number));
    }
  }
  for (const auto& [view, root] : roots)
    if (given.contains(root)) given.insert(view);
  return given;
}

// The values that are available after a segment has run: its steps made them and did not donate them.
std::vector<int> lasting_values(const Segment& segment) {
  const std::set<int> given = donated_values(segment);
  std::vector<int> numbers;
  for (const RecordedStep& step : segment.steps)
    for (const Value& result : step.results)
      if (step.op != nullptr && !given.contains(number_of(result))) numbers.push_back(number_of(result));
  return numbers;
}

}  // namespace

void Recorder::end_draft(Segment::End end, std::vector<int> ends_in, const Reading& reading) {
  draft_->end = end;
  draft_->last = static_cast<int>(values_.size());
  draft_->ends_in = std::move(ends_in);
  draft_->reading = reading;
  draft_->lasting = lasting_values(*draft_);
  for (const int number : donated_values(*draft_))
    if (number < draft_->first || is_brought(*draft_, number)) draft_->donated.push_back(number);
  path_.push_back(draft_);
  if (end == Segment::End::returned) return;
  if (why_not_kept_.empty()) log_break(*draft_);
  prepare_donations(*draft_);
  run_op_by_op(*draft_);
  note_donations(*draft_);
  enter(draft_->followers);
}

void Recorder::leave_segment() {
  Segment& segment = *segment_;
  path_.push_back(&segment);
  run_segment(segment);
  enter(segment.followers);
}

void Recorder::set_tensor(int number, Tensor tensor) {
  const auto index = static_cast<std::size_t>(number);
  if (tensors_.size() <= index) tensors_.resize(index + 1);
  tensors_[index] = std::move(tensor);
}

const Tensor& Recorder::tensor_of(int number) {
  const auto index = static_cast<std::size_t>(number);
  if (index >= tensors_.size() || !tensors_[index].defined()) {
    // Nothing needed this value when the segment ran, so its program did not return it.
    const auto owner = std::find_if(path_.begin(), path_.end(), [&](const Segment* segment) {
      return number >= segment->first && number < segment->last;
    });
    CHECK(owner != path_.end(), "value {} of {} is wanted before the segment that makes it ran", number, function_);
    CHECK((*owner)->donated.empty(), "a segment of {} that donated an argument cannot run twice", function_);
    run_op_by_op(**owner);
  }
  const Tensor& tensor = tensors_[index];
  USER_CHECK(tensor.defined(), "[{}] the buffer of value {} was donated before the value is read", function_, number);
  return tensor;
}

bool Recorder::is_from_outside(const Tensor& given) {
  const auto is_its = [&](const Tensor& tensor) { return tensor.storage == given.storage; };
  if (std::any_of(arguments().begin(), arguments().end(), is_its)) return true;
  for (const Segment* segment : path_)
    for (const RecordedStep& step : segment->steps)
      if (step.op == nullptr && is_its(tensor_of(number_of(step.results[0])))) return true;
  return false;
}

void Recorder::prepare_donations(const Segment& segment) {
  if (segment.donated.empty()) return;
  for (const Segment* earlier : path_) {
    if (earlier == &segment) break;
    const bool is_complete = std::all_of(earlier->lasting.begin(), earlier->lasting.end(), [&](int number) {
      return static_cast<std::size_t>(number) < tensors_.size() && tensors_[static_cast<std::size_t>(number)].defined();
    });
    // The other values may be needed after their inputs are overwritten, so they are computed now.
    if (!is_complete) run_op_by_op(*earlier);
  }
  // If the compiler found two values to be equal, they may share memory.
  for (const int number : segment.donated)
    for (const Segment* earlier : path_)
      for (const int other : earlier->lasting)
        if (const Tensor& tensor = tensors_[static_cast<std::size_t>(other)];
            earlier != &segment && other != number && tensor.meta.is_tensor() && tensor.meta.packed.empty() &&
            may_share_memory(tensor_of(number), tensor))
          set_tensor(other, owned(tensor, {}, pool_));
}

bool Recorder::has_written_over() {
  return std::any_of(gone_.begin(), gone_.end(), [&](const Gone& gone) { return is_from_outside(gone.tensor); });
}

void Recorder::note_donations(const Segment& segment) {
  for (const int number : segment.donated) gone_.push_back({number, segment.first, tensor_of(number)});
}

const Tensor& Recorder::input_of(int number) {
  const auto name = [&](int of) {
    const std::string& text = values_[static_cast<std::size_t>(of)]->name;
    return text.empty() ? fmt::format("%{}", of) : text;
  };
  const Tensor& tensor = tensor_of(number);
  for (const Gone& gone : gone_)
    USER_CHECK(number >= gone.before || number == gone.number || !may_share_memory(gone.tensor, tensor),
               "[{}] {} was donated, but {} shares memory with it", function_, name(gone.number), name(number));
  return tensor;
}

void Recorder::run_segment(Segment& segment) {
  prepare_donations(segment);
  if (segment.program == nullptr) {
    if (!segment.wanted.empty() || !why_not_kept_.empty()) run_op_by_op(segment);
    return;
  }
  SegmentProgram& program = *segment.program;
  std::vector<Tensor> tensors;
  for (const int number : program.inputs()) tensors.push_back(input_of(number));
  std::vector<Tensor> results = program.run(tensors);
  for (std::size_t i = 0; i < results.size(); ++i) set_tensor(program.results()[i], std::move(results[i]));
  note_donations(segment);
}

SegmentGraph Recorder::graph_for(const Segment& segment, const std::vector<int>& results) {
  if (numbers_.empty()) {
    try {
      return graph_of(segment, values_, results, tree_->bounds, graph_name_, context_.ops);
    } catch (const UserError& error) {
      if (!may_go_on_by_numbers()) throw;
      go_on_by_numbers(error.what());
    }
  }
  return graph_of(segment, values_, results, tree_->bounds, graph_name_, context_.ops, numbers_);
}

void Recorder::run_op_by_op(const Segment& segment) {
  const SegmentGraph built = graph_for(segment, segment.lasting);
  EagerEvaluator evaluator(context_, token_range(*built.graph, context_.options));
  Values inputs;
  for (const int number : built.inputs) inputs.push_back(evaluator.value(input_of(number)));
  const Values results = run_graph(*built.graph, evaluator, inputs);
  for (std::size_t i = 0; i < results.size(); ++i)
    if (const auto index = static_cast<std::size_t>(built.results[i]);
        index >= tensors_.size() || !tensors_[index].defined())
      set_tensor(built.results[i], results[i].tensor());
}

Values Recorder::run_eagerly(const Values& values, const std::function<Values(const Values&)>& function,
                             const Reading& reading) {
  std::vector<Tensor> tensors;
  for (const Value& given : values) {
    const Tensor tensor = given.present() ? read(given, reading) : Tensor();
    // The function may keep or return this memory, but the results of a segment are valid only until it runs again.
    tensors.push_back(tensor.defined() ? owned(tensor, arguments(), pool_) : tensor);
  }
  Dim rows = 0;  // the first size that is a symbol
  for (const Value& given : values)
    if (rows.is_number() && given.present() && given.rank() > 0) rows = given.dim(0);
  Values concrete, results;
  for (Tensor& tensor : tensors) concrete.push_back(tensor.defined() ? eager_.value(std::move(tensor)) : Value());
  for (const Value& result : function(concrete)) {
    Meta meta = result.meta();
    if (!rows.is_number() && !meta.shape.empty() && meta.shape[0] == Dim(rows.evaluate(sizes_))) meta.shape[0] = rows;
    results.push_back(bring(result.tensor(), std::move(meta)));
  }
  return results;
}

void Recorder::note_wanted() {
  const auto note = [&](int number, const Segment* user) {
    for (Segment* owner : path_) {
      if (number < owner->first || number >= owner->last || owner == user || is_brought(*owner, number)) continue;
      owner->wanted.insert(number);
    }
  };
  for (const Segment* segment : path_) {
    for (const RecordedStep& step : segment->steps)
      for (const int operand : step.operands) note(operand, segment);
    if (segment->end == Segment::End::returned)
      for (const int number : segment->ends_in) note(number, nullptr);
  }
  for (const int number : read_) note(number, nullptr);
  // A segment that donates a buffer must return all its live values, and so must the segments before it: none of them
  // can run again if a later call takes another branch.
  bool is_donated_later = false;
  for (auto segment = path_.rbegin(); segment != path_.rend(); ++segment) {
    is_donated_later = is_donated_later || !(*segment)->donated.empty();
    if (is_donated_later) (*segment)->wanted.insert((*segment)->lasting.begin(), (*segment)->lasting.end());
  }
}

void Recorder::compile_path() {
  for (Segment* segment : path_) {
    const std::vector<int> wanted(segment->wanted.begin(), segment->wanted.end());
    if (wanted.empty() || (segment->program != nullptr && segment->program->results() == wanted)) continue;
    segment->program = std::make_unique<SegmentProgram>(
        context_, graph_of(*segment, values_, wanted, tree_->bounds, graph_name_, context_.ops));
  }
}

std::vector<Tensor> Recorder::results(const Values& results) {
  std::vector<Tensor> given(arguments().begin(), arguments().end());
  for (const Segment* segment : path_)
    for (const RecordedStep& step : segment->steps)
      if (step.op == nullptr) given.push_back(tensor_of(number_of(step.results[0])));
  std::vector<Tensor> tensors;
  for (const Value& result : results) tensors.push_back(owned(tensor_of(number_of(result)), given, pool_));
  return tensors;
}

void Recorder::log_break(const Segment& segment) const {
  const auto calls = std::count_if(segment.steps.begin(), segment.steps.end(),
                                   [](const RecordedStep& step) { return step.op != nullptr; });
  context_.log.say("graph_breaks", Log::Detail::some,
                   fmt::format("{}: {} at {}:{} ends a graph of {} ops", function_, segment.reading.what,
                               segment.reading.where.file_name(), segment.reading.where.line(), calls));
}

}  // namespace weft
