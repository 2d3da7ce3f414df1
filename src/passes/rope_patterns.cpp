#include "passes/rope_patterns.h"

#include <algorithm>

#include <fmt/core.h>

#include "ops/reshape.h"

namespace weft {
namespace {

class RopePattern {
 public:
  RopePattern(PatternDefinition& pattern, RopeNeighbours neighbours)
      : pattern_(pattern),
        neighbours_(neighbours),
        positions_(pattern.value("positions")),
        query_(heads_of("query", "?query_width")),
        key_(heads_of("key", "?key_width")) {
    if (neighbours.cache_update) value_ = pattern.value("value");
    if (neighbours.norms) {
      query_weight_ = pattern.value("query_weight");
      key_weight_ = pattern.value("key_weight");
    }
    table_ = pattern.value("cos_sin_cache");
    if (neighbours.cache_update) {
      kv_ = pattern.value("kv");
      slots_ = pattern.value("slots");
    }
    if (neighbours.norms) epsilon_ = pattern.attribute("epsilon", ParameterType::real);
    rotation_ = {{"head_size", pattern.integer("head_size")},
                 {"rotary_dim", pattern.integer("rotary_dim")},
                 {"is_neox_style", pattern.attribute("is_neox_style", ParameterType::boolean)}};
    if (neighbours.norms) pattern.integer("query_heads");
    pattern.integer("key_heads");
  }

  Values before() const {
    const Value q = neighbours_.norms ? normalized(query_, query_weight_, "?query_heads", "?query_width") : query_;
    const Value k = neighbours_.norms ? normalized(key_, key_weight_, "?key_heads", "?key_width") : key_;
    const Values rotated = call("rotary_embedding", {positions_, q, k, table_}, rotation_);
    if (!neighbours_.cache_update) return rotated;
    return {rotated[0], call("kv_cache_update", {by_head(rotated[1], "?key_heads"), value_, kv_, slots_}, {})[0]};
  }

  Values after(const char* op) const {
    Values tensors = {positions_, query_, key_};
    NamedAttributes attributes = rotation_;
    if (neighbours_.cache_update) tensors.push_back(value_);
    if (neighbours_.norms) {
      tensors.insert(tensors.end(), {query_weight_, key_weight_});
      attributes.emplace_back("epsilon", epsilon_);
    }
    tensors.push_back(table_);
    if (neighbours_.cache_update) tensors.insert(tensors.end(), {kv_, slots_});
    return call(op, tensors, attributes);
  }

 private:
  Value heads_of(const char* name, const char* width) {
    return pattern_.value(name, {.dtype_wildcard = "dtype", .shape = {tokens_, Dim::symbol(width)}});
  }

  Value by_head(const Value& x, const char* heads) const {
    return reshape(x, {tokens_, Dim::symbol(heads), Dim::symbol("?head_size")});
  }

  Value normalized(const Value& x, const Value& weight, const char* heads, const char* width) const {
    const NamedAttributes norm = {{"epsilon", epsilon_}, {"variance_size", Attribute()}};
    return reshape(call("rms_norm", {by_head(x, heads), weight}, norm)[0], {tokens_, Dim::symbol(width)});
  }

  PatternDefinition& pattern_;
  const RopeNeighbours neighbours_;
  const Dim tokens_ = Dim::symbol("?tokens");
  Value positions_, query_, key_, value_, query_weight_, key_weight_, table_, kv_, slots_;
  Attribute epsilon_;
  NamedAttributes rotation_;
};

}  // namespace

void add_rope_pattern(PatternList& patterns, const char* op, RopeNeighbours neighbours) {
  PatternDefinition definition(op, patterns.ops());
  const RopePattern pattern(definition, neighbours);
  definition.before([&] { return pattern.before(); });
  definition.after([&] { return pattern.after(op); });
  patterns.add(std::move(definition));
}

std::optional<std::string> no_rope_in_cache_update(const PassContext& context) {
  const std::vector<std::string>& cuts = context.splitting_ops;
  if (std::find(cuts.begin(), cuts.end(), "kv_cache_update") != cuts.end())
    return "-cc.splitting_ops cuts the graph at kv_cache_update, and the rotation is before the cut";
  const std::int64_t most = context.options.rope_kvcache_fusion_max_token_num;
  if (most > 0 && context.range.hi > most)
    return fmt::format("range ends at {}, rope_kvcache_fusion_max_token_num is {}", context.range.hi, most);
  return std::nullopt;
}

}  // namespace weft
