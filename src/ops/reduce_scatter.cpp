#include "ops/reduce_scatter.h"

#include "ops/over_ranks.h"

namespace weft {

Value reduce_scatter(const Value& x, std::int64_t dim, std::int64_t world_size, std::string_view group_name,
                     CallSite site) {
  return call(site, "reduce_scatter", {x}, rank_attributes(dim, world_size, group_name))[0];
}

}  // namespace weft

OP(reduce_scatter) {
  op.schema("reduce_scatter(Tensor x, int dim, int world_size, str group_name) -> Tensor")
      .function(&weft::reduce_scatter);
  op.rows_of(nullptr);  // which rows a rank gets depends on the rank
  op.gives([](const OpRequest& request) {
    require_summable(request, "reduce_scatter");
    return part_of_ranks(request, "reduce_scatter");
  });
  op.sample({{"x", {4, 64}}}, {{"dim", 0}, {"world_size", 1}, {"group_name", "tp"}});
  op.sample({{"x", {2, 3, 5}}}, {{"dim", -1}, {"world_size", 1}, {"group_name", "tp:0"}});
}
