#include "apps/cli/pattern_lines.h"

#include <algorithm>
#include <ostream>

#include "base/error.h"
#include "base/text.h"
#include "passes/pattern_pass.h"

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

PatternLines::PatternLines(const PatternQuestion& question, const Context& context, std::ostream& out)
    : question_(question),
      context_(context),
      out_(out),
      patterns_(patterns_named(context.patterns, question.pattern)),
      found_node_(question.node.empty()) {}

std::vector<PatternFindings> PatternLines::find(const Graph& graph, TokenRange range) {
  std::vector<PatternFindings> all = find_as_compiled(graph, patterns_, context_, range);
  if (question_.node.empty()) return all;
  for (PatternFindings& findings : all) {
    std::erase_if(findings.matches, [&](const std::string& node) { return node != question_.node; });
    std::erase_if(findings.misses, [&](const FailedAttempt& miss) { return miss.node != question_.node; });
    found_node_ = found_node_ || !findings.matches.empty() || !findings.misses.empty();
  }
  return all;
}

void PatternLines::print(const std::string& where, const Graph& graph, TokenRange range) {
  const std::vector<PatternFindings> all = find(graph, range);
  std::ptrdiff_t others = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string& pattern = patterns_[i]->name;
    const PatternFindings& findings = all[i];
    if (findings.off && !question_.pattern.empty())
      out_ << fmt::format("{}: {} is off: {}\n", where, pattern, *findings.off);
    for (const std::string& node : findings.matches)
      out_ << fmt::format("{}: {} matches at %{}\n", where, pattern, node);
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
  const std::vector<PatternFindings> all = find(graph, range);
  for (std::size_t i = 0; i < all.size(); ++i) {
    Json near = Json::array();
    const auto& misses = all[i].misses;
    for (const FailedAttempt& miss : misses)
      if (miss.kind == Kind::near || !question_.node.empty())
        near.push_back({{"node", miss.node}, {"reason", miss.reason}});
    const auto others = question_.node.empty()
                            ? std::count_if(misses.begin(), misses.end(),
                                            [](const FailedAttempt& miss) { return miss.kind == Kind::other; })
                            : 0;
    list.push_back({{"graph", graph.name},
                    {"pattern", patterns_[i]->name},
                    {"off", all[i].off ? Json(*all[i].off) : Json(nullptr)},
                    {"matches", all[i].matches},
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
