#pragma once

// One walk over a row program gives every emitter its code: levels one after another, each one loop over the groups, a
// vector of them at a time, and one over the columns, in whole steps and then what is left of the row; values computed
// where they are first wanted and once. So no value waits for the maximum of its own group in one chain: those of all
// groups of the row come first.
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
//   ternary(op, a, b, c), replace_zero(a, number, b), select_at_most(a, number, b, c)
//   encode(dtype, floats), decode(dtype, codes)
//   encode_plain(dtype, floats)             of floats that encode_plain_<dtype> takes; of vectors but for bf16
//   load(buffer, index, offset, count)      `count` elements at column index + offset, zeros behind them
//   store(store, index, offset, codes, count)   where the RowStore has them
//   store_pairs(store, index, offset, first, second, count)   the same, each code of `second` behind one of `first`
//   load_pairs(buffer, index, offset)       2 * lanes() elements: the even ones and the odd ones
//   joined_pairs(even, odd)                 floats so apart in the order of the columns, in two vectors
//   prefetch_next(buffer, index, offset)    what lies there in the next row
//   prefetch_store(store, index, offset)    where it will be written
//   load_one(buffer, index, offset, divisor)    element (index + offset) / divisor
//   store_one(buffer, code)                 the only element
//   load_slot(slot, index, offset), store_slot(slot, index, offset, vector)   a whole vector of scratch
//   load_one_of_slot(slot, index, offset, divisor), store_one_of_slot(slot, index, offset, divisor, float)
//   variable(vector), get(variable), set(variable, vector)
//   first_lanes(vector, count, rest)        `rest` in the lanes behind
//   sum(vectors)                            the tree of house mathematics over 64 floats
//   larger(a, b), largest(vectors)          of what has no sign

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "codegen/heaviest_level.h"
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
      if (store.domain <= RowDomain::row) builder_.store_one(store.buffer, code_for(store, one(store.value)));
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

  // What a loop of this level does, over the groups or over the columns.
  struct Work {
    RowDomain domain;
    std::vector<RowStore> stores;
    std::vector<int> kept;
    std::vector<int> maxima;  // of groups
    std::vector<Reduction> reductions;
    bool by_groups = false;
    bool is_empty() const { return stores.empty() && kept.empty() && maxima.empty() && reductions.empty(); }
  };

  Work work_of_level(RowDomain domain) {
    Work work{.domain = domain};
    const auto takes = [&](int id) {
      work.by_groups = work.by_groups || (domain == RowDomain::element && value_at(id).needs_group);
    };
    for (const RowStore& store : program_.stores) {
      if (store.domain != domain || value_at(store.value).level != level_) continue;
      work.stores.push_back(store);
      takes(store.value);
    }
    for (int id = 0; id < static_cast<int>(program_.values.size()); ++id) {
      const RowValue& value = value_at(id);
      if (value.slot >= 0 && value.level == level_ && value.domain == domain && value.op != RowOp::group_max) {
        work.kept.push_back(id);
        takes(id);
      }
      if (!is_reduction(value.op) || value.level - 1 != level_ || domain != RowDomain::element) continue;
      value.op == RowOp::group_max ? work.maxima.push_back(id) : work.reductions.push_back({id, {}});
      takes(value.a);
    }
    work.by_groups = work.by_groups || !work.maxima.empty();
    return work;
  }

  void emit_level() {
    for (int id = 0; id < static_cast<int>(program_.values.size()); ++id)
      if (value_at(id).domain <= RowDomain::row && value_at(id).level == level_) one(id);
    for (const RowDomain domain : {RowDomain::group, RowDomain::element})
      if (Work work = work_of_level(domain); !work.is_empty()) emit_loop(work);
  }

  void emit_loop(Work& work) {
    domain_ = work.domain;
    for (Reduction& reduction : work.reductions) {
      const Value start = builder_.splat(builder_.constant(kNothing, false));
      for (int i = 0; i < kHouseSumLanes / builder_.lanes(); ++i) reduction.partial.push_back(builder_.variable(start));
    }
    const std::int64_t columns = domain_ == RowDomain::group ? program_.columns / program_.group : program_.columns;
    const bool in_pairs = program_.in_pairs && domain_ == RowDomain::element;
    const std::int64_t block = work.by_groups ? program_.group : (in_pairs ? 2 : 1) * builder_.lanes();
    const std::int64_t wanted = work.reductions.empty() ? 4 * builder_.lanes() : kHouseSumLanes;
    const bool alone = domain_ == RowDomain::group || (work.by_groups && work.reductions.empty());
    const std::int64_t step = (alone ? block : std::lcm(block, wanted)) * program_.tuning.unroll;
    const std::int64_t whole = columns / step * step;
    if (whole > step) {
      const Index column = builder_.begin_columns(0, whole, step);
      emit_columns(work, column, step, block);
      builder_.end_columns();
    } else if (whole > 0) {
      emit_columns(work, builder_.at(0), whole, block);
    }
    if (whole < columns) emit_columns(work, builder_.at(whole), columns - whole, block);
    for (Reduction& reduction : work.reductions) {
      std::vector<Value> partial;
      for (Variable& variable : reduction.partial) partial.push_back(builder_.get(variable));
      const bool is_sum = value_at(reduction.value).op == RowOp::row_sum;
      for (std::size_t i = 0; is_sum && in_pairs && i < partial.size(); i += 2)
        std::tie(partial[i], partial[i + 1]) = builder_.joined_pairs(partial[i], partial[i + 1]);
      ones_[reduction.value] = is_sum ? builder_.sum(partial) : builder_.largest(partial);
    }
  }

  // What reductions begin with, and what they take from lanes beyond the row. Partial sums that began with 0 are never
  // -0, so that another 0 changes no bit; of what has no sign nothing is smaller.
  static constexpr float kNothing = 0.0f;

  void emit_columns(Work& work, Index column, std::int64_t count, std::int64_t block) {
    if (domain_ == RowDomain::element) prefetch(column, count);
    for (std::int64_t offset = 0; offset < count; offset += block)
      emit_block(work, column, offset, std::min(block, count - offset));
  }

  // `count` columns from column + offset on: one group, or at most one vector or one pair.
  void emit_block(Work& work, Index column, std::int64_t offset, std::int64_t count) {
    column_ = column;
    offset_ = offset;
    count_ = count;
    vectors_.clear();
    codes_.clear();
    groups_.clear();
    const int lanes = builder_.lanes();
    const int vectors = vectors_of_block();
    for (const RowStore& store : work.stores) read_overwritten(store, vectors);
    for (const RowStore& store : work.stores) {
      if (is_second_of_pair(work, store)) continue;
      if (program_.in_pairs && domain_ == RowDomain::element) {
        for (int i = 0; i < vectors; i += 2) {
          const Value even = vector_code_for(store, i), odd = vector_code_for(store, i + 1);
          builder_.store_pairs(store, column_, offset_ + i * lanes, even, odd, lanes);
        }
        continue;
      }
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
    for (int id : work.maxima) {
      std::vector<Value> terms;
      for (int i = 0; i < vectors; ++i) terms.push_back(vector(value_at(id).a, i));
      builder_.store_one_of_slot(value_at(id).slot, column_, offset_, program_.group, builder_.largest(terms));
    }
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

  // Levels one after another wait for memory when they begin to read and to write, which others would have time for:
  // the first fetches what later ones write, the heaviest what the first reads of the next row. With two levels it
  // costs more in the caches, a fifth of rms_norm in f32, than it brings beyond them, where those reach the copy
  // without.
  void prefetch(Index column, std::int64_t count) {
    constexpr std::int64_t kCacheLine = 64;  // bytes
    if (program_.levels < 3) return;
    const auto lines = [&](int buffer, auto fetch) {
      const RowBuffer& at = program_.buffers[static_cast<std::size_t>(buffer)];
      const std::int64_t columns = kCacheLine / dtype_info(at.dtype).block_bytes;
      for (std::int64_t offset = 0; offset < count; offset += columns)
        if (at.row_stride > 0 && at.numbers < 0) fetch(offset);
    };
    if (level_ == 0)
      for (const RowStore& store : program_.stores)
        if (store.domain == RowDomain::element && value_at(store.value).level > 0 && store.placement == RowPlacement())
          lines(store.buffer, [&](std::int64_t offset) { builder_.prefetch_store(store, column, offset); });
    if (level_ == heaviest_level(program_))
      for (const RowValue& value : program_.values)
        if (value.op == RowOp::load && value.domain == RowDomain::element &&
            program_.buffers[static_cast<std::size_t>(value.buffer)].placement == RowPlacement())
          lines(value.buffer, [&](std::int64_t offset) { builder_.prefetch_next(value.buffer, column, offset); });
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

  int vectors_of_block() const { return static_cast<int>((count_ + builder_.lanes() - 1) / builder_.lanes()); }
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

  // A value of the group at hand, or of more, in a loop over columns.
  Value of_group(int id) {
    const RowValue& value = value_at(id);
    if (value.domain <= RowDomain::row) return one(id);
    if (const auto known = groups_.find(id); known != groups_.end()) return known->second;
    Value made{};
    if (value.slot >= 0) {
      made = builder_.load_one_of_slot(value.slot, column_, offset_, program_.group);
    } else if (value.op == RowOp::load) {
      made = decoded(value.buffer, builder_.load_one(value.buffer, column_, offset_, program_.group));
    } else {
      made = compute(value, [&](int operand) { return of_group(operand); });
    }
    return groups_[id] = made;
  }

  // Vector `i` of the block at hand. Some are made side by side, so that a processor finds independent ones near by.
  static constexpr int kAtOnce = 4;
  Value vector(int id, int i) {
    if (const auto known = vectors_.find({id, i}); known != vectors_.end()) return known->second;
    const int first = i / kAtOnce * kAtOnce;
    for (int k = first; k < std::min(first + kAtOnce, vectors_of_block()); ++k) vectors_[{id, k}] = make_vector(id, k);
    return vectors_.at({id, i});
  }

  Value make_vector(int id, int i) {
    const RowValue& value = value_at(id);
    const std::int64_t offset = offset_ + i * builder_.lanes();
    Value made{};
    if (value.domain < domain_) {
      made = builder_.splat(of_group(id));
    } else if (value.slot >= 0 && (value.level < level_ || value.op == RowOp::group_max)) {
      made = builder_.load_slot(value.slot, column_, offset);
    } else if (value.op == RowOp::load) {
      made = decoded(value.buffer, code(id, i));
    } else if (value.op == RowOp::convert) {
      made = builder_.decode(value.dtype, code(id, i));
    } else {
      made = compute(value, [&](int operand) { return vector(operand, i); });
    }
    return made;
  }

  // Of a `load`, or of a `convert` that is computed here: what its users decode and its store writes.
  Value code(int id, int i) {
    if (const auto known = codes_.find({id, i}); known != codes_.end()) return known->second;
    const RowValue& value = value_at(id);
    Value made{};
    if (value.op == RowOp::load && program_.in_pairs && domain_ == RowDomain::element) {
      const int even = i / 2 * 2;
      std::tie(codes_[{id, even}], codes_[{id, even + 1}]) =
          builder_.load_pairs(value.buffer, column_, offset_ + even * builder_.lanes());
      return codes_[{id, i}];
    } else if (value.op == RowOp::load) {
      made = builder_.load(value.buffer, column_, offset_ + i * builder_.lanes(), lanes_of(i));
    } else {
      made = encoded(value, vector(value.a, i));
    }
    codes_[{id, i}] = made;
    return made;
  }

  Value encoded(const RowValue& convert, Value floats) {
    return convert.is_plain ? builder_.encode_plain(convert.dtype, floats) : builder_.encode(convert.dtype, floats);
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
    const bool has_code = value.domain == domain_ && (value.op == RowOp::convert || value.op == RowOp::load);
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
      case RowOp::quotient:
      case RowOp::short_quotient: {
        const Value a = operand(value.a), b = operand(value.b), c = operand(value.c);
        return builder_.ternary(value.op, a, b, c);
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
  RowDomain domain_ = RowDomain::element;  // of the loop at hand
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
