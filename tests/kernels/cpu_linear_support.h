#pragma once

// Weights, calls and definitions for the tests of the CPU's linear family.

#include <bit>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "kernels/registry.h"
#include "tensor/device.h"
#include "tensor/tensor.h"
#include "tests/kernels/compiled_calls.h"

namespace weft {

void define_kernels_cpu_packing(KernelRegistry& registry);
void define_kernels_cpu_linear(KernelRegistry& registry);
void define_kernels_cpu_linear_int8(KernelRegistry& registry);
void define_kernels_cpu_grouped_linear(KernelRegistry& registry);
void define_kernels_cpu_embedding(KernelRegistry& registry);

// The kernels of the family, prepared for one ceiling of instruction sets.
class LinearFamily {
 public:
  LinearFamily(const std::string& ceiling, int threads);
  ThreadPool& threads() { return threads_; }
  CpuFeatures features() const { return device_.features; }
  const KernelRegistry& registry() const { return registry_; }
  Verdict supports(const std::string& op, const std::vector<std::optional<Tensor>>& operands,
                   const Attributes& attributes, const Meta& result) const;
  // Runs the op and checks that nothing before or after the result, or after the requested scratch memory, was written,
  // and that the compiled call has the same bits.
  Tensor call(const std::string& op, const std::vector<std::optional<Tensor>>& operands, const Attributes& attributes,
              const Meta& result);
  // From now on calls run this instead of the op's own code.
  void run_with(std::function<void(const KernelCall&)> run) { run_ = std::move(run); }
  // The packed form of a plain weight; itself if its type has none.
  Tensor pack(const Tensor& plain) const;

 private:
  DeviceDescription device_;
  KernelRegistry registry_;
  ThreadPool threads_;
  CompiledCalls compiled_;
  std::function<void(const KernelCall&)> run_;
};

// A weight [columns, depth] of arbitrary codes. Scales of q4_0, q4_1 and q8_0 are finite f16 of all magnitudes up to 1,
// subnormals and zeros among them; of other block types the largest value of each block is between 1/8 and 1. Of the
// float types, values are in [-1, 1].
Tensor random_weight(DType dtype, std::int64_t columns, std::int64_t depth, std::uint32_t seed);
Tensor random_floats(DType dtype, Shape shape, std::uint32_t seed);

std::vector<DType> float_types();
std::vector<DType> block_types();
// float_types() and block_types().
std::vector<DType> weight_types();
// Those with products over codes.
std::vector<DType> integer_block_types();
// The least depth from `depth` on that is whole blocks.
std::int64_t whole_blocks(DType dtype, std::int64_t depth);

}  // namespace weft
