#include "compiler/check/expected_fusions.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "passes/pattern_pass.h"

namespace weft {
ExpectedFusions parse_expected_fusions(const std::string& text, const Context& context,
                                       const ExpectedFusions& declared) {
  if (text == "all") return declared;
  ExpectedFusions expected;
  for (const std::string& part : split_text(text, ',')) {
    const auto [name, count] = parse_fusion_count(part, "--expect-fusions", " or all");
    patterns_named(context.patterns, name);  // throws if there is no such pattern
    USER_CHECK(expected.emplace(name, static_cast<int>(count)).second, "[--expect-fusions] {} is named twice", name);
  }
  return expected;
}

void check_expected_fusions(const ExpectedFusions& expected, const Context& context,
                            std::span<const CompileRecord> records) {
  for (const auto& [name, wanted] : expected) {
    const std::vector<const Pattern*> patterns = patterns_named(context.patterns, name);
    const auto counts = [&](const PatternReport& report) {
      return std::any_of(patterns.begin(), patterns.end(),
                         [&](const Pattern* pattern) { return pattern->name == report.pattern; });
    };
    std::map<std::string, std::map<std::int64_t, int>> matched;  // by graph and first row count of the range
    std::vector<std::string> reasons;
    for (const CompileRecord& record : records)
      for (const PassRecord& pass : record.passes)
        for (const PatternReport& report : pass.result.patterns) {
          if (!counts(report)) continue;
          matched[record.graph][record.range.lo] += report.matched;
          if (report.off) reasons.push_back(report.pattern + ": " + *report.off);
          for (const NearMiss& miss : report.near_misses) reasons.push_back(report.pattern + ": " + miss.reason);
        }
    constexpr std::size_t kShown = 3;
    if (reasons.size() > kShown) reasons.resize(kShown);
    int least = 0;
    for (const auto& [graph, by_range] : matched)
      least += std::min_element(by_range.begin(), by_range.end(), [](const auto& a, const auto& b) {
                 return a.second < b.second;
               })->second;
    USER_CHECK(least >= wanted, "[--expect-fusions] wanted {} of {}, but {} matched{}{}", wanted, name, least,
               reasons.empty() ? "" : "; ", fmt::join(reasons, "; "));
  }
}

}  // namespace weft
