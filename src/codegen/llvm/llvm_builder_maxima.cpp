// LlvmBuilder's maxima of groups. The maximum of one group is a chain of shuffles whose last steps use only one or two
// lanes. So the maxima of as many groups as a vector has lanes are computed together: each step joins two vectors into
// one.

#include <algorithm>

#include "codegen/llvm/llvm_builder.h"

namespace weft {
namespace {

constexpr int kQuarter = 4;  // lanes of 128 bits, within which shuffles are fast

// Lane indices in two concatenated vectors that were joined `steps` times. `first` selects half of the lanes of all
// groups, `second` the other halves in the same order. The lanes of a quarter are joined first, then the quarters. The
// groups end in their order if each vector contained one group.
std::pair<std::vector<int>, std::vector<int>> halves_of_groups(int lanes, int steps) {
  std::pair<std::vector<int>, std::vector<int>> halves;
  const auto add = [&](int lane, int other) {
    halves.first.push_back(lane);
    halves.second.push_back(other);
  };
  const int of_quarter = kQuarter >> steps;  // lanes of a group in each quarter
  const int groups = of_quarter > 1 ? kQuarter / of_quarter : 0;
  for (int quarter = 0; groups > 0 && quarter < lanes; quarter += kQuarter)
    for (int i = 0; i < kQuarter / 2; i += groups)
      for (const int vector : {0, lanes})
        for (int k = 0; k < groups; ++k) {
          const int lane = vector + quarter + i + k;
          add(lane, lane + kQuarter / 2);
        }
  for (int quarter = 0; groups == 0 && quarter < 2 * lanes; quarter += 2 * kQuarter)
    for (int k = 0; k < kQuarter; ++k) add(quarter + k, quarter + kQuarter + k);
  return halves;
}

}  // namespace

LLVMValueRef LlvmBuilder::joined_maxima(std::vector<LLVMValueRef> vectors, int steps) {
  for (; vectors.size() > 1; ++steps) {
    const auto [first, second] = halves_of_groups(lanes_, steps);
    std::vector<LLVMValueRef> next;
    for (std::size_t i = 0; i < vectors.size(); i += 2)
      next.push_back(larger(shuffle(vectors[i], vectors[i + 1], first), shuffle(vectors[i], vectors[i + 1], second)));
    vectors = std::move(next);
  }
  return vectors[0];
}

// The room is for whole vectors of groups. Groups after the end of the row are 0.
LLVMValueRef LlvmBuilder::maxima_variable(std::int64_t columns, std::int64_t group, std::int64_t block) {
  const LLVMBasicBlockRef here = LLVMGetInsertBlock(builder_);
  LLVMPositionBuilderBefore(builder_, LLVMGetBasicBlockTerminator(entry_));
  const std::int64_t step = lanes_ * group, whole = (columns + step - 1) / step * step / block;
  const LLVMValueRef made = LLVMBuildArrayAlloca(builder_, floats_, number(whole), "");
  LLVMSetAlignment(made, vector_bytes());
  for (std::int64_t i = (columns + block - 1) / block; i < whole; ++i)
    LLVMSetAlignment(LLVMBuildStore(builder_, LLVMConstNull(floats_), maxima_address(made, number(i))), vector_bytes());
  LLVMPositionBuilderAtEnd(builder_, here);
  return made;
}

LLVMValueRef LlvmBuilder::maxima_address(LLVMValueRef variable, LLVMValueRef number) {
  return LLVMBuildGEP2(builder_, floats_, variable, &number, 1, "");
}

void LlvmBuilder::keep_maxima(LLVMValueRef variable, Index index, std::int64_t offset, std::int64_t block,
                              const std::vector<LLVMValueRef>& maxima) {
  const LLVMValueRef at = LLVMBuildUDiv(builder_, index_value(index, offset), number(block), "");
  LLVMSetAlignment(LLVMBuildStore(builder_, joined_maxima(maxima, 0), maxima_address(variable, at)), vector_bytes());
}

LLVMValueRef LlvmBuilder::largest_of_each(LLVMValueRef variable, Index index, std::int64_t group, std::int64_t block) {
  const std::int64_t of_block = std::max<std::int64_t>(block / group, 1);  // groups of a block
  const std::int64_t of_group = std::max<std::int64_t>(group / block, 1);  // blocks of a group
  const LLVMValueRef first = LLVMBuildUDiv(
      builder_, LLVMBuildMul(builder_, index_value(index, 0), number(of_group), ""), number(of_block), "");
  std::vector<LLVMValueRef> vectors;
  for (std::int64_t i = 0; i < lanes_ * of_group / of_block; ++i) {
    const LLVMValueRef at = LLVMBuildNSWAdd(builder_, first, number(i), "");
    const LLVMValueRef read = LLVMBuildLoad2(builder_, floats_, maxima_address(variable, at), "");
    LLVMSetAlignment(read, vector_bytes());
    if (i % of_group == 0) {
      vectors.push_back(read);
    } else {
      vectors.back() = larger(vectors.back(), read);
    }
  }
  const bool is_of_two = program_->in_pairs && group < std::int64_t{2} * lanes_;
  int steps = 0;
  while ((is_of_two ? 2 : 1) << steps < of_block) ++steps;
  const LLVMValueRef largest = joined_maxima(std::move(vectors), steps);
  if (!is_of_two) return largest;
  // The first groups of the pairs are in every other quarter, the second groups in the quarters between them.
  std::vector<int> order;
  for (int i = 0; i < lanes_; ++i)
    order.push_back((i / (2 * kQuarter) * 2 + i % 2) * kQuarter + i % (2 * kQuarter) / 2);
  return shuffle(largest, largest, order);
}

}  // namespace weft
