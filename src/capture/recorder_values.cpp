// The Values of a Recorder's runs: which run they belong to, and the errors about values of other runs.

#include "base/error.h"
#include "capture/recorder.h"

namespace weft {
namespace {

// The recorder that made the value; null if no recorder did.
const Recorder* recorder_of(const Value& value) {
  const auto* home = value.present() ? dynamic_cast<const Recorder::Home*>(&value.home()) : nullptr;
  return home == nullptr ? nullptr : &home->recorder();
}

// For messages: %2 (f32[4, 8], made by silu at main.cpp:12).
std::string described(const Value& value) {
  const std::string type = value.meta().text();
  if (recorder_of(value) == nullptr) return type;
  const auto& recorded = static_cast<const RecordedValue&>(*value.graph_value());
  // A later run has reused this RecordedValue, because nothing of its own run was kept.
  if (recorded.run > static_cast<const Recorder::Home&>(value.home()).run) return "one";
  if (!recorded.name.empty()) return fmt::format("%{} ({})", recorded.name, type);
  if (recorded.op == nullptr) return fmt::format("%{} ({}, which it brought)", recorded.index, type);
  const std::string line =
      recorded.site.line() == 0 ? "" : fmt::format(" at {}:{}", recorded.site.file_name(), recorded.site.line());
  return fmt::format("%{} ({}, made by {}{})", recorded.index, type, recorded.op->name, line);
}

}  // namespace

Value Recorder::fresh_value(Meta meta, std::string name, int number, const Op* op, const CallSite& site) {
  RecordedValue& value =
      used_values_ < graph_values_.size() ? graph_values_[used_values_] : graph_values_.emplace_back();
  ++used_values_;
  value.meta = std::move(meta);
  value.name = std::move(name);
  value.index = number;
  value.op = op;
  value.site = site;
  value.run = home_ != nullptr ? home_->run : runs_;
  return Value::traced(home_ != nullptr ? *home_ : homes_.front(), &value);
}

Values Recorder::inputs(const std::vector<Meta>& metas, const std::vector<std::string>& names) {
  Values values;
  for (std::size_t i = 0; i < metas.size(); ++i) values.push_back(fresh_value(metas[i], names[i], static_cast<int>(i)));
  return values;
}

void Recorder::check_running(const Home& home, std::string_view user) const {
  USER_CHECK(tree_ != nullptr, "[{}] {} wanted a value of this run, but was given one of a run that is over", function_,
             user);
  USER_CHECK(&home == home_, "[{}] {} wanted a value of this run, but was given one of another", function_, user);
}

void Recorder::refuse(const Value& value, std::string_view user) const {
  if (!value.present()) fail_user("[{}] {} wanted a value of this run, but was given none", function_, user);
  if (recorder_of(value) == nullptr)
    fail_user(
        "[{}] {} wanted a value of this run, but was given {} of no run: a tensor from outside enters by "
        "home().value(tensor)",
        function_, user, described(value));
  fail_user("[{}] {} wanted a value of this run, but was given {} of {}", function_, user, described(value),
            tree_ == nullptr ? "a run that is over" : "another");
}

int Recorder::checked_number(const Value& value, std::string_view user) const {
  if (!value.present() || home_ == nullptr || &value.home() != home_) refuse(value, user);
  return number_of(value);
}

// Refuses an op that takes a value of another run together with one of this run. The general check of op calls would
// only report that their homes differ.
void Recorder::check_one_run(std::string_view op, const Operands& operands) const {
  bool has_own = false;
  const Value* other = nullptr;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!operands[i].present()) continue;
    const bool is_own = &operands[i].home() == home_;
    has_own = has_own || is_own;
    if (!is_own && recorder_of(operands[i]) == this) other = &operands[i];
  }
  if (has_own && other != nullptr) refuse(*other, op);
}

void Recorder::check_one_device(const Op& op, const Values& operands) const {
  const Value* first = nullptr;
  for (const Value& operand : operands) {
    if (!operand.present()) continue;
    if (first == nullptr) first = &operand;
    USER_CHECK(first->meta().device == operand.meta().device,
               "[{}] wanted tensors on one device, but {} is on {} and {} on {}", op.name, described(*first),
               device_text(first->meta().device), described(operand), device_text(operand.meta().device));
  }
}

Values Recorder::Home::evaluate(const Op& op, const Values& operands, const Attributes& attributes, bool inplace) {
  for (const Value& operand : operands)
    if (operand.present()) recorder_.checked_number(operand, op.name);
  recorder_.check_running(*this, op.name);
  return recorder_.evaluate(op, operands, attributes, inplace);
}

Value Recorder::Home::value(Tensor tensor) {
  recorder_.check_running(*this, "value()");
  Meta meta = tensor.meta;
  return recorder_.bring(std::move(tensor), std::move(meta));
}

Tensor Recorder::Home::read(const Value& value, const Reading& reading) { return recorder_.read(value, reading); }

bool Recorder::Home::decide(const DimCondition& condition, const Reading& reading) {
  recorder_.check_running(*this, reading.what);
  return recorder_.decide(condition, reading);
}

std::int64_t Recorder::Home::settle(const Dim& size, const Reading& reading) {
  recorder_.check_running(*this, reading.what);
  return recorder_.settle(size, reading);
}

}  // namespace weft
