#include "io/jinja/value.h"

#include <cmath>
#include <limits>

#include <fmt/core.h>

#include "io/jinja/object.h"

namespace weft::jinja {

namespace {

// Nested containers may share parts, so a few bytes can represent many elements. This limits the number of elements
// that a traversal of one value visits.
constexpr std::uint64_t kMaxWeight = 8'000'000;

constexpr std::uint64_t kEntryBytes = 128;

std::uint64_t add_weight(std::uint64_t left, std::uint64_t right) { return std::min(kMaxWeight + 1, left + right); }

void check_container(std::uint64_t weight, int depth) {
  if (weight > kMaxWeight) fail_template("a list or mapping with more than {} parts", kMaxWeight);
  if (depth > kMaxNesting) fail_template("lists and mappings nested more than {} deep", kMaxNesting);
}

// Integers and reals with equal values have the same key.
std::string number_key(const Value& value) {
  if (value.is_integral()) return fmt::format("{}i{}", '\0', value.integer());
  const double number = value.real();
  constexpr double kTwoTo63 = 9223372036854775808.0;
  if (number >= -kTwoTo63 && number < kTwoTo63 && number == std::floor(number))
    return fmt::format("{}i{}", '\0', static_cast<std::int64_t>(number));
  return fmt::format("{}r{}", '\0', number);
}

}  // namespace

Value Value::undefined(std::string why) {
  Value value;
  value.content_ = Undefined{std::make_shared<const std::string>(std::move(why))};
  return value;
}

Value Value::none() {
  Value value;
  value.content_ = None{};
  return value;
}

Value Value::boolean(bool boolean) {
  Value value;
  value.content_ = boolean;
  return value;
}

Value Value::integer(std::int64_t integer) {
  Value value;
  value.content_ = integer;
  return value;
}

Value Value::real(double real) {
  Value value;
  value.content_ = real;
  return value;
}

Value Value::string(std::string text, bool markup) {
  Value value;
  value.content_ = Text{std::make_shared<const std::string>(std::move(text)), markup};
  return value;
}

Value Value::object(Object* object) {
  Value value;
  value.content_ = object;
  return value;
}

Value::Value(std::shared_ptr<Sequence> sequence) : content_(std::move(sequence)) {}
Value::Value(std::shared_ptr<const Dict> dict) : content_(std::move(dict)) {}

Kind Value::kind() const {
  constexpr Kind kKinds[] = {Kind::undefined, Kind::none, Kind::boolean, Kind::integer, Kind::real,
                             Kind::string,    Kind::list, Kind::dict,    Kind::object};
  const Kind kind = kKinds[content_.index()];
  return kind == Kind::list ? sequence().kind : kind;
}

bool Value::is_number() const { return is_integral() || is(Kind::real); }

bool Value::is_markup() const {
  const auto* text = std::get_if<Text>(&content_);
  return text != nullptr && text->markup;
}

const std::string& Value::why() const {
  static const std::string kUnexplained = "the value is undefined";
  const auto& why = std::get<Undefined>(content_).why;
  return why == nullptr ? kUnexplained : *why;
}

const std::string& Value::text() const { return *std::get<Text>(content_).text; }

std::int64_t Value::integer() const {
  if (const bool* flag = std::get_if<bool>(&content_)) return *flag ? 1 : 0;
  return std::get<std::int64_t>(content_);
}

double Value::real() const {
  if (const double* real = std::get_if<double>(&content_)) return *real;
  return static_cast<double>(integer());
}

Sequence& Value::sequence() const { return *std::get<std::shared_ptr<Sequence>>(content_); }
const std::vector<Value>& Value::items() const { return sequence().items; }
const Dict& Value::dict() const { return *std::get<std::shared_ptr<const Dict>>(content_); }
Object* Value::object() const { return std::get<Object*>(content_); }

std::uint64_t Value::weight() const {
  if (is_string()) return 1 + text().size() / 64;
  if (is_sequence()) return sequence().weight;
  return is_dict() ? dict().weight() : 1;
}

int Value::depth() const {
  if (is_sequence()) return sequence().depth;
  return is_dict() ? dict().depth() : 0;
}

const void* Value::identity() const {
  if (is_string()) return &text();
  if (is_sequence()) return &sequence();
  if (is_dict()) return &dict();
  return is(Kind::object) ? object() : nullptr;
}

const Value* Dict::find(std::string_view key) const {
  if (!key.empty() && key.front() == '\0') return find(Value::string(std::string(key)));
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : &entries_[found->second].value;
}

const Value* Dict::find(const Value& key) const {
  const auto found = index_.find(hash_key(key));
  return found == index_.end() ? nullptr : &entries_[found->second].value;
}

void Dict::set(Value key, Value value) {
  weight_ = add_weight(weight_, add_weight(key.weight(), value.weight()));
  depth_ = std::max(depth_, 1 + std::max(key.depth(), value.depth()));
  const auto [place, is_new] = index_.try_emplace(hash_key(key), entries_.size());
  if (is_new) {
    entries_.push_back({std::move(key), std::move(value)});
  } else {
    entries_[place->second].value = std::move(value);
  }
}

// A plain string is its own key, so a look-up by name needs no copy. The keys of all other kinds begin with a zero
// byte.
std::string hash_key(const Value& value) {
  switch (value.kind()) {
    case Kind::string: {
      const std::string& text = value.text();
      return !text.empty() && text.front() == '\0' ? fmt::format("{}s{}", '\0', text) : text;
    }
    case Kind::none:
      return {'\0', 'n'};
    case Kind::boolean:
    case Kind::integer:
    case Kind::real:
      return number_key(value);
    case Kind::tuple:
    case Kind::range: {
      std::string key{'\0', value.is(Kind::tuple) ? 't' : 'g'};
      for (const Value& item : value.items()) {
        const std::string part = hash_key(item);
        key += fmt::format("{}:{}", part.size(), part);
      }
      return key;
    }
    case Kind::undefined:
      return {'\0', 'u'};
    case Kind::object:
      return fmt::format("{}o{}", '\0', static_cast<const void*>(value.object()));
    default:
      fail_template("unhashable type: '{}'", type_name(value));
  }
}

Value make_string(Budget& budget, std::string text, bool markup) {
  budget.allocate_text(text.size());
  return Value::string(std::move(text), markup);
}

Value make_sequence(Budget& budget, Kind kind, std::vector<Value> items, std::string label) {
  auto sequence = std::make_shared<Sequence>();
  for (const Value& item : items) {
    sequence->weight = add_weight(sequence->weight, item.weight());
    sequence->depth = std::max(sequence->depth, 1 + item.depth());
  }
  check_container(sequence->weight, sequence->depth);
  budget.step(items.size());
  budget.allocate(sizeof(Sequence) + items.size() * sizeof(Value));
  sequence->kind = kind;
  sequence->items = std::move(items);
  sequence->label = std::move(label);
  return Value(std::move(sequence));
}

Value make_list(Budget& budget, std::vector<Value> items) {
  return make_sequence(budget, Kind::list, std::move(items));
}

Value make_iterator(Budget& budget, std::vector<Value> items) {
  return make_sequence(budget, Kind::iterator, std::move(items), "generator");
}

Value make_dict(Budget& budget, Dict dict) {
  check_container(dict.weight(), dict.depth());
  budget.step(dict.size());
  budget.allocate(sizeof(Dict) + dict.size() * kEntryBytes);
  return Value(std::make_shared<const Dict>(std::move(dict)));
}

std::string type_name(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
      return "Undefined";
    case Kind::none:
      return "NoneType";
    case Kind::boolean:
      return "bool";
    case Kind::integer:
      return "int";
    case Kind::real:
      return "float";
    case Kind::string:
      return value.is_markup() ? "Markup" : "str";
    case Kind::list:
      return "list";
    case Kind::tuple:
      return "tuple";
    case Kind::range:
      return "range";
    case Kind::view:
    case Kind::iterator:
      return value.sequence().label;
    case Kind::dict:
      return "dict";
    case Kind::object:
      return value.object()->type_name();
  }
  return "object";
}

}  // namespace weft::jinja
