#include "compiler/log_code.h"

#include <set>

#include <fmt/ranges.h>

#include "base/text.h"
#include "codegen/cuda_row_text.h"
#include "codegen/row_text.h"
#include "compiler/functions/generated_kernels.h"
#include "compiler/log.h"
#include "tensor/vector_lanes.h"

namespace weft {
namespace {

using Detail = Log::Detail;

std::string place_of(const Graph& split, TokenRange range) {
  return fmt::format("{} {}-{}", split.name, range.lo, range.hi);
}

// "rows_12ab: rms_norm_0, linear_0" or "linear_0 = linear@cpu".
std::string step_text(const ScheduledStep& step, const Schedule& schedule) {
  if (step.region < 0)
    return step.node->results.empty()
               ? fmt::format("{}@{}", step.node->name, step.node->provider)
               : fmt::format("{} = {}@{}", step.node->result()->name, step.node->name, step.node->provider);
  const RowRegion& region = schedule.regions[static_cast<std::size_t>(step.region)];
  std::vector<std::string> nodes;
  for (const Node* node : region.nodes) nodes.push_back(node->result()->name);
  return fmt::format("{} = {}", fmt::join(nodes, ", "), region.program.kernel_name());
}

std::string counts_text(const Schedule& schedule) {
  std::size_t functions = 0, kernels = 0, native = 0, views = 0;
  for (const ScheduledStep& step : schedule.steps)
    ++(step.region >= 0                  ? functions
       : step.node->op->is_view          ? views
       : step.node->provider != "native" ? kernels
                                         : native);
  std::string text = fmt::format("{} functions, {} kernels, {} views", functions, kernels, views);
  if (native > 0) text += fmt::format(", {} native ops without a function", native);
  return text;
}

void say_lines(const Log& log, const char* topic, Detail detail, const std::string& where, const std::string& text) {
  for (const std::string& line : split_text(text, '\n'))
    if (!line.empty()) log.say(topic, detail, fmt::format("{}: {}", where, line));
}

}  // namespace

void log_schedule(const Context& context, const Graph& split, TokenRange range, const PieceSchedules& schedules) {
  const Log& log = context.log;
  if (log.detail("schedule") == Detail::none) return;
  for (const auto& piece : split.pieces) {
    const Schedule& schedule = schedules.at(piece->name).schedule;
    const std::string where = fmt::format("{} {}", place_of(split, range), piece->name);
    log.say("schedule", Detail::some, fmt::format("{}: {}", where, counts_text(schedule)));
    for (const ScheduledStep& step : schedule.steps)
      log.say("schedule", Detail::more, fmt::format("{}: {}", where, step_text(step, schedule)));
    for (const RowRefusal& refusal : schedule.refusals)
      log.say("schedule", Detail::more,
              fmt::format("{}: {} is in no function: {}", where, refusal.node->result()->name, refusal.reason));
  }
}

void log_output_code(const Context& context, const Graph& split, TokenRange range, const PieceSchedules& schedules) {
  const Log& log = context.log;
  if (log.detail("output_code") == Detail::none) return;
  std::set<std::string> seen;
  std::size_t known = 0;
  for (const auto& piece : split.pieces)
    for (const RowRegion& region : schedules.at(piece->name).schedule.regions) {
      const std::string name = region.program.kernel_name();
      if (!seen.insert(name).second) continue;
      if (context.generated->find(name) != nullptr) {
        ++known;
        continue;
      }
      say_lines(log, "output_code", Detail::some, name, region.program.text());
      if (log.detail("output_code") != Detail::more) continue;
      say_lines(log, "output_code", Detail::more, name,
                context.generated->device_rows() != nullptr
                    ? cuda_row_text(region.program)
                    : row_text(region.program, vector_lanes(context.device.features)));
    }
  const std::string of_known =
      known == 0 ? "" : fmt::format(", {} of them were made for another graph or range", known);
  log.say("output_code", Detail::some,
          fmt::format("{}: {} functions{}", place_of(split, range), seen.size(), of_known));
}

}  // namespace weft
