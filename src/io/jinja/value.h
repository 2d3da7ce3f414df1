#pragma once

// The values of a template: the Python values that a sandboxed template can use. Strings and containers are immutable
// and shared. Mutable values (namespaces, loops, cyclers) are Objects. The rendering owns them and values only point to
// them, so reference cycles cannot occur.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "io/jinja/budget.h"

namespace weft::jinja {

class Dict;
class Object;
class Value;
struct Sequence;

enum class Kind : std::uint8_t {
  undefined,
  none,
  boolean,
  integer,
  real,
  string,
  list,
  tuple,
  range,
  view,      // dict.keys(), values(), items()
  iterator,  // a generator: it can be read once and has no length
  dict,
  object,
};

inline constexpr int kMaxNesting = 200;

class Value {
 public:
  // Undefined without an explanation.
  Value() = default;

  // `why` is the error message for each use other than printing and testing.
  static Value undefined(std::string why);
  static Value none();
  static Value boolean(bool value);
  static Value integer(std::int64_t value);
  static Value real(double value);
  // A string that does not count against the budget, for literals of the template and short fixed words. `markup` marks
  // results of the filters `safe` and `escape`; such text HTML-escapes each string that is combined with it.
  static Value string(std::string text, bool markup = false);
  static Value object(Object* object);
  explicit Value(std::shared_ptr<Sequence> sequence);
  explicit Value(std::shared_ptr<const Dict> dict);

  Kind kind() const;
  bool is(Kind kind) const { return this->kind() == kind; }
  bool is_undefined() const { return is(Kind::undefined); }
  bool is_none() const { return is(Kind::none); }
  bool is_string() const { return is(Kind::string); }
  bool is_dict() const { return is(Kind::dict); }
  // list, tuple, range, view or iterator
  bool is_sequence() const { return std::holds_alternative<std::shared_ptr<Sequence>>(content_); }
  // boolean, integer or real
  bool is_number() const;
  // boolean or integer
  bool is_integral() const { return is(Kind::boolean) || is(Kind::integer); }
  bool is_markup() const;

  // Each of these requires a value of that kind.
  const std::string& why() const;
  const std::string& text() const;
  std::int64_t integer() const;  // also of a boolean
  double real() const;           // also for a boolean or an integer
  Sequence& sequence() const;
  std::shared_ptr<Sequence> shared_sequence() const { return std::get<std::shared_ptr<Sequence>>(content_); }
  const std::vector<Value>& items() const;
  const Dict& dict() const;
  Object* object() const;

  // The cost to traverse this value with all nested values: 1 for a scalar.
  std::uint64_t weight() const;
  // The depth of nested containers: 0 for a scalar.
  int depth() const;
  // The address of the content. It is equal for two values that share the same string or container.
  const void* identity() const;

 private:
  struct Undefined {
    std::shared_ptr<const std::string> why;
  };
  struct None {};
  struct Text {
    std::shared_ptr<const std::string> text;
    bool markup = false;
  };
  std::variant<Undefined, None, bool, std::int64_t, double, Text, std::shared_ptr<Sequence>,
               std::shared_ptr<const Dict>, Object*>
      content_;
};

struct Sequence {
  Kind kind = Kind::list;
  std::vector<Value> items;
  // The name of a range, view or iterator: "range(0, 3)", "dict_items", "generator"; "group" for the named pair that
  // the groupby filter returns.
  std::string label;
  // For an iterator: the number of items already read.
  std::size_t consumed = 0;
  std::uint64_t weight = 1;
  int depth = 1;
};

// A mapping that keeps insertion order. Keys compare as in Python: 1, 1.0 and true are one key.
class Dict {
 public:
  struct Entry {
    Value key;
    Value value;
  };

  const std::vector<Entry>& entries() const { return entries_; }
  std::size_t size() const { return entries_.size(); }
  // Null if absent. Throws TemplateFailure for a key that cannot be hashed (a list, a mapping).
  const Value* find(const Value& key) const;
  const Value* find(std::string_view key) const;
  void set(Value key, Value value);

  std::uint64_t weight() const { return weight_; }
  int depth() const { return depth_; }

 private:
  std::vector<Entry> entries_;
  std::map<std::string, std::size_t, std::less<>> index_;
  std::uint64_t weight_ = 1;
  int depth_ = 1;
};

// A text that is equal for two values if and only if Python treats them as the same key. Throws TemplateFailure for a
// value that cannot be hashed.
std::string hash_key(const Value& value);

// These functions count against the budget and throw for containers nested deeper than kMaxNesting.
Value make_string(Budget& budget, std::string text, bool markup = false);
Value make_sequence(Budget& budget, Kind kind, std::vector<Value> items, std::string label = {});
Value make_list(Budget& budget, std::vector<Value> items);
Value make_iterator(Budget& budget, std::vector<Value> items);
Value make_dict(Budget& budget, Dict dict);

// Python's name of the value's type, for messages: "int", "str", "dict".
std::string type_name(const Value& value);

}  // namespace weft::jinja
