#pragma once

// The variable `loop` inside a for loop, and what drives the loop: items are looked at one ahead at most, and the
// condition of `for ... if` is asked only when an item is reached, so that it sees what the body has changed.

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "io/jinja/object.h"
#include "io/jinja/runtime.h"

namespace weft::jinja {

class Loop : public Object {
 public:
  using Items = std::shared_ptr<const std::vector<Value>>;
  // Whether an item takes part.
  using Accept = std::function<bool(const Value& item)>;
  // Runs the body over other items, one level deeper, and gives its text.
  using Recurse = std::function<Value(const Value& iterable, int depth)>;

  // `accept` is empty when every item takes part, `recurse` when the loop is not marked recursive.
  Loop(Items items, Accept accept, Recurse recurse, int depth);

  // Moves to the next item. False behind the last.
  bool advance();
  const Value& current() const { return current_; }

  std::string type_name() const override { return "LoopContext"; }
  void print(Printer& printer) const override;
  std::optional<Value> attribute(Runtime& runtime, std::string_view name) override;
  bool is_callable() const override { return true; }
  Value call(Runtime& runtime, const Arguments& arguments) override;

  // loop.cycle(a, b, ...) and loop.changed(value, ...).
  Value cycle(const Arguments& arguments) const;
  Value changed(Runtime& runtime, const Arguments& arguments);

 private:
  // Finds one item more that takes part; false when there is none.
  bool look_ahead();
  std::int64_t length();

  Items items_;
  Accept accept_;
  Recurse recurse_;
  int depth_;  // of recursive loops around this one, 0 for the outermost
  std::size_t position_ = 0;
  std::deque<Value> ahead_;
  std::int64_t index_ = -1;
  Value previous_;
  Value current_;
  bool has_changed_before_ = false;
  std::vector<Value> last_values_;
};

}  // namespace weft::jinja
