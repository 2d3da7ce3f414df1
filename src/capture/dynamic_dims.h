#pragma once

// Which sizes of the arguments are symbols while a function is traced, so that what is compiled serves all of them.
//
// A symbol is a dim that the author marked, or rows that `dynamic` makes symbolic, a tensor's dim 0: yes takes those of
// every tensor, automatic those that were seen to change from one call to the next. Sizes that are equal share a
// symbol, and have to stay equal. No size is special: rows that are 0 or 1 in the first call may be a symbol. Widths,
// all other dims, are numbers: kernels are chosen by them.

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "capture/arguments.h"

namespace weft {

enum class Dynamic : std::uint8_t { no, yes, automatic };

// How a size that is a symbol may be branched on (vLLM's dynamic_shapes_config.type). backed: the size of the call that
// is traced decides, and what was decided becomes a range or a check, unless it is proved. unbacked: only what is
// proved for the whole range is decided, all else is an error; so there is one entry for the range, without checks.
enum class DynamicShapes : std::uint8_t { backed, unbacked };

// What an author says of a size: min <= size <= max. Dims that are marked with the same name are of one size.
struct DynamicDim {
  std::string name;
  std::int64_t min = 0;
  std::int64_t max = 0;
};

struct SymbolicDim {
  std::size_t leaf = 0;
  std::size_t dim = 0;
  std::string symbol;
  Interval bounds;  // for which it is compiled; from 1, as what is empty is never compiled
  bool is_marked = false;
  DynamicShapes shapes = DynamicShapes::backed;
};

class DynamicDims {
 public:
  // `argument` as LeafNamer names it; a negative dim counts from the end. UserError when min > max, min < 0, the name
  // is no word, has other bounds or is backed otherwise already, or the place was marked before.
  void mark(const std::string& argument, int dim, const DynamicDim& range, DynamicShapes shapes);
  bool has_marks() const { return !marks_.empty(); }

  // UserError where a marked dim is not there, is marked from both ends, leaves its range, or differs from another one
  // of its name.
  void check(std::span<const Leaf> leaves, std::span<const std::string> names, const std::string& function) const;
  // Remembers the sizes of a call, for `automatic`.
  void note(std::span<const Leaf> leaves);
  // What may be symbolic in this call, the best choice first; the last one is what was marked alone, of several names
  // what is unbacked. The others are to be tried, as not every function can be traced so. Of ranges that nobody gave
  // `usual_max` is the end, where it holds the size, and `shapes` says how they may be branched on.
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
  std::map<std::size_t, std::int64_t> seen_;  // the rows of a leaf, when it came first
  std::set<std::size_t> changed_;             // leaves whose rows were others once
};

}  // namespace weft
