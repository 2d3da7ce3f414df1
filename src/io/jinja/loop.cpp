#include "io/jinja/loop.h"

#include <algorithm>

#include <fmt/core.h>

#include "io/jinja/comparison.h"
#include "io/jinja/printer.h"

namespace weft::jinja {

namespace {

class LoopMethod : public Object {
 public:
  LoopMethod(Loop& loop, bool cycles) : loop_(loop), cycles_(cycles) {}
  std::string type_name() const override { return "method"; }
  bool is_callable() const override { return true; }
  Value call(Runtime& runtime, const Arguments& arguments) override {
    return cycles_ ? loop_.cycle(arguments) : loop_.changed(runtime, arguments);
  }

 private:
  Loop& loop_;
  bool cycles_;
};

}  // namespace

Loop::Loop(Items items, Accept accept, Recurse recurse, int depth)
    : items_(std::move(items)), accept_(std::move(accept)), recurse_(std::move(recurse)), depth_(depth) {}

bool Loop::look_ahead() {
  while (position_ < items_->size()) {
    const Value& item = (*items_)[position_++];
    if (accept_ && !accept_(item)) continue;
    ahead_.push_back(item);
    return true;
  }
  return false;
}

bool Loop::advance() {
  if (ahead_.empty() && !look_ahead()) return false;
  previous_ = std::exchange(current_, std::move(ahead_.front()));
  ahead_.pop_front();
  ++index_;
  return true;
}

std::int64_t Loop::length() {
  if (!accept_) return static_cast<std::int64_t>(items_->size());
  while (look_ahead()) {
  }
  return index_ + 1 + static_cast<std::int64_t>(ahead_.size());
}

void Loop::print(Printer& printer) const {
  if (accept_) fail_template("a loop with a condition has no text that could be printed");
  printer.append(fmt::format("<LoopContext {}/{}>", index_ + 1, items_->size()));
}

std::optional<Value> Loop::attribute(Runtime& runtime, std::string_view name) {
  if (name == "index") return Value::integer(index_ + 1);
  if (name == "index0") return Value::integer(index_);
  if (name == "revindex") return Value::integer(length() - index_);
  if (name == "revindex0") return Value::integer(length() - index_ - 1);
  if (name == "first") return Value::boolean(index_ == 0);
  if (name == "last") return Value::boolean(ahead_.empty() && !look_ahead());
  if (name == "length") return Value::integer(length());
  if (name == "depth") return Value::integer(depth_ + 1);
  if (name == "depth0") return Value::integer(depth_);
  if (name == "previtem") return index_ == 0 ? Value::undefined("there is no previous item") : previous_;
  if (name == "nextitem") {
    const bool has_next = !ahead_.empty() || look_ahead();
    return has_next ? ahead_.front() : Value::undefined("there is no next item");
  }
  if (name == "cycle" || name == "changed") return Value::object(runtime.make<LoopMethod>(*this, name == "cycle"));
  return std::nullopt;
}

Value Loop::call(Runtime&, const Arguments& arguments) {
  if (!recurse_) fail_template("The loop must have the 'recursive' marker to be called recursively.");
  return recurse_(*bind_arguments("loop", arguments, {"iterable"}, 1)[0], depth_ + 1);
}

Value Loop::cycle(const Arguments& arguments) const {
  const auto& values = arguments.positional;
  if (values.empty() || !arguments.named.empty()) fail_template("no items for cycling given");
  return values[static_cast<std::size_t>(index_) % values.size()];
}

Value Loop::changed(Runtime& runtime, const Arguments& arguments) {
  const auto& values = arguments.positional;
  const bool same = has_changed_before_ &&
                    std::equal(values.begin(), values.end(), last_values_.begin(), last_values_.end(),
                               [&](const Value& a, const Value& b) { return is_equal(runtime.budget(), a, b); });
  has_changed_before_ = true;
  last_values_ = values;
  return Value::boolean(!same);
}

}  // namespace weft::jinja
