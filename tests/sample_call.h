#pragma once

// Turns the samples of an op into calls, for the tests that run every op and every kernel.

#include <optional>
#include <string>
#include <vector>

#include "compiler/context.h"
#include "ir/op.h"

namespace weft {

// A Context with everything the program brings, held to a ceiling of instruction sets ("host" for none).
std::shared_ptr<Context> test_context(const std::string& cpu_features = "host", int threads = 2);

// The levels of instruction sets that this host has, lowest first.
std::vector<std::string> host_cpu_features();

struct SampleCall {
  std::vector<Tensor> operands;  // schema order; undefined for an absent optional tensor
  Attributes attributes;         // complete
  std::string text;              // what it is, for messages
};

// The dtypes a sample is tried with: f32, bf16 and f16 where one of its tensors takes the dtype under test.
std::vector<DType> sample_dtypes(const Sample& sample);
SampleCall make_sample_call(const Op& op, const Sample& sample, DType dtype);

// The metas of the operands, nullopt for absent ones.
std::vector<std::optional<Meta>> metas_of(const std::vector<Tensor>& tensors);
Values values_of(Evaluator& home, const std::vector<Tensor>& tensors);

// Elements of any tensor or KV pages, row-major, as doubles.
std::vector<double> elements_of(const Tensor& tensor);

// "" when `came` is `wanted` within the tolerance, else what differs first. A NaN equals any NaN. With `exact` every
// bit counts.
std::string difference(const Tensor& wanted, const Tensor& came, Tolerance tolerance, bool exact);

}  // namespace weft
