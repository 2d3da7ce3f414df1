#include "ops/all_reduce.h"

#include "ops/over_ranks.h"

namespace weft {

Value all_reduce(const Value& x, std::int64_t world_size, std::string_view group_name, CallSite site) {
  return call(site, "all_reduce", {x}, {{"world_size", world_size}, {"group_name", group_name}})[0];
}

}  // namespace weft

OP(all_reduce) {
  op.schema("all_reduce(Tensor x, int world_size, str group_name) -> Tensor").function(&weft::all_reduce);
  op.gives([](const OpRequest& request) {
    checked_world_size(request, "all_reduce");
    require_summable(request, "all_reduce");
    return std::vector<Meta>{Meta::tensor(request.operand(0).dtype, request.operand(0).shape)};
  });
  op.sample({{"x", {4, 64}}}, {{"world_size", 1}, {"group_name", "tp"}});
  op.sample({{"x", {8, 576}}}, {{"world_size", 1}, {"group_name", "tp"}});
  op.sample({{"x", {2, 3, 5}}}, {{"world_size", 1}, {"group_name", "tp:0"}});
}
