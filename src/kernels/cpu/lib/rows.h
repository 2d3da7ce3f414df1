#pragma once

// Tensors as rows, for row-wise kernels. A row is the last dim, contiguous. The dims before it may have any strides. In
// operands they may also have extent 1 or be missing if the result has more (broadcasting).

#include <array>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/cpu/lib/element.h"
#include "kernels/kernel.h"
#include "kernels/row_chunks.h"
#include "parallel/thread_pool.h"

namespace weft::cpu {

// f32, f16 or bf16; InternalError for others.
Element element_of(DType dtype);

// Whether the operand is a plain f32, f16 or bf16 tensor with contiguous rows.
Verdict float_rows(const std::optional<Meta>& meta, std::string_view name);
// Kernel::yields for kernels for which generated code is as fast if the operand has one of these dtypes.
std::function<bool(const KernelRequest&)> yields(std::size_t operand, std::vector<DType> dtypes);
// Whether all dims but the last are equal.
bool same_leading_dims(const Meta& a, const Meta& b);
// Weight of a norm: absent, f32 or of x's dtype; contiguous.
Verdict norm_weight(const std::optional<Meta>& weight, DType x);
std::size_t weighting_of(const TensorView& weight, DType x);  // a Weighting

inline constexpr int kMaxRowOperands = 5;

// Rows [first, first + count) of each operand. `stride` is in elements, or in bytes if elements are packed; it is 0 if
// one row is used for all.
struct RowRun {
  std::array<std::byte*, kMaxRowOperands> data;
  std::array<std::int64_t, kMaxRowOperands> stride;
  std::int64_t first;
  std::int64_t count;
};

class RowSpace {
 public:
  // The first view determines the rows; the others are broadcast to them. At most kMaxRowOperands views.
  explicit RowSpace(std::initializer_list<const TensorView*> views);

  std::int64_t rows() const { return rows_; }

  // Calls body(run) for runs that cover rows [first, last) in order.
  template <class Body>
  void for_each_run(std::int64_t first, std::int64_t last, Body&& body) const {
    while (first < last) {
      const RowRun run = run_at(first, last);
      body(run);
      first += run.count;
    }
  }

  // The same, shared among the threads in chunks of several rows. The caller's thread runs a small amount of work
  // alone.
  template <class Body>
  void run(ThreadPool& threads, std::int64_t row_bytes, Body&& body) const {
    const std::int64_t chunk_rows = rows_of_chunk(rows_, row_bytes, threads.threads());
    if (chunk_rows >= rows_) return for_each_run(0, rows_, body);
    threads.run((rows_ + chunk_rows - 1) / chunk_rows, [&](std::int64_t chunk, int) {
      const std::int64_t first = chunk * chunk_rows;
      for_each_run(first, first + chunk_rows < rows_ ? first + chunk_rows : rows_, body);
    });
  }

 private:
  struct Operand {
    std::byte* data;
    std::int64_t stored_bytes;  // of an element, or of those packed into a byte
    std::array<std::int64_t, kMaxRank> stride;
  };
  RowRun run_at(std::int64_t first, std::int64_t last) const;

  std::array<Operand, kMaxRowOperands> operands_{};
  std::size_t operand_count_ = 0;
  std::array<std::int64_t, kMaxRank> size_{};  // of the dims before the last, adjacent ones joined where strides allow
  int dims_ = 0;
  std::int64_t rows_ = 1;
};

}  // namespace weft::cpu
