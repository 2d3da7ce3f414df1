#include "ops/rank_slice.h"

#include "ops/over_ranks.h"

namespace weft {

Value rank_slice(const Value& x, std::int64_t dim, std::int64_t world_size, std::string_view group_name,
                 CallSite site) {
  return call(site, "rank_slice", {x}, rank_attributes(dim, world_size, group_name))[0];
}

}  // namespace weft

OP(rank_slice) {
  op.schema("rank_slice(Tensor x, int dim, int world_size, str group_name) -> Tensor").function(&weft::rank_slice);
  op.rows_of(nullptr);  // which rows these are depends on the rank
  op.gives([](const OpRequest& request) { return part_of_ranks(request, "rank_slice"); });
  op.exact();
  op.sample({{"x", {4, 64}}}, {{"dim", 0}, {"world_size", 1}, {"group_name", "tp"}});
  op.sample({{"x", {4, 32}, DType::i8}}, {{"dim", 0}, {"world_size", 1}, {"group_name", "tp"}});
  op.sample({{"x", {2, 3, 5}}}, {{"dim", -1}, {"world_size", 1}, {"group_name", "tp:0"}});
}
