#include "ops/topk.h"

#include "base/error.h"
#include "ir/op.h"
#include "ir/shape_rules.h"

namespace weft {

std::pair<Value, Value> topk(const Value& x, std::int64_t k, std::int64_t groups, std::int64_t used_groups,
                             std::int64_t group_top, CallSite site) {
  return call(site, "topk", {x},
              {{"k", k}, {"groups", groups}, {"used_groups", used_groups}, {"group_top", group_top}});
}

}  // namespace weft

OP(topk) {
  op.schema(
        "topk(Tensor x, int k, int groups=1, int used_groups=1, int group_top=1) -> (Tensor values, Tensor indices)")
      .function(&weft::topk);
  op.gives([](const OpRequest& request) {
    const Meta& x = request.operand(0);
    require_floating(x, "topk", "x");
    USER_CHECK(x.rank() >= 1 && x.shape.back().is_number(), "[topk] x must have rows of a known width, but is {}",
               x.text());
    const std::int64_t width = x.shape.back().number(), k = request.attributes.at("k").integer();
    const std::int64_t groups = request.attributes.at("groups").integer();
    USER_CHECK(groups >= 1 && width % groups == 0, "[topk] groups must divide the {} elements of a row, but is {}",
               width, groups);
    const std::int64_t used = request.attributes.at("used_groups").integer();
    USER_CHECK(used >= 1 && used <= groups, "[topk] used_groups must be 1 to groups {}, but is {}", groups, used);
    const std::int64_t top = request.attributes.at("group_top").integer();
    USER_CHECK(top >= 1 && top <= width / groups,
               "[topk] group_top must be 1 to {}, the elements of a group, but is {}", width / groups, top);
    USER_CHECK(k >= 1 && k <= width / groups * used,
               "[topk] k must be 1 to {}, the elements of the used groups, but is {}", width / groups * used, k);
    Shape shape = x.shape;
    shape.back() = k;
    return std::vector<Meta>{Meta::tensor(x.dtype, shape), Meta::tensor(DType::i32, shape)};
  });
  // Sums of groups are rounded.
  op.exact([](const Attributes& attributes) { return attributes.at("groups").integer() == 1; });
  op.sample({{"x", {5, 16}}}, {{"k", 4}});
  op.sample({{"x", {3, 8}}}, {{"k", 8}});
  op.sample({{"x", {2, 3, 10}}}, {{"k", 1}});
  op.sample({{"x", {4, 12}}}, {{"k", 3}, {"groups", 4}, {"used_groups", 2}, {"group_top", 2}});
}
