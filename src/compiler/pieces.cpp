#include "compiler/pieces.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "base/error.h"
#include "codegen/lift_scalars.h"
#include "compiler/log_code.h"
#include "compiler/piece_graph.h"
#include "compiler/pipeline.h"
#include "compiler/warnings.h"
#include "ir/print.h"
#include "passes/lower.h"

namespace weft {
namespace {

// Ops that only fill or copy memory.
constexpr std::string_view kMovements[] = {"clone", "concat", "constant", "index_select", "lay_out"};

std::shared_ptr<const Graph> written_out(const Graph& piece, PassContext& passes) {
  std::shared_ptr<Graph> graph = piece.clone();
  write_out_meanings(*graph, passes);
  return graph;
}

PieceSchedules schedule_as_written(const Graph& split, PassContext& passes) {
  PieceSchedules schedules;
  for (const auto& piece : split.pieces) {
    const auto graph = written_out(*piece, passes);
    schedules[piece->name] = {graph, schedule_as_written(*graph)};
  }
  return schedules;
}

// For each piece, the index of the first piece that is equal except for scalars. Layers with different epsilons are
// such pieces.
std::vector<std::size_t> first_alike(std::span<const PieceCode* const> codes) {
  std::map<std::size_t, std::vector<std::size_t>> firsts;  // by the number of nodes
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < codes.size(); ++i) {
    std::vector<std::size_t>& known = firsts[codes[i]->graph->nodes().size()];
    const auto alike = std::find_if(known.begin(), known.end(), [&](std::size_t first) {
      return has_equal_nodes_but_for_scalars(*codes[first]->graph, *codes[i]->graph);
    });
    found.push_back(alike == known.end() ? i : *alike);
    if (alike == known.end()) known.push_back(i);
  }
  return found;
}

void refuse_what_is_left(const Graph& split, const PieceSchedules& schedules) {
  for (const auto& piece : split.pieces)
    for (const RowRefusal& refusal : schedules.at(piece->name).schedule.refusals)
      USER_CHECK(only_moves(*refusal.node), "[--require-codegen] no code can be generated for {} of piece {}: {}",
                 refusal.node->result()->name, piece->name, refusal.reason);
}

// Warns, once for each Context, that no code can be generated.
void warn_of_problem(const Context& context, const std::string& problem) {
  if (context.generated->fail()) warn(context.log, "no code can be generated, native ops run one by one: " + problem);
}

}  // namespace

bool only_moves(const Node& node) {
  return std::find(std::begin(kMovements), std::end(kMovements), node.name) != std::end(kMovements);
}

bool generates_code(const Context& context) {
  return context.options.backend != "eager" && !context.generated->has_failed() &&
         (context.stored_plans != nullptr || context.generated->problem(*context.cache).empty());
}

void check_required_code(const Context& context) {
  if (!context.options.require_codegen) return;
  USER_CHECK(context.options.backend != "eager", "[--require-codegen] no code is generated with --cc.backend={}",
             context.options.backend);
  const std::string problem = context.generated->problem(*context.cache);
  USER_CHECK(problem.empty(), "[--require-codegen] no code can be generated: {}", problem);
}

void warn_of_missing_compiler(const Context& context) {
  if (context.options.backend == "eager") return;
  const std::string problem = context.generated->problem(*context.cache);
  if (!problem.empty()) warn_of_problem(context, problem);
}

PieceCode schedule_piece(const Graph& piece, PassContext& passes) {
  auto graph = written_out(piece, passes);
  Schedule schedule = schedule_piece(*graph);
  return {std::move(graph), std::move(schedule)};
}

PieceSchedules schedule_pieces(const Graph& split, PassContext& passes, ThreadPool& threads) {
  PieceSchedules schedules;
  std::vector<PieceCode*> codes;
  for (const auto& piece : split.pieces) codes.push_back(&schedules[piece->name]);
  const auto for_each_piece = [&](const auto& body) {
    threads.run(static_cast<std::int64_t>(codes.size()),
                [&](std::int64_t number, int) { body(static_cast<std::size_t>(number)); });
  };
  for_each_piece([&](std::size_t i) { codes[i]->graph = written_out(*split.pieces[i], passes); });
  const std::vector<std::size_t> models = first_alike(codes);
  for_each_piece([&](std::size_t i) {
    if (models[i] == i) codes[i]->schedule = schedule_piece(*codes[i]->graph);
  });
  for_each_piece([&](std::size_t i) {
    if (models[i] == i) return;
    const PieceCode& model = *codes[models[i]];
    std::optional<Schedule> like = schedule_piece_like(*codes[i]->graph, *model.graph, model.schedule);
    codes[i]->schedule = like ? std::move(*like) : schedule_piece(*codes[i]->graph);
  });
  std::vector<RowRegion*> regions;
  for (auto& [name, code] : schedules)
    for (RowRegion& region : code.schedule.regions) regions.push_back(&region);
  lift_scalars(regions);
  return schedules;
}

namespace {

PieceSchedules generated_pieces(const Graph& split, const Context& context, TokenRange range) {
  PassContext passes = pass_context(context, range);
  if (context.options.backend == "eager") return schedule_as_written(split, passes);
  PieceSchedules schedules = schedule_pieces(split, passes, *context.threads);
  for (auto& [name, code] : schedules)
    if (is_eager_piece(context.options, split.name, name)) code.schedule = schedule_as_written(*code.graph);
  if (context.options.require_codegen) refuse_what_is_left(split, schedules);
  std::vector<const RowProgram*> programs;
  std::vector<const Graph*> graphs;
  for (auto& [name, code] : schedules)
    for (RowRegion& region : code.schedule.regions) {
      region.program = context.size_tuning.tuned(region.program, range);
      programs.push_back(&region.program);
      graphs.push_back(code.graph.get());
    }
  log_output_code(context, split, range, schedules);
  if (programs.empty()) return schedules;
  const std::string problem = context.generated->compile(programs, context, graphs);
  if (problem.empty()) return schedules;
  USER_CHECK(!context.options.require_codegen, "[--require-codegen] no code can be generated: {}", problem);
  warn_of_problem(context, problem);
  return schedule_as_written(split, passes);
}

}  // namespace

PieceSchedules generate_pieces(const Graph& split, const Context& context, TokenRange range) {
  check_required_code(context);
  PieceSchedules schedules = generated_pieces(split, context, range);
  log_schedule(context, split, range, schedules);
  return schedules;
}

}  // namespace weft
