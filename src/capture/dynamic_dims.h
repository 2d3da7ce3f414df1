#pragma once

// Chooses the sizes of the arguments that are symbols while a function is traced, so that one entry serves all their
// values.
//
// A symbol is a dim that the author marked, or the rows (dim 0) of a tensor that `dynamic` makes symbolic: `yes` does
// so for each tensor, `automatic` for those whose rows changed between calls. Equal sizes share a symbol and must stay
// equal. No size is special: rows that are 0 or 1 in the first call may be a symbol. Widths (all other dims) are
// numbers, because kernels are chosen by them.

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "capture/arguments.h"

namespace weft {

enum class Dynamic : std::uint8_t { no, yes, automatic };

// How a branch on a symbolic size is decided (vLLM's dynamic_shapes_config.type). backed: by the size of the traced
// call; unless the branch is proved, the decision becomes a range or a check. unbacked: only by proof for the whole
// range, and any other branch is an error; so there is one entry for the range, without checks.
enum class DynamicShapes : std::uint8_t { backed, unbacked };

// The author's bounds of a size: min <= size <= max. Dims marked with the same name have equal sizes.
struct DynamicDim {
  std::string name;
  std::int64_t min = 0;
  std::int64_t max = 0;
};

struct SymbolicDim {
  std::size_t leaf = 0;
  std::size_t dim = 0;
  std::string symbol;
  Interval bounds;  // the compiled range; from 1, as empty tensors are never compiled
  bool is_marked = false;
  DynamicShapes shapes = DynamicShapes::backed;
};

class DynamicDims {
 public:
  // `argument` is a name of LeafNamer; a negative dim counts from the end. UserError when min > max or min < 0, when
  // the name is not a word, when the name was marked with other bounds or other `shapes`, or when the dim was marked
  // before.
  void mark(const std::string& argument, int dim, const DynamicDim& range, DynamicShapes shapes);
  bool has_marks() const { return !marks_.empty(); }

  // UserError where a marked dim does not exist, is marked from both ends, is outside its range, or differs from
  // another dim of its name.
  void check(std::span<const Leaf> leaves, std::span<const std::string> names, const std::string& function) const;
  // Remembers the sizes of a call, for `automatic`.
  void note(std::span<const Leaf> leaves);
  // Choices of symbolic dims for this call, to be tried in order, as not every function can be traced with each. The
  // last has only marked dims: if several names are marked, only the unbacked ones. For a range that the author did not
  // give, the end is `usual_max` if the size is within it, and `shapes` says how branches are decided.
  std::vector<std::vector<SymbolicDim>> choices(std::span<const Leaf> leaves, std::span<const std::string> names,
                                                Dynamic dynamic, std::int64_t usual_max, DynamicShapes shapes) const;

 private:
  struct Mark {
    std::string argument;
    int dim = 0;
    std::string symbol;
  };
  struct Range : DynamicDim {
    DynamicShapes shapes = DynamicShapes::backed;
  };
  std::vector<SymbolicDim> marked(std::span<const Leaf> leaves, std::span<const std::string> names) const;

  std::vector<Mark> marks_;
  std::map<std::string, Range> ranges_;       // by name
  std::map<std::size_t, std::int64_t> seen_;  // the rows of each leaf in the first call
  std::set<std::size_t> changed_;             // leaves whose rows have changed
};

}  // namespace weft
