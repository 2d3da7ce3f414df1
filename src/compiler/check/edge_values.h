#pragma once

// Values at the edges of a dtype, where arithmetic, rounding or comparison behaves otherwise than around 1, and tensors
// that are filled with them.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace weft {

// How a tensor is filled. Only `sample` keeps the values of the sample.
enum class EdgeFill : std::uint8_t {
  sample,
  each,       // each edge, one after the other
  pairs,      // the chief edges, so that two tensors together hold all pairs of them
  equal,      // one of the chief edges in each row, the same in all tensors
  opposite,   // each edge, with the other sign in every other tensor; in a single tensor, in every other element
  in_sample,  // the sample with one edge in each row of one tensor
  tiny,       // subnormal numbers and those next to them
  moderate,   // zeros, halves, ties and whole numbers below 256: sums of them stay exact
  large,      // finite, from 2^24 on
};

// The edges of one dtype, without repetition.
class EdgeValues {
 public:
  // `more` are numbers to try besides, each with both its neighbours. 8-bit and 4-bit dtypes have all of their codes.
  EdgeValues(DType dtype, std::span<const double> more);

  DType dtype() const { return all_.meta.dtype; }
  std::int64_t count() const;
  double largest_tiny() const;  // the largest magnitude among `tiny`; 1 if there is none
  // How many rounds of a fill show each of its edges, if there are `tensors` like this one.
  std::int64_t rounds(EdgeFill fill, const Tensor& like, std::int64_t tensors) const;
  // A tensor of the same type as `sample`, which is the `index`-th of `tensors`. Rounds differ in which edges are
  // where.
  Tensor filled(const Tensor& sample, EdgeFill fill, std::int64_t round, std::int64_t index,
                std::int64_t tensors) const;

 private:
  const std::vector<std::int64_t>& list(EdgeFill fill) const;
  std::int64_t edge_at(EdgeFill fill, std::int64_t element, std::int64_t width, std::int64_t index) const;

  Tensor all_;                                                        // rank 1
  std::vector<std::int64_t> each_, chief_, tiny_, moderate_, large_;  // indices into all_
};

// The dtype and the number of a tensor's elements; of KV pages those of all pages.
DType element_dtype(const Tensor& tensor);
std::int64_t stored_elements(const Tensor& tensor);

// Whether tensors of this dtype are filled with edges: not block formats, which store no single elements.
bool has_edges(DType dtype);

// What is tried, for messages: "zeros of both signs, ties of rounding, ..."
extern const char* const kEdgesText;

}  // namespace weft
