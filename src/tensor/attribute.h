#pragma once

// The value of an op's attribute, the text right of `=` in a node. The kinds are one small closed set, so printing,
// parsing, equality and hashing are written once.

#include <array>
#include <bit>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/literal.h"
#include "tensor/dim.h"
#include "tensor/dtype.h"

namespace weft {

class Attribute;
using AttributeList = std::vector<Attribute>;

// Replaces every NaN by the one that `nan` parses to.
inline double with_one_nan(double value) { return value != value ? std::numeric_limits<double>::quiet_NaN() : value; }

// A bare word such as `column_major`.
struct EnumWord {
  std::string word;
  bool operator==(const EnumWord&) const = default;
};

class Attribute {
 public:
  using Storage = std::variant<std::monostate, bool, Dim, double, std::string, DType, EnumWord, AttributeList>;

  Attribute() = default;  // none
  Attribute(bool value) : value_(value) {}
  Attribute(int value) : value_(Dim(value)) {}
  Attribute(std::int64_t value) : value_(Dim(value)) {}
  Attribute(Dim value) : value_(std::move(value)) {}
  Attribute(double value) : value_(with_one_nan(value)) {}
  Attribute(std::string value) : value_(std::move(value)) {}
  Attribute(const char* value) : value_(std::string(value)) {}
  Attribute(DType value) : value_(value) {}
  Attribute(EnumWord value) : value_(std::move(value)) {}
  Attribute(AttributeList value) : value_(std::move(value)) {}
  static Attribute shape(const Shape& shape);  // a list of Dims

  bool is_none() const { return std::holds_alternative<std::monostate>(value_); }
  // Each throws InternalError if the attribute has another kind; integer() also if it is symbolic.
  bool boolean() const;
  const Dim& dim() const;
  std::int64_t integer() const;
  double real() const;  // an integer number is accepted
  // A string or an enum word, because a schema's `str` may be either.
  const std::string& string() const;
  const std::string& word() const;
  DType dtype() const;
  const AttributeList& list() const;
  Shape as_shape() const;

  const Storage& storage() const { return value_; }
  // Floats compare by their bits, so that NaN equals itself and -0.0 differs from 0.0.
  bool operator==(const Attribute& other) const;
  std::string text() const;  // as graphs spell it
  // Returns a copy in which each symbol of the dims is replaced.
  Attribute substitute(const std::map<std::string, Dim>& replacements) const;

 private:
  Storage value_;
};

using NamedAttributes = std::vector<std::pair<std::string, Attribute>>;

// A view of an EnumWord. The caller owns the letters.
struct WordView {
  std::string_view word;
};

// A view of an attribute. It stores numbers itself; anything else belongs to the caller.
class AttributeView {
 public:
  AttributeView() : AttributeView(Kind::none, std::uint64_t{0}) {}
  AttributeView(bool value) : AttributeView(Kind::boolean, std::uint64_t{value}) {}
  AttributeView(int value) : AttributeView(std::int64_t{value}) {}
  AttributeView(std::int64_t value) : AttributeView(Kind::integer, static_cast<std::uint64_t>(value)) {}
  AttributeView(double value) : AttributeView(Kind::real, std::bit_cast<std::uint64_t>(with_one_nan(value))) {}
  AttributeView(DType value) : AttributeView(Kind::dtype, static_cast<std::uint64_t>(value)) {}
  AttributeView(WordView value) : AttributeView(Kind::word, value.word.data(), value.word.size()) {}
  AttributeView(const char*) = delete;  // it would be a bool
  AttributeView(std::string_view value) : AttributeView(Kind::text, value.data(), value.size()) {}
  AttributeView(const std::string& value) : AttributeView(std::string_view(value)) {}
  AttributeView(const EnumWord& value) : AttributeView(WordView{value.word}) {}
  AttributeView(const Dim& value) : AttributeView(Kind::dim, &value) {
    if (value.is_number()) *this = AttributeView(value.number());
  }
  AttributeView(const Shape& value) : AttributeView(Kind::shape, &value) {}
  AttributeView(const Attribute& value) : AttributeView(Kind::attribute, &value) {
    if (const double* number = std::get_if<double>(&value.storage())) *this = AttributeView(*number);
  }
  template <class T>
  AttributeView(const std::optional<T>& value) : AttributeView() {
    if (value) *this = AttributeView(*value);
  }

  // A view of an attribute's value, valid while the attribute exists and has this value.
  static AttributeView into(const Attribute& attribute);

  Attribute attribute() const;
  bool operator==(const Attribute& other) const;  // as attribute() == other
  bool operator==(const AttributeView& other) const {
    if (tag_ != other.tag_ || kind() > Kind::word) return is_same_value(other);
    return kind() <= Kind::dtype ? number_ == other.number_ : has_letters(other.letters());
  }

 private:
  // Kinds up to dtype are numbers; the next ones, up to word, have letters.
  enum class Kind : std::uint8_t { none, boolean, integer, real, dtype, text, word, dim, shape, attribute };

  AttributeView(Kind kind, std::uint64_t number) : tag_(static_cast<std::uint64_t>(kind)), number_(number) {}
  AttributeView(Kind kind, const void* place, std::size_t size = 0)
      : tag_(static_cast<std::uint64_t>(kind) | std::uint64_t{size} << 8), place_(place) {}

  Kind kind() const { return static_cast<Kind>(tag_ & 0xff); }
  template <class T>
  const T& at_place() const {
    return *static_cast<const T*>(place_);
  }
  std::string_view letters() const { return {static_cast<const char*>(place_), tag_ >> 8}; }
  // Compares without a call, because words are short.
  bool has_letters(std::string_view other) const {
    std::size_t same = 0;
    const std::string_view own = letters();
    while (same < own.size() && same < other.size() && own[same] == other[same]) ++same;
    return same == own.size() && same == other.size();
  }
  bool is_same_value(const AttributeView& other) const;

  // The kind in the low byte and the number of letters above it, in one word: a processor forwards a stored word to a
  // load at once, but a load of several bytes that were stored one by one has to wait.
  std::uint64_t tag_;
  union {
    std::uint64_t number_;  // a float by its bits
    const void* place_;     // of the letters, Dim, Shape or Attribute
  };
};

struct GivenAttribute {
  Literal name;
  AttributeView value;
};

// Named attributes in schema order, with every default filled in.
class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<std::string, Attribute>> entries) : entries_(entries) {}

  const Attribute* find(const std::string& name) const;
  // Throws InternalError if there is none.
  const Attribute& at(const std::string& name) const;
  void set(const std::string& name, Attribute value);  // replaces, or appends
  const NamedAttributes& entries() const { return entries_; }
  bool operator==(const Attributes&) const = default;

 private:
  NamedAttributes entries_;
};

// The shortest text that parses to the same double; it always has `.`, `e`, `inf` or `nan`.
std::string float_text(double value);

}  // namespace weft
