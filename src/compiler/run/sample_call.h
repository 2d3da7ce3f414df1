#pragma once

// Makes calls from an op's samples, for code that runs every op and every kernel: tests, `plugin check`, `bench ops`.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/op.h"

namespace weft {

struct SampleCall {
  std::vector<Tensor> operands;  // schema order; undefined for an absent optional tensor
  Attributes attributes;         // complete
  std::string text;              // the call as text, for messages; equal for calls of equal types
};

// The dtypes to try a sample with: f32, bf16 and f16 where one of its tensors has the dtype under test.
std::vector<DType> sample_dtypes(const Sample& sample);
SampleCall make_sample_call(const Op& op, const Sample& sample, DType dtype);
// The metas of the call's operands, nullopt for undefined ones; no tensors are allocated.
std::vector<std::optional<Meta>> sample_metas(const Op& op, const Sample& sample, DType dtype);
// One call for each dtype of the sample.
std::vector<SampleCall> sample_calls(const Op& op, const Sample& sample);
// The same for each sample of the op.
std::vector<SampleCall> sample_calls(const Op& op);

// The indices of the sample's tensors whose row count can be changed together: the tensor that the op names in rows_of,
// with all that must have the same row count. Empty where the row count cannot change.
std::set<std::size_t> tensors_with_rows(const Op& op, const OpTable& ops, const Sample& sample);
// The sample with `rows` rows in these tensors. Indices refer to the same number of elements as before; slots of pages
// stay distinct.
Sample with_row_count(Sample sample, const std::set<std::size_t>& tensors, std::int64_t rows);

// nullopt, or an absent Value, for undefined tensors.
std::vector<std::optional<Meta>> metas_of(const std::vector<Tensor>& tensors);
Values values_of(Evaluator& home, const std::vector<Tensor>& tensors);

// The elements of any tensor or KV pages, row-major, as doubles.
std::vector<double> elements_of(const Tensor& tensor);

// Returns "" when `came` equals `wanted`: same shape, same dtype or page layout, each element within the tolerance, and
// NaN where NaN is wanted; else the first difference. With `exact` the tolerance is zero, and the sign of zeros counts.
std::string difference(const Tensor& wanted, const Tensor& came, Tolerance tolerance, bool exact = false);

}  // namespace weft
