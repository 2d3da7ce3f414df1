#pragma once

// Where a text may be in a grammar: all the stacks of rules that its bytes allow, as one state.
//
// A state is a set of stacks. A stack is a list of states of the automata: the current one of the innermost rule, and
// for each caller the state in which it goes on. A set of stacks is stored as a trie whose equal parts are one: for
// each first element the set of the rests. So equal sets have equal numbers, what is known of a state (its successors,
// its mask) is found again whichever text led to it, and grammars with many derivations stay small.

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "grammar/compiled_grammar.h"

namespace weft::grammar {

using StateId = std::uint32_t;
inline constexpr StateId kDead = 0;        // no stack: the text is wrong
inline constexpr StateId kEmptyStack = 1;  // the empty stack alone: the text is complete and nothing may follow

// The stacks that begin with `state`.
struct Frame {
  int state;
  StateId rest;
  friend bool operator==(const Frame&, const Frame&) = default;
};

// Rules within rules beyond this are not entered: the text would be nested too deep for its readers.
inline constexpr std::uint32_t kDeepestStack = 500;

class ParserStates {
 public:
  // The grammar must outlive this object.
  explicit ParserStates(const CompiledGrammar& grammar);

  const CompiledGrammar& grammar() const { return grammar_; }

  StateId start() const { return start_; }
  // The state after one more byte; UserError when the grammar has too many derivations.
  StateId step(StateId from, std::uint8_t byte) {
    const std::uint32_t row = nodes_[from].successors;
    const StateId known = row == 0 ? kUnknown : successors_[successor_index(row, byte)];
    return known != kUnknown ? known : find_step(from, byte);
  }
  // Whether the text may end here.
  bool may_end(StateId state) const { return nodes_[state].is_final; }
  // Of its longest stack.
  std::uint32_t depth(StateId state) const { return nodes_[state].depth; }
  // By ascending state of the automata; each of those reads a byte. A state of a counted rule has a number of its own
  // for each number of characters, from state_count() of the grammar on.
  std::span<const Frame> frames(StateId state) const {
    return std::span(frames_).subspan(nodes_[state].first_frame, nodes_[state].frame_count);
  }

  // One state of the automata without callers. may_end() of its successors: the rule may end.
  StateId alone(int state) { return find({{state, kEmptyStack}}, false); }
  // A state of the automata after which the same texts of at most `length` bytes may follow: one number for those whose
  // bounds of characters are far enough.
  int without_bounds(int state, std::uint32_t length);
  // The state of the callers after the current rule has ended.
  StateId after_return(StateId rest);

  // Memory in bytes, about. keep() drops all states except these, whose ids it replaces, and the start.
  std::size_t size() const;
  void keep(std::span<StateId*> live);

 private:
  struct Node {
    std::uint32_t first_frame = 0, frame_count = 0;
    bool is_final = false;         // the empty stack is in the set
    std::uint32_t depth = 0;       // of the longest stack
    std::uint32_t successors = 0;  // the index of its row in successors_, plus one; 0: none yet
    StateId returned = kUnknown;
  };
  struct Pending {
    Frame frame;
    bool is_queued;
  };
  static constexpr StateId kUnknown = 0xFFFFFFFF;

  std::size_t successor_index(std::uint32_t row, std::uint8_t byte) const {
    return (row - std::size_t{1}) * static_cast<std::size_t>(grammar_.class_count()) +
           static_cast<std::size_t>(grammar_.class_of(byte));
  }
  // A state of the automata, and the number of characters that were counted.
  struct Counted {
    int state;
    std::uint32_t count;
  };
  Counted counted(int state) const {
    const auto first = grammar_.state_count();
    const auto index = static_cast<std::size_t>(state);
    return index < first ? Counted{state, 0} : counted_[index - first];
  }
  int state_with(Counted counted);
  int next_state(int state, std::uint8_t byte);
  bool accepts(int state) const;
  StateId find_step(StateId from, std::uint8_t byte);
  StateId find(const std::vector<Frame>& frames, bool is_final);
  StateId find_with_hash(const std::vector<Frame>& frames, bool is_final, std::size_t slot);
  void grow_table();
  StateId unite(StateId a, StateId b);
  void spend(std::size_t work);
  void reset();
  void add(int state, StateId rest);
  void add_frames(StateId state);
  StateId close();
  StateId copy_from(const ParserStates& other, StateId state, std::unordered_map<StateId, StateId>& copied);
  void clear();

  const CompiledGrammar& grammar_;
  std::vector<Node> nodes_;
  std::vector<Frame> frames_;
  std::vector<StateId> successors_;  // rows of class_count
  std::vector<StateId> table_;       // open addressing; 0 is free
  std::unordered_map<std::uint64_t, StateId> united_;
  StateId start_ = kDead;
  std::vector<Counted> counted_;
  std::unordered_map<std::uint64_t, int> states_with_;  // by the state and the number

  // Of one call of step(), start() or after_return().
  std::vector<Pending> pending_;
  std::vector<std::uint32_t> queue_;
  std::vector<std::uint32_t> index_of_;  // of a state of the automata: its index in pending_ plus one
  bool is_final_ = false;
  std::size_t work_ = 0;
};

}  // namespace weft::grammar
