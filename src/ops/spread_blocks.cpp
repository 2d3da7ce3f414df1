#include "ops/spread_blocks.h"

#include "base/error.h"

namespace weft {

Value spread_blocks(const Value& x, Shape shape, Shape block, CallSite site) {
  return call(site, "spread_blocks", {x}, {{"shape", shape}, {"block", block}})[0];
}

}  // namespace weft

OP(spread_blocks) {
  op.schema("spread_blocks(Tensor x, int[] shape, int[] block) -> Tensor").function(&weft::spread_blocks);
  op.gives([](const OpRequest& request) {
    const Meta& x = request.operand(0);
    const Shape shape = request.attributes.at("shape").as_shape(), block = request.attributes.at("block").as_shape();
    USER_CHECK(x.is_tensor() && x.rank() == 2 && is_floating(x.dtype),
               "[spread_blocks] x must be a floating matrix, but is {}", x.text());
    USER_CHECK(shape.size() == 2, "[spread_blocks] shape must be that of a matrix, but is {}", shape_text(shape));
    USER_CHECK(block.size() == 2 && block[0].is_number() && block[1].is_number() && block[0].number() > 0 &&
                   block[1].number() > 0,
               "[spread_blocks] block must be two positive numbers, but is {}", shape_text(block));
    const Shape blocks{ceildiv(shape[0], block[0].number()), ceildiv(shape[1], block[1].number())};
    USER_CHECK(x.shape == blocks, "[spread_blocks] x must be {} to fill {} by blocks of {}, but is {}",
               shape_text(blocks), shape_text(shape), shape_text(block), x.text());
    return std::vector<Meta>{Meta::tensor(x.dtype, shape)};
  });
  op.rows_of(nullptr);
  op.exact();
  op.sample({{"x", {3, 2}}}, {{"shape", Attribute::shape({5, 7})}, {"block", Attribute::shape({2, 4})}});
  op.sample({{"x", {4, 3}}}, {{"shape", Attribute::shape({4, 96})}, {"block", Attribute::shape({1, 32})}});
}
