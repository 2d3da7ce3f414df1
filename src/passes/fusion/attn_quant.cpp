// Fuses attention and the quantization of its rows, so that the kernel writes codes. A scheme qualifies only if its
// groups are within one head: a kernel that computes one head never has the whole row. Attention with sinks, a bias
// or a bound of its scores is not fused: the ops after the fusion have none of these.

#include "base/error.h"
#include "ops/reshape.h"
#include "passes/pattern_pass.h"
#include "passes/scheme_table.h"

namespace weft {
namespace {

void add_attention_pattern(PatternList& patterns, const SchemeRow& row, const Op& fused) {
  const Op& epilogue = *row.quantizer;
  PatternDefinition pattern(fused.name, patterns.ops());
  const Value query = pattern.value(
      "query",
      {.dtype_wildcard = "dtype", .shape = {Dim::symbol("?tokens"), Dim::symbol("?heads"), Dim::symbol("?head_dim")}});
  const Value kv = pattern.value("kv"), batch = pattern.value("batch");
  const Value given = pattern.value(fused.schema.parameters[3].name);
  const Attribute scale = pattern.attribute("scale", ParameterType::real);
  const Attribute window = pattern.attribute("window", ParameterType::integer);
  NamedAttributes own = row.attributes;
  for (std::size_t i = epilogue.schema.tensor_count(); i < epilogue.schema.parameters.size(); ++i) {
    const Parameter& parameter = epilogue.schema.parameters[i];
    const bool stated =
        std::any_of(own.begin(), own.end(), [&](const auto& one) { return one.first == parameter.name; });
    if (!stated) own.emplace_back(parameter.name, pattern.attribute(parameter.name, parameter.type));
  }
  pattern.before([&] {
    const Value heads = call("attention", {query, kv, batch, Value(), Value()},
                             {{"scale", scale}, {"window", window}, {"softcap", Attribute(0.0)}})[0];
    const Value rows = reshape(heads, {Dim::symbol("?tokens"), Dim::symbol("?heads") * Dim::symbol("?head_dim")});
    return call(epilogue.name.c_str(), {rows, given}, own);
  });
  pattern.after([&] {
    NamedAttributes all = own;
    all.emplace_back("scale", scale);
    all.emplace_back("window", window);
    return call(fused.name.c_str(), {query, kv, batch, given}, all);
  });
  patterns.add(std::move(pattern));
}

}  // namespace
}  // namespace weft

PATTERNS(attn_quant) {
  using namespace weft;
  const SchemeTable schemes(patterns.ops());
  for (const QuantKey& key : {fp8_static_tensor(patterns.fp8()), nvfp4_dynamic()}) {
    const SchemeRow* row = schemes.find(key);
    CHECK(row != nullptr, "[{}] no op quantizes by {}, which its pattern needs", patterns.fusion(), key.text());
    const Op* fused = schemes.fused("attention", *row);
    CHECK(fused != nullptr, "[{}] no op is attention and {} in one, which the pattern over {} needs", patterns.fusion(),
          row->quantizer->name, key.text());
    add_attention_pattern(patterns, *row, *fused);
  }
}
