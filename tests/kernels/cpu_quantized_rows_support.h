#pragma once

// Row-wise ops with a quantization behind them: one kernel for both beside a kernel for each.

#include <optional>
#include <string>
#include <vector>

#include "tests/kernels/cpu_rows_support.h"

namespace weft {

void set_all(Attributes& attributes, const Attributes& more);

// One quantization of rows of so many columns.
struct Tail {
  std::string op;
  Attributes attributes;
  std::vector<Meta> results;
  std::optional<Tensor> tensor = {};  // scales or scale_ub, where it takes one and is given one
};

Attributes fp8_groups(std::int64_t group);

// The tail of what the first op gave, and the one kernel for both.
std::vector<Tensor> quantized(RowKernels& kernels, const Tail& tail, const Tensor& x);
std::vector<Tensor> fused(RowKernels& kernels, const std::string& front, const Tail& tail,
                          std::vector<std::optional<Tensor>> operands, Attributes attributes,
                          const std::vector<Meta>& more_results = {});

// Codes and scales; the sign of a NaN is not specified, and fp8 codes carry it.
void expect_same_results(const std::vector<Tensor>& wanted, const std::vector<Tensor>& came);

}  // namespace weft
