#pragma once

// A row program: what one generated function does, as loops over rows. For each row it computes values over `columns`
// columns; columns may form groups of `group`. Every value is an f32 in the function, whatever type it has in memory,
// but for those between `widen` and `narrow`, which are f64 and only add, subtract, multiply, divide and turn their
// sign.
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
// A value's domain is what it is one number of: the program, the row, the group, or the element. Its level is how many
// sums and maxima over rows and groups it waits for; what has one level is computed in one loop over the groups, then
// one over the columns.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/device.h"
#include "tensor/dtype.h"

namespace weft {

enum class RowDomain : std::uint8_t { constant, row, group, element };

// What each op computes is written in row_math.h.
enum class RowOp : std::uint8_t {
  load,      // buffer
  constant,  // number
  add,
  sub,
  mul,
  div,
  maximum,  // NaN wins
  minimum,
  at_least,  // a < b ? b : a, so that a NaN in a passes
  at_most,   // a > b ? b : a
  neg,
  abs,
  exp,
  tanh,
  erf,
  sigmoid,
  silu_divisor,       // 1 + exp(-a)
  bf16_silu_divisor,  // the same where a is a bf16, and a by it is rounded to bf16
  bf16_sigmoid,       // the sigmoid of a bf16, to be rounded to bf16
  quotient,           // a / b where c is 1 / b, to be made a code of: see row_math.h
  short_quotient,     // the same where a is a bf16 or f16
  sqrt,
  power_of_two_up,    // of its sign, at |a| or beyond it
  power_of_two_down,  // at |a| or before it
  round,              // to the nearest integer, halves to even
  trunc,
  convert,              // to dtype, as a cast does
  widen,                // to f64
  narrow,               // to f32
  select_at_most,       // a <= number ? b : c
  replace_nan,          // a is NaN ? number : a
  replace_zero,         // a == 0 ? number : b
  row_sum,              // in the order of house mathematics
  row_max,              // of what has no sign; 0 for none
  row_signed_max,       // of anything: NaN wins, and of zeros any; -infinity for none
  group_sum,            // as row_sum, of a group instead of a row
  group_sum_of_halves,  // the same of twice as many: a group of a, and behind it that of b
  group_max,            // as row_max
};

struct RowValue {
  RowOp op = RowOp::constant;
  RowDomain domain = RowDomain::constant;
  int a = -1, b = -1, c = -1;  // operands, values before this one
  double number = 0;           // an f32 unless it is wide
  bool is_wide = false;        // f64
  bool is_liftable = false;    // constant: its op's schema says so (lift_scalars.h); no matter of the text
  DType dtype = DType::f32;    // convert
  bool is_plain = false;       // convert: of what encode_plain_<dtype> of row_math.h takes
  int buffer = -1;             // load
  // Set by finish().
  int level = 0;
  bool needs_group = false;  // whether something of its group goes into an element
  int cost = 0;              // of computing it again from what lies in memory
  int slot = -1;             // of scratch, in which what comes later finds it; -1 where it is computed again
};

// Where the columns of a row lie: column c at c * stride; with runs of `run` columns, c / run * run_stride + c % run *
// stride.
struct RowPlacement {
  std::int64_t stride = 1;
  std::int64_t run = 0;  // 0: all columns are one run
  std::int64_t run_stride = 0;
  std::int64_t of(std::int64_t column) const {
    return run == 0 ? column * stride : column / run * run_stride + column % run * stride;
  }
  bool operator==(const RowPlacement&) const = default;
};

// One tensor. Element (row, column) lies at row * row_stride + the column's place; for a value of groups the column is
// the group's number.
struct RowBuffer {
  DType dtype = DType::f32;
  bool is_output = false;
  std::int64_t row_stride = 0;   // in elements; 0: the same for all rows
  std::int64_t part_stride = 0;  // in elements, from one part of a row to the next
  RowPlacement placement = {};   // of what is read
  // Of rows that are taken by number: element `row` of buffer `numbers` (i32 or i64) says which, of `taken_from`.
  int numbers = -1;
  std::int64_t taken_from = 0;
  std::int64_t begin = 0;  // of column 0 in such a row
  // The input whose columns lie between these, each right before the one of the same number, as halves of one word do:
  // then both read rows of the same memory, every other element; -1 for none.
  int behind = -1;
  // An output that may lie where this input does, if nobody reads that afterwards; -1 for none. Set by finish().
  int over = -1;
  bool operator==(const RowBuffer&) const = default;
  // Two where a byte has two elements: then rows, parts and what is stored begin with whole bytes, and columns lie side
  // by side.
  std::int64_t elements_of_unit() const { return dtype_info(dtype).block_elements; }
};

// Several stores may fill one buffer.
struct RowStore {
  int buffer = 0;
  int value = 0;
  RowDomain domain = RowDomain::element;
  std::int64_t offset = 0;  // of column 0 in the row
  RowPlacement placement = {};
};

// How a function is cut, which changes no bit of what it gives. What is right without measurements stands here.
struct RowTuning {
  int unroll = 1;  // steps over the columns that an iteration takes
  int parts = 1;   // of a row, each handed out like a row (codegen/row_tuning.h)
  int chunks = 0;  // that the rows are cut into for the threads; 0: by their bytes (kernels/row_chunks.h)
  bool operator==(const RowTuning&) const = default;
  // `unroll=2 chunks=1`: what is not by default; `default` where all is.
  std::string text() const;
};

// A function: buffers in the order of RowProgram::buffers, then, where there are slots, this thread's
// scratch of scratch_bytes(), 64-byte aligned. Rows [row_begin, row_end) of row_count are computed; of a program in
// parts, a row for each part.
using RowFunction = void(void* const* buffers, std::int64_t row_begin, std::int64_t row_end, std::int64_t row_count);

// Lanes of two of the widest vectors: programs whose columns come in pairs have whole ones of so many.
inline constexpr std::int64_t kPairedColumns = 32;

// That a program has, scratch apart.
inline constexpr std::size_t kMostRowBuffers = 24;

// What the names of all functions begin with.
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
  bool in_pairs = false;            // whether columns are computed in pairs of vectors, the even and the odd ones
  std::vector<std::int64_t> slots;  // where each begins in scratch, in floats
  std::int64_t scratch_floats = 0;

  int add(RowValue value);
  // Levels, costs, and which values later levels find in scratch. Call once, when all is added. InternalError when a
  // value does not come before its users or has another domain than its operands give it.
  void finish();

  std::int64_t scratch_bytes() const { return scratch_floats * 4; }
  // Bytes read and written for a row, weights apart.
  std::int64_t row_bytes() const;
  // The canonical text, as above. Equal programs have equal texts.
  std::string text() const;
  // `rows_` and a hash of the text: what the function is called. How its rows are cut into chunks is no matter of the
  // text; the kernel's name says it behind a dot.
  std::string name() const;
  std::string kernel_name() const;

 private:
  void keep(RowValue& value);
  void share_slots();
};

std::string_view row_op_text(RowOp op);
// Of an element (tensor/arithmetic_cost.h).
int row_op_cost(RowOp op);
bool is_row_reduction(RowOp op);
bool is_group_reduction(RowOp op);
// Of a row or of a group.
bool is_reduction(RowOp op);
bool is_sum(RowOp op);
// Operands that the op has, 0 to 3.
int row_op_operands(RowOp op);

}  // namespace weft
