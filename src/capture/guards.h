#pragma once

// The conditions on a call's arguments under which it may use an existing entry: one flat list of small tests.

#include <span>
#include <string>
#include <vector>

#include "capture/arguments.h"
#include "capture/dynamic_dims.h"
#include "runtime/symbolic_size.h"

namespace weft {

class GuardList {
 public:
  // Add leaves in order, and other guards of a leaf after it. This guards all properties of the leaf except the sizes
  // of a tensor's dims: that it is present, its kind, dtype, rank, layout, packing and device; or the number or text
  // itself.
  void add_leaf(std::size_t leaf, const Leaf& example);
  void add_size(std::size_t leaf, std::size_t dim, std::int64_t size);
  // The dim is the symbol: it must be within the bounds, and equal at each use of the symbol.
  void add_symbol(std::size_t leaf, std::size_t dim, const std::string& symbol, const Interval& bounds);
  // A condition over symbols that were added before.
  void add_condition(const DimCondition& condition);

  // The leaves must come from a walk of the same types as the examples. Only one thread at a time may call hold().
  bool hold(std::span<const Leaf> leaves) const;
  std::size_t size() const { return guards_.size(); }

  // Each guard as text, as `argument 0 dim 1 == 64`. `names` are the leaves' names (LeafNamer).
  std::vector<std::string> texts(std::span<const std::string> names) const;
  struct Failure {
    std::string guard;  // argument 0 dim 1 == 64
    std::string came;   // 32
    // The property that the guard tests: argument 0 dim 1. Guards that want other values of it have the same subject.
    std::string subject;
  };
  // The first guard that does not hold; InternalError when all do.
  Failure first_failure(std::span<const Leaf> leaves, std::span<const std::string> names) const;
  // The symbols with their values in a call that passes all guards.
  Bindings bindings(std::span<const Leaf> leaves) const;

 private:
  enum class Kind : std::uint8_t {
    absent,
    type,
    packed,
    kv,
    stride,
    size,
    interval,
    same,
    condition,
    count,
    integer,
    real,
    text
  };
  struct Guard {
    Kind kind;
    std::uint8_t dim = 0;
    std::uint32_t leaf = 0;
    std::uint32_t other_leaf = 0;  // same: the leaf of the symbol's first use
    std::uint8_t other_dim = 0;
    std::int64_t lo = 0;  // the number wanted; the bounds of a size or interval; else an index
    std::int64_t hi = 0;
  };
  struct Symbol {
    std::string name;
    std::uint32_t leaf = 0;
    std::uint8_t dim = 0;
  };
  struct Condition {
    DimCondition condition;
    SymbolicSize left, right;
  };

  void add(Kind kind, std::size_t leaf, std::int64_t wanted = 0) {
    guards_.push_back({.kind = kind, .leaf = static_cast<std::uint32_t>(leaf), .lo = wanted});
  }
  // The index of the first guard that does not hold; the number of guards when all do.
  std::size_t first_that_fails(std::span<const Leaf> leaves) const;
  // `leaf` is the guard's leaf; `meta` is its type if it is a tensor, else null.
  bool holds(const Guard& guard, std::span<const Leaf> leaves, const Leaf& leaf, const Meta* meta) const;
  bool holds_rarer(const Guard& guard, std::span<const Leaf> leaves, const Leaf& leaf, const Meta* meta) const;
  bool condition_holds(const Condition& condition, std::span<const Leaf> leaves) const;
  std::string subject(const Guard& guard, std::span<const std::string> names) const;
  std::string wanted(const Guard& guard, std::span<const std::string> names) const;
  std::string came(const Guard& guard, std::span<const Leaf> leaves) const;

  std::vector<Guard> guards_;
  std::vector<Symbol> symbols_;
  std::vector<Condition> conditions_;
  std::vector<Meta> examples_;                // types that are more than a dtype and dims
  std::vector<std::string> texts_;            // the texts wanted
  mutable std::vector<std::int64_t> values_;  // of the symbols, while a condition is tested
};

// The guards for these arguments: all their properties, except that the sizes in `dims` are symbols within `bounds`.
// `is_whole`: no part of the function runs again, so numbers and texts must be equal too.
GuardList make_guards(const Bounds& bounds, std::span<const SymbolicDim> dims, std::span<const Leaf> leaves,
                      bool is_whole);

}  // namespace weft
