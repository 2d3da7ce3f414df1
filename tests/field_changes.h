#pragma once

// Sets each field of an object in turn to another value, and back: for tests of code that reads them.

#include <cmath>
#include <concepts>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "tensor/attribute.h"

namespace weft {

class FieldChanges {
 public:
  // `look` is called while a field has another value, with the field's name.
  explicit FieldChanges(std::function<void(const std::string& what)> look) : look_(std::move(look)) {}
  int count() const { return count_; }

  // While something else than a field is another.
  void look(const std::string& what) {
    ++count_;
    look_(what);
  }
  template <class Field>
  void set(const std::string& what, Field& field, std::type_identity_t<Field> other) {
    Field kept = std::exchange(field, std::move(other));
    look(what);
    field = std::move(kept);
  }

  template <class Number>
  void number(const std::string& what, Number& field) {
    static_assert(std::is_integral_v<Number> && !std::is_same_v<Number, bool>);
    set(what, field, field + 1);
  }
  void flag(const std::string& what, bool& field) { set(what, field, !field); }
  void text(const std::string& what, std::string& field) { set(what, field, field + "x"); }
  void dim(const std::string& what, Dim& field) {
    set(what + " + 1", field, field + 1);
    set(what + " and a symbol", field, field + Dim::symbol("another"));
  }
  // To the next of `count` values.
  template <class Enum>
  void choice(const std::string& what, Enum& field, int count) {
    static_assert(std::is_enum_v<Enum>);
    set(what, field, static_cast<Enum>((static_cast<int>(field) + 1) % count));
  }
  // One element less, one more, and each swapped with its neighbour if they differ.
  template <class Element>
  void list(const std::string& what, std::vector<Element>& field, const Element& added) {
    std::vector<Element> other = field;
    if (!other.empty()) {
      other.pop_back();
      set(what + " without the last", field, other);
    }
    other = field;
    other.push_back(added);
    set(what + " and one more", field, other);
    if constexpr (std::equality_comparable<Element>)
      for (std::size_t i = 0; i + 1 < field.size(); ++i) {
        if (field[i] == field[i + 1]) continue;
        other = field;
        std::swap(other[i], other[i + 1]);
        set(what + " in another order", field, other);
      }
  }
  void shape(const std::string& what, Shape& field) {
    for (Dim& extent : field) dim(what, extent);
    list(what, field, Dim(1));
  }

 private:
  std::function<void(const std::string& what)> look_;
  int count_ = 0;
};

// Numbers that are another, near and far.
template <class Real>
std::vector<Real> other_numbers(Real value) {
  if (std::isnan(value)) return {Real{1}};
  return {std::nextafter(value, std::numeric_limits<Real>::infinity()), -value, std::numeric_limits<Real>::quiet_NaN()};
}

// Another value of the same type, which the schema determines, or none.
inline std::vector<Attribute> other_attributes(const Attribute& attribute) {
  std::vector<Attribute> others;
  const auto of = [&]<class Value>(const Value& value) {
    if constexpr (std::is_same_v<Value, std::monostate>) {
      others = {Attribute(true), Attribute(7), Attribute(0.5), Attribute("x"), Attribute(DType::i8)};
    } else if constexpr (std::is_same_v<Value, bool>) {
      others = {Attribute(!value)};
    } else if constexpr (std::is_same_v<Value, Dim>) {
      others = {Attribute(value + 1), Attribute(value + Dim::symbol("another"))};
    } else if constexpr (std::is_same_v<Value, double>) {
      for (const double other : other_numbers(value)) others.emplace_back(other);
    } else if constexpr (std::is_same_v<Value, std::string>) {
      others = {Attribute(value + "x"), Attribute(value + "\n")};
    } else if constexpr (std::is_same_v<Value, DType>) {
      others = {Attribute(value == DType::i8 ? DType::u8 : DType::i8)};
    } else if constexpr (std::is_same_v<Value, EnumWord>) {
      others = {Attribute(EnumWord{value.word + "x"})};
    } else {
      static_assert(std::is_same_v<Value, AttributeList>);
      for (std::size_t i = 0; i < value.size(); ++i)
        for (const Attribute& other : other_attributes(value[i])) {
          AttributeList list = value;
          list[i] = other;
          others.emplace_back(list);
        }
      AttributeList longer = value;
      longer.emplace_back(1);
      others.emplace_back(longer);
      if (!value.empty()) others.emplace_back(AttributeList(value.begin(), value.end() - 1));
    }
  };
  std::visit(of, attribute.storage());
  if (!attribute.is_none()) others.emplace_back();
  return others;
}

}  // namespace weft
