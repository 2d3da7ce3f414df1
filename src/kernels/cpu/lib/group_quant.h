#pragma once

// What kernels share whose results are int8 codes and scales of groups along each row.

#include "kernels/cpu/lib/quantised_rows_kernels.h"
#include "kernels/cpu/lib/rows.h"
#include "kernels/kernel.h"

namespace weft::cpu {

// Whether groups of the attribute group_size fit the block in which another op's result waits.
Verdict waiting_groups(const KernelRequest& request);

// The task that the call's attributes state, for rows of `columns`; nothing to read or write yet.
GroupQuantTask group_quant_task(const KernelCall& call, std::int64_t columns);

// The task with the codes and scales of a run's first two operands.
GroupQuantTask with_results(GroupQuantTask task, const RowRun& run);

}  // namespace weft::cpu
