#pragma once

// Row-wise ops followed by a quantization: one kernel for both, compared with a kernel for each.

#include <optional>
#include <string>
#include <vector>

#include "tests/kernels/cpu_rows_support.h"

namespace weft {

void set_all(Attributes& attributes, const Attributes& more);

// One quantization of rows with this number of columns.
struct Epilogue {
  std::string op;
  Attributes attributes;
  std::vector<Meta> results;
  std::optional<Tensor> tensor = {};  // scales or scale_ub, if it takes one and is given one
};

Attributes fp8_groups(std::int64_t group);

// The quantization of the first op's result, and the single kernel for both.
std::vector<Tensor> quantized(RowKernels& kernels, const Epilogue& epilogue, const Tensor& x);
std::vector<Tensor> fused(RowKernels& kernels, const std::string& front, const Epilogue& epilogue,
                          std::vector<std::optional<Tensor>> operands, Attributes attributes,
                          const std::vector<Meta>& more_results = {});

// Codes and scales; the sign of a NaN is not specified, and fp8 codes carry it.
void expect_same_results(const std::vector<Tensor>& wanted, const std::vector<Tensor>& came);

}  // namespace weft
