#pragma once

// The work of one loop of a level of a row program.

#include <algorithm>
#include <vector>

#include "codegen/row_program.h"

namespace weft {

// The work of the loop over the groups, or of the loop over the columns.
struct LevelWork {
  RowDomain domain = RowDomain::element;
  std::vector<RowStore> stores;
  struct Kept {
    int value, slot;
    bool operator==(const Kept&) const = default;
  };
  std::vector<Kept> kept;
  std::vector<int> group_reductions;
  std::vector<int> row_reductions;
  bool by_groups = false;  // whether the columns' values use values of groups or are reduced to them

  // Two stores that each fill every other element form one store of pairs.
  const RowStore* second_of_pair(const RowStore& first) const {
    for (const RowStore& store : stores)
      if (is_pair(first, store)) return &store;
    return nullptr;
  }
  bool is_second_of_pair(const RowStore& second) const {
    return std::any_of(stores.begin(), stores.end(), [&](const RowStore& store) { return is_pair(store, second); });
  }
  static bool is_pair(const RowStore& first, const RowStore& second) {
    return first.buffer == second.buffer && first.placement == second.placement && first.placement.stride == 2 &&
           second.offset == first.offset + 1;
  }
  bool is_empty() const { return stores.empty() && kept.empty() && group_reductions.empty() && row_reductions.empty(); }
};

// The program is finished.
inline LevelWork work_of_level(const RowProgram& program, int level, RowDomain domain) {
  LevelWork work{.domain = domain};
  const auto value_at = [&](int id) -> const RowValue& { return program.values[static_cast<std::size_t>(id)]; };
  const auto takes = [&](int id) {
    const bool takes_group = value_at(id).needs_group || value_at(id).domain == RowDomain::group;
    work.by_groups = work.by_groups || (domain == RowDomain::element && takes_group);
  };
  for (const RowStore& store : program.stores) {
    if (store.domain != domain || value_at(store.value).level != level) continue;
    work.stores.push_back(store);
    takes(store.value);
  }
  for (int id = 0; id < static_cast<int>(program.values.size()); ++id) {
    const RowValue& value = value_at(id);
    if (value.slot >= 0 && value.level == level && value.domain == domain && !is_group_reduction(value.op)) {
      work.kept.push_back({id, value.slot});
      takes(id);
    }
    if (!is_reduction(value.op) || value.level - 1 != level || domain != RowDomain::element) continue;
    (is_group_reduction(value.op) ? work.group_reductions : work.row_reductions).push_back(id);
    for (const int operand : {value.a, value.b})
      if (operand >= 0) takes(operand);
  }
  work.by_groups = work.by_groups || !work.group_reductions.empty();
  return work;
}

}  // namespace weft
