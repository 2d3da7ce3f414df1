#pragma once

// Tensors and calls for the tests of the CPU's row-wise and attention kernels.

#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "ir/op.h"
#include "kernels/registry.h"
#include "tensor/device.h"
#include "tensor/tensor.h"
#include "tests/kernels/compiled_calls.h"
#include "tests/test_context.h"

namespace weft {

// The row-wise and attention kernels, prepared for one ceiling of instruction sets.
class RowKernels {
 public:
  RowKernels(const std::string& ceiling, int threads);
  const KernelRegistry& registry() const { return registry_; }
  Verdict supports(const std::string& op, const std::vector<std::optional<Tensor>>& operands,
                   const Attributes& attributes, const std::vector<Meta>& results) const;
  // Runs the op on copies of the operands that it writes over; attributes that are not given are the defaults. Checks
  // that nothing outside its results and the scratch it asked for was written. Under the highest ceiling of the host
  // the first call of each op with operands of the same types is also compiled, which takes longer than the call, and
  // must give the same bits.
  std::vector<Tensor> call(const std::string& op, const std::vector<std::optional<Tensor>>& given,
                           const Attributes& attributes, const std::vector<Meta>& results);

 private:
  DeviceDescription device_;
  OpTable ops_;
  KernelRegistry registry_;
  ThreadPool threads_;
  std::optional<CompiledCalls> compiled_;
  std::set<std::string> were_compiled_;
};

// Runs `check` for every ceiling of this host, on one and on two threads.
template <class Check>
void for_each_machine(Check check) {
  for (const std::string& ceiling : vector_features_to_try()) {
    for (int threads : thread_counts_to_try()) {
      SCOPED_TRACE(fmt::format("{}, {} threads", ceiling, threads));
      RowKernels kernels(ceiling, threads);
      check(kernels);
    }
  }
}

inline const std::vector<DType> kFloatTypes{DType::f32, DType::f16, DType::bf16};

// `value` as it reads after a store as dtype.
float rounded(DType dtype, float value);
// Elements of an f32, f16 or bf16 tensor in row-major order, for any strides.
std::vector<float> values_of(const Tensor& tensor);
// The reverse; values are rounded to the dtype.
Tensor tensor_of(DType dtype, Shape shape, const std::vector<float>& values);
Tensor indices_of(const std::vector<std::int64_t>& values);
// The same elements with rows `padding` elements apart from their neighbours.
Tensor with_row_padding(const Tensor& tensor, std::int64_t padding);

// About N(0, 1).
std::vector<float> normal_values(std::size_t count, std::uint32_t seed);
// Rows of ordinary numbers, and among them rows with a NaN, infinities, zeros of both signs, denormals, and numbers so
// large that squares overflow.
std::vector<float> rows_with_specials(std::int64_t rows, std::int64_t columns, std::uint32_t seed);

// Bit equality, except that a NaN equals any NaN.
void expect_same_bits(const std::vector<float>& wanted, const std::vector<float>& came, const std::string& what);

}  // namespace weft
