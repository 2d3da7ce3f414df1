#pragma once

// The value of an op's attribute: what stands right of `=` in a node. One small closed set, so that printing, parsing,
// equality and hashing are written once.

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
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
