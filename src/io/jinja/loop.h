#pragma once

// The variable `loop` inside a for loop, which also drives the loop. It looks at most one item ahead and evaluates the
// condition of `for ... if` only when it reaches an item, so that the condition sees changes by the body.

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
  // Whether the loop includes an item.
  using Accept = std::function<bool(const Value& item)>;
  // Runs the body over other items, one level deeper, and returns its text.
  using Recurse = std::function<Value(const Value& iterable, int depth)>;

  // `accept` is empty if the loop includes all items. `recurse` is empty if the loop is not marked recursive.
  Loop(Items items, Accept accept, Recurse recurse, int depth);

  // Moves to the next item. Returns false after the last one.
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
  // Finds one more included item and adds it to ahead_. Returns false if there is none.
  bool look_ahead();
  std::int64_t length();

  Items items_;
  Accept accept_;
  Recurse recurse_;
  int depth_;  // number of recursive loops around this one; 0 for the outermost
  std::size_t position_ = 0;
  std::deque<Value> ahead_;
  std::int64_t index_ = -1;
  Value previous_;
  Value current_;
  bool has_changed_before_ = false;
  std::vector<Value> last_values_;
};

}  // namespace weft::jinja
