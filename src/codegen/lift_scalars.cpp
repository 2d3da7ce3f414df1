#include "codegen/lift_scalars.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace weft {
namespace {

using Positions = std::vector<std::size_t>;  // of values in a program

Positions liftable_of(const RowProgram& program) {
  Positions liftable;
  for (std::size_t id = 0; id < program.values.size(); ++id)
    if (program.values[id].op == RowOp::constant && program.values[id].is_liftable) liftable.push_back(id);
  return liftable;
}

std::string text_without(RowProgram program, const Positions& numbers) {
  for (const std::size_t id : numbers) program.values[id].number = 0;
  return program.text();
}

float scalar_at(const RowRegion& region, std::size_t id) {
  return static_cast<float>(region.program.values[id].number);
}

// Numbers are compared by their bits: 0 and -0 differ, and a NaN equals a NaN with the same bits.
Positions differing(const std::vector<RowRegion*>& alike, const Positions& liftable) {
  Positions found;
  const auto bits_at = [](const RowRegion* region, std::size_t id) {
    return std::bit_cast<std::uint32_t>(scalar_at(*region, id));
  };
  for (const std::size_t id : liftable)
    if (std::any_of(alike.begin(), alike.end(),
                    [&](const RowRegion* region) { return bits_at(region, id) != bits_at(alike.front(), id); }))
      found.push_back(id);
  return found;
}

void lift(RowRegion& region, const Positions& lifted) {
  RowProgram& program = region.program;
  const std::size_t first = region.inputs.size();
  const RowBuffer scalar{.dtype = DType::f32};
  program.buffers.insert(program.buffers.begin() + static_cast<std::ptrdiff_t>(first), lifted.size(), scalar);
  for (RowStore& store : program.stores) store.buffer += static_cast<int>(lifted.size());
  for (const std::size_t id : lifted) {
    const auto buffer = static_cast<int>(first + region.scalars.size());
    region.scalars.push_back(scalar_at(region, id));
    program.values[id] = {.op = RowOp::load, .buffer = buffer};
  }
}

}  // namespace

void lift_scalars(std::span<RowRegion* const> regions) {
  std::map<std::pair<Positions, std::string>, std::vector<RowRegion*>> by_form;
  for (RowRegion* region : regions)
    if (const Positions liftable = liftable_of(region->program); !liftable.empty())
      by_form[{liftable, text_without(region->program, liftable)}].push_back(region);
  for (const auto& [form, alike] : by_form) {
    const Positions lifted = differing(alike, form.first);
    if (alike.front()->program.buffers.size() + lifted.size() > kMostRowBuffers) continue;
    for (RowRegion* region : alike) lift(*region, lifted);
  }
}

}  // namespace weft
