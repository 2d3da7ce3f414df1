#include "ops/lay_out.h"

#include "base/error.h"
#include "ir/op.h"

namespace weft {
namespace {

// Whether two elements may have the same offset. In the order of strides, the stride of each dim must be at least the
// span of the dims before it. Returns false when a dim or a stride has symbols.
bool overlaps(const Meta& meta) {
  const Shape strides = meta.full_strides();
  std::vector<std::pair<std::int64_t, std::int64_t>> dims;  // stride, extent
  for (std::size_t i = 0; i < meta.rank(); ++i) {
    if (!strides[i].is_number() || !meta.shape[i].is_number()) return false;
    if (meta.shape[i].number() == 0) return false;
    if (meta.shape[i].number() > 1) dims.emplace_back(strides[i].number(), meta.shape[i].number());
  }
  std::sort(dims.begin(), dims.end());
  std::int64_t covered = 1;
  for (const auto& [stride, extent] : dims) {
    if (stride < covered) return true;
    covered += (extent - 1) * stride;
  }
  return false;
}

}  // namespace

Value lay_out(const Value& x, Shape strides, CallSite site) {
  return call(site, "lay_out", {x}, {{"strides", strides}})[0];
}

}  // namespace weft

OP(lay_out) {
  op.schema("lay_out(Tensor x, int[] strides) -> Tensor").function(&weft::lay_out);
  op.gives([](const OpRequest& request) {
    const Meta& x = request.operand(0);
    USER_CHECK(x.is_tensor() && x.packed.empty() && has_addresses(x.dtype),
               "[lay_out] x must be a tensor of whole bytes, but is {}", x.text());
    const Meta result = Meta::strided(x.dtype, x.shape, request.attributes.at("strides").as_shape());
    USER_CHECK(!overlaps(result), "[lay_out] strides must give each element a place of its own, but are {}",
               result.text());
    return std::vector<Meta>{result};
  });
  op.exact();
  op.sample({{"x", {5, 3}}}, {{"strides", Attribute::shape({1, 5})}});
  op.sample({{"x", {5, 3}}}, {{"strides", Attribute::shape({8, 1})}});
  op.sample({{"x", {2, 5, 3}}}, {{"strides", Attribute::shape({24, 1, 8})}});
}
