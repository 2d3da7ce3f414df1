#include "report/size_report.h"

#include <map>
#include <set>

#include <fmt/ranges.h>

#include "compiler/token_ranges.h"
#include "compiler/tune/tune_functions.h"

namespace weft {
namespace {

// For each op: its providers, each with the count of its nodes, and the reason for a tuned choice.
struct Choices {
  std::map<std::string, std::map<std::string, int>> counts;
  std::map<std::string, std::string> tuned;
};

// The choices after all passes.
Choices choices_of(const CompileRecord& record) {
  Choices choices;
  for (const auto& call : record.split->nodes())
    if (const Graph* piece = record.split->find_piece(call->name))
      for (const auto& node : piece->nodes())
        if (node->op != nullptr && !node->op->is_view) ++choices.counts[node->name][node->provider];
  for (const PassRecord& pass : record.passes)
    for (const NodeChoice& node : pass.result.choices)
      if (node.choice.is_tuned) choices.tuned[node.op] = node.choice.reason;
  return choices;
}

std::string counts_text(const Choices& choices, const std::string& op) {
  const auto found = choices.counts.find(op);
  if (found == choices.counts.end()) return "none";
  std::vector<std::string> parts;
  for (const auto& [provider, count] : found->second) parts.push_back(fmt::format("{} {}", count, provider));
  return fmt::format("{}", fmt::join(parts, ", "));
}

class Reporter {
 public:
  explicit Reporter(const SizeTuning& tuning) : tuning_(tuning), decisions_(decide(tuning.measured)) {}

  SizeReport report(const CompileRecord& size, const CompileRecord& around) const {
    SizeReport report{
        .graph = size.graph, .size = size.range, .range = around.range, .shares_plan = size.plan == around.plan};
    const Choices here = choices_of(size), there = choices_of(around);
    std::set<std::string> ops;
    for (const Choices* choices : {&here, &there})
      for (const auto& [op, counts] : choices->counts) ops.insert(op);
    for (const std::string& op : ops) {
      SizeDifference difference{.what = op, .here = counts_text(here, op), .there = counts_text(there, op)};
      if (difference.here == difference.there) continue;
      const auto reason = here.tuned.find(op);
      difference.reason = reason == here.tuned.end() ? reason_of(op, size.range) : reason->second;
      report.differences.push_back(std::move(difference));
    }
    add_functions(report);
    return report;
  }

 private:
  // The reason for an op that tuning removed from the graph.
  std::string reason_of(const std::string& op, TokenRange range) const {
    for (const auto& [key, decision] : decisions_) {
      const TuningEntry& entry = tuning_.measured.entries.at(key);
      if (entry.op == op && entry.call.range == range && decision.provider != entry.standard) return decision.reason;
    }
    return "";
  }

  void add_functions(SizeReport& report) const {
    for (const auto& [key, decision] : decisions_) {
      const TuningEntry& entry = tuning_.measured.entries.at(key);
      if (!(entry.call.range == report.size)) continue;
      ++report.timed;
      if (!is_function(entry) || decision.provider == entry.standard) continue;
      const Attribute* computes = entry.call.attributes.find(kComputes);
      report.differences.push_back({.what = entry.op,
                                    .computes = computes == nullptr ? "" : computes->string(),
                                    .here = decision.provider,
                                    .there = entry.standard,
                                    .reason = decision.reason});
    }
  }

  const SizeTuning& tuning_;
  std::map<std::string, TuningDecision> decisions_;
};

std::string report_text(const SizeReport& report) {
  std::string text = fmt::format("  {}, {} rows, in {} to {}: {} calls and functions timed; ", report.graph,
                                 report.size.lo, report.range.lo, report.range.hi, report.timed);
  text += report.differences.empty() ? "nothing differs" : fmt::format("{} differ", report.differences.size());
  text += report.shares_plan ? ", one Plan serves both\n" : ", a Plan of its own\n";
  for (const SizeDifference& difference : report.differences)
    text += fmt::format("    {}{}: {} here, {} there{}\n", difference.what,
                        difference.computes.empty() ? "" : fmt::format(" ({})", difference.computes), difference.here,
                        difference.there, difference.reason.empty() ? "" : "; " + difference.reason);
  return text;
}

}  // namespace

std::vector<SizeReport> size_reports(const std::vector<CompileRecord>& records, const SizeTuning& tuning) {
  const Reporter reporter(tuning);
  std::vector<SizeReport> reports;
  for (std::size_t i = 0; i < records.size(); ++i) {
    std::vector<TokenRange> ranges;  // of the same graph, from this record on
    for (std::size_t j = i; j < records.size() && records[j].graph == records[i].graph; ++j)
      ranges.push_back(records[j].range);
    const TokenRange* around = range_around(ranges, 0);
    if (around == nullptr) continue;
    const auto behind = static_cast<std::size_t>(around - ranges.data());
    reports.push_back(reporter.report(records[i], records[i + behind]));
  }
  return reports;
}

std::string sizes_text(const std::vector<CompileRecord>& records, const SizeTuning& tuning) {
  std::string text;
  for (const SizeReport& report : size_reports(records, tuning)) text += report_text(report);
  if (text.empty()) return "";
  text = "\nexact sizes\n" + text;
  if (tuning.budget == 0) return text;
  text += fmt::format("  tuning took {:.2f} s of the {} s of --tuning-budget", tuning.seconds, tuning.budget);
  if (tuning.was_found) text += ", when the compile cache was given it";
  if (tuning.left > 0)
    text += fmt::format("; {} calls and functions were not reached and are as by default", tuning.left);
  return text + "\n";
}

Json sizes_json(const std::vector<CompileRecord>& records, const SizeTuning& tuning) {
  Json list = Json::array();
  for (const SizeReport& report : size_reports(records, tuning)) {
    Json differences = Json::array();
    for (const SizeDifference& difference : report.differences)
      differences.push_back({{difference.computes.empty() ? "op" : "function", difference.what},
                             {"computes", difference.computes.empty() ? Json(nullptr) : Json(difference.computes)},
                             {"here", difference.here},
                             {"there", difference.there},
                             {"reason", difference.reason.empty() ? Json(nullptr) : Json(difference.reason)}});
    list.push_back({{"graph", report.graph},
                    {"size", report.size.lo},
                    {"range", {report.range.lo, report.range.hi}},
                    {"timed", report.timed},
                    {"shares_plan", report.shares_plan},
                    {"differences", differences}});
  }
  return {{"list", list},
          {"tuning", tuning.budget == 0 ? Json(nullptr)
                                        : Json{{"budget_seconds", tuning.budget},
                                               {"seconds", tuning.seconds},
                                               {"from_cache", tuning.was_found},
                                               {"left", tuning.left}}}};
}

}  // namespace weft
