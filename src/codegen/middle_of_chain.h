#pragma once

// Finds where a loop over the columns of a row program is cut for software pipelining.

#include <algorithm>
#include <vector>

#include "codegen/row_program.h"

namespace weft {

class MiddleOfChain {
 public:
  MiddleOfChain(const RowProgram& program, int level)
      : program_(program), level_(level), depth_(program.values.size(), 0), users_(program.values.size()) {
    for (int id = 0; id < static_cast<int>(depth_.size()); ++id) {
      if (!is_made_here(id)) continue;
      int deepest = 0;
      for_each_operand(id, [&](int operand) {
        deepest = std::max(deepest, depth(operand));
        users_[static_cast<std::size_t>(operand)].push_back(id);
      });
      depth_[static_cast<std::size_t>(id)] = deepest + row_op_cost(value(id).op);
    }
    for (const RowStore& store : program.stores) users_[static_cast<std::size_t>(store.value)].push_back(kStored);
  }

  int longest() const { return *std::max_element(depth_.begin(), depth_.end()); }

  // Each half must be at least `shortest` long.
  int find(int shortest) const {
    const int deepest = longest();
    int found = -1, longest = shortest - 1;
    for (int id = 0; id < static_cast<int>(depth_.size()); ++id) {
      const int half = std::min(depth(id), deepest - depth(id));
      if (half <= longest || is_stored_code(id) || !is_made_for_it_alone(id)) continue;
      longest = half;
      found = id;
    }
    return found;
  }

 private:
  static constexpr int kStored = -1;

  const RowValue& value(int id) const { return program_.values[static_cast<std::size_t>(id)]; }
  int depth(int id) const { return depth_[static_cast<std::size_t>(id)]; }
  // A value of an earlier level is in scratch, or is computed again from memory.
  bool is_made_here(int id) const { return value(id).domain == RowDomain::element && value(id).level == level_; }
  template <class Body>
  void for_each_operand(int id, Body body) const {
    for (const int operand : {value(id).a, value(id).b, value(id).c})
      if (operand >= 0) body(operand);
  }

  // Such a value is not chosen, because its code would have to be kept for an iteration as well.
  bool is_stored_code(int id) const {
    const std::vector<int>& users = users_[static_cast<std::size_t>(id)];
    return value(id).op == RowOp::convert && std::find(users.begin(), users.end(), kStored) != users.end();
  }

  // Whether only `middle` uses the values it is computed from, except loads. Other users would compute them twice.
  bool is_made_for_it_alone(int middle) const {
    std::vector<bool> goes_in(static_cast<std::size_t>(middle) + 1, false);
    goes_in[static_cast<std::size_t>(middle)] = true;
    for (int id = middle; id >= 0; --id) {
      if (!goes_in[static_cast<std::size_t>(id)] || !is_made_here(id)) continue;
      const std::vector<int>& users = users_[static_cast<std::size_t>(id)];
      const auto is_other = [&](int user) {
        return user > middle || user == kStored || !goes_in[static_cast<std::size_t>(user)];
      };
      const bool is_free = id == middle || value(id).op == RowOp::load;
      if (!is_free && (value(id).slot >= 0 || std::any_of(users.begin(), users.end(), is_other))) return false;
      for_each_operand(id, [&](int operand) { goes_in[static_cast<std::size_t>(operand)] = true; });
    }
    return true;
  }

  const RowProgram& program_;
  int level_;
  std::vector<int> depth_;               // by value: the length of its chain in this level
  std::vector<std::vector<int>> users_;  // by value: its users in this level, and kStored for stores
};

// Returns the value in the middle of the longest dependency chain in a level's loop over the columns, for a finished
// program; -1 if one half would be short. A processor's reorder window holds a few hundred operations, which is about
// one iteration of such a loop, so it stalls for results at the end of each iteration. If one half of an iteration is
// computed together with the other half of the iteration before it, the stall is half as long. Lengths count operations
// as short as an addition. Vectors of 16 lanes have 32 registers, and short halves lose nothing there. With 16
// registers, silu and a product (halves of 8) take a quarter longer in bf16, while silu with codes (15) takes a fifth
// less.
inline int middle_of_chain(const RowProgram& program, int level, int lanes) {
  return MiddleOfChain(program, level).find(lanes >= 16 ? 6 : 10);
}

// The length of the longest chain, in operations as short as an addition.
inline int longest_chain(const RowProgram& program, int level) { return MiddleOfChain(program, level).longest(); }

}  // namespace weft
