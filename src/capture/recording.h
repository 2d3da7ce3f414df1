#pragma once

// The steps that a function did to Values when it ran, as segments. A segment is a sequence of steps that ends where
// the function returned or read what a value holds. The steps after a read are a follower of that segment. If another
// run continues differently, the segment gets a second follower. Together the segments are a tree; a run is one path
// down.
//
// Values have indices ("numbers"): the arguments first, then the results of all steps on the path, in order.

#include <memory>
#include <optional>
#include <set>
#include <source_location>
#include <vector>

#include "ir/graph.h"

namespace weft {

struct Context;
class SegmentProgram;

struct RecordedStep {
  const Op* op = nullptr;     // null: a tensor that the function supplied
  std::vector<int> operands;  // indices, -1 for absent optional ones
  Attributes attributes;
  bool maybe_inplace = false;
  Tensor tensor;   // the supplied one
  Values results;  // as returned; the index of their GraphValue is the number
  CallSite site = {};

  // A bit for each parameter of the schema: the attribute equals the schema's default.
  std::uint64_t defaults = 0;
  // How the last equal call spelled the op and its attributes, and their values: a compact list of its own, as each
  // call is compared with it. It refers to the step that it was made for, so a copied step makes its own.
  struct Spelling {
    Literal op;
    std::vector<GivenAttribute> attributes;
  };
  class LastSpelling : public std::optional<Spelling> {
   public:
    LastSpelling() = default;
    LastSpelling(const LastSpelling&) : optional() {}
    LastSpelling(LastSpelling&&) = default;
    LastSpelling& operator=(const LastSpelling&) {
      reset();
      return *this;
    }
    LastSpelling& operator=(LastSpelling&&) = default;
    using optional::operator=;
  };
  LastSpelling spelling = {};

  bool is_call(const Op& called, const Values& given, bool inplace) const;
  bool is_of(Literal called) const {
    return (spelling && spelling->op == called) || (op != nullptr && op->name == std::string_view(called));
  }
  // Whether these attributes, completed, would equal the step's; false also where this needs a full comparison.
  bool would_have(Literal called, const GivenAttributes& given);

 private:
  bool spell(Literal called, const GivenAttributes& given);
};

// The index of a value, or -1 for none.
inline int number_of(const Value& value) {
  return value.present() && value.graph_value() != nullptr ? value.graph_value()->index : -1;
}

struct Segment {
  enum class End : std::uint8_t { open, returned, read };

  int first = 0;  // the index of the first value made here
  int last = 0;   // one past the index of the last
  std::vector<RecordedStep> steps;
  End end = End::open;
  std::vector<int> ends_in;  // the values returned, or the value read
  Reading reading;           // the read that ended it
  // Values made here that are returned, read, or used after the end.
  std::set<int> wanted;
  // Values available after it has run: those that its steps made and did not donate.
  std::vector<int> lasting;
  // Values that its steps donated but whose memory they did not make: inputs and supplied tensors. If there are any,
  // neither this segment nor an earlier one on the path can run again, since inputs may be gone.
  std::vector<int> donated;

  std::unique_ptr<SegmentProgram> program;  // computes `wanted`; null where that is empty
  std::vector<std::unique_ptr<Segment>> followers;

  Segment();
  ~Segment();
  // Whether the first `count` steps are equal.
  bool begins_like(const Segment& other, std::size_t count) const;
};

// A value of a run, and the op that made it, for messages.
struct RecordedValue : GraphValue {
  const Op* op = nullptr;  // null: an argument, or a tensor that the function supplied
  CallSite site = {};
  std::size_t run = 0;  // the run that made it
};

// The numbers that replace symbols in one call. With them, types and attributes are those of op-by-op runs.
using Numbers = std::map<std::string, Dim>;
Meta with_numbers(const Meta& meta, const Numbers& numbers);
Attributes with_numbers(const Attributes& attributes, const Numbers& numbers);

// A segment as a traced graph. The graph's inputs are the values with indices `inputs`, in order; its results are those
// with indices `results`.
struct SegmentGraph {
  std::shared_ptr<Graph> graph;
  std::vector<int> inputs;
  std::vector<int> results;
};

// `values` are all values on the path, by index. UserError where the graph is not legal, for example where rows are not
// a symbol or a symbol is not rows; this cannot happen where `numbers` replaces all symbols.
SegmentGraph graph_of(const Segment& segment, std::span<GraphValue* const> values, const std::vector<int>& results,
                      const Bounds& bounds, const std::string& name, const OpTable& ops, const Numbers& numbers = {});

// UserError where a value is used after it was donated, over all segments of `path`, in order.
void check_donated(std::span<Segment* const> path, std::span<GraphValue* const> values, const Bounds& bounds,
                   const std::string& name, const Context& context, const Numbers& numbers);

}  // namespace weft
