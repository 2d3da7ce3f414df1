#pragma once

// The part of a rendering that filters, tests, methods and functions use: its budget, its objects, and Jinja's rules
// for attributes, items and calls.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/jinja/object.h"
#include "io/jinja/value.h"

namespace weft::jinja {

class Runtime {
 public:
  explicit Runtime(const ChatTemplateLimits& limits) : budget_(limits) {}

  Budget& budget() { return budget_; }

  // Creates an object that lives as long as the rendering.
  template <class T, class... Arguments>
  T* make(Arguments&&... arguments) {
    budget_.allocate(sizeof(T) + 64);
    auto object = std::make_unique<T>(std::forward<Arguments>(arguments)...);
    T* made = object.get();
    objects_.push_back(std::move(object));
    return made;
  }

  // `object.name`: an attribute or method, else an item, else undefined.
  Value attribute(const Value& object, std::string_view name);
  // `object[key]`: an item, else an attribute or method, else undefined.
  Value item(const Value& object, const Value& key);
  // `object[start:stop:step]`; an absent bound is none.
  Value slice(const Value& object, const Value& start, const Value& stop, const Value& step);

  Value call(const Value& callee, const Arguments& arguments);

  // Counts one level of evaluation during its lifetime. Throws TemplateFailure if there are too many. The parser cannot
  // limit this depth, because values, macros and filters that apply filters nest at run time.
  class Level {
   public:
    explicit Level(Runtime& runtime) : runtime_(runtime) {
      if (++runtime_.depth_ > kMaxEvaluationDepth) fail_template("calls nested too deep");
    }
    ~Level() { --runtime_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Runtime& runtime_;
  };

 private:
  // Each level takes a few hundred bytes of stack; with sanitizers, a few thousand.
  static constexpr int kMaxEvaluationDepth = 1000;

  // Looks up only an attribute or a method. Nullopt if there is none.
  std::optional<Value> own_attribute(const Value& object, std::string_view name);
  std::optional<Value> own_item(const Value& object, const Value& key);

  Budget budget_;
  std::vector<std::unique_ptr<Object>> objects_;
  int depth_ = 0;
};

}  // namespace weft::jinja
