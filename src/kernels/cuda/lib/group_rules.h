#pragma once

// What registered kernels of this provider share: on which device they run, which tensors they take, and the rule of
// scales that a call's attributes state.

#include <optional>
#include <string>

#include "kernels/cuda/lib/arguments.h"
#include "kernels/kernel.h"

namespace weft::cuda {

// Yes on a fake device alone, whose memory is the host's and whose kernels run in the emulator.
Verdict supported(const DeviceDescription& device);

// Whether the operand is a contiguous matrix of bf16, f16 or f32, its sides below 2^31 as far as they are known.
Verdict float_matrix(const std::optional<Meta>& meta, const char* name);
// Of sides that are known at the call alone (group_launch.h).
void check_sides(const std::string& kernel, const TensorView& x);

// Whether rows of x are whole loads of 16 bytes; and whether codes are f8e4m3, or int8 where no attribute says of what.
Verdict whole_loads(const Meta& x);
Verdict supports_codes(const KernelRequest& request);

// Of per_token_group_quant_fp8 and _int8, alone or as the end of another op, in groups of 32, 64 or 128 columns; the
// scales are that result.
Verdict supports_groups(const KernelRequest& request, std::size_t scales);
bool truncates(const Attributes& attributes);  // codes of int8: by another kernel, whose codes are `i8_truncated`
// `bound`: which operand is the scale_ub of _fp8.
GroupRule group_rule(const KernelCall& call, std::size_t bound);
// Of dynamic_per_token_scaled_fp8_quant, whose scale_ub is that operand, and _int8_quant, alone or as such an end.
GroupRule token_rule(const KernelCall& call, std::size_t bound);
ScalePlaces scale_places(const TensorView& scales);  // [rows, groups]

}  // namespace weft::cuda
