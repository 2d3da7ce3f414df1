#include "apps/cli/verify_report.h"

#include <ostream>

#include <fmt/core.h>

#include "base/json.h"

namespace weft {
namespace {

Json verdict_json(const PieceVerdict& verdict) {
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  return {{"id", verdict.graph + "." + verdict.piece},
          {"kind", verdict.is_splitting ? "splitting" : "piece"},
          {"range", {verdict.range.lo, verdict.range.hi}},
          {"calls", verdict.calls},
          {"equal_bits", verdict.is_right()},
          {"differing_calls", verdict.differing_calls},
          {"spoiled_calls", verdict.spoiled_calls},
          {"largest_difference", verdict.largest},
          {"largest_ulps", verdict.largest_ulps},
          {"value", or_null(verdict.value)},
          {"layer", or_null(verdict.layer)},
          {"step", verdict.run == 0 ? Json() : Json(verdict.run)}};
}

std::string where(const PieceVerdict& verdict) {
  return fmt::format("%{}{}, step {}", verdict.value, verdict.layer.empty() ? "" : " of layer " + verdict.layer,
                     verdict.run);
}

void print_table(std::span<const PieceVerdict> verdicts, std::ostream& out) {
  out << fmt::format("{:<14}{:>12}{:>8}{:>11}{:>16}{:>12}  {}\n", "piece", "rows", "calls", "differing", "difference",
                     "ulps", "where");
  for (const PieceVerdict& verdict : verdicts)
    out << fmt::format("{:<14}{:>12}{:>8}{:>11}{:>16.6g}{:>12.6g}  {}\n", verdict.graph + "." + verdict.piece,
                       fmt::format("{}-{}", verdict.range.lo, verdict.range.hi), verdict.calls, verdict.differing_calls,
                       verdict.largest, verdict.largest_ulps, verdict.is_right() ? "equal bits" : where(verdict));
}

// What is wrong with a piece, in a sentence; "" when nothing is.
std::string complaint(const PieceVerdict& verdict, const std::string& op_by_op) {
  const std::string name = fmt::format("{}.{}", verdict.graph, verdict.piece);
  if (verdict.differing_calls > 0)
    return fmt::format("{} differs from its graph, run op by op ({}): {} of {} calls differ, most at {}", name,
                       op_by_op, verdict.differing_calls, verdict.calls, where(verdict));
  if (verdict.spoiled_calls > 0)
    return fmt::format("{} finds another value than was made for it: {}", name, where(verdict));
  return "";
}

}  // namespace

int report_verdicts(std::span<const PieceVerdict> verdicts, const std::string& model, const std::string& op_by_op,
                    bool as_json, std::ostream& out, std::ostream& err) {
  int status = 0;
  Json list = Json::array();
  for (const PieceVerdict& verdict : verdicts) {
    list.push_back(verdict_json(verdict));
    const std::string text = complaint(verdict, op_by_op);
    if (text.empty()) continue;
    err << "weft: [verify] " << text << "\n";
    status = 3;
  }
  if (as_json) {
    const Json report{{"model", model}, {"op_by_op", op_by_op}, {"equal_bits", status == 0}, {"pieces", list}};
    out << json_text(report, 2) << "\n";
  } else {
    print_table(verdicts, out);
    out << fmt::format("op by op: {}\n", op_by_op);
  }
  return status;
}

}  // namespace weft
