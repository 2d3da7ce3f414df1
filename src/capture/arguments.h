#pragma once

// The arguments and results of a function as a flat list of leaves: Values, numbers and texts, in order. walk() visits
// the parts of vectors, arrays, maps, pairs, tuples and optionals; a size that can vary is a leaf too. It visits a
// struct where the author lists its members next to it:
//
//   struct Layer { Value up, down; double epsilon; };
//   void visit_members(auto&& visit, Layer& layer) { visit(layer.up, layer.down, layer.epsilon); }

#include <bit>
#include <concepts>
#include <optional>
#include <ranges>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "ir/value.h"

namespace weft {

struct Leaf {
  enum class Kind : std::uint8_t { tensor, absent, count, integer, real, text };
  Kind kind = Kind::absent;
  const Value* value = nullptr;  // of a tensor
  std::int64_t number = 0;       // of a count, an integer; of a real: its bits
  std::string_view text = {};
};

// Calls `visitor` with each leaf: value(Value&), integer(int64), real(double), text(string_view), and count(int64)
// before the parts of a container whose size can vary. Calls enter(index) before and leave() after each part of a
// container, tuple or struct.
template <class Visitor, class T>
void walk(Visitor& visitor, T& part);

namespace walking {

template <class T>
concept Text = std::convertible_to<T, std::string_view>;
// A view: a copy of it refers to the caller's data, so replacing its Values would write into the caller's.
template <class T>
concept View = std::ranges::view<T> && !Text<T>;
template <class T>
concept Optional = requires(T part) {
  part.has_value();
  part.value();
};
template <class T>
concept Map = requires {
  typename T::mapped_type;
};
template <class T>
concept Tuple = requires {
  std::tuple_size<T>::value;
};

struct AnyVisit {
  template <class... Members>
  void operator()(Members&...) const {}
};
template <class T>
concept HasMembers = requires(T& part) {
  visit_members(AnyVisit(), part);
};

template <class Visitor, class... Parts>
void walk_each(Visitor& visitor, Parts&... parts) {
  int index = 0;
  (..., (visitor.enter(index++), walk(visitor, parts), visitor.leave()));
}

template <class Visitor, class T>
void walk_range(Visitor& visitor, T& range) {
  visitor.count(static_cast<std::int64_t>(std::ranges::size(range)));
  int index = 0;
  for (auto&& element : range) {
    visitor.enter(index++);
    if constexpr (Map<T>) {
      static_assert(Text<typename T::key_type> || std::integral<typename T::key_type>, "keys are texts or integers");
      walk(visitor, element.first);
      walk(visitor, element.second);
    } else {
      walk(visitor, element);
    }
    visitor.leave();
  }
}

}  // namespace walking

template <class Visitor, class T>
void walk(Visitor& visitor, T& part) {
  using Plain = std::remove_cv_t<T>;
  static_assert(!walking::View<Plain>, "a view owns nothing: take or give a vector");
  if constexpr (std::same_as<Plain, Value>) {
    visitor.value(part);
  } else if constexpr (std::integral<Plain> || std::is_enum_v<Plain> ||
                       std::same_as<Plain, std::vector<bool>::reference>) {
    visitor.integer(static_cast<std::int64_t>(part));
  } else if constexpr (std::floating_point<Plain>) {
    visitor.real(static_cast<double>(part));
  } else if constexpr (walking::Text<Plain>) {
    // A result is kept for later calls, when the data of a view may no longer exist.
    static_assert(
        !requires { Visitor::kKeepsTexts; } || std::same_as<Plain, std::string>, "give a std::string");
    visitor.text(std::string_view(part));
  } else if constexpr (std::same_as<Plain, std::monostate>) {
  } else if constexpr (walking::Optional<Plain>) {
    visitor.count(part.has_value() ? 1 : 0);
    if (part.has_value()) walk(visitor, part.value());
  } else if constexpr (std::ranges::sized_range<Plain>) {
    walking::walk_range(visitor, part);
  } else if constexpr (walking::Tuple<Plain>) {
    std::apply([&](auto&... parts) { walking::walk_each(visitor, parts...); }, part);
  } else {
    static_assert(walking::HasMembers<Plain>, "list the struct's members: visit_members(auto&& visit, Struct&)");
    // visit_members takes a mutable struct; visitors that only read do not write to it.
    visit_members([&](auto&... members) { walking::walk_each(visitor, members...); }, const_cast<Plain&>(part));
  }
}

// Lists the leaves. They refer to the walked arguments.
class LeafReader {
 public:
  explicit LeafReader(std::vector<Leaf>& leaves) : leaves_(leaves) {}
  void value(const Value& value) {
    leaves_.push_back({.kind = value.present() ? Leaf::Kind::tensor : Leaf::Kind::absent, .value = &value});
  }
  void count(std::int64_t number) { leaves_.push_back({.kind = Leaf::Kind::count, .number = number}); }
  void integer(std::int64_t number) { leaves_.push_back({.kind = Leaf::Kind::integer, .number = number}); }
  void real(double number) {
    leaves_.push_back({.kind = Leaf::Kind::real, .number = std::bit_cast<std::int64_t>(number)});
  }
  void text(std::string_view text) { leaves_.push_back({.kind = Leaf::Kind::text, .text = text}); }
  void enter(int) {}
  void leave() {}

 private:
  std::vector<Leaf>& leaves_;
};

// Names the position of each leaf: "2" for the third argument, "2.0" for its first part.
class LeafNamer {
 public:
  std::vector<std::string> names;
  void value(const Value&) { names.push_back(path_); }
  void count(std::int64_t) { names.push_back(path_); }
  void integer(std::int64_t) { names.push_back(path_); }
  void real(double) { names.push_back(path_); }
  void text(std::string_view) { names.push_back(path_); }
  void enter(int index) {
    ends_.push_back(path_.size());
    path_ += (path_.empty() ? "" : ".") + std::to_string(index);
  }
  void leave() {
    path_.resize(ends_.back());
    ends_.pop_back();
  }

 private:
  std::string path_;
  std::vector<std::size_t> ends_;
};

// Lists the Values of a result that are present.
class ValueReader {
 public:
  static constexpr bool kKeepsTexts = true;
  Values values;
  void value(const Value& value) {
    if (value.present()) values.push_back(value);
  }
  void count(std::int64_t) {}
  void integer(std::int64_t) {}
  void real(double) {}
  void text(std::string_view) {}
  void enter(int) {}
  void leave() {}
};

// Replaces the Values that are present, in order.
class ValueReplacer {
 public:
  explicit ValueReplacer(std::span<const Value> values) : values_(values) {}
  void value(Value& value) {
    if (value.present()) value = values_[next_++];
  }
  void count(std::int64_t) {}
  void integer(std::int64_t) {}
  void real(double) {}
  void text(std::string_view) {}
  void enter(int) {}
  void leave() {}

 private:
  std::span<const Value> values_;
  std::size_t next_ = 0;
};

}  // namespace weft
