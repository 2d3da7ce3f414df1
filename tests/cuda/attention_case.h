#pragma once

// Calls of the op attention for tests of its CUDA kernels.

#include <string>
#include <utility>
#include <vector>

#include "compiler/context.h"
#include "compiler/run/sample_call.h"
#include "emulator/emulator.h"

namespace weft {

// One call of the op.
struct AttentionCase {
  using Sequences = std::vector<std::pair<int, int>>;  // rows of this step and tokens, by sequence

  KvLayout kv;
  int group = 1;
  DType query = DType::f32;
  Sequences sequences;
  Attribute window = {};

  std::int64_t rows() const;
  SampleCall call(const Context& context) const;
};

// The kernel's own result with this number of bytes of scratch memory. Without any, blocks do not share sequences.
Tensor attend(const Context& context, const std::vector<Tensor>& operands, const Attributes& attributes,
              std::size_t scratch_bytes, const std::string& provider = "cuda");
constexpr std::size_t kAttentionScratch = 1 << 20;

// The sizes of the first axis.
std::vector<std::byte> bytes_of_row(const Tensor& tensor, std::int64_t row);

// Accesses of the first kernel that a call launches without scratch memory, those with the most requested bytes first.
std::vector<cuda::AccessTraffic> attention_traffic(const Context& context, const SampleCall& made,
                                                   const std::string& provider = "cuda");

}  // namespace weft
