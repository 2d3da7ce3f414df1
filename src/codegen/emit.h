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
//   store_two_pairs(store, index, offset, codes)   the same of four vectors of codes of a byte: a pair, and the next
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
//
// One that kTakesShortWays has more: short_ways.h.

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "codegen/emit_prefetches.h"
#include "codegen/emit_short_ways.h"
#include "codegen/emit_value.h"
#include "codegen/level_work.h"
#include "codegen/row_program.h"
#include "codegen/short_ways.h"
#include "tensor/house_math.h"

namespace weft {

template <class Builder>
class RowEmitter {
 public:
  RowEmitter(const RowProgram& program, Builder& builder) : program_(program), builder_(builder) {
    if constexpr (Builder::kTakesShortWays)
      if (builder.takes_short_ways()) ways_ = find_short_ways(program);
  }

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

  const RowValue& value_at(int id) const { return program_.values[static_cast<std::size_t>(id)]; }

  void emit_level() {
    for (int id = 0; id < static_cast<int>(program_.values.size()); ++id)
      if (value_at(id).domain <= RowDomain::row && value_at(id).level == level_) one(id);
    for (const RowDomain domain : {RowDomain::group, RowDomain::element})
      if (const LevelWork work = work_of_level(program_, level_, domain); !work.is_empty()) emit_loop(work);
  }

  void emit_loop(const LevelWork& work) {
    domain_ = work.domain;
    partial_.clear();
    for (const int id : work.reductions) {
      const Value start = builder_.splat(builder_.constant(kNothing, false));
      for (int i = 0; i < kHouseSumLanes / builder_.lanes(); ++i) partial_[id].push_back(builder_.variable(start));
    }
    emit_turns_of_ways(work);
    for (auto& [id, variables] : partial_) {
      std::vector<Value> partial;
      for (Variable& variable : variables) partial.push_back(builder_.get(variable));
      const bool is_sum = value_at(id).op == RowOp::row_sum;
      for (std::size_t i = 0; is_sum && comes_in_pairs() && i < partial.size(); i += 2)
        std::tie(partial[i], partial[i + 1]) = builder_.joined_pairs(partial[i], partial[i + 1]);
      ones_[id] = is_sum ? builder_.sum(partial) : builder_.largest(partial);
    }
  }

  // A loop over the columns in fewer steps, and where it turns out that those were not enough, again in all of them.
  void emit_turns_of_ways(const LevelWork& work) {
    if constexpr (Builder::kTakesShortWays) {
      if (ways_ && domain_ == RowDomain::element && level_ == ways_->level) {
        if (ways_->early >= 0)
          emit_turns({.kept = {{ways_->early, value_at(ways_->v).slot}}, .by_groups = work.by_groups});
        largest_ = builder_.variable(builder_.splat(builder_.constant(kNothing, false)));
        watched_ = builder_.pairs_variable();
        is_short_ = true;
        emit_turns(work);
        is_short_ = false;
        std::vector<Value> factors;
        for (const int id : ways_->factors) factors.push_back(one(id));
        is_ordinary_ = builder_.are_ordinary(largest_, watched_, factors);
        if (ways_->roundings.empty()) return;
        builder_.begin_if(is_ordinary_);
        builder_.begin_else();
        emit_turns(work);
        return builder_.end_if();
      }
      if (ways_ && ways_->has_short_codes() && domain_ == RowDomain::element && level_ == ways_->level + 1) {
        builder_.begin_if(is_ordinary_);
        emit_rests(builder_, program_, *ways_);
        is_short_ = true;
        emit_turns(work);
        is_short_ = false;
        builder_.begin_else();
        emit_turns(work);
        return builder_.end_if();
      }
    }
    emit_turns(work);
  }

  // Vectors of 8 lanes that give a whole vector of codes of a byte; wider ones fill one by two.
  static constexpr std::int64_t kTwoPairs = 4;
  bool stores_bytes(const LevelWork& work) const {
    return builder_.lanes() * kTwoPairs == kPairedColumns &&
           std::any_of(work.stores.begin(), work.stores.end(),
                       [&](const RowStore& store) { return is_of_bytes(store); });
  }
  bool is_of_bytes(const RowStore& store) const {
    return dtype_info(program_.buffers[static_cast<std::size_t>(store.buffer)].dtype).block_bytes == 1;
  }
  bool comes_in_pairs() const { return program_.in_pairs && domain_ == RowDomain::element; }

  void emit_turns(const LevelWork& work) {
    const std::int64_t columns = domain_ == RowDomain::group ? program_.columns / program_.group : program_.columns;
    const std::int64_t together = comes_in_pairs() ? (stores_bytes(work) ? kTwoPairs : 2) : 1;
    const std::int64_t block = work.by_groups ? program_.group : together * builder_.lanes();
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
  }

  // What reductions begin with, and what they take from lanes beyond the row. Partial sums that began with 0 are never
  // -0, so that another 0 changes no bit; of what has no sign nothing is smaller.
  static constexpr float kNothing = 0.0f;

  void emit_columns(const LevelWork& work, Index column, std::int64_t count, std::int64_t block) {
    if (domain_ == RowDomain::element) emit_prefetches(builder_, program_, level_, column, count);
    for (std::int64_t offset = 0; offset < count; offset += block)
      emit_block(work, column, offset, std::min(block, count - offset));
  }

  // `count` columns from column + offset on: one group, or at most one vector or one pair.
  void emit_block(const LevelWork& work, Index column, std::int64_t offset, std::int64_t count) {
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
      if (work.is_second_of_pair(store)) continue;
      if (comes_in_pairs()) {
        emit_store_of_pairs(store, vectors);
        continue;
      }
      const RowStore* second = work.second_of_pair(store);
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
    for (const auto [id, slot] : work.kept)
      for (int i = 0; i < vectors; ++i) builder_.store_slot(slot, column_, offset_ + i * lanes, vector(id, i));
    for (int id : work.maxima) emit_maximum(id, vectors);
    for (auto& [id, variables] : partial_) {
      for (int i = 0; i < vectors; ++i) {
        Value term = vector(value_at(id).a, i);
        if (lanes_of(i) < lanes) term = builder_.first_lanes(term, lanes_of(i), kNothing);
        Variable& partial = variables[static_cast<std::size_t>(offset_ / lanes + i) % variables.size()];
        const Value before = builder_.get(partial);
        const bool is_sum = value_at(id).op == RowOp::row_sum;
        builder_.set(partial, is_sum ? builder_.binary(RowOp::add, before, term) : builder_.larger(before, term));
      }
    }
  }

  void emit_store_of_pairs(const RowStore& store, int vectors) {
    const bool in_twos = is_of_bytes(store) && vectors % kTwoPairs == 0;
    for (int i = 0; i < vectors; i += in_twos ? kTwoPairs : 2) {
      const std::int64_t offset = offset_ + i * builder_.lanes();
      if constexpr (Builder::kTakesShortWays) {
        if (const int id = value_at(store.value).a; is_ordinary_f8(store)) {
          builder_.store_ordinary_f8e4m3(store, column_, offset,
                                         {vector(id, i), vector(id, i + 1), vector(id, i + 2), vector(id, i + 3)},
                                         sign_buffers(program_, *ways_));
          continue;
        }
      }
      const Value even = vector_code_for(store, i), odd = vector_code_for(store, i + 1);
      if (in_twos) {
        builder_.store_two_pairs(store, column_, offset,
                                 {even, odd, vector_code_for(store, i + 2), vector_code_for(store, i + 3)});
      } else {
        builder_.store_pairs(store, column_, offset, even, odd, builder_.lanes());
      }
    }
  }
  // In a loop that takes short ways.
  bool is_ordinary_f8(const RowStore& store) const {
    const RowValue& value = value_at(store.value);
    return is_short_ && value.op == RowOp::convert && value.is_plain && value.dtype == DType::f8e4m3 &&
           value_at(value.a).op == RowOp::short_quotient &&
           program_.buffers[static_cast<std::size_t>(store.buffer)].dtype == value.dtype;
  }

  void emit_maximum(int id, int vectors) {
    std::vector<Value> terms;
    for (int i = 0; i < vectors; ++i) terms.push_back(vector(value_at(id).a, i));
    Value largest{};
    if constexpr (Builder::kTakesShortWays) {
      if (is_short_) {
        for (std::size_t i = 1; i < terms.size(); ++i) terms[0] = builder_.larger(terms[0], terms[i]);
        largest = builder_.largest_bf16(terms[0]);
        builder_.set(largest_, builder_.larger(builder_.get(largest_), terms[0]));
        for (const int w : ways_->watched)
          for (int i = 0; i < vectors; i += 2)
            builder_.watch_pairs(watched_, value_at(w).buffer, column_, offset_ + i * builder_.lanes());
      }
    }
    if (!is_short_) largest = builder_.largest(terms);
    builder_.store_one_of_slot(value_at(id).slot, column_, offset_, program_.group, largest);
  }

  // What lies where a store may write is read before anything is written.
  void read_overwritten(const RowStore& store, int vectors) {
    const int over = program_.buffers[static_cast<std::size_t>(store.buffer)].over;
    if (over < 0) return;
    for (int id = 0; id < static_cast<int>(program_.values.size()); ++id)
      for (int i = 0; i < vectors && value_at(id).op == RowOp::load && value_at(id).buffer == over; ++i) vector(id, i);
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
    } else if (is_short_ && has_short_way(*ways_, program_, level_, id)) {
      if constexpr (Builder::kTakesShortWays)
        made = emit_short_value(builder_, program_, *ways_, id, column_, offset,
                                [&](int operand) { return vector(operand, i); });
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
    if (value.op == RowOp::load && comes_in_pairs()) {
      const int even = i / 2 * 2;
      std::tie(codes_[{id, even}], codes_[{id, even + 1}]) =
          builder_.load_pairs(value.buffer, column_, offset_ + even * builder_.lanes());
      return codes_[{id, i}];
    } else if (value.op == RowOp::load) {
      made = builder_.load(value.buffer, column_, offset_ + i * builder_.lanes(), lanes_of(i));
    } else {
      made = emit_codes(builder_, value, vector(value.a, i));
    }
    codes_[{id, i}] = made;
    return made;
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
    return emit_value(builder_, value, operand);
  }

  const RowProgram& program_;
  Builder& builder_;
  int level_ = 0;
  RowDomain domain_ = RowDomain::element;  // of the loop at hand
  std::map<int, Value> ones_;
  std::map<int, std::vector<Variable>> partial_;  // 64 floats, by reduction of rows
  // short_ways.h
  std::optional<ShortWays> ways_;
  bool is_short_ = false;  // whether the loop at hand takes them
  Variable largest_{}, watched_{};
  Value is_ordinary_{};
  // The block at hand.
  Index column_{};
  std::int64_t offset_ = 0;
  std::int64_t count_ = 0;
  std::map<std::pair<int, int>, Value> vectors_;  // by value and number of the vector
  std::map<std::pair<int, int>, Value> codes_;
  std::map<int, Value> groups_;
};

}  // namespace weft
