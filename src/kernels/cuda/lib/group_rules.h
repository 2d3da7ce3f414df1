#pragma once

// Checks that the kernels of this provider share: devices, tensors, and the rule of scales in a call's attributes.

#include <optional>
#include <string>

#include "kernels/cuda/lib/arguments.h"
#include "kernels/kernel.h"

namespace weft::cuda {

// Yes only for a fake device, whose memory is the host's and whose kernels run in the emulator.
Verdict supported(const DeviceDescription& device);

// Whether the operand is a contiguous matrix of bf16, f16 or f32 whose known sides are below 2^31.
Verdict float_matrix(const std::optional<Meta>& meta, const char* name);
// For sides that are known only at the call (group_launch.h).
void check_sides(const std::string& kernel, const TensorView& x);

// Whether rows of x are whole loads of 16 bytes; and whether codes are f8e4m3, or int8 if no attribute names a type.
Verdict whole_loads(const Meta& x);
Verdict supports_codes(const KernelRequest& request);

// For per_token_group_quant_fp8 and _int8, alone or as the epilogue of another op, in groups of 32, 64 or 128 columns;
// `scales` is the index of the result with the scales.
Verdict supports_groups(const KernelRequest& request, std::size_t scales);
bool truncates(const Attributes& attributes);  // int8 codes rounded to zero, of another kernel (`i8_truncated`)
// `bound` is the index of the operand scale_ub of _fp8.
GroupRule group_rule(const KernelCall& call, std::size_t bound);
// For dynamic_per_token_scaled_fp8_quant, whose scale_ub is the operand `bound`, and _int8_quant, alone or as an
// epilogue.
GroupRule token_rule(const KernelCall& call, std::size_t bound);
ScaleLayout scale_places(const TensorView& scales);  // [rows, groups]

}  // namespace weft::cuda
