#pragma once

// A row program: what one generated function does, as loops over rows. For each row it computes values over `columns`
// columns; columns may form groups of `group`. Every value is an f32 in the function, whatever type it has in memory.
// Only values between `widen` and `narrow` are f64; f64 values are only added, subtracted, multiplied, divided and
// negated.
//
//   rows columns=576 group=32
//     buffer 0 in f32 row=576
//     buffer 1 in f32 row=0                 the same for all rows: a weight, or a lifted number
//     buffer 2 out i8 row=576
//     buffer 3 out f32 row=18
//     buffer 4 in i64 row=1
//     buffer 5 in f32 row=64 by 4 of 2048   buffer 4 says which of 2048 rows
//     v0 elem = load 0
//     v1 elem = mul v0 v0
//     v2 row = row_sum v1
//     ...
//     store 2 v9
//     store 3 v2 for elem                   one for each element, though v2 is one for all of a row
//
// A value's domain says how many values there are: one for the program, for each row, for each group, or for each
// element. Its level is the number of sums and maxima over rows and groups that it depends on, one after another. The
// values of one level are computed in one loop over the groups, then one over the columns.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/device.h"
#include "tensor/dtype.h"

namespace weft {

enum class RowDomain : std::uint8_t { constant, row, group, element };

// row_math.h defines what each op computes.
enum class RowOp : std::uint8_t {
  load,      // buffer
  constant,  // number
  add,
  sub,
  mul,
  div,
  maximum,  // NaN wins
  minimum,
  at_least,  // a < b ? b : a, so a NaN in a stays
  at_most,   // a > b ? b : a
  neg,
  abs,
  exp,
  tanh,
  erf,
  sigmoid,
  silu_divisor,       // 1 + exp(-a)
  bf16_silu_divisor,  // the same if a is a bf16 and a divided by it is rounded to bf16
  bf16_sigmoid,       // the sigmoid of a bf16, to be rounded to bf16
  quotient,           // a / b, given c = 1 / b, for a result that becomes a code: see row_math.h
  short_quotient,     // the same if a is a bf16 or f16
  sqrt,
  power_of_two_up,    // the power of two with a's sign whose magnitude is the next at or above |a|
  power_of_two_down,  // the same at or below |a|
  round,              // to the nearest integer, halves to even
  trunc,
  convert,              // to dtype, as a cast does
  widen,                // to f64
  narrow,               // to f32
  select_at_most,       // a <= number ? b : c
  replace_nan,          // a is NaN ? number : a
  replace_zero,         // a == 0 ? number : b
  row_sum,              // in the order of the reference math
  row_max,              // of values without a sign; 0 for none
  row_signed_max,       // of any values: NaN wins; of equal zeros, either; -infinity for none
  group_sum,            // as row_sum, over a group instead of a row
  group_sum_of_halves,  // the same over twice as many values: a group of a, then that of b
  group_max,            // as row_max
};

struct RowValue {
  RowOp op = RowOp::constant;
  RowDomain domain = RowDomain::constant;
  int a = -1, b = -1, c = -1;  // operands: values before this one
  double number = 0;           // an f32 unless it is wide
  bool is_wide = false;        // f64
  bool is_liftable = false;    // constant: its op's schema says so (lift_scalars.h); not part of the text
  DType dtype = DType::f32;    // convert
  bool is_plain = false;       // convert: whether the operand is one that encode_plain_<dtype> of row_math.h accepts
  int buffer = -1;             // load
  // Set by finish().
  int level = 0;
  bool needs_group = false;  // whether an element uses a value of its group
  int cost = 0;              // of computing it again from memory
  int slot = -1;             // of scratch, from which later levels load it; -1 if it is computed again
};

// The location of a row's columns: column c is at c * stride. With runs of `run` columns, it is at c / run * run_stride
// + c % run * stride.
struct RowPlacement {
  std::int64_t stride = 1;
  std::int64_t run = 0;  // 0: all columns are one run
  std::int64_t run_stride = 0;
  std::int64_t of(std::int64_t column) const {
    return run == 0 ? column * stride : column / run * run_stride + column % run * stride;
  }
  bool operator==(const RowPlacement&) const = default;
};

// One tensor. Element (row, column) is at row * row_stride + placement.of(column). For a value of groups, the column is
// the index of the group.
struct RowBuffer {
  DType dtype = DType::f32;
  bool is_output = false;
  std::int64_t row_stride = 0;   // in elements; 0: the same for all rows
  std::int64_t part_stride = 0;  // in elements, from one part of a row to the next
  RowPlacement placement = {};   // of an input
  // For gathered rows: element `row` of buffer `numbers` (i32 or i64) is the row index, less than `taken_from`. -1 for
  // no gather.
  int numbers = -1;
  std::int64_t taken_from = 0;
  std::int64_t begin = 0;  // location of column 0 in such a row
  // The input whose columns are interleaved with these: each is right before the column of the same index here, as the
  // two halves of one word. Both then read rows of the same memory, every other element. -1 for none.
  int interleaved_with = -1;
  // The input that an output may alias if nothing reads the input afterwards; -1 for none. Set by finish().
  int over = -1;
  bool operator==(const RowBuffer&) const = default;
  // 2 if a byte holds two elements. Then rows, parts and stores begin at whole bytes, and columns are adjacent.
  std::int64_t elements_of_unit() const { return dtype_info(dtype).block_elements; }
};

// One store to a buffer. Several stores may fill one buffer.
struct RowStore {
  int buffer = 0;
  int value = 0;
  RowDomain domain = RowDomain::element;
  std::int64_t offset = 0;  // of column 0 in the row
  RowPlacement placement = {};
};

// How the loops of a function are cut. It changes no bit of the results. The defaults are right without measurements.
struct RowTuning {
  int unroll = 1;  // steps over the columns in one iteration
  int parts = 1;   // parts of a row; each is scheduled like a row (codegen/row_tuning.h)
  int chunks = 0;  // chunks of rows for the threads; 0: by their bytes (kernels/row_chunks.h)
  bool operator==(const RowTuning&) const = default;
  // The members that are not the default, `unroll=2 chunks=1`; or `default`.
  std::string text() const;
};

// A generated function. `buffers` are in the order of RowProgram::buffers; if there are slots, this thread's scratch of
// scratch_bytes(), 64-byte aligned, follows. It computes rows [row_begin, row_end) of row_count. In a program with
// parts, each part counts as a row.
using RowFunction = void(void* const* buffers, std::int64_t row_begin, std::int64_t row_end, std::int64_t row_count);

// The lanes of two of the widest vectors. Programs that compute columns in pairs have a multiple of this many columns.
inline constexpr std::int64_t kPairedColumns = 32;

// The largest number of buffers of a program, without scratch.
inline constexpr std::size_t kMostRowBuffers = 24;

// The prefix of the names of all functions.
inline constexpr std::string_view kRowFunctionPrefix = "rows_";

class RowProgram {
 public:
  std::int64_t columns = 1;
  std::int64_t group = 0;  // 0: no groups
  std::vector<RowBuffer> buffers;
  std::vector<RowValue> values;
  std::vector<RowStore> stores;
  RowTuning tuning = {};
  // Set by finish().
  int levels = 1;
  bool in_pairs = false;            // whether columns are computed in pairs of vectors: the even and the odd ones
  std::vector<std::int64_t> slots;  // where each begins in scratch, in floats
  std::int64_t scratch_floats = 0;

  int add(RowValue value);
  // Computes levels, costs, and which values later levels load from scratch. Call it once, after everything is added.
  // InternalError if a value does not come before its users, or its domain is not the one that its operands imply.
  void finish();

  std::int64_t scratch_bytes() const { return scratch_floats * 4; }
  // Bytes read and written for a row, without weights.
  std::int64_t row_bytes() const;
  // The canonical text, as above. Equal programs have equal texts.
  std::string text() const;
  // The function's name: `rows_` and a hash of the text. The number of chunks is not part of the text; kernel_name()
  // adds it after a dot.
  std::string name() const;
  std::string kernel_name() const;

 private:
  void keep(RowValue& value);
  void share_slots();
};

std::string_view row_op_text(RowOp op);
// The cost of the op for one element (tensor/arithmetic_cost.h).
int row_op_cost(RowOp op);
bool is_row_reduction(RowOp op);
bool is_group_reduction(RowOp op);
// Whether the op reduces a row or a group.
bool is_reduction(RowOp op);
bool is_sum(RowOp op);
// The number of operands of the op, 0 to 3.
int row_op_operands(RowOp op);

}  // namespace weft
