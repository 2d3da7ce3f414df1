#pragma once

// Stacks of experts in the MXFP4 layout of gpt-oss's folders: X_blocks u8[experts, rows, groups, 16] and X_scales
// u8[experts, rows, groups]. A group is 32 elements with one exponent. Byte j has element 2 j in its low half
// and element 2 j + 1 in its high half.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "io/quantization_config.h"

namespace weft {

// Writes a block of ggml's type mxfp4 with this exponent. Byte j of the 16 bytes of codes is as above.
void write_mxfp4_block(const std::byte* codes, std::byte exponent, std::byte* block);

// Checks that the two tensors are a stack of this shape. Otherwise throws a UserError that names the first tensor that
// is missing or differs.
void check_mxfp4_stack(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight,
                       const std::vector<std::int64_t>& shape);
// The tensors that check_mxfp4_stack requires. Throws a UserError that names the weight if the shape is not that of a
// stack with rows of whole groups.
std::vector<NamedMeta> mxfp4_tensors(const QuantizationConfig& config, const std::string& weight,
                                     const std::vector<std::int64_t>& shape);

// The stack in blocks of ggml's type mxfp4, which has the same values, and its type.
Meta mxfp4_stack_meta(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight);
Tensor mxfp4_stack(const Checkpoint& checkpoint, const QuantizationConfig& config, const std::string& weight);

}  // namespace weft
