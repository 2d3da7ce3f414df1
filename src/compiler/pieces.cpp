#include "compiler/pieces.h"

#include <algorithm>
#include <iostream>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "base/error.h"

namespace weft {
namespace {

// Ops that compute nothing: memory is filled or copied.
constexpr std::string_view kMovements[] = {"clone", "concat", "constant", "index_select", "lay_out"};

bool only_moves(const Node& node) {
  return std::find(std::begin(kMovements), std::end(kMovements), node.name) != std::end(kMovements);
}

void refuse_what_is_left(const Graph& split, const PieceSchedules& schedules) {
  for (const auto& piece : split.pieces)
    for (const RowRefusal& refusal : schedules.at(piece->name).refusals)
      USER_CHECK(only_moves(*refusal.node), "[--require-codegen] no code can be generated for {} of piece {}: {}",
                 refusal.node->result()->name, piece->name, refusal.reason);
}

}  // namespace

PieceSchedules schedule_pieces(const Graph& split) {
  PieceSchedules schedules;
  for (const auto& piece : split.pieces) schedules[piece->name] = schedule_piece(*piece);
  return schedules;
}

PieceSchedules generate_pieces(const Graph& split, const Context& context) {
  PieceSchedules schedules = schedule_pieces(split);
  if (context.options.require_codegen) refuse_what_is_left(split, schedules);
  std::vector<const RowProgram*> programs;
  for (const auto& [name, schedule] : schedules)
    for (const RowRegion& region : schedule.regions) programs.push_back(&region.program);
  if (programs.empty()) return schedules;
  const std::string problem = context.generated->compile(programs, context.device);
  if (problem.empty()) return schedules;
  USER_CHECK(!context.options.require_codegen, "[--require-codegen] no code can be generated: {}", problem);
  context.generated->warn_once(std::cerr, problem);
  for (const auto& piece : split.pieces) schedules[piece->name] = schedule_as_written(*piece);
  return schedules;
}

}  // namespace weft
