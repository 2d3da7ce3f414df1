#pragma once

// What must hold of a call's arguments so that something compiled for others serves it: one flat list of small tests.

#include <span>
#include <string>
#include <vector>

#include "capture/arguments.h"
#include "capture/dynamic_dims.h"
#include "runtime/symbolic_size.h"

namespace weft {

class GuardList {
 public:
  // Leaves in order; what else is added of one comes behind it. Everything of the leaf but the sizes of a tensor's
  // dims: that it is there, its kind, dtype, rank, layout, packing and device; or the number or text itself.
  void add_leaf(std::size_t leaf, const Leaf& example);
  void add_size(std::size_t leaf, std::size_t dim, std::int64_t size);
  // The dim is the symbol: within the bounds, and the same wherever the symbol stands.
  void add_symbol(std::size_t leaf, std::size_t dim, const std::string& symbol, const Interval& bounds);
  // Over symbols that were added.
  void add_condition(const DimCondition& condition);

  // The leaves must be as many and of such kinds as walking the same type gives. `holds` is for one thread at a time.
  bool hold(std::span<const Leaf> leaves) const;
  std::size_t size() const { return guards_.size(); }

  // `names` are the leaves' (LeafNamer). Each as `argument 0 dim 1 == 64`.
  std::vector<std::string> texts(std::span<const std::string> names) const;
  struct Failure {
    std::string guard;  // argument 0 dim 1 == 64
    std::string came;   // 32
    // What it asks about: argument 0 dim 1. The same for guards that want other values of it.
    std::string subject;
  };
  // The first that does not hold; InternalError when all do.
  Failure first_failure(std::span<const Leaf> leaves, std::span<const std::string> names) const;
  // The symbols that were added with their values in a call that all guards let in.
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
    std::uint32_t other_leaf = 0;  // same: where the symbol stood first
    std::uint8_t other_dim = 0;
    std::int64_t lo = 0;  // the number wanted; of a size and an interval its ends; of others an index
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
  // The place of the first guard that does not hold; their count when all do.
  std::size_t first_that_fails(std::span<const Leaf> leaves) const;
  // `leaf` is the guard's, `meta` its type where it is a tensor.
  bool holds(const Guard& guard, std::span<const Leaf> leaves, const Leaf& leaf, const Meta* meta) const;
  bool holds_rarer(const Guard& guard, std::span<const Leaf> leaves, const Leaf& leaf, const Meta* meta) const;
  bool condition_holds(const Condition& condition, std::span<const Leaf> leaves) const;
  std::string subject(const Guard& guard, std::span<const std::string> names) const;
  std::string wanted(const Guard& guard, std::span<const std::string> names) const;
  std::string came(const Guard& guard, std::span<const Leaf> leaves) const;

  std::vector<Guard> guards_;
  std::vector<Symbol> symbols_;
  std::vector<Condition> conditions_;
  std::vector<Meta> examples_;                // for kinds of tensors that have more than dtype and dims
  std::vector<std::string> texts_;            // wanted ones
  mutable std::vector<std::int64_t> values_;  // of the symbols, while a condition is tested
};

// What these arguments give: all that is known of them, but for the sizes in `dims`, which are symbols within `bounds`.
// `is_whole`: nothing of the function runs again, so that numbers and texts have to be the same, too.
GuardList make_guards(const Bounds& bounds, std::span<const SymbolicDim> dims, std::span<const Leaf> leaves,
                      bool is_whole);

}  // namespace weft
