#include "compiler/run/guard_evaluation.h"

#include <algorithm>

#include "base/error.h"
#include "ir/print.h"
#include "ir/replace_symbol.h"

namespace weft {
namespace {

// The first line in which the graphs differ, as "`wanted`, but is `came`".
std::string first_difference(const Graph& wanted, const Graph& came) {
  auto a = wanted.nodes().begin(), b = came.nodes().begin();
  for (; a != wanted.nodes().end() && b != came.nodes().end(); ++a, ++b)
    if (const std::string left = display_node(**a), right = display_node(**b); left != right)
      return fmt::format("wanted `{}`, but is `{}`", left, right);
  if (a != wanted.nodes().end()) return fmt::format("wanted `{}`, but it is missing", display_node(**a));
  if (b != came.nodes().end()) return fmt::format("wanted no more, but is `{}`", display_node(**b));
  return "wanted the same inputs and results, but are others";
}

std::string sizes_text(const Bindings& sizes) {
  std::string text;
  for (const auto& [symbol, size] : sizes) text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", symbol, size);
  return text;
}

}  // namespace

GuardEvaluation::GuardEvaluation(std::shared_ptr<const Graph> traced, const std::vector<SizeBranch>& branches,
                                 Retrace retrace)
    : traced_(std::move(traced)), retrace_(std::move(retrace)) {
  report_ = {.graph = traced_->name, .bounds = traced_->bounds, .branches = branches.size()};
  for (const SizeBranch& branch : branches)
    if (branch.condition.truth(traced_->bounds) != Truth::yes)
      report_.unproved.push_back(fmt::format("{} ({}:{})", branch.condition.text(), branch.reading.where.file_name(),
                                             branch.reading.where.line()));
  CHECK(report_.unproved.empty(), "[--evaluate-guards] {} was traced for all sizes, but {} is not proved for them",
        traced_->name, report_.unproved.front());
  Bindings sizes;
  check_from(traced_->bounds.begin(), sizes);
}

void GuardEvaluation::check_from(Bounds::const_iterator symbol, Bindings& sizes) {
  if (symbol == traced_->bounds.end()) return check(sizes);
  const Interval range = symbol->second;
  for (const std::int64_t size : {range.lo, range.lo + 1, range.hi - 1, range.hi}) {
    if (size < range.lo || size > range.hi) continue;
    sizes[symbol->first] = size;
    check_from(std::next(symbol), sizes);
  }
}

void GuardEvaluation::check(const Bindings& sizes) {
  for (const auto& [symbol, range] : traced_->bounds) {
    const auto size = sizes.find(symbol);
    USER_CHECK(size != sizes.end() && size->second >= range.lo && size->second <= range.hi,
               "[--evaluate-guards] wanted {} of {} in [{}, {}], but is {}", symbol, traced_->name, range.lo, range.hi,
               size == sizes.end() ? "not given" : std::to_string(size->second));
  }
  if (seen_.contains(sizes)) return;
  const std::shared_ptr<Graph> wanted = traced_->clone();
  for (const auto& [symbol, size] : sizes) replace_symbol(*wanted, symbol, size);
  const std::shared_ptr<const Graph> came = retrace_(sizes);
  const auto reads_alike = [](const auto& left, const auto& right) {
    return left->key == right->key && left->name == right->name;
  };
  const bool is_same = has_equal_nodes(*wanted, *came) && std::equal(wanted->inputs().begin(), wanted->inputs().end(),
                                                                     came->inputs().begin(), reads_alike);
  CHECK(is_same, "[--evaluate-guards] {} is another graph for {} than for all sizes: {}", traced_->name,
        sizes_text(sizes), first_difference(*wanted, *came));
  seen_.insert(sizes);
  ++report_.sizes;
}

std::string guard_report_text(const GuardReport& report) {
  std::string ranges;
  for (const auto& [symbol, range] : report.bounds)
    ranges += fmt::format(", {} in [{}, {}]", symbol, range.lo, range.hi);
  return fmt::format("{}{}: {} branch{} on sizes, {} of them not proved; the same graph for {} sizes", report.graph,
                     ranges, report.branches, report.branches == 1 ? "" : "es", report.unproved.size(), report.sizes);
}

}  // namespace weft
