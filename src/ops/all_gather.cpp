#include "ops/all_gather.h"

#include "ops/over_ranks.h"

namespace weft {

Value all_gather(const Value& x, std::int64_t dim, std::int64_t world_size, std::string_view group_name,
                 CallSite site) {
  return call(site, "all_gather", {x}, rank_attributes(dim, world_size, group_name))[0];
}

}  // namespace weft

OP(all_gather) {
  op.schema("all_gather(Tensor x, int dim, int world_size, str group_name) -> Tensor").function(&weft::all_gather);
  op.rows_of(nullptr);  // the position of a row depends on its rank
  op.gives([](const OpRequest& request) {
    const std::int64_t ranks = checked_world_size(request, "all_gather");
    const std::size_t axis = checked_rank_axis(request, "all_gather");
    Shape shape = request.operand(0).shape;
    shape[axis] = shape[axis] * Dim(ranks);
    return std::vector<Meta>{Meta::tensor(request.operand(0).dtype, std::move(shape))};
  });
  op.exact();
  op.sample({{"x", {4, 64}}}, {{"dim", 0}, {"world_size", 1}, {"group_name", "tp"}});
  op.sample({{"x", {2, 128}}}, {{"dim", 0}, {"world_size", 1}, {"group_name", "tp"}});
  op.sample({{"x", {4, 32}, DType::f8e4m3}}, {{"dim", 0}, {"world_size", 1}, {"group_name", "tp"}});
  op.sample({{"x", {3, 6}, DType::f4e2m1}}, {{"dim", 0}, {"world_size", 1}, {"group_name", "tp"}});
  op.sample({{"x", {2, 3, 5}}}, {{"dim", -1}, {"world_size", 1}, {"group_name", "tp:0"}});
}
