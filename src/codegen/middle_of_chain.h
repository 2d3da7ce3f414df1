#pragma once

// Where a loop over the columns of a row program is cut in two that run side by side.

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

  // Halves are to be so long at least.
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
  // What a level before has made lies in scratch, or is made again from what lies in memory.
  bool is_made_here(int id) const { return value(id).domain == RowDomain::element && value(id).level == level_; }
  template <class Body>
  void for_each_operand(int id, Body body) const {
    for (const int operand : {value(id).a, value(id).b, value(id).c})
      if (operand >= 0) body(operand);
  }

  // Its code would have to wait, too.
  bool is_stored_code(int id) const {
    const std::vector<int>& users = users_[static_cast<std::size_t>(id)];
    return value(id).op == RowOp::convert && std::find(users.begin(), users.end(), kStored) != users.end();
  }

  // Whether nobody else uses what goes into it, loads apart: that would be made twice.
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
  std::vector<int> depth_;               // by value: how long its chain in this level is
  std::vector<std::vector<int>> users_;  // by value, in this level; stores
};

// The value in the middle of the longest chain that the loop over the columns of a level has, of a finished program; -1
// where both halves would not be long. A processor looks at a few hundred operations, of which one turn of such a loop
// has most, and then waits at its end for results; where one half of a turn is made beside the other half of the turn
// before it, it waits half as long. Halves are long by operations as short as an addition. Vectors of 16 lanes have 32
// registers, and nothing is lost by short ones; with 16 registers silu and a product (halves of 8) take a quarter
// longer in bf16, while silu with codes (15) takes a fifth less.
inline int middle_of_chain(const RowProgram& program, int level, int lanes) {
  return MiddleOfChain(program, level).find(lanes >= 16 ? 6 : 10);
}

// By operations as short as an addition.
inline int longest_chain(const RowProgram& program, int level) { return MiddleOfChain(program, level).longest(); }

}  // namespace weft
