#pragma once

// The value of an op's attribute: what stands right of `=` in a node. One small closed set, so that printing, parsing,
// equality and hashing are written once.

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tensor/dim.h"
#include "tensor/dtype.h"

namespace weft {

class Attribute;
using AttributeList = std::vector<Attribute>;

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
  // Every NaN becomes the one that `nan` reads back.
  Attribute(double value) : value_(value != value ? std::numeric_limits<double>::quiet_NaN() : value) {}
  Attribute(std::string value) : value_(std::move(value)) {}
  Attribute(const char* value) : value_(std::string(value)) {}
  Attribute(DType value) : value_(value) {}
  Attribute(EnumWord value) : value_(std::move(value)) {}
  Attribute(AttributeList value) : value_(std::move(value)) {}
  static Attribute shape(const Shape& shape);  // a list of Dims

  bool is_none() const { return std::holds_alternative<std::monostate>(value_); }
  // Each throws InternalError when the attribute holds something else; integer() also when symbolic.
  bool boolean() const;
  const Dim& dim() const;
  std::int64_t integer() const;
  double real() const;  // an integer number is accepted
  // Of a string or an enum word: a schema's `str` may be either.
  const std::string& string() const;
  const std::string& word() const;
  DType dtype() const;
  const AttributeList& list() const;
  Shape as_shape() const;

  const Storage& storage() const { return value_; }
  // Floats compare by their bits, so that NaN equals itself and -0.0 differs from 0.0.
  bool operator==(const Attribute& other) const;
  std::string text() const;  // as graphs spell it
  // With each symbol of its dims replaced.
  Attribute substitute(const std::map<std::string, Dim>& replacements) const;

 private:
  Storage value_;
};

using NamedAttributes = std::vector<std::pair<std::string, Attribute>>;

// An EnumWord by its letters, which stay whose they are.
struct WordView {
  std::string_view word;
};

// An attribute looked at where it stands: what is a number is held, all else belongs to who gave it.
class AttributeView {
 public:
  AttributeView() = default;  // none
  AttributeView(bool value) : value_(value) {}
  AttributeView(int value) : value_(std::int64_t{value}) {}
  AttributeView(std::int64_t value) : value_(value) {}
  AttributeView(double value) : value_(value) {}
  AttributeView(DType value) : value_(value) {}
  AttributeView(WordView value) : value_(value) {}
  AttributeView(const char* value) : value_(std::string_view(value)) {}
  AttributeView(const std::string& value) : value_(std::string_view(value)) {}
  AttributeView(const EnumWord& value) : value_(WordView{value.word}) {}
  AttributeView(const Dim& value) : value_(&value) {}
  AttributeView(const Shape& value) : value_(&value) {}
  AttributeView(const Attribute& value) : value_(&value) {}
  template <class T>
  AttributeView(const std::optional<T>& value) {
    if (value) *this = AttributeView(*value);
  }

  Attribute attribute() const;
  bool operator==(const Attribute& other) const;  // as attribute() == other

 private:
  std::variant<std::monostate, bool, std::int64_t, double, DType, std::string_view, WordView, const Dim*, const Shape*,
               const Attribute*>
      value_;
};

struct GivenAttribute {
  std::string_view name;
  AttributeView value;
};

template <std::size_t... kCounts>
std::array<GivenAttribute, (kCounts + ...)> joined(const std::array<GivenAttribute, kCounts>&... rows) {
  std::array<GivenAttribute, (kCounts + ...)> all;
  auto end = all.begin();
  ((end = std::copy(rows.begin(), rows.end(), end)), ...);
  return all;
}

// Named attributes in schema order, with every default filled in.
class Attributes {
 public:
  Attributes() = default;
  Attributes(std::initializer_list<std::pair<std::string, Attribute>> entries) : entries_(entries) {}

  const Attribute* find(const std::string& name) const;
  // InternalError when absent.
  const Attribute& at(const std::string& name) const;
  void set(const std::string& name, Attribute value);  // replaces, or appends
  const NamedAttributes& entries() const { return entries_; }
  bool operator==(const Attributes&) const = default;

 private:
  NamedAttributes entries_;
};

// The shortest text that reads back the same double; always with `.`, `e`, `inf` or `nan`.
std::string float_text(double value);

}  // namespace weft
