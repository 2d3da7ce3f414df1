#include "grammar/parser_states.h"

#include <algorithm>

#include "base/error.h"

namespace weft::grammar {
namespace {

// Of one step. What real grammars need is below a thousand.
constexpr std::size_t kMostWork = 200'000;

std::size_t hash_of(std::span<const Frame> frames, bool is_final) {
  std::uint64_t hash = is_final ? 0x9E3779B97F4A7C15 : 0x2545F4914F6CDD1D;
  for (const Frame& frame : frames) {
    hash ^= (static_cast<std::uint64_t>(static_cast<std::uint32_t>(frame.state)) << 32) | frame.rest;
    hash *= 0xD6E8FEB86659FD93;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace

ParserStates::ParserStates(const CompiledGrammar& grammar) : grammar_(grammar) { clear(); }

void ParserStates::clear() {
  nodes_.clear();
  frames_.clear();
  successors_.clear();
  united_.clear();
  table_.assign(1024, kDead);
  counted_.clear();
  states_with_.clear();
  index_of_.assign(grammar_.state_count(), 0);
  nodes_.push_back({});                  // kDead
  nodes_.push_back({.is_final = true});  // kEmptyStack
  nodes_[kDead].returned = kDead;
  nodes_[kEmptyStack].returned = kEmptyStack;
  add(grammar_.start(), kEmptyStack);
  start_ = close();
}

StateId ParserStates::find(const std::vector<Frame>& frames, bool is_final) {
  if (frames.empty()) return is_final ? kEmptyStack : kDead;
  if (nodes_.size() * 2 > table_.size()) grow_table();
  const std::size_t mask = table_.size() - 1;
  for (std::size_t slot = hash_of(frames, is_final) & mask;; slot = (slot + 1) & mask) {
    const StateId known = table_[slot];
    if (known == kDead) return find_with_hash(frames, is_final, slot);
    const std::span<const Frame> of_known = this->frames(known);
    if (nodes_[known].is_final == is_final &&
        std::equal(frames.begin(), frames.end(), of_known.begin(), of_known.end()))
      return known;
  }
}

StateId ParserStates::find_with_hash(const std::vector<Frame>& frames, bool is_final, std::size_t slot) {
  Node node{.first_frame = static_cast<std::uint32_t>(frames_.size()),
            .frame_count = static_cast<std::uint32_t>(frames.size()),
            .is_final = is_final};
  for (const Frame& frame : frames) node.depth = std::max(node.depth, nodes_[frame.rest].depth + 1);
  frames_.insert(frames_.end(), frames.begin(), frames.end());
  nodes_.push_back(node);
  table_[slot] = static_cast<StateId>(nodes_.size() - 1);
  return table_[slot];
}

void ParserStates::grow_table() {
  table_.assign(table_.size() * 2, kDead);
  const std::size_t mask = table_.size() - 1;
  for (StateId id = kEmptyStack + 1; id < nodes_.size(); ++id) {
    std::size_t slot = hash_of(frames(id), nodes_[id].is_final) & mask;
    while (table_[slot] != kDead) slot = (slot + 1) & mask;
    table_[slot] = id;
  }
}

void ParserStates::spend(std::size_t work) {
  work_ += work;
  if (work_ <= kMostWork) return;
  reset();
  fail_user("[grammar] has too many derivations of this text: make its alternatives differ earlier");
}

void ParserStates::reset() {
  for (const Pending& pending : pending_) index_of_[static_cast<std::size_t>(pending.frame.state)] = 0;
  pending_.clear();
  queue_.clear();
  is_final_ = false;
  work_ = 0;
}

// Both sets of stacks as one.
StateId ParserStates::unite(StateId a, StateId b) {
  if (a == b || b == kDead) return a;
  if (a == kDead) return b;
  if (a > b) std::swap(a, b);
  const std::uint64_t key = (static_cast<std::uint64_t>(a) << 32) | b;
  if (const auto known = united_.find(key); known != united_.end()) return known->second;
  std::vector<Frame> of_a(frames(a).begin(), frames(a).end()), of_b(frames(b).begin(), frames(b).end()), all;
  spend(of_a.size() + of_b.size());
  std::size_t i = 0, j = 0;
  while (i < of_a.size() || j < of_b.size()) {
    if (j == of_b.size() || (i < of_a.size() && of_a[i].state < of_b[j].state)) {
      all.push_back(of_a[i++]);
    } else if (i == of_a.size() || of_b[j].state < of_a[i].state) {
      all.push_back(of_b[j++]);
    } else {
      all.push_back({of_a[i].state, unite(of_a[i].rest, of_b[j].rest)});
      ++i;
      ++j;
    }
  }
  const StateId both = find(all, nodes_[a].is_final || nodes_[b].is_final);
  united_.emplace(key, both);
  return both;
}

void ParserStates::add(int state, StateId rest) {
  spend(1);
  std::uint32_t& index = index_of_[static_cast<std::size_t>(state)];
  if (index == 0) {
    pending_.push_back({{state, rest}, true});
    index = static_cast<std::uint32_t>(pending_.size());
    queue_.push_back(index - 1);
    return;
  }
  Pending& known = pending_[index - 1];
  const StateId both = unite(known.frame.rest, rest);
  if (both == known.frame.rest) return;
  known.frame.rest = both;
  if (std::exchange(known.is_queued, true)) return;
  queue_.push_back(index - 1);
}

void ParserStates::add_frames(StateId state) {
  is_final_ = is_final_ || nodes_[state].is_final;
  for (std::size_t i = 0; i < nodes_[state].frame_count; ++i) {  // the list may move
    const Frame frame = frames(state)[i];
    add(frame.state, frame.rest);
  }
}

int ParserStates::state_with(Counted counted) {
  if (counted.count == 0) return counted.state;
  const std::uint64_t key = (static_cast<std::uint64_t>(counted.state) << 32) | counted.count;
  const auto number = static_cast<int>(grammar_.state_count() + counted_.size());
  const auto [found, is_new] = states_with_.try_emplace(key, number);
  if (is_new) {
    counted_.push_back(counted);
    index_of_.push_back(0);
  }
  return found->second;
}

// -1 for none.
int ParserStates::next_state(int state, std::uint8_t byte) {
  const auto [from, count] = counted(state);
  const int next = grammar_.next(from, grammar_.class_of(byte));
  if (next < 0) return -1;
  const CharacterCounter* counter = grammar_.counter(next);
  if (counter == nullptr) return next;
  const int of_counter = grammar_.state_of_counter(next);
  const std::uint32_t after = counter->after(of_counter, count);
  return counter->allows(of_counter, after) ? state_with({next, after}) : -1;
}

bool ParserStates::accepts(int state) const {
  const auto [of, count] = counted(state);
  const CharacterCounter* counter = grammar_.counter(of);
  return grammar_.state(of).accepts && (counter == nullptr || counter->may_end(count));
}

int ParserStates::without_bounds(int state, std::uint32_t length) {
  const auto [of, count] = counted(state);
  const CharacterCounter* counter = grammar_.counter(of);
  if (counter == nullptr || !counter->is_free(count, length)) return state;
  return state_with({of, CharacterCounter::kUncounted});
}

// The set of what was added, after all calls and returns that need no byte. A state whose rests grow is handled again.
StateId ParserStates::close() {
  for (std::size_t next = 0; next < queue_.size(); ++next) {
    Pending& pending = pending_[queue_[next]];
    pending.is_queued = false;
    const auto [state, rest] = pending.frame;
    for (const RuleCall& call : grammar_.calls(counted(state).state)) {
      // A call at the end of a rule needs no frame of its own, so that right-recursive lists do not grow the stack.
      const bool is_last = grammar_.state(call.resume).only_ends;
      if (!is_last && nodes_[rest].depth >= kDeepestStack) continue;
      add(call.start, is_last ? rest : find({{call.resume, rest}}, false));
    }
    if (accepts(state)) add_frames(rest);
  }
  std::vector<Frame> all;
  for (const Pending& pending : pending_)
    if (grammar_.state(counted(pending.frame.state).state).reads) all.push_back(pending.frame);
  std::sort(all.begin(), all.end(), [](const Frame& a, const Frame& b) { return a.state < b.state; });
  const bool is_final = is_final_;
  reset();
  return find(all, is_final);
}

StateId ParserStates::find_step(StateId from, std::uint8_t byte) {
  if (nodes_[from].frame_count == 0) return kDead;
  if (nodes_[from].successors == 0) {
    const auto classes = static_cast<std::size_t>(grammar_.class_count());
    successors_.resize(successors_.size() + classes, kUnknown);
    nodes_[from].successors = static_cast<std::uint32_t>(successors_.size() / classes);
  }
  for (std::size_t i = 0; i < nodes_[from].frame_count; ++i) {
    const Frame frame = frames(from)[i];
    const int next = next_state(frame.state, byte);
    if (next >= 0) add(next, frame.rest);
  }
  const StateId after = close();
  successors_[successor_index(nodes_[from].successors, byte)] = after;
  return after;
}

StateId ParserStates::after_return(StateId rest) {
  if (nodes_[rest].returned != kUnknown) return nodes_[rest].returned;
  add_frames(rest);
  return nodes_[rest].returned = close();
}

std::size_t ParserStates::size() const {
  return nodes_.size() * sizeof(Node) + frames_.size() * sizeof(Frame) +
         (successors_.size() + table_.size()) * sizeof(StateId) + united_.size() * 32 + counted_.size() * 48;
}

StateId ParserStates::copy_from(const ParserStates& other, StateId state,
                                std::unordered_map<StateId, StateId>& copied) {
  if (state <= kEmptyStack) return state;
  if (const auto known = copied.find(state); known != copied.end()) return known->second;
  std::vector<Frame> all;
  for (const Frame& frame : other.frames(state))
    all.push_back({state_with(other.counted(frame.state)), copy_from(other, frame.rest, copied)});
  std::sort(all.begin(), all.end(), [](const Frame& a, const Frame& b) { return a.state < b.state; });
  return copied[state] = find(all, other.nodes_[state].is_final);
}

void ParserStates::keep(std::span<StateId*> live) {
  const ParserStates old = std::move(*this);
  clear();
  std::unordered_map<StateId, StateId> copied;
  for (StateId* state : live) *state = copy_from(old, *state, copied);
}

}  // namespace weft::grammar
