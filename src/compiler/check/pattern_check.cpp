#include "compiler/check/pattern_check.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "compiler/check/edge_values.h"
#include "compiler/check/pattern_sides.h"
#include "compiler/check/pattern_variants.h"
#include "compiler/run/interpret.h"
#include "ir/pattern_rewrite.h"
#include "ir/rank_groups.h"
#include "parallel/rank_group.h"

namespace weft {
namespace {

constexpr std::int64_t kMostRanksTried = 64;
constexpr std::size_t kMostTypes = 64;
constexpr std::size_t kMostThorough = 4;
// Elements that ops computed, products of linears included, after which fewer fills are tried, and no variants.
constexpr std::int64_t kMuchWork = 4'000'000;

// The fills in the order in which they are tried, and the most rounds of each (a small tensor needs many): for the
// first kMostThorough instances with other dtypes than before, and for the others.
struct FillRow {
  EdgeFill fill;
  std::int64_t thorough, brief;
  bool is_chief;  // also after kMuchWork, for kMostThorough types
};
constexpr FillRow kFills[] = {
    {EdgeFill::sample, 1, 1, true},  {EdgeFill::each, 64, 1, true},      {EdgeFill::pairs, 40, 1, false},
    {EdgeFill::equal, 40, 1, false}, {EdgeFill::opposite, 64, 1, false}, {EdgeFill::in_sample, 24, 1, true},
    {EdgeFill::tiny, 1, 1, false},   {EdgeFill::moderate, 2, 1, false},  {EdgeFill::large, 1, 1, false}};

std::string where(const Pattern& pattern, const PatternInstance& instance) {
  std::string text;
  for (std::size_t i = 0; i < pattern.wildcards.size(); ++i) {
    const Wildcard& wildcard = pattern.wildcards[i];
    if (wildcard.kind == WildcardKind::value) {
      text += fmt::format(" ?{}: {}", wildcard.name,
                          instance.values[i].defined() ? instance.values[i].meta.text() : "none");
    } else if (instance.bound.attributes[i]) {
      text += fmt::format(" ?{}={}", wildcard.name, instance.bound.attributes[i]->text());
    }
  }
  return text;
}

using Groups = std::map<std::string, std::int64_t>;

// The groups that the two graphs need, by name. Returns nullopt if they differ in size, because here all ranks are in
// all groups, or if they have too many ranks.
std::optional<Groups> groups_of(const Graph& before, const Graph& after) {
  Groups groups;
  try {
    groups = rank_groups(before);
    groups.merge(rank_groups(after));
  } catch (const UserError&) {
    return std::nullopt;  // one group has two sizes
  }
  for (const auto& [name, size] : groups)
    if (size != groups.begin()->second || size > kMostRanksTried) return std::nullopt;
  return groups;
}

// By wildcard: whether an op over ranks in `before` takes it, so that its value must differ between ranks.
std::vector<bool> differing_values(const Pattern& pattern) {
  std::vector<bool> differs(pattern.wildcards.size());
  for (const PatternNode& node : pattern.before.nodes)
    for (const PatternOperand& operand : node.operands)
      if (is_over_ranks(*node.op) && operand.wildcard >= 0) differs[static_cast<std::size_t>(operand.wildcard)] = true;
  return differs;
}

// The tensor of one rank: the same elements, rotated by a different distance for each rank.
Tensor of_rank(const Tensor& tensor, int rank) {
  Tensor own = contiguous(tensor);
  const std::int64_t bytes = own.meta.bytes().number();
  const std::int64_t count = std::max<std::int64_t>(element_count(own.meta.shape).number(), 1);
  constexpr std::int64_t kStep = 37;  // no sample's width is a multiple of it
  const std::int64_t shift = rank * kStep % count * bytes_of(own.meta.dtype, 2) / 2 % std::max<std::int64_t>(bytes, 1);
  Tensor shifted = Tensor::empty(own.meta);
  std::rotate_copy(own.data(), own.data() + shift, own.data() + bytes, shifted.data());
  return shifted;
}

std::string shape_text(const Tensor& tensor) {
  const std::string text = Meta::tensor(DType::f32, tensor.meta.shape).text();
  return text.substr(text.find('['));
}

void add_once(std::vector<std::string>& words, const std::string& word) {
  if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
}

// Counts what a run computes, as a measure of its time that is the same on every machine.
class CountingInterpreter : public Interpreter {
 public:
  using Interpreter::Interpreter;

  Values evaluate(const Op& op, const Values& operands, const Attributes& attributes, bool maybe_inplace) override {
    Values results = Interpreter::evaluate(op, operands, attributes, maybe_inplace);
    if (!op.is_primitive() || op.is_view) return results;
    double elements = 0, product = 1;
    for (const Values* values : {&operands, static_cast<const Values*>(&results)})
      for (const Value& value : *values)
        if (value.present() && (value.meta().kind == MetaKind::kv || value.meta().is_tensor())) {
          const auto count = static_cast<double>(stored_elements(value.tensor()));
          elements += count;
          product *= count;
        }
    // Of [m, k], [n, k] and [m, n] the root of the product is m * n * k.
    work_ += static_cast<std::int64_t>(op.name.starts_with("linear") ? std::sqrt(product) : elements);
    return results;
  }

  std::int64_t work() const { return work_; }

 private:
  std::int64_t work_ = 0;
};

// Tries one pattern, one instance after the other.
class PatternTrial {
 public:
  PatternTrial(const Pattern& pattern, const Context& context, bool exact)
      : pattern_(pattern),
        context_(context),
        exact_(exact),
        is_index_(index_wildcards(pattern)),
        differs_(differing_values(pattern)),
        numbers_(numbers_of(pattern)) {}

  PatternCheck run() && {
    const std::vector<PatternInstance> samples = pattern_instances(pattern_, context_.ops);
    for (const PatternInstance& instance : samples) try_instance(instance, true);
    if (check_.samples == 0 && check_.failure.empty())
      check_.failure = "no sample of its ops fits it, so that it cannot be tried";
    for (const PatternInstance& instance : samples) {
      if (!check_.failure.empty() || check_.types.size() >= kMostTypes || work_ > kMuchWork) break;
      for (const PatternInstance& variant : pattern_variants(pattern_, instance, context_.ops))
        if (work_ <= kMuchWork && has_new_feature(variant)) try_instance(variant, false);
    }
    return std::move(check_);
  }

 private:
  // What an instance has at each wildcard: a dtype, a shape, an attribute.
  std::vector<std::string> features_of(const PatternInstance& instance) const {
    std::vector<std::string> features;
    for (std::size_t i = 0; i < instance.values.size(); ++i) {
      if (const Tensor& tensor = instance.values[i]; tensor.defined() && tensor.meta.is_tensor()) {
        features.push_back(fmt::format("{}:{}", i, dtype_text(tensor.meta.dtype)));
        features.push_back(fmt::format("{}:{}", i, shape_text(tensor)));
      }
      if (instance.bound.attributes[i])
        features.push_back(fmt::format("{}:{}", i, instance.bound.attributes[i]->text()));
    }
    return features;
  }

  bool has_new_feature(const PatternInstance& instance) const {
    const std::vector<std::string> features = features_of(instance);
    return std::any_of(features.begin(), features.end(), [&](const std::string& one) { return !tried_.contains(one); });
  }

  // A variant that the rewrite does not apply to is left out; a sample may be the pattern's mistake.
  void try_instance(const PatternInstance& instance, bool is_sample) {
    if (!check_.failure.empty() || check_.types.size() >= kMostTypes) return;
    const std::shared_ptr<Graph> before = graph_of(pattern_, instance, context_.ops);
    const std::size_t found = find_pattern(*before, pattern_).matches.size();
    if (found == 0 || (found > 1 && !is_sample)) return;
    if (found > 1) return fail(fmt::format("before is found {} times in itself", found), instance);
    const std::shared_ptr<Graph> after = before->clone();
    const Pattern* const patterns[] = {&pattern_};
    const PatternReport report = rewrite_all(*after, patterns, context_.ops)[0];
    const auto groups = groups_of(*before, *after);
    if (!groups) return;
    if (report.matched != 1) {
      // If the ranks cannot share these rows, the rewrite does not apply.
      if (groups->empty() && is_sample) fail(report.near_misses.at(0).reason, instance);
      return;
    }
    const PatternSides sides(pattern_, before, after, exact_);
    const bool is_exact = sides.exact_results() == static_cast<int>(before->results().size());
    // There is no tolerance for arithmetic that rounds to 8 or 4 bits in its own way.
    if (!is_exact && !is_sample && has_small_floats(instance)) return;
    const int known = check_.samples;
    try_values(sides, instance, *groups);
    if (is_exact) check_.exact += check_.samples - known;
    if (check_.samples > known) remember(instance);
  }

  void fail(const std::string& failure, const PatternInstance& instance) {
    check_.failure = fmt::format("{}, with{}", failure, where(pattern_, instance));
  }

  void remember(const PatternInstance& instance) {
    check_.types.push_back(where(pattern_, instance).substr(1));
    for (const std::string& feature : features_of(instance)) tried_.insert(feature);
    for (const Tensor& tensor : instance.values)
      if (tensor.defined() && tensor.meta.is_tensor()) {
        add_once(check_.dtypes, std::string(dtype_text(tensor.meta.dtype)));
        add_once(check_.shapes, shape_text(tensor));
      }
  }

  static bool has_small_floats(const PatternInstance& instance) {
    return std::any_of(instance.values.begin(), instance.values.end(), [](const Tensor& tensor) {
      return tensor.defined() && tensor.meta.is_tensor() && is_floating(tensor.meta.dtype) &&
             bytes_of(tensor.meta.dtype, 2) <= 2;
    });
  }

  bool takes_edges(const PatternInstance& instance, std::size_t wildcard) const {
    const Tensor& tensor = instance.values[wildcard];
    if (!tensor.defined() || is_index_[wildcard]) return false;
    return tensor.meta.kind == MetaKind::kv || (tensor.meta.is_tensor() && has_edges(tensor.meta.dtype));
  }

  const EdgeValues& edges_of(DType dtype) {
    const auto known = edges_.find(dtype);
    return known != edges_.end() ? known->second : edges_.emplace(dtype, EdgeValues(dtype, numbers_)).first->second;
  }

  // All fills of the instance.
  void try_values(const PatternSides& sides, const PatternInstance& instance, const Groups& groups) {
    std::string dtypes;
    std::vector<std::size_t> filled;
    for (std::size_t i = 0; i < instance.values.size(); ++i)
      if (takes_edges(instance, i)) {
        filled.push_back(i);
        dtypes += std::string(dtype_text(element_dtype(instance.values[i]))) + " ";
      }
    const bool has_new_dtypes = tried_dtypes_.insert(dtypes).second;
    const bool has_few_types = has_new_dtypes && tried_dtypes_.size() <= kMostThorough;
    const bool is_thorough = groups.empty() && work_ <= kMuchWork && has_few_types;
    const auto tensors = static_cast<std::int64_t>(filled.size());
    for (const FillRow& row : kFills) {
      if (row.fill != EdgeFill::sample && work_ > kMuchWork && (!row.is_chief || !has_few_types)) {
        check_.leaves_out = true;
        continue;
      }
      std::int64_t rounds = row.fill == EdgeFill::sample ? 1 : 0;
      for (const std::size_t i : filled)
        rounds =
            std::max(rounds, edges_of(element_dtype(instance.values[i])).rounds(row.fill, instance.values[i], tensors));
      rounds = std::min(rounds, is_thorough ? row.thorough : row.brief);
      for (std::int64_t round = 0; round < rounds; ++round) {
        if (work_ > kMuchWork && round >= row.brief) {
          check_.leaves_out = true;
          break;
        }
        std::vector<Tensor> values = instance.values;
        double scale = row.fill == EdgeFill::tiny ? 0 : 1;
        for (std::size_t at = 0; at < filled.size(); ++at) {
          Tensor& value = values[filled[at]];
          const EdgeValues& edges = edges_of(element_dtype(value));
          // Other instances begin with other edges.
          const std::int64_t first = is_thorough ? 0 : static_cast<std::int64_t>(check_.types.size()) * row.brief;
          value = edges.filled(value, row.fill, first + round, static_cast<std::int64_t>(at), tensors);
          if (row.fill == EdgeFill::tiny) scale = std::max(scale, edges.largest_tiny());
        }
        if (!try_on(sides, instance, values, groups, scale)) return;
      }
    }
  }

  // Returns whether to go on.
  bool try_on(const PatternSides& sides, const PatternInstance& instance, const std::vector<Tensor>& values,
              const Groups& groups, double scale) {
    std::string difference;
    try {
      difference =
          groups.empty() ? difference_on(sides, values, scale) : difference_on_ranks(sides, values, groups, scale);
    } catch (const UserError&) {
      return true;  // an op of `before` does not accept the values
    }
    ++check_.samples;
    if (!difference.empty()) fail(difference, instance);
    return difference.empty();
  }

  static std::vector<Tensor> present(const std::vector<Tensor>& values) {
    std::vector<Tensor> tensors;
    std::copy_if(values.begin(), values.end(), std::back_inserter(tensors),
                 [](const Tensor& tensor) { return tensor.defined(); });
    return tensors;
  }

  std::string text_of(const SideDifference& difference, const std::vector<Tensor>& values, bool is_uniform) const {
    std::string text = fmt::format("result {} of after: {}", difference.result, difference.text);
    if (difference.element < 0) return text;
    return text + ", where " + inputs_text(pattern_, values, difference, is_uniform);
  }

  // Describes how the results differ on these values; "" if they are equal.
  std::string difference_on(const PatternSides& sides, const std::vector<Tensor>& values, double scale) {
    CountingInterpreter interpreter(context_);
    const auto difference = sides.difference_on(interpreter, present(values), scale);
    work_ += interpreter.work();
    if (!difference) return "";
    if (difference->element >= 0)
      if (const auto uniform = uniform_values(values, is_index_, *difference))
        if (const auto again = sides.difference_on(interpreter, present(*uniform), scale); again && again->element >= 0)
          return text_of(*again, *uniform, true);
    return text_of(*difference, values, false);
  }

  // Compares the graphs on every rank. If several ranks differ, returns the difference on the lowest one.
  std::string difference_on_ranks(const PatternSides& sides, const std::vector<Tensor>& values, const Groups& groups,
                                  double scale) {
    const auto ranks = static_cast<int>(groups.begin()->second);
    std::vector<std::string> names, differences(static_cast<std::size_t>(ranks));
    for (const auto& [name, size] : groups) names.push_back(name);
    run_ranks(ranks, names, [&](int rank, const RankGroups& own_groups) {
      ThreadPool threads(1);
      CountingInterpreter interpreter(context_, threads, own_groups);
      std::vector<Tensor> own = values;
      for (std::size_t i = 0; i < own.size(); ++i)
        if (own[i].defined() && differs_[i]) own[i] = of_rank(own[i], rank);
      if (const auto difference = sides.difference_on(interpreter, present(own), scale))
        differences[static_cast<std::size_t>(rank)] = text_of(*difference, own, false);
      if (rank == 0) work_ += interpreter.work();
    });
    for (int rank = 0; rank < ranks; ++rank)
      if (const std::string& text = differences[static_cast<std::size_t>(rank)]; !text.empty())
        return fmt::format("{} (rank {} of {})", text, rank, ranks);
    return "";
  }

  const Pattern& pattern_;
  const Context& context_;
  const bool exact_;
  const std::vector<bool> is_index_, differs_;  // by wildcard
  const std::vector<double> numbers_;
  std::map<DType, EdgeValues> edges_;
  std::set<std::string> tried_, tried_dtypes_;
  std::int64_t work_ = 0;  // elements computed so far, on one rank
  PatternCheck check_;
};

}  // namespace

std::string PatternCheck::text() const {
  const auto joined = [](const std::vector<std::string>& words) {
    constexpr std::size_t kShown = 12;
    std::string text;
    std::size_t shown = 0;
    for (const std::string& word : words)
      if (shown++ < kShown) text += (text.empty() ? "" : " ") + word;
    return words.size() > kShown ? fmt::format("{} and {} more", text, words.size() - kShown) : text;
  };
  return fmt::format(
      "tried on {} samples of {} types, {} of them compared bit for bit{}: dtypes {}; shapes {}; edges: {}", samples,
      types.size(), exact, exact < samples ? ", the others within the tolerances of their ops" : "", joined(dtypes),
      joined(shapes), kEdgesText, leaves_out ? "; as its ops are large, not every edge on every type" : "");
}

std::vector<std::shared_ptr<Graph>> sample_graphs(const Pattern& pattern, const Context& context) {
  std::vector<std::shared_ptr<Graph>> graphs;
  for (const PatternInstance& instance : pattern_instances(pattern, context.ops))
    graphs.push_back(graph_of(pattern, instance, context.ops));
  return graphs;
}

PatternCheck check_pattern(const Pattern& pattern, const Context& context, bool exact) {
  return PatternTrial(pattern, context, exact).run();
}

}  // namespace weft
