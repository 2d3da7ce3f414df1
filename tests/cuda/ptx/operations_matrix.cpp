// Products of small matrices by a warp; emulator/matrix_product.h has the elements of each lane and the order of sums.

#include "emulator/matrix_product.h"
#include "tests/cuda/ptx/operations.h"

namespace weft::ptx {
namespace {

// mma.sync.aligned.m16n8k16 {d, d, d, d}, {a, a, a, a}, {b, b}, {c, c, c, c}
template <cuda::MatrixElement element>
void multiply(Warp& warp, const Instruction& one, std::uint32_t lanes) {
  constexpr std::uint32_t kAll = 0xffffffffu;
  if (warp.existing() != kAll)
    warp.fault(static_cast<std::uint32_t>(std::countr_zero(lanes)), "multiplies matrices in a warp of fewer lanes");
  lanes = warp.gather(lanes, kAll);
  if (lanes == 0) return;
  const auto word_of = [&](std::size_t operand, std::uint32_t lane) {
    return static_cast<std::uint32_t>(warp.values(one.from[operand])[lane]);
  };
  std::array<cuda::MatrixWords, 32> words;
  std::array<std::array<float, 4>, 32> sums;
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    for (std::size_t i = 0; i < 4; ++i) words[lane].a[i] = word_of(i, lane);
    for (std::size_t i = 0; i < 2; ++i) words[lane].b[i] = word_of(4 + i, lane);
    for (std::size_t i = 0; i < 4; ++i) sums[lane][i] = std::bit_cast<float>(word_of(6 + i, lane));
  }
  for (std::uint32_t lane = 0; lane < 32; ++lane)
    for (std::uint32_t i = 0; i < 4; ++i)
      warp.values(one.to[i])[lane] = bits_of_value(cuda::matrix_product(words, element, lane, i, sums[lane][i]));
}

}  // namespace

void add_matrix_operations(Operations& table) {
  const std::string name = "mma.sync.aligned.m16n8k16.row.col.f32.", signature = "{wwww}:{wwww}{ww}{wwww}";
  table[name + "f16.f16.f32"].push_back({signature, &multiply<cuda::MatrixElement::f16>, nullptr, {}});
  table[name + "bf16.bf16.f32"].push_back({signature, &multiply<cuda::MatrixElement::bf16>, nullptr, {}});
}

}  // namespace weft::ptx
