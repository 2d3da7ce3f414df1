#include <cmath>
#include <map>
#include <tuple>

#include "base/json.h"
#include "compiler/piece_graph.h"
#include "ir/print.h"
#include "options/options_text.h"
#include "report/explain.h"
#include "report/reported_choices.h"
#include "report/size_report.h"

namespace weft {
namespace {

Json range_json(const TokenRange& range) { return Json::array({range.lo, range.hi}); }

Json refused_json(const std::vector<Refusal>& refused) {
  Json list = Json::array();
  for (const Refusal& refusal : refused) list.push_back({{"provider", refusal.provider}, {"reason", refusal.reason}});
  return list;
}

Json options_section(const Explanation& explanation) {
  Json differences = Json::array();
  for (const OptionDifference& difference : explanation.differences)
    differences.push_back({{"option", difference.option},
                           {"requested", difference.requested},
                           {"effective", difference.effective},
                           {"reason", difference.reason}});
  return {{"requested", parse_json(requested_json(explanation.options))},
          {"effective", parse_json(values_json(explanation.options))},
          {"differences", differences}};
}

Json profit_json(const std::optional<Profit>& profit) {
  if (!profit) return nullptr;
  return {{"bytes_before", profit->before.bytes},
          {"bytes_after", profit->after.bytes},
          {"instructions_before", std::llround(profit->before.instructions)},
          {"instructions_after", std::llround(profit->after.instructions)},
          {"by", profit->measured.empty() ? "model" : "tuning"},
          {"measured", profit->measured.empty() ? Json(nullptr) : Json(profit->measured)}};
}

Json patterns_json(const std::vector<PatternReport>& reports) {
  Json list = Json::array();
  for (const PatternReport& report : reports) {
    Json near_misses = Json::array();
    for (const NearMiss& miss : report.near_misses)
      near_misses.push_back({{"node", miss.node}, {"reason", miss.reason}});
    list.push_back({{"pattern", report.pattern},
                    {"matched", report.matched},
                    {"near_misses", near_misses},
                    {"off", report.off ? Json(*report.off) : Json(nullptr)},
                    {"profit", profit_json(report.profit)}});
  }
  return list;
}

Json passes_section(const std::vector<CompileRecord>& records) {
  Json list = Json::array();
  for (const CompileRecord& record : records)
    for (const PassRecord& pass : record.passes) {
      Json counts = Json::object();
      for (const auto& [name, count] : pass.result.counts) counts[name] = count;
      list.push_back({{"name", pass.name},
                      {"graph", record.graph},
                      {"range", range_json(record.range)},
                      {"ms", pass.milliseconds},
                      {"verify_ms", pass.verify_milliseconds},
                      {"nodes_before", pass.nodes_before},
                      {"nodes_after", pass.nodes_after},
                      {"skipped", pass.skipped},
                      {"counts", counts},
                      {"patterns", patterns_json(pass.result.patterns)}});
    }
  return list;
}

// The steps before and after the passes.
Json steps_section(const std::vector<CompileRecord>& records) {
  Json list = Json::array();
  for (const CompileRecord& record : records)
    for (const auto& [step, milliseconds] : record.steps)
      list.push_back(
          {{"name", step}, {"graph", record.graph}, {"range", range_json(record.range)}, {"ms", milliseconds}});
  return list;
}

// One entry per node of a list of reported_choices, with its choices by range. The nodes of one graph have the same
// names in each range if the same ops were lowered.
Json nodes_section(const std::vector<CompileRecord>& records, std::vector<NodeChoice> ReportedChoices::*list_of) {
  Json list = Json::array();
  std::map<std::tuple<std::string, std::string, std::string>, std::size_t> known;  // graph, node and op to its entry
  for (const CompileRecord& record : records) {
    const ReportedChoices choices = reported_choices(record);
    for (const NodeChoice& node : choices.*list_of) {
      const auto [entry, is_new] = known.emplace(std::tuple(record.graph, node.node, node.op), list.size());
      if (is_new)
        list.push_back({{"node", node.node},
                        {"op", node.op},
                        {"layer", node.layer.empty() ? Json() : Json(node.layer)},
                        {"graph", record.graph},
                        {"choices", Json::array()}});
      list[entry->second]["choices"].push_back({{"range", range_json(record.range)},
                                                {"provider", node.choice.provider},
                                                {"reason", node.choice.reason},
                                                {"refused", refused_json(node.choice.refused)}});
    }
  }
  return list;
}

Json clones_section(const std::vector<CompileRecord>& records) {
  int inserted = 0, removed = 0;
  Json kept = Json::array();
  for (const CompileRecord& record : records)
    for (const PassRecord& pass : record.passes) {
      for (const auto& [name, count] : pass.result.counts) {
        if (pass.name == "lower" && name == "clones") inserted += count;
        if (pass.name == "clone_elimination" && name == "removed") removed += count;
      }
      for (const auto& [node, reason] : pass.result.kept_clones)
        kept.push_back(
            {{"node", node}, {"reason", reason}, {"graph", record.graph}, {"range", range_json(record.range)}});
    }
  return {{"inserted", inserted}, {"removed", removed}, {"kept", kept}};
}

Json pieces_section(const std::vector<CompileRecord>& records, const Options& options) {
  std::size_t total = 0, unique = 0, splitting = 0;
  Json list = Json::array();
  for (const CompileRecord& record : records) {
    if (record.split->stage != Stage::split) continue;
    std::map<std::string, int> calls;
    for (const auto& call : record.split->nodes()) ++calls[call->name];
    total += record.split->nodes().size();
    unique += record.split->pieces.size();
    for (const auto& piece : record.split->pieces) {
      const bool is_splitting = piece->kind == DefinitionKind::splitting;
      splitting += is_splitting ? 1 : 0;
      list.push_back({{"id", record.graph + "." + piece->name},
                      {"kind", is_splitting ? "splitting" : "piece"},
                      {"eager", is_eager_piece(options, record.graph, piece->name)},
                      {"range", range_json(record.range)},
                      {"hash", structural_hash(*piece).hex()},
                      {"nodes", piece->nodes().size()},
                      {"calls", calls[piece->name]}});
    }
  }
  return {{"total", total}, {"unique", unique}, {"splitting", splitting}, {"list", list}};
}

Json size_graphs_section(const ReplayReport::Capture& capture) {
  Json sizes = Json::array();
  for (const SizeGraph& size : capture.sizes) {
    sizes.push_back({{"size", size.text},
                     {"launches", size.cost.nodes},
                     {"ms", size.milliseconds},
                     {"device_bytes", size.cost.device_bytes}});
    if (!size.failure.empty()) sizes.back()["failure"] = size.failure;
  }
  return sizes;
}

Json replay_section(const ReplayReport& report) {
  Json captures = Json::array(), first_time = Json::object();
  for (const ReplayReport::Capture& capture : report.captures)
    captures.push_back({{"plan", capture.plan},
                        {"mode", replay_mode_text(capture.mode)},
                        {"stretches", capture.stretches},
                        {"captured_steps", capture.captured_steps},
                        {"other_steps", capture.other_steps},
                        {"sizes", size_graphs_section(capture)}});
  for (std::size_t i = 0; i < kFirstTimeKinds; ++i)
    first_time[std::string(first_time_text(static_cast<FirstTime>(i)))] = {
        {"before_ready", report.first_time[i].before_ready}, {"after_ready", report.first_time[i].after_ready}};
  return {{"mode", replay_mode_text(report.mode)},
          {"sizes", report.sizes},
          {"capture", report.is_lazy ? "lazy" : "ready"},
          {"captures", captures},
          {"capture_ms", report.launch_graph_milliseconds},
          {"runs", report.runs},
          {"look_ups", report.look_ups},
          {"allocations", report.allocations},
          {"padded_rows", report.padded_rows},
          {"first_time", first_time}};
}

Json guards_section(const std::vector<GuardReport>& reports) {
  Json graphs = Json::array();
  for (const GuardReport& report : reports) {
    Json ranges = Json::object();
    for (const auto& [symbol, range] : report.bounds) ranges[symbol] = {range.lo, range.hi};
    graphs.push_back({{"graph", report.graph},
                      {"ranges", ranges},
                      {"branches", report.branches},
                      {"unproved", report.unproved},
                      {"sizes_traced_again", report.sizes}});
  }
  return graphs;
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json bytes_or_null(const std::optional<std::int64_t>& bytes) { return bytes ? Json(*bytes) : Json(nullptr); }

Json cache_section(const CacheUse& cache) {
  Json difference = nullptr;
  if (cache.first_difference)
    difference = {{"factor", cache.first_difference->factor},
                  {"wanted", text_or_null(cache.first_difference->wanted.value_or(""))},
                  {"found", text_or_null(cache.first_difference->found.value_or(""))}};
  return {{"enabled", cache.enabled},
          {"hit", cache.hit},
          {"key", text_or_null(cache.key)},
          {"entry", text_or_null(cache.entry)},
          {"first_difference", difference}};
}

Json device_functions_section(const std::optional<DeviceFunctions>& said) {
  if (!said) return nullptr;
  Json on_host = Json::array();
  for (const auto& [function, reason] : said->on_host) on_host.push_back({{"function", function}, {"reason", reason}});
  return {{"functions", said->functions},
          {"launched", said->launched},
          {"code", text_or_null(said->code)},
          {"compiler", text_or_null(said->compiler)},
          {"reason", text_or_null(said->reason)},
          {"on_host", on_host},
          {"host_problem", text_or_null(said->host_problem)}};
}

}  // namespace

Json explain_json(const Explanation& explanation) {
  const std::vector<CompileRecord>& records = explanation.records;
  Json ranges = Json::array();
  for (const CompileRecord& record : records)
    if (record.graph == records.front().graph) ranges.push_back(range_json(record.range));
  return {{"weft", explanation.version},
          {"model", explanation.model},
          {"options", options_section(explanation)},
          {"passes", passes_section(records)},
          {"steps", steps_section(records)},
          {"nodes", nodes_section(records, &ReportedChoices::runs)},
          {"written_out", nodes_section(records, &ReportedChoices::written_out)},
          {"clones", clones_section(records)},
          {"pieces", pieces_section(records, explanation.options)},
          {"ranges", ranges},
          {"sizes", sizes_json(records, explanation.tuning)},
          {"memory",
           {{"weights", explanation.memory.weights},
            {"activations_planned", explanation.memory.activations_planned},
            {"activations_measured", bytes_or_null(explanation.memory.activations_measured)},
            {"kv_cache", explanation.memory.kv_cache},
            {"kv_cache_measured", bytes_or_null(explanation.memory.kv_cache_measured)}}},
          {"device_functions", device_functions_section(explanation.device_functions)},
          {"cache", cache_section(explanation.cache)},
          {"replay", replay_section(explanation.replay)},
          {"guards", guards_section(explanation.guards)},
          {"timing_ms", timing_json(explanation.times)},
          {"compile_ms", compile_json(explanation.times)}};
}

}  // namespace weft
