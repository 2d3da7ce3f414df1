#pragma once

// attention_<quantizing op>: quantizes the result of attention, one row for each token. The result of attention is
// first rounded to the dtype of query.

#include "base/error.h"
#include "ir/shape_rules.h"
#include "ops/attention.h"
#include "ops/quant_epilogue.h"
#include "ops/reshape.h"

namespace weft {

inline Dim attention_width(const Meta& query) { return query.shape[1] * query.shape[2]; }

inline void define_attention_quant(OpDefinition& op, const char* name, const QuantEpilogue& epilogue) {
  const std::string schema =
      fmt::format("{}(Tensor query, Tensor kv, Tensor batch{}, float scale{}, int? window=None{}) -> {}", name,
                  epilogue.tensors, epilogue.required, epilogue.attributes, result_list(epilogue.results));
  op.schema(schema.c_str());
  op.splits_as("attention");
  op.checks([name, check = epilogue.check](const OpRequest& request) {
    const Meta& query = request.operand(0);
    require_floating(query, name, "query");
    USER_CHECK(query.rank() == 3, "[{}] query must be [tokens, heads, head_dim], but is {}", name, query.text());
    check_attention_window(request.attributes, name);
    check(request, name, {query.shape[0], attention_width(query)}, 3);
  });
  op.means([quantize = EpilogueCall(epilogue)](Evaluator&, const Values& v, const Attributes& a) {
    const Value heads = call("attention", {v[0], v[1], v[2], Value(), Value()},
                             {{"scale", a.at("scale")}, {"window", a.at("window")}})[0];
    const Meta& query = v[0].meta();
    return quantize(reshape(heads, {query.shape[0], attention_width(query)}), v[3], a);
  });
  const NamedAttributes whole = {{"scale", 0.25}}, windowed = {{"scale", 0.25}, {"window", 9}};
  for (const auto& [block, attributes] : {std::pair{1, whole}, {16, whole}, {16, windowed}}) {
    const KvLayout layout{.dtype = DType::f16, .block = block, .heads = 2, .head_dim = 16};
    add_epilogue_samples(op, epilogue,
                         {{"query", {9, 4, 16}},
                          SampleTensor::pages("kv", layout, 3 * (80 / block + 1)),
                          SampleTensor::batch("batch", {{1, 70}, {7, 7}, {1, 33}}, block)},
                         attributes);
  }
  // Attention may add in any order, so a value near the boundary of two codes may get either code.
  op.tolerance(DType::f8e4m3, {.absolute = 0x1p-9, .relative = 0.125});
  op.tolerance(DType::f8e4m3fnuz, {.absolute = 0x1p-10, .relative = 0.125});
  op.tolerance(DType::f4e2m1, {.absolute = 0.5, .relative = 0.5});
}

}  // namespace weft
