#pragma once

// Calls made from an op's samples, for what runs every op and every kernel: tests, `plugin check`, `bench ops`.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/op.h"

namespace weft {

struct SampleCall {
  std::vector<Tensor> operands;  // schema order; undefined for an absent optional tensor
  Attributes attributes;         // complete
  std::string text;              // what it is, for messages; equal for calls of equal types
};

// The dtypes a sample is tried with: f32, bf16 and f16 where one of its tensors takes the dtype under test.
std::vector<DType> sample_dtypes(const Sample& sample);
SampleCall make_sample_call(const Op& op, const Sample& sample, DType dtype);
// The metas of its operands, nullopt for undefined ones; no values are made for them.
std::vector<std::optional<Meta>> sample_metas(const Op& op, const Sample& sample, DType dtype);
// The sample with each of its dtypes.
std::vector<SampleCall> sample_calls(const Op& op, const Sample& sample);
// Every sample of the op, likewise.
std::vector<SampleCall> sample_calls(const Op& op);

// The tensors of a sample that have its rows, by number: the one the op says, with all that must follow it. None where
// the rows cannot be others.
std::set<std::size_t> tensors_with_rows(const Op& op, const OpTable& ops, const Sample& sample);
// The sample with `rows` rows in these tensors. Indices point at as many things as before; slots of pages stay
// distinct.
Sample with_row_count(Sample sample, const std::set<std::size_t>& tensors, std::int64_t rows);

// nullopt, or a Value that is not there, for undefined tensors.
std::vector<std::optional<Meta>> metas_of(const std::vector<Tensor>& tensors);
Values values_of(Evaluator& home, const std::vector<Tensor>& tensors);

// Elements of any tensor or KV pages, row-major, as doubles.
std::vector<double> elements_of(const Tensor& tensor);

// "" when `came` is `wanted`: of its shape and dtype or layout of pages, each element within the tolerance, a NaN for a
// NaN; else what differs first. With `exact` nothing is tolerated, nor is a zero of the other sign.
std::string difference(const Tensor& wanted, const Tensor& came, Tolerance tolerance, bool exact = false);

}  // namespace weft
