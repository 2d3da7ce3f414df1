#pragma once

// One walk over a row program gives every emitter its code: levels one after another, each one loop over the columns in
// whole steps and then what is left of the row, values computed where they are first wanted and once.
//
// An emitter is a Builder; its Value is a vector of lanes() floats, or one float, or codes of either:
//
//   lanes()                                 floats of a vector: 4, 8 or 16
//   begin(program), end()                   the function, and its loop over rows
//   begin_columns(first, last, step)        a loop over columns; gives its Index
//   end_columns()
//   at(column)                              an Index that is a number
//   constant(number, is_wide), splat(one)
//   unary(op, a), binary(op, a, b)          of one float or vectors, alike; replace_nan's number is b
//   replace_zero(a, number, b), select_at_most(a, number, b, c)
//   encode(dtype, floats), decode(dtype, codes)
//   encode_plain_bf16(floats)               of floats that RowValue::is_plain says
//   encode_nearest_i8(floats)               of floats in [-128, 127], rounded, or NaN
//   load(buffer, index, offset, count)      `count` elements at column index + offset, zeros behind them
//   store(store, index, offset, codes, count)   where the RowStore has them
//   store_pairs(store, index, offset, first, second, count)   the same, each code of `second` behind one of `first`
//   load_one(buffer, index, offset, divisor), store_one(buffer, index, offset, divisor, code)
//                                           element (index + offset) / divisor
//   load_slot(slot, index, offset), store_slot(slot, index, offset, vector)   a whole vector of scratch
//   variable(vector), get(variable), set(variable, vector)
//   first_lanes(vector, count, rest)        `rest` in the lanes behind
//   sum(vectors)                            the tree of house mathematics over 64 floats
//   larger(a, b), largest(vectors)          of what has no sign

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <vector>

#include "base/error.h"
#include "codegen/row_program.h"
#include "tensor/house_math.h"

namespace weft {

template <class Builder>
class RowEmitter {
 public:
  RowEmitter(const RowProgram& program, Builder& builder) : program_(program), builder_(builder) {}

  void run() {
    builder_.begin(program_);
    for (level_ = 0; level_ < program_.levels; ++level_) emit_level();
    for (const RowStore& store : program_.stores)
      if (store.domain <= RowDomain::row)
        builder_.store_one(store.buffer, builder_.at(0), 0, 1, code_for(store, one(store.value)));
    builder_.end();
  }

 private:
  using Value = typename Builder::Value;
  using Index = typename Builder::Index;
  using Variable = typename Builder::Variable;

  struct Reduction {
    int value;
    std::vector<Variable> partial;  // 64 floats
  };

  const RowValue& value_at(int id) const { return program_.values[static_cast<std::size_t>(id)]; }

  // What this level's loop does.
  struct Work {
    std::vector<RowStore> stores;
    std::vector<int> kept;
    std::vector<Reduction> reductions;
    bool by_groups = false;
    bool is_empty() const { return stores.empty() && kept.empty() && reductions.empty(); }
  };

  Work work_of_level() {
    Work work;
    const auto needs_group = [&](int id) {
      work.by_groups = work.by_groups || value_at(id).needs_group || value_at(id).domain == RowDomain::group;
    };
    for (const RowStore& store : program_.stores) {
      if (store.domain <= RowDomain::row || value_at(store.value).level != level_) continue;
      work.stores.push_back(store);
      needs_group(store.value);
    }
    for (int id = 0; id < static_cast<int>(program_.values.size()); ++id) {
      const RowValue& value = value_at(id);
      if (value.slot >= 0 && value.level == level_) {
        work.kept.push_back(id);
        needs_group(id);
      }
      if (!is_row_reduction(value.op) || value.level - 1 != level_) continue;
      work.reductions.push_back({id, {}});
      needs_group(value.a);
    }
    if (std::any_of(work.stores.begin(), work.stores.end(),
                    [](const RowStore& store) { return store.domain == RowDomain::group; }))
      work.by_groups = true;
    return work;
  }

  void emit_level() {
    Work work = work_of_level();
    for (int id = 0; id < static_cast<int>(program_.values.size()); ++id)
      if (value_at(id).domain <= RowDomain::row && value_at(id).level == level_) one(id);
    if (work.is_empty()) return;
    for (Reduction& reduction : work.reductions) {
      const Value start = builder_.splat(builder_.constant(kNothing, false));
      for (int i = 0; i < kHouseSumLanes / builder_.lanes(); ++i) reduction.partial.push_back(builder_.variable(start));
    }
    const std::int64_t block = work.by_groups ? program_.group : builder_.lanes();
    const std::int64_t wanted = work.reductions.empty() ? 4 * builder_.lanes() : kHouseSumLanes;
    const std::int64_t least = work.by_groups && work.reductions.empty() ? block : std::lcm(block, wanted);
    const std::int64_t step = least * program_.tuning.unroll;
    const std::int64_t whole = program_.columns / step * step;
    if (whole > step) {
      const Index column = builder_.begin_columns(0, whole, step);
      emit_columns(work, column, step, block);
      builder_.end_columns();
    } else if (whole > 0) {
      emit_columns(work, builder_.at(0), whole, block);
    }
    if (whole < program_.columns) emit_columns(work, builder_.at(whole), program_.columns - whole, block);
    for (Reduction& reduction : work.reductions) {
      std::vector<Value> partial;
      for (Variable& variable : reduction.partial) partial.push_back(builder_.get(variable));
      const bool is_sum = value_at(reduction.value).op == RowOp::row_sum;
      ones_[reduction.value] = is_sum ? builder_.sum(partial) : builder_.largest(partial);
    }
  }

  // What reductions begin with, and what they take from lanes beyond the row. Partial sums that began with 0 are never
  // -0, so that another 0 changes no bit; of what has no sign nothing is smaller.
  static constexpr float kNothing = 0.0f;

  void emit_columns(Work& work, Index column, std::int64_t count, std::int64_t block) {
    for (std::int64_t offset = 0; offset < count; offset += block)
      emit_block(work, column, offset, std::min(block, count - offset));
  }

  // `count` columns from column + offset on: one group, or at most one vector.
  void emit_block(Work& work, Index column, std::int64_t offset, std::int64_t count) {
    column_ = column;
    offset_ = offset;
    count_ = count;
    vectors_.clear();
    codes_.clear();
    groups_.clear();
    const int lanes = builder_.lanes();
    const int vectors = static_cast<int>((count + lanes - 1) / lanes);
    for (const RowStore& store : work.stores) read_overwritten(store, vectors);
    for (const RowStore& store : work.stores) {
      if (store.domain == RowDomain::group) {
        builder_.store_one(store.buffer, column_, offset_, program_.group, code_for(store, of_group(store.value)));
        continue;
      }
      if (is_second_of_pair(work, store)) continue;
      const RowStore* second = second_of_pair(work, store);
      for (int i = 0; i < vectors; ++i) {
        const std::int64_t offset = offset_ + i * lanes;
        const Value first = vector_code_for(store, i);
        if (second == nullptr) {
          builder_.store(store, column_, offset, first, lanes_of(i));
        } else {
          builder_.store_pairs(store, column_, offset, first, vector_code_for(*second, i), lanes_of(i));
        }
      }
    }
    for (int id : work.kept)
      for (int i = 0; i < vectors; ++i)
        builder_.store_slot(value_at(id).slot, column_, offset_ + i * lanes, vector(id, i));
    for (Reduction& reduction : work.reductions) {
      for (int i = 0; i < vectors; ++i) {
        Value term = vector(value_at(reduction.value).a, i);
        if (lanes_of(i) < lanes) term = builder_.first_lanes(term, lanes_of(i), kNothing);
        const std::size_t at = static_cast<std::size_t>(offset_ / lanes + i) % reduction.partial.size();
        Variable& partial = reduction.partial[at];
        const Value before = builder_.get(partial);
        const bool is_sum = value_at(reduction.value).op == RowOp::row_sum;
        builder_.set(partial, is_sum ? builder_.binary(RowOp::add, before, term) : builder_.larger(before, term));
      }
    }
  }

  // What lies where a store may write is read before anything is written.
  void read_overwritten(const RowStore& store, int vectors) {
    const int over = program_.buffers[static_cast<std::size_t>(store.buffer)].over;
    if (over < 0) return;
    for (int id = 0; id < static_cast<int>(program_.values.size()); ++id)
      for (int i = 0; i < vectors && value_at(id).op == RowOp::load && value_at(id).buffer == over; ++i) vector(id, i);
  }

  // Two stores that fill every other place each are one of pairs.
  static bool is_pair(const RowStore& first, const RowStore& second) {
    return first.buffer == second.buffer && first.placement == second.placement && first.placement.stride == 2 &&
           second.offset == first.offset + 1;
  }
  static const RowStore* second_of_pair(const Work& work, const RowStore& first) {
    for (const RowStore& store : work.stores)
      if (is_pair(first, store)) return &store;
    return nullptr;
  }
  static bool is_second_of_pair(const Work& work, const RowStore& second) {
    return std::any_of(work.stores.begin(), work.stores.end(),
                       [&](const RowStore& store) { return is_pair(store, second); });
  }

  int lanes_of(int i) const {
    return static_cast<int>(std::min<std::int64_t>(builder_.lanes(), count_ - i * builder_.lanes()));
  }

  // A value of the row or the program.
  Value one(int id) {
    if (const auto known = ones_.find(id); known != ones_.end()) return known->second;
    const RowValue& value = value_at(id);
    CHECK(!is_row_reduction(value.op), "value {} of a row program is wanted before its level is done", id);
    const Value made = value.op == RowOp::load
                           ? decoded(value.buffer, builder_.load_one(value.buffer, builder_.at(0), 0, 1))
                           : compute(value, [&](int operand) { return one(operand); });
    return ones_[id] = made;
  }

  // A value of the group at hand, or of more.
  Value of_group(int id) {
    const RowValue& value = value_at(id);
    if (value.domain <= RowDomain::row) return one(id);
    if (const auto known = groups_.find(id); known != groups_.end()) return known->second;
    Value made{};
    if (value.op == RowOp::group_max) {
      std::vector<Value> vectors;
      for (int i = 0; i < program_.group / builder_.lanes(); ++i) vectors.push_back(vector(value.a, i));
      made = builder_.largest(vectors);
    } else if (value.op == RowOp::load) {
      made = decoded(value.buffer, builder_.load_one(value.buffer, column_, offset_, program_.group));
    } else {
      made = compute(value, [&](int operand) { return of_group(operand); });
    }
    return groups_[id] = made;
  }

  // Vector `i` of the block at hand.
  Value vector(int id, int i) {
    if (const auto known = vectors_.find({id, i}); known != vectors_.end()) return known->second;
    const RowValue& value = value_at(id);
    const std::int64_t offset = offset_ + i * builder_.lanes();
    Value made{};
    if (value.domain != RowDomain::element) {
      made = builder_.splat(of_group(id));
    } else if (value.slot >= 0 && value.level < level_) {
      made = builder_.load_slot(value.slot, column_, offset);
    } else if (value.op == RowOp::load) {
      made = decoded(value.buffer, code(id, i));
    } else if (value.op == RowOp::convert) {
      made = builder_.decode(value.dtype, code(id, i));
    } else {
      made = compute(value, [&](int operand) { return vector(operand, i); });
    }
    vectors_[{id, i}] = made;
    return made;
  }

  // Of a `load`, or of a `convert` that is computed here: what its users decode and its store writes.
  Value code(int id, int i) {
    if (const auto known = codes_.find({id, i}); known != codes_.end()) return known->second;
    const RowValue& value = value_at(id);
    Value made{};
    if (value.op == RowOp::load) {
      made = builder_.load(value.buffer, column_, offset_ + i * builder_.lanes(), lanes_of(i));
    } else if (program_.is_nearest_i8(value) && value_at(value.a).slot < 0) {
      made = builder_.encode_nearest_i8(vector(value_at(value.a).a, i));
    } else {
      made = encoded(value, vector(value.a, i));
    }
    codes_[{id, i}] = made;
    return made;
  }

  Value encoded(const RowValue& convert, Value floats) {
    return convert.is_plain ? builder_.encode_plain_bf16(floats) : builder_.encode(convert.dtype, floats);
  }

  Value decoded(int buffer, Value codes) {
    const DType dtype = program_.buffers[static_cast<std::size_t>(buffer)].dtype;
    return dtype == DType::f32 ? codes : builder_.decode(dtype, codes);
  }
  Value code_for(const RowStore& store, Value value) {
    const DType dtype = program_.buffers[static_cast<std::size_t>(store.buffer)].dtype;
    return dtype == DType::f32 ? value : builder_.encode(dtype, value);
  }
  Value vector_code_for(const RowStore& store, int i) {
    const RowValue& value = value_at(store.value);
    const auto dtype_of = [&](int buffer) { return program_.buffers[static_cast<std::size_t>(buffer)].dtype; };
    const bool has_code = value.domain == RowDomain::element && (value.op == RowOp::convert || value.op == RowOp::load);
    const bool is_code =
        has_code && (value.op == RowOp::load ? dtype_of(value.buffer) : value.dtype) == dtype_of(store.buffer);
    return is_code ? code(store.value, i) : code_for(store, vector(store.value, i));
  }

  template <class Operand>
  Value compute(const RowValue& value, Operand operand) {
    switch (value.op) {
      case RowOp::constant:
        return builder_.constant(value.number, value.is_wide);
      case RowOp::convert:
        return builder_.decode(value.dtype, encoded(value, operand(value.a)));
      case RowOp::replace_nan:
        return builder_.binary(value.op, operand(value.a), builder_.constant(value.number, false));
      case RowOp::replace_zero: {
        const Value a = operand(value.a), b = operand(value.b);
        return builder_.replace_zero(a, static_cast<float>(value.number), b);
      }
      case RowOp::select_at_most: {
        const Value a = operand(value.a), b = operand(value.b), c = operand(value.c);
        return builder_.select_at_most(a, static_cast<float>(value.number), b, c);
      }
      default:
        break;
    }
    const Value a = operand(value.a);
    return row_op_operands(value.op) == 1 ? builder_.unary(value.op, a)
                                          : builder_.binary(value.op, a, operand(value.b));
  }

  const RowProgram& program_;
  Builder& builder_;
  int level_ = 0;
  std::map<int, Value> ones_;
  // The block at hand.
  Index column_{};
  std::int64_t offset_ = 0;
  std::int64_t count_ = 0;
  std::map<std::pair<int, int>, Value> vectors_;  // by value and number of the vector
  std::map<std::pair<int, int>, Value> codes_;
  std::map<int, Value> groups_;
};

}  // namespace weft
