// Moves a row-wise quantization from after an all-gather of rows to before it. The ranks then exchange codes and
// scales, a quarter of the bytes or less. Each op that quantizes row by row has one pattern.

#include <algorithm>
#include <map>

#include "passes/pattern_pass.h"
#include "passes/scheme_table.h"

namespace weft {
namespace {

// Whether the codes of a row depend only on that row and on scales that are known before.
bool is_by_row(const QuantKey& key) { return key.scale.is_static || key.scale.group.rows == 1; }

// What the schemes of one op require of a call.
struct Wanted {
  std::map<std::string, std::vector<Attribute>> attributes;
  bool has_one_scale = false;  // one given scale for all rows; given scales per row would have to be sliced
};

void add_gather_pattern(PatternList& patterns, const Op& quantizer, const Wanted& wanted) {
  PatternDefinition pattern("gather_codes_of_" + quantizer.name, patterns.ops());
  Values operands;
  NamedAttributes attributes;
  for (const Parameter& parameter : quantizer.schema.parameters) {
    const auto values = wanted.attributes.find(parameter.name);
    if (parameter.name == "scale" && wanted.has_one_scale) {
      operands.push_back(pattern.value(parameter.name, {.shape = {1}}));
    } else if (parameter.type == ParameterType::tensor) {
      operands.push_back(pattern.value(parameter.name));
    } else if (values != wanted.attributes.end() && values->second.size() == 1) {
      attributes.emplace_back(parameter.name, values->second[0]);
    } else {
      attributes.emplace_back(parameter.name, pattern.attribute(parameter.name, parameter.type));
      if (values != wanted.attributes.end()) pattern.one_of(parameter.name, values->second);
    }
  }
  const NamedAttributes over = {
      {"dim", 0}, {"world_size", pattern.integer("world_size")}, {"group_name", pattern.word("group_name")}};
  pattern.at_least("world_size", 2);
  pattern.before([&] {
    Values gathered = operands;
    gathered[0] = call("all_gather", {operands[0]}, over)[0];
    return call(quantizer.name.c_str(), gathered, attributes);
  });
  pattern.after([&] {
    Values results = call(quantizer.name.c_str(), operands, attributes);
    for (Value& result : results) result = call("all_gather", {result}, over)[0];
    return results;
  });
  patterns.add(std::move(pattern));
}

}  // namespace
}  // namespace weft

PATTERNS(gather_codes) {
  using namespace weft;
  std::map<std::string, Wanted> by_op;
  const SchemeTable schemes(patterns.ops());
  for (const SchemeRow& row : schemes.rows()) {
    if (!is_by_row(row.key)) continue;
    Wanted& wanted = by_op[row.quantizer->name];
    wanted.has_one_scale = row.key.scale.is_static;
    for (const auto& [name, value] : row.attributes) {
      std::vector<Attribute>& values = wanted.attributes[name];
      if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
    }
    // Swizzling interleaves the scales of different rows, so a rank's share is not contiguous.
    if (row.quantizer->schema.parameter_index("swizzled_scales") >= 0)
      wanted.attributes["swizzled_scales"] = {Attribute(false)};
  }
  for (const auto& [name, wanted] : by_op) add_gather_pattern(patterns, patterns.ops().at(name), wanted);
}
