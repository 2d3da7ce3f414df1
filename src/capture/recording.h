#pragma once

// What a function did to Values when it ran: segments, each a row of steps that ends where the function returned or
// wanted to know what a value holds. What it did after that is a segment that follows. Another run may do something
// else; then a place has several segments to go on with. Together they are a tree, of which a run is one way down.
//
// Values have numbers: those of the arguments first, then the results of all steps on the way, in order.

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
  const Op* op = nullptr;     // null: a tensor that the function brought with it
  std::vector<int> operands;  // numbers, -1 for absent optional ones
  Attributes attributes;
  bool maybe_inplace = false;
  Tensor tensor;   // the one that was brought
  Values results;  // as they are handed out; their GraphValue's index is the number
  CallSite site = {};

  // As bits, by place in the schema: attributes that are what the schema gives where none is given.
  std::uint64_t defaults = 0;
  // How the last call that did this spelled the op and its attributes, and what these are: in a row of its own, as
  // every call is held against it. It looks into the step that it was made for, so that a copy spells anew.
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
  // Whether these, completed, would be the attributes of this op; false also where that takes a closer look.
  bool would_have(Literal called, const GivenAttributes& given);

 private:
  bool spell(Literal called, const GivenAttributes& given);
};

// What code knows of a value that it holds: its number, or -1 for none.
inline int number_of(const Value& value) {
  return value.present() && value.graph_value() != nullptr ? value.graph_value()->index : -1;
}

struct Segment {
  enum class End : std::uint8_t { open, returned, read };

  int first = 0;  // the number of the first value that is made here
  int last = 0;   // one more than that of the last
  std::vector<RecordedStep> steps;
  End end = End::open;
  std::vector<int> ends_in;  // the values returned, or the one read
  Reading reading;           // why it ended
  std::set<int> wanted;      // values made here that are returned, read, or used behind the end
  std::vector<int> lasting;  // what can be had when it has run: what its steps made and did not give away
  // What its steps gave away of memory that it did not make. Then they cannot be run a second time, nor can what went
  // before, whose inputs may be gone.
  std::vector<int> given_away;

  std::unique_ptr<SegmentProgram> program;  // that gives what is wanted; null where that is nothing
  std::vector<std::unique_ptr<Segment>> followers;

  Segment();
  ~Segment();
  // Whether the first `count` steps do the same.
  bool begins_like(const Segment& other, std::size_t count) const;
};

// A value of a run, and what made it, for messages.
struct RecordedValue : GraphValue {
  const Op* op = nullptr;  // null: an argument, or a tensor that the function brought with it
  CallSite site = {};
  std::size_t run = 0;  // in which it was made
};

// What symbols stand for in one call. With them types and attributes are as when ops run one by one.
using Numbers = std::map<std::string, Dim>;
Meta with_numbers(const Meta& meta, const Numbers& numbers);
Attributes with_numbers(const Attributes& attributes, const Numbers& numbers);

// As a traced graph: its inputs are the numbers in `inputs`, in order, its results those in `results`.
struct SegmentGraph {
  std::shared_ptr<Graph> graph;
  std::vector<int> inputs;
  std::vector<int> results;
};

// `values` are all values on the way, by number. UserError where the graph is not legal, such as rows that are no
// symbol, or where a symbol stands for anything but rows; so not where `numbers` takes the place of every symbol.
SegmentGraph graph_of(const Segment& segment, std::span<GraphValue* const> values, const std::vector<int>& results,
                      const Bounds& bounds, const std::string& name, const OpTable& ops, const Numbers& numbers = {});

// UserError where a value is used after it was given away on this way, over all its segments; `path` in order.
void check_given_away(std::span<Segment* const> path, std::span<GraphValue* const> values, const Bounds& bounds,
                      const std::string& name, const Context& context, const Numbers& numbers);

}  // namespace weft
