// A norm of an all-reduced sum becomes a norm of each rank's share of the rows. Its results are gathered. A residual
// that it reads is sliced, and this slice cancels with the gather of the norm before.

#include <algorithm>

#include "base/error.h"
#include "passes/pattern_pass.h"

namespace weft {
namespace {

class RankedNorm {
 public:
  RankedNorm(PatternList& patterns, const Op& norm, const std::string& name)
      : norm_(norm), pattern_(name, patterns.ops()) {
    for (const Parameter& parameter : norm.schema.parameters) {
      if (parameter.type == ParameterType::tensor) {
        values_.push_back(pattern_.value(parameter.name));
      } else {
        attributes_.emplace_back(parameter.name, pattern_.attribute(parameter.name, parameter.type));
      }
    }
    const Attribute ranks = pattern_.integer("world_size"), group = pattern_.word("group_name");
    pattern_.at_least("world_size", 2);
    group_ = {{"world_size", ranks}, {"group_name", group}};
    rows_ = group_;
    rows_.emplace_back("dim", 0);
  }

  // `with_rows` names the operands that have the rows; `summed` is the one of them that is all-reduced.
  PatternDefinition make(const std::vector<std::string>& with_rows, const std::string& summed) && {
    const bool sum_goes_on = with_rows.size() == 1;  // the sum is also returned, as the residual stream
    pattern_.before([&] {
      Values operands = values_;
      Value& x = operands[index_of(summed)];
      x = call("all_reduce", {x}, group_)[0];
      Values results = call(norm_.name.c_str(), operands, attributes_);
      if (sum_goes_on) results.push_back(x);
      return results;
    });
    pattern_.after([&] {
      Values operands = values_;
      for (const std::string& name : with_rows) {
        Value& x = operands[index_of(name)];
        x = call(name == summed ? "reduce_scatter" : "rank_slice", {x}, rows_)[0];
      }
      Values results = call(norm_.name.c_str(), operands, attributes_);
      if (sum_goes_on) results.push_back(operands[index_of(summed)]);
      for (Value& result : results) result = call("all_gather", {result}, rows_)[0];
      return results;
    });
    return std::move(pattern_);
  }

 private:
  std::size_t index_of(const std::string& name) const {
    return static_cast<std::size_t>(norm_.schema.parameter_index(name));
  }

  const Op& norm_;
  PatternDefinition pattern_;
  Values values_;
  NamedAttributes attributes_;
  NamedAttributes group_, rows_;  // attributes of ops over ranks, without and with `dim`
};

}  // namespace
}  // namespace weft

PATTERNS(sequence_parallelism) {
  using namespace weft;
  const Op &norm = patterns.ops().at("rms_norm"), &added = patterns.ops().at("fused_add_rms_norm");
  patterns.add(RankedNorm(patterns, norm, "sequence_parallel_rms_norm").make({"x"}, "x"));
  // Addition is commutative but operands have fixed positions, so each order has a pattern.
  const std::vector<std::string> rows = {"x", "x_residual"};
  patterns.add(RankedNorm(patterns, added, "sequence_parallel_fused_add_rms_norm").make(rows, "x"));
  patterns.add(RankedNorm(patterns, added, "sequence_parallel_fused_add_rms_norm_swapped").make(rows, "x_residual"));
}
