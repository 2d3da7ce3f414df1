// The heads of query and key, normalised and rotated, leave one op.

#include "ops/reshape.h"
#include "passes/pattern_pass.h"

PATTERNS(qk_norm_rope) {
  PatternDefinition pattern("fused_qk_norm_rope", patterns.ops());
  const Dim tokens = Dim::symbol("?tokens"), head_size = Dim::symbol("?head_size");
  const auto heads_of = [&](const char* name, const char* width) {
    return pattern.value(name, {.dtype_wildcard = "dtype", .shape = {tokens, Dim::symbol(width)}});
  };
  const Value positions = pattern.value("positions");
  const Value query = heads_of("query", "?query_width"), key = heads_of("key", "?key_width");
  const Value query_weight = pattern.value("query_weight"), key_weight = pattern.value("key_weight");
  const Value table = pattern.value("cos_sin_cache");
  const Attribute epsilon = pattern.real("epsilon").value, size = pattern.integer("head_size");
  const std::vector<std::pair<std::string, Attribute>> rotation = {
      {"head_size", size},
      {"rotary_dim", pattern.integer("rotary_dim")},
      {"is_neox_style", pattern.attribute("is_neox_style", ParameterType::boolean)}};
  pattern.integer("query_heads");
  pattern.integer("key_heads");
  const auto normalised = [&](const Value& x, const Value& weight, const char* heads, const char* width) {
    const Value by_head = reshape(x, {tokens, Dim::symbol(heads), head_size});
    const Value y = call("rms_norm", {by_head, weight}, {{"epsilon", epsilon}, {"variance_size", Attribute()}})[0];
    return reshape(y, {tokens, Dim::symbol(width)});
  };
  pattern.before([&] {
    const Value q = normalised(query, query_weight, "?query_heads", "?query_width");
    const Value k = normalised(key, key_weight, "?key_heads", "?key_width");
    return call("rotary_embedding", {positions, q, k, table}, rotation);
  });
  pattern.after([&] {
    auto all = rotation;
    all.emplace_back("epsilon", epsilon);
    return call("fused_qk_norm_rope", {positions, query, key, query_weight, key_weight, table}, all);
  });
  patterns.add(std::move(pattern));
}
