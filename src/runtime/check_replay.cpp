#include "runtime/check_replay.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "base/error.h"
#include "tensor/batch.h"
#include "tensor/convert.h"
#include "tensor/same_elements.h"

namespace weft {
namespace {

// One contiguous run of elements.
struct Row {
  std::byte* data;
  DType dtype;
  std::int64_t elements;
  std::size_t bytes() const { return static_cast<std::size_t>(bytes_of(dtype, elements)); }
};
using Rows = std::vector<Row>;
using Bytes = std::vector<std::byte>;

// Joins a row with the last one if it follows it in memory, so that a device has fewer copies to do.
void add_row(const Row& row, Rows& rows) {
  if (!rows.empty() && rows.back().dtype == row.dtype && rows.back().data + rows.back().bytes() == row.data) {
    const Row both{rows.back().data, row.dtype, rows.back().elements + row.elements};
    if (both.bytes() == rows.back().bytes() + row.bytes()) {
      rows.back() = both;
      return;
    }
  }
  rows.push_back(row);
}

// The bytes of `count` elements from element `first` of the view on. Where elements share a byte, all of that byte.
Row row_of(const TensorView& view, std::int64_t first, std::int64_t count) {
  const DTypeInfo& info = dtype_info(view.dtype);
  const std::int64_t begin = first / info.block_elements;
  const std::int64_t end = (first + count + info.block_elements - 1) / info.block_elements;
  return {view.data + begin * info.block_bytes, view.dtype, (end - begin) * info.block_elements};
}

void add_tensor_rows(const TensorView& view, int dim, std::int64_t first, Rows& rows) {
  const int inner = view.rank - 1;
  if (dim < inner) {
    for (std::int64_t i = 0; i < view.size[dim]; ++i)
      add_tensor_rows(view, dim + 1, first + i * view.stride[dim], rows);
  } else if (view.rank == 0 || view.stride[inner] == 1) {
    add_row(row_of(view, first, view.rank == 0 ? 1 : view.size[inner]), rows);
  } else {
    for (std::int64_t i = 0; i < view.size[inner]; ++i) add_row(row_of(view, first + i * view.stride[inner], 1), rows);
  }
}

// By the rule of tensor/same_elements.h.
bool are_same(const Rows& rows, const Bytes& a, const Bytes& b) {
  const std::byte *one = a.data(), *other = b.data();
  for (const Row& row : rows) {
    if (!are_same_elements(row.dtype, one, other, row.elements)) return false;
    one += row.bytes();
    other += row.bytes();
  }
  return true;
}

class ReplayCheck {
 public:
  ReplayCheck(const BoundPlan& bound, const CheckedRuns& runs)
      : bound_(bound), plan_(*bound.plan), runs_(runs), pages_(pages_of_batch()) {}

  void run() {
    const Rows written = written_inputs();
    Rows left = written;
    for (const PlanView& view : plan_.results) add_rows(view, left);
    before_ = copy_of(written);
    runs_.replay({});
    const Bytes replayed = copy_of(left);
    put_back(written, before_);
    runs_.step_by_step({});
    if (!are_same(left, replayed, copy_of(left))) find_step(written);
  }

 private:
  Bytes copy_of(const Rows& rows) const {
    std::size_t bytes = 0, at = 0;
    for (const Row& row : rows) bytes += row.bytes();
    Bytes copy(bytes);
    for (const Row& row : rows) {
      queue_copy(copy.data() + at, row.data, row.bytes());
      at += row.bytes();
    }
    if (runs_.wait) runs_.wait();
    return copy;
  }

  void put_back(const Rows& rows, const Bytes& bytes) const {
    std::size_t at = 0;
    for (const Row& row : rows) {
      queue_copy(row.data, bytes.data() + at, row.bytes());
      at += row.bytes();
    }
    if (runs_.wait) runs_.wait();
  }

  void queue_copy(void* to, const void* from, std::size_t bytes) const {
    runs_.copy ? runs_.copy(to, from, bytes) : static_cast<void>(std::memcpy(to, from, bytes));
  }

  // The pages that the batch's sequences own, when there is a batch.
  std::optional<std::set<std::int32_t>> pages_of_batch() const {
    for (const int slot : plan_.inputs) {
      if (plan_.slots[static_cast<std::size_t>(slot)].meta.kind != MetaKind::batch) continue;
      return pages_of(batch_of(bound_.tensors[static_cast<std::size_t>(slot)]));
    }
    return std::nullopt;
  }

  void add_rows(const PlanView& from, Rows& rows) const {
    if (from.slot < 0) return;
    const TensorView view = runs_.view(from);
    if (view.kind == MetaKind::tensor) return add_tensor_rows(view, 0, 0, rows);
    if (view.kind != MetaKind::kv) return;
    const std::int64_t elements = kv_page_elements(from.meta.kv);
    for (std::int32_t page = 0; page < view.size[0]; ++page)
      if (!pages_ || pages_->contains(page))
        add_row({view.data + bytes_of(view.dtype, page * elements), view.dtype, elements}, rows);
  }

  // The memory outside the arena that steps overwrite.
  Rows written_inputs() const {
    Rows rows;
    for (const PlanStep& step : plan_.steps)
      for (const PlanView& view : step.results)
        if (view.slot >= 0 && plan_.slots[static_cast<std::size_t>(view.slot)].kind != SlotKind::arena)
          add_rows(view, rows);
    return rows;
  }

  Rows results_of(std::size_t step) const {
    Rows rows;
    for (const PlanView& view : plan_.steps[step].results) add_rows(view, rows);
    return rows;
  }

  [[noreturn]] void find_step(const Rows& written) {
    std::vector<Bytes> replayed(plan_.steps.size());
    put_back(written, before_);
    runs_.replay([&](std::size_t step) { replayed[step] = copy_of(results_of(step)); });
    put_back(written, before_);
    runs_.step_by_step([&](std::size_t step) {
      const Rows rows = results_of(step);
      if (const Bytes came = copy_of(rows); !are_same(rows, came, replayed[step]))
        fail(step, rows, came, replayed[step]);
    });
    fail_check(
        fmt::format("plan {}: a replay left other bits than its steps one by one did, but not again", plan_.name));
  }

  [[noreturn]] void fail(std::size_t index, const Rows& rows, const Bytes& came, const Bytes& replayed) const {
    double largest = 0;
    std::int64_t differing = 0;
    const std::byte *one = came.data(), *other = replayed.data();
    for (const Row& row : rows) {
      for (std::int64_t i = 0; i < row.elements && !is_block(row.dtype); ++i) {
        if (is_same_element(row.dtype, one, other, i)) continue;
        ++differing;
        const double difference = std::abs(load_double(row.dtype, one, i) - load_double(row.dtype, other, i));
        if (!(difference <= largest)) largest = difference;
      }
      one += row.bytes();
      other += row.bytes();
    }
    const PlanStep& step = plan_.steps[index];
    fail_check(
        fmt::format("plan {}: step {} {}@{} of piece {}{} gives other bits when it is replayed than step by step: {} "
                    "elements differ, the largest difference is {}",
                    plan_.name, index, step.op, step.kernel->provider, step.piece,
                    step.layer.empty() ? "" : " in layer " + step.layer, differing, largest));
  }

  [[noreturn]] static void fail_check(const std::string& what) {
    throw InternalError("[--check-replay] " + what, std::source_location::current());
  }

  const BoundPlan& bound_;
  const Plan& plan_;
  const CheckedRuns& runs_;
  std::optional<std::set<std::int32_t>> pages_;
  Bytes before_;
};

}  // namespace

void check_replay(const BoundPlan& bound, const CheckedRuns& runs) { ReplayCheck(bound, runs).run(); }

}  // namespace weft
