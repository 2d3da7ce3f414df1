#include "kernels/cpu/lib/group_quant.h"

#include <fmt/core.h>

#include "base/error.h"

namespace weft::cpu {

Verdict waiting_groups(const KernelRequest& request) {
  const std::int64_t group = request.attributes.at("group_size").integer();
  if (group <= kBlockColumns) return Verdict::yes();
  return Verdict::no(fmt::format("group_size is {}; up to {} are supported", group, kBlockColumns));
}

GroupQuantTask group_quant_task(const KernelCall& call, std::int64_t columns) {
  GroupQuantTask task;
  task.columns = columns;
  task.group = call.attributes.at("group_size").integer();
  CHECK(task.group > 0 && columns % task.group == 0, "[cpu] group_size {} of {} columns", task.group, columns);
  task.least = static_cast<float>(call.attributes.at("eps").real());
  task.toward_zero = call.attributes.at("rounding").word() == "toward_zero";
  return task;
}

GroupQuantTask with_results(GroupQuantTask task, const RowRun& run) {
  task.codes = reinterpret_cast<std::int8_t*>(run.data[0]);
  task.codes_stride = run.stride[0];
  task.scales = reinterpret_cast<float*>(run.data[1]);
  task.scales_stride = run.stride[1];
  task.rows = run.count;
  return task;
}

}  // namespace weft::cpu
