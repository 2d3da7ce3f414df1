#include "compiler/check/bisect.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "options/effective_options.h"
#include "passes/pattern_pass.h"
#include "tensor/same_elements.h"

namespace weft {
namespace {

// Rewrites that the limit held back, each as graph, pattern and node.
using Held = std::set<std::tuple<std::string, std::string, std::string>>;

class Bisection {
 public:
  Bisection(const Options& options, const Context& context, const std::function<BisectRun(const Options&)>& run)
      : options_(options), context_(context), run_(run) {}

  BisectResult find() {
    Options eager = options_;
    run_eagerly(eager);
    wanted_ = run_with(eager).values;
    const BisectRun all = run_with(options_);
    result_.differs = !is_as_wanted(all);
    if (!result_.differs) return result_;
    for (const PassRow& row : passes_of(context_)) {
      if (row.needs != row.leaves) continue;
      Options without = options_;
      without.skip_pass.push_back(row.name);
      if (!is_as_wanted(run_with(without))) continue;
      result_.pass = row.name;
      find_rewrite(all);
      return result_;
    }
    return result_;
  }

 private:
  BisectRun run_with(const Options& options) {
    ++result_.runs;
    return run_(options);
  }

  bool is_as_wanted(const BisectRun& run) const {
    return run.values.size() == wanted_.size() &&
           are_same_elements(DType::f32, reinterpret_cast<const std::byte*>(run.values.data()),
                             reinterpret_cast<const std::byte*>(wanted_.data()),
                             static_cast<std::int64_t>(wanted_.size()));
  }

  template <class Body>
  void for_each_report(const BisectRun& run, Body&& body) const {
    for (const CompileRecord& record : run.records)
      for (const PassRecord& pass : record.passes)
        if (pass.name == result_.pass)
          for (const PatternReport& report : pass.result.patterns) body(record, report);
  }

  // The largest number of rewrites that the pass makes in one graph.
  int count_rewrites(const BisectRun& run) const {
    std::map<const CompileRecord*, int> counts;
    for_each_report(
        run, [&](const CompileRecord& record, const PatternReport& report) { counts[&record] += report.matched; });
    int most = 0;
    for (const auto& [record, count] : counts) most = std::max(most, count);
    return most;
  }

  BisectRun run_limited(const std::string& fusion, int limit) {
    Options limited = options_;
    limited.limit_rewrites.push_back(fmt::format("{}={}", fusion, limit));
    return run_with(limited);
  }

  void find_rewrite(const BisectRun& all) {
    result_.rewrites = count_rewrites(all);
    if (result_.rewrites == 0) return;
    const std::string fusion = fusion_of(all);
    int right = 0, wrong = result_.rewrites;  // numbers of rewrites with a right and a wrong output
    while (right + 1 < wrong) {
      const int middle = right + (wrong - right) / 2;
      (is_as_wanted(run_limited(fusion, middle)) ? right : wrong) = middle;
    }
    result_.rewrite = wrong;
    const Held before = held(run_limited(fusion, right)), after = held(run_limited(fusion, wrong));
    Held made;
    std::set_difference(before.begin(), before.end(), after.begin(), after.end(), std::inserter(made, made.end()));
    if (!made.empty()) std::tie(result_.graph, result_.pattern, result_.node) = *made.begin();
  }

  std::string fusion_of(const BisectRun& run) const {
    std::string fusion;
    for_each_report(run, [&](const CompileRecord&, const PatternReport& report) {
      for (const FusionPattern& entry : context_.patterns)
        if (entry.pattern.name == report.pattern) fusion = entry.fusion;
    });
    return fusion;
  }

  Held held(const BisectRun& run) const {
    Held nodes;
    for_each_report(run, [&](const CompileRecord& record, const PatternReport& report) {
      for (const NearMiss& miss : report.near_misses)
        if (miss.reason == kHeldBack) nodes.emplace(record.graph, report.pattern, miss.node);
    });
    return nodes;
  }

  const Options& options_;
  const Context& context_;
  const std::function<BisectRun(const Options&)>& run_;
  std::vector<float> wanted_;
  BisectResult result_;
};

}  // namespace

BisectResult bisect(const Options& options, const Context& context,
                    const std::function<BisectRun(const Options&)>& run) {
  return Bisection(options, context, run).find();
}

}  // namespace weft
