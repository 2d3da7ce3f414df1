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
// Sides that are known at the call alone: UserError, naming `kernel`, for one of x that is 2^31 or more.
void check_sides(const std::string& kernel, const TensorView& x);

// Of per_token_group_quant_fp8 and _int8, alone or as the end of another op, in groups of 32, 64 or 128 columns; the
// scales are that result.
Verdict supports_groups(const KernelRequest& request, std::size_t scales);
GroupRule group_rule(const KernelCall& call);
ScalePlaces scale_places(const TensorView& scales);  // [rows, groups]

}  // namespace weft::cuda
