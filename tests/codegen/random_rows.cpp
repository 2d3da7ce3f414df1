#include "tests/codegen/random_rows.h"

#include <cmath>
#include <cstring>

#include <fmt/core.h>

#include "codegen/simplify_rows.h"
#include "tensor/convert.h"
#include "tensor/float_bits.h"

namespace weft {
namespace {

constexpr std::size_t kGuard = 64;
constexpr std::byte kGuardByte{0xa5};
constexpr std::int64_t kRowsOfTables = 7;

// From the first column to the end of the last one.
std::int64_t extent_of(const RowPlacement& placement, std::int64_t columns) { return placement.of(columns - 1) + 1; }

class Maker {
 public:
  Maker(std::mt19937& random, bool tame) : random_(random), tame_(tame), in_pairs_(!tame && below(3) == 0) {}

  RowProgram run() {
    constexpr std::int64_t kColumns[] = {1, 3, 16, 17, 63, 64, 65, 96, 130, 576};
    constexpr std::int64_t kGrouped[] = {32, 64, 96, 192, 640};
    const bool grouped = below(2) == 0;
    if (grouped) {
      program_.columns = kGrouped[below(5)];
      constexpr std::int64_t kGroups[] = {16, 32, 48, 64, 96};
      do program_.group = kGroups[below(5)];
      while (program_.columns % program_.group != 0 || program_.columns == program_.group);
    } else {
      program_.columns = kColumns[below(10)];
    }
    if (in_pairs_) program_.columns = (program_.columns + 31) / 32 * 32;
    if (in_pairs_ && grouped) program_.group = below(2) == 0 ? 16 : 32;
    const int loads = 2 + static_cast<int>(below(3));
    for (int i = 0; i < loads; ++i) load(i == 0 ? RowDomain::element : any_domain());
    const int steps = 3 + static_cast<int>(below(tame_ ? 8 : 14));
    for (int i = 0; i < steps; ++i) step();
    const int stores = 1 + static_cast<int>(below(3));
    store(static_cast<int>(program_.values.size()) - 1);
    for (int i = 1; i < stores; ++i) store(any());
    if (below(2) == 0) simplify_rows(program_);
    program_.finish();
    return program_;
  }

 private:
  std::size_t below(std::size_t count) { return random_() % count; }
  int any() { return static_cast<int>(below(program_.values.size())); }
  RowDomain domain_of(int id) const { return program_.values[static_cast<std::size_t>(id)].domain; }

  // In graphs N = 1 has no elements other than rows, but programs may have them.
  RowDomain any_domain() {
    const std::size_t choice = below(6);
    if (choice == 0) return RowDomain::constant;
    if (choice == 1) return RowDomain::row;
    if (choice == 2 && program_.group > 0) return RowDomain::group;
    return RowDomain::element;
  }
  std::int64_t count_of(RowDomain domain) const {
    if (domain == RowDomain::element) return program_.columns;
    return domain == RowDomain::group ? program_.columns / program_.group : 1;
  }

  void load(RowDomain domain) {
    constexpr DType kDTypes[] = {DType::f32, DType::f32, DType::bf16, DType::f16, DType::i8, DType::f8e4m3};
    RowBuffer buffer{.dtype = kDTypes[tame_ ? 0 : below(6)]};
    if (in_pairs_ && domain == RowDomain::element) buffer.dtype = short_dtype();
    const bool shared = domain == RowDomain::constant || (domain == RowDomain::element && below(4) == 0);
    buffer.row_stride = shared ? 0 : count_of(domain) + static_cast<std::int64_t>(below(2) * 3);
    const bool has_neighbour = domain == RowDomain::element && !tame_ && !in_pairs_ && below(6) == 0;
    if (has_neighbour) buffer.dtype = below(2) == 0 ? DType::bf16 : DType::f16;
    if (has_neighbour || (domain == RowDomain::element && !in_pairs_ && below(4) == 0)) {
      buffer.placement = any_placement();
      if (has_neighbour) buffer.placement.stride = 2;
      if (buffer.row_stride > 0) buffer.row_stride = extent_of(buffer.placement, program_.columns) + 3;
    }
    if (domain == RowDomain::element && below(4) == 0) {
      buffer.begin = 32;
      if (buffer.row_stride > 0) buffer.row_stride += buffer.begin;
    }
    if (buffer.row_stride > 0 && !has_neighbour && below(4) == 0) take_rows(buffer);
    program_.buffers.push_back(buffer);
    program_.add({.op = RowOp::load, .domain = domain, .buffer = static_cast<int>(program_.buffers.size()) - 1});
    if (!has_neighbour) return;
    buffer.interleaved_with = static_cast<int>(program_.buffers.size()) - 1;
    program_.buffers.push_back(buffer);
    program_.add({.op = RowOp::load, .domain = domain, .buffer = buffer.interleaved_with + 1});
  }

  DType short_dtype() {
    constexpr DType kDTypes[] = {DType::bf16, DType::bf16, DType::i8, DType::f8e4m3};
    return kDTypes[below(4)];
  }

  void take_rows(RowBuffer& buffer) {
    buffer.numbers = static_cast<int>(program_.buffers.size());
    buffer.taken_from = kRowsOfTables;
    const std::int64_t begin = static_cast<std::int64_t>(below(2)) * 5;
    buffer.begin += begin;
    buffer.row_stride += begin;
    program_.buffers.push_back({.dtype = below(2) == 0 ? DType::i64 : DType::i32, .row_stride = 1});
  }

  RowPlacement any_placement() {
    RowPlacement placement{.stride = below(8) == 0 ? 40 : 1 + static_cast<std::int64_t>(below(3))};
    if (program_.columns % 16 == 0 && below(2) == 0) {
      placement.run = 16;
      placement.run_stride = 16 * placement.stride + static_cast<std::int64_t>(below(2)) * 4;
    }
    return placement;
  }

  int add(RowValue value) { return program_.add(value); }
  int constant(float number) { return add({.op = RowOp::constant, .number = number}); }
  int binary(RowOp op, int a, int b) { return add({.op = op, .a = a, .b = b}); }
  int unary(RowOp op, int a) { return add({.op = op, .a = a}); }
  int held(int a, float limit) {
    return binary(RowOp::at_most, binary(RowOp::at_least, a, constant(-limit)), constant(limit));
  }

  void step() { tame_ ? tame_step() : wild_step(); }

  void tame_step() {
    const int a = any(), b = any();
    switch (below(10)) {
      case 0:
        held(binary(RowOp::add, a, b), 2);
        return;
      case 1:
        held(binary(RowOp::sub, a, b), 2);
        return;
      case 2:
        held(binary(RowOp::mul, a, b), 2);
        return;
      case 3:
        held(binary(RowOp::div, a, binary(RowOp::add, unary(RowOp::abs, b), constant(1))), 2);
        return;
      case 4:
        unary(RowOp::tanh, a);
        return;
      case 5:
        unary(RowOp::sigmoid, a);
        return;
      case 6:
        held(unary(RowOp::exp, held(a, 0.5f)), 2);
        return;
      case 7:
        unary(RowOp::erf, a);
        return;
      default:
        if (domain_of(a) == RowDomain::element) reduce(a);
    }
  }

  void reduce(int a) {
    const std::size_t choice = below(4);
    if (choice == 3 && program_.levels++ < 3) {
      binary(RowOp::add, unary(RowOp::row_signed_max, a), constant(0));
    } else if (choice == 0 && program_.levels++ < 3) {
      binary(RowOp::div, unary(RowOp::row_sum, a), constant(static_cast<float>(program_.columns)));
    } else if (choice == 1 && program_.levels++ < 3) {
      unary(RowOp::row_max, unary(RowOp::abs, a));
    } else if (program_.group > 0) {
      const int other = any();
      if (below(2) == 0) {
        unary(RowOp::group_max, unary(RowOp::abs, a));
      } else if (domain_of(other) == RowDomain::element && below(2) == 0) {
        binary(RowOp::div, binary(RowOp::group_sum_of_halves, a, other),
               constant(static_cast<float>(2 * program_.group)));
      } else {
        binary(RowOp::div, unary(RowOp::group_sum, a), constant(static_cast<float>(program_.group)));
      }
    }
  }

  void wild_step() {
    constexpr RowOp kUnary[] = {RowOp::neg,
                                RowOp::abs,
                                RowOp::exp,
                                RowOp::tanh,
                                RowOp::erf,
                                RowOp::sigmoid,
                                RowOp::sqrt,
                                RowOp::round,
                                RowOp::trunc,
                                RowOp::silu_divisor,
                                RowOp::power_of_two_up,
                                RowOp::power_of_two_down};
    constexpr RowOp kBinary[] = {RowOp::add,     RowOp::sub,     RowOp::mul,      RowOp::div,
                                 RowOp::maximum, RowOp::minimum, RowOp::at_least, RowOp::at_most};
    constexpr DType kRounded[] = {DType::bf16,   DType::f16,        DType::i8,     DType::u8,
                                  DType::f8e4m3, DType::f8e4m3fnuz, DType::f8e5m2, DType::f4e2m1};
    const int a = any(), b = any();
    switch (below(11)) {
      case 10:
        codes(below(2) == 0 ? a : add({.op = RowOp::convert, .a = a, .dtype = DType::bf16}));
        return;
      case 0:
      case 1:
        unary(kUnary[below(12)], a);
        return;
      case 8:
        if (below(2) == 0) {
          add({.op = RowOp::convert, .a = unary(RowOp::round, held(a, 127)), .dtype = DType::i8});
        } else {
          add({.op = RowOp::convert, .a = held(a, 448), .dtype = DType::f8e4m3});
        }
        return;
      case 9:
        silu(add({.op = RowOp::convert, .a = a, .dtype = DType::bf16}));
        return;
      case 2:
      case 3:
        binary(kBinary[below(8)], a, b);
        return;
      case 4:
        add({.op = RowOp::convert, .a = a, .dtype = kRounded[below(8)]});
        return;
      case 5: {
        const float number = static_cast<float>(below(5)) - 2.5f;
        const std::size_t choice = below(3);
        if (choice == 0) add({.op = RowOp::select_at_most, .a = a, .b = b, .c = any(), .number = number});
        if (choice == 1) add({.op = RowOp::replace_nan, .a = a, .number = number});
        if (choice == 2) add({.op = RowOp::replace_zero, .a = a, .b = b, .number = number});
        return;
      }
      default:
        if (domain_of(a) == RowDomain::element) reduce(a);
    }
  }

  // Codes by the largest magnitude of a group or row, as in quantizing ops.
  void codes(int a) {
    if (domain_of(a) != RowDomain::element) return;
    const bool is_i8 = below(2) == 0;
    const float limit = is_i8 ? 127.0f : 448.0f;
    const RowOp largest = program_.group > 0 ? RowOp::group_max : RowOp::row_max;
    const int least = binary(RowOp::at_least, unary(largest, unary(RowOp::abs, a)), constant(1e-10f));
    int code = held(binary(RowOp::div, a, binary(RowOp::div, least, constant(limit))), limit);
    if (is_i8 && below(4) != 0) code = unary(RowOp::round, code);
    add({.op = RowOp::convert, .a = code, .dtype = is_i8 ? DType::i8 : DType::f8e4m3});
  }

  void silu(int a) {
    const int divisor = binary(RowOp::add, unary(RowOp::exp, unary(RowOp::neg, a)), constant(1));
    add({.op = RowOp::convert, .a = binary(RowOp::div, a, divisor), .dtype = DType::bf16});
  }

  void store(int value) {
    constexpr DType kDTypes[] = {DType::f32, DType::f32,    DType::bf16,  DType::f16,
                                 DType::i8,  DType::f8e4m3, DType::f4e2m1};
    RowDomain domain = domain_of(value);
    if (domain == RowDomain::constant) domain = RowDomain::row;
    // Also once for each column, because other values may need it so.
    if (domain == RowDomain::group && below(3) == 0) domain = RowDomain::element;
    const bool has_nibbles = domain == RowDomain::element && program_.columns % 2 == 0;
    DType dtype = kDTypes[tame_ ? 0 : below(has_nibbles ? 7 : 6)];
    const RowValue& made = program_.values[static_cast<std::size_t>(value)];
    if (in_pairs_ && domain == RowDomain::element) dtype = below(4) == 0 ? DType::f4e2m1 : short_dtype();
    const bool may_be_stored = made.dtype == DType::f4e2m1 ? has_nibbles : !in_pairs_ || made.dtype != DType::f16;
    if (made.op == RowOp::convert && may_be_stored && below(2) == 0) dtype = made.dtype;
    const int buffer = static_cast<int>(program_.buffers.size());
    program_.buffers.push_back({.dtype = dtype, .is_output = true, .row_stride = count_of(domain)});
    RowStore store{buffer, value, domain};
    if (domain == RowDomain::element && !in_pairs_ && dtype != DType::f4e2m1 && below(4) == 0) {
      store.placement = any_placement();
      store.offset = static_cast<std::int64_t>(below(2)) * 5;
      program_.buffers.back().row_stride = store.offset + extent_of(store.placement, program_.columns);
    }
    program_.stores.push_back(store);
    if (store.placement.stride != 2) return;
    // Another value between.
    store.offset += 1;
    program_.buffers.back().row_stride += 1;
    program_.stores.push_back(store);
  }

  std::mt19937& random_;
  bool tame_;
  bool in_pairs_;  // whether elements are stored in pairs of vectors
  RowProgram program_;
};

std::int64_t buffer_elements(const RowProgram& program, const RowBuffer& buffer, std::int64_t rows) {
  if (buffer.is_output) return rows * buffer.row_stride;
  if (buffer.numbers >= 0) rows = buffer.taken_from;
  const auto number = static_cast<int>(&buffer - program.buffers.data());
  const bool has_neighbour = std::any_of(program.buffers.begin(), program.buffers.end(),
                                         [&](const RowBuffer& other) { return other.interleaved_with == number; });
  return (rows - 1) * buffer.row_stride + buffer.begin + has_neighbour +
         extent_of(buffer.placement, std::max<std::int64_t>(program.columns, 1));
}

}  // namespace

RowProgram random_rows(std::mt19937& random, bool tame) { return Maker(random, tame).run(); }

RowBuffers::RowBuffers(const RowProgram& program, std::int64_t rows, std::uint32_t seed)
    : program_(program), rows_(rows) {
  std::mt19937 random(seed);
  for (const RowBuffer& buffer : program.buffers) {
    const std::int64_t elements = buffer_elements(program, buffer, rows);
    const auto bytes = static_cast<std::size_t>(bytes_of(buffer.dtype, elements));
    memory_.emplace_back(bytes + kGuard, kGuardByte);
    std::memset(memory_.back().data(), 0, bytes);
    if (buffer.is_output) continue;
    const bool is_number = buffer.dtype == DType::i64 || buffer.dtype == DType::i32;
    for (std::int64_t i = 0; i < elements; ++i)
      store_double(buffer.dtype, memory_.back().data(), i,
                   is_number ? static_cast<double>(random() % kRowsOfTables)
                             : static_cast<double>(random() % 4001) / 1000.0 - 2.0);
  }
  memory_.emplace_back(static_cast<std::size_t>(program.scratch_bytes()) + kGuard, kGuardByte);
  for (auto& memory : memory_) pointers_.push_back(memory.data());
  for (std::size_t i = 0; i < program.buffers.size(); ++i)
    if (const RowBuffer& buffer = program.buffers[i]; buffer.interleaved_with >= 0)
      pointers_[i] = static_cast<std::byte*>(pointers_[static_cast<std::size_t>(buffer.interleaved_with)]) +
                     bytes_of(buffer.dtype, 1);
}

void RowBuffers::run(RowFunction* function, std::int64_t begin, std::int64_t end) {
  function(pointers_.data(), begin, end, rows_);
}

int RowBuffers::lay_over() {
  int count = 0;
  for (std::size_t i = 0; i < program_.buffers.size(); ++i)
    if (const int over = program_.buffers[i].over; over >= 0) {
      pointers_[i] = pointers_[static_cast<std::size_t>(over)];
      ++count;
    }
  return count;
}

bool RowBuffers::is_intact() const {
  for (const auto& memory : memory_)
    for (std::size_t i = memory.size() - kGuard; i < memory.size(); ++i)
      if (memory[i] != kGuardByte) return false;
  return true;
}

std::vector<float> RowBuffers::stored(std::size_t index) const {
  const RowStore& store = program_.stores[index];
  const auto buffer = static_cast<std::size_t>(store.buffer);
  const RowBuffer& facts = program_.buffers[buffer];
  std::int64_t count = 1;
  if (store.domain == RowDomain::element) count = program_.columns;
  if (store.domain == RowDomain::group) count = program_.columns / program_.group;
  std::vector<float> values;
  for (std::int64_t row = 0; row < rows_; ++row)
    for (std::int64_t k = 0; k < count; ++k)
      values.push_back(load_float(facts.dtype, static_cast<const std::byte*>(pointers_[buffer]),
                                  row * facts.row_stride + store.offset + store.placement.of(k)));
  return values;
}

std::string difference(const RowProgram& program, const RowBuffers& wanted, const RowBuffers& came) {
  for (std::size_t i = 0; i < program.stores.size(); ++i) {
    const std::vector<float> a = wanted.stored(i), b = came.stored(i);
    for (std::size_t k = 0; k < a.size(); ++k) {
      if (std::isnan(a[k]) ? std::isnan(b[k]) : bits_of_float(a[k]) == bits_of_float(b[k])) continue;
      return fmt::format("store {} element {}: wanted {}, came {}\n{}", i, k, a[k], b[k], program.text());
    }
  }
  return "";
}

}  // namespace weft
