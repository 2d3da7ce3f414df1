#include "apps/cli/pattern_lines.h"

#include <algorithm>
#include <ostream>

#include "base/error.h"
#include "base/text.h"
#include "passes/pattern_pass.h"
#include "passes/scheme_table.h"

namespace weft {

using Kind = FailedAttempt::Kind;

PatternQuestion parse_pattern_question(const std::string& text, const std::string& option) {
  const std::size_t at = text.find('@');
  PatternQuestion question{.option = option, .pattern = text.substr(0, at), .node = ""};
  if (at == std::string::npos) return question;
  question.node = text.substr(at + (text.substr(at + 1).starts_with('%') ? 2 : 1));
  USER_CHECK(!question.node.empty(), "[{}] wanted PATTERN or PATTERN@NODE, but is {}", option, quote(text));
  return question;
}

namespace {

constexpr const char* kRaise = "raise";

// `raise`, and the ops that it reports when a graph almost spells them out.
std::vector<std::string> raised_names(const OpTable& ops) {
  std::vector<std::string> names = {kRaise};
  const SchemeTable schemes(ops);
  for (const SchemeRow& row : schemes.rows())
    if (row.steps) names.push_back(row.quantizer->name);
  return names;
}

std::vector<const Pattern*> asked_patterns(const std::string& name, const Context& context) {
  const std::vector<std::string> raised = raised_names(context.ops);
  if (std::find(raised.begin(), raised.end(), name) != raised.end()) return {};
  return patterns_named(context.patterns, name, raised);
}

// One node by its name, several by their number.
std::string matches_text(const std::vector<std::string>& nodes) {
  if (nodes.size() == 1) return "at %" + nodes[0];
  return fmt::format("at {} nodes, the first is %{}", nodes.size(), nodes[0]);
}

}  // namespace

PatternLines::PatternLines(const PatternQuestion& question, const Context& context, std::ostream& out)
    : question_(question),
      context_(context),
      out_(out),
      patterns_(asked_patterns(question.pattern, context)),
      found_node_(question.node.empty()) {}

std::vector<PatternLines::Named> PatternLines::find(const Graph& graph, TokenRange range) {
  CompiledFindings found = find_as_compiled(graph, patterns_, context_, range);
  std::vector<Named> all;
  for (std::size_t i = 0; i < patterns_.size(); ++i)
    all.push_back({patterns_[i]->name, std::move(found.of_patterns[i])});
  for (const PatternReport& report : found.others) {
    const bool is_asked =
        question_.pattern.empty() || question_.pattern == kRaise || question_.pattern == report.pattern;
    if (!is_asked) continue;
    all.push_back({report.pattern, {}});
    for (const NearMiss& miss : report.near_misses) all.back().findings.misses.push_back({miss, Kind::near});
  }
  if (question_.node.empty()) return all;
  for (Named& named : all) {
    PatternFindings& findings = named.findings;
    std::erase_if(findings.matches, [&](const std::string& node) { return node != question_.node; });
    std::erase_if(findings.misses, [&](const FailedAttempt& miss) { return miss.node != question_.node; });
    found_node_ = found_node_ || !findings.matches.empty() || !findings.misses.empty();
  }
  return all;
}

void PatternLines::print(const std::string& where, const Graph& graph, TokenRange range) {
  std::ptrdiff_t others = 0;
  for (const auto& [pattern, findings] : find(graph, range)) {
    if (findings.off && !question_.pattern.empty())
      out_ << fmt::format("{}: {} is off: {}\n", where, pattern, *findings.off);
    if (!findings.matches.empty())
      out_ << fmt::format("{}: {} matches {}\n", where, pattern, matches_text(findings.matches));
    for (const FailedAttempt& miss : findings.misses) {
      if (miss.kind == Kind::near || !question_.node.empty()) {
        out_ << fmt::format("{}: {} misses at %{}: {}\n", where, pattern, miss.node, miss.reason);
      } else if (miss.kind == Kind::other) {
        ++others;
      }
    }
  }
  if (others > 0)
    out_ << fmt::format(
        "{}: {}; PATTERN@NODE prints what stopped one\n", where,
        others == 1 ? "1 other attempt is no near miss" : fmt::format("{} other attempts are no near misses", others));
}

Json PatternLines::json(const Graph& graph, TokenRange range) {
  Json list = Json::array();
  for (const auto& [pattern, findings] : find(graph, range)) {
    Json near = Json::array();
    const auto& misses = findings.misses;
    for (const FailedAttempt& miss : misses)
      if (miss.kind == Kind::near || !question_.node.empty())
        near.push_back({{"node", miss.node}, {"reason", miss.reason}});
    const auto others = question_.node.empty()
                            ? std::count_if(misses.begin(), misses.end(),
                                            [](const FailedAttempt& miss) { return miss.kind == Kind::other; })
                            : 0;
    list.push_back({{"graph", graph.name},
                    {"pattern", pattern},
                    {"off", findings.off ? Json(*findings.off) : Json(nullptr)},
                    {"matches", findings.matches},
                    {"near_misses", near},
                    {"other_attempts", others}});
  }
  return list;
}

void PatternLines::check_node() const {
  USER_CHECK(found_node_, "[{}] no graph has a node {} with an op of {}", question_.option, quote(question_.node),
             question_.pattern.empty() ? "any pattern" : quote(question_.pattern));
}

}  // namespace weft
