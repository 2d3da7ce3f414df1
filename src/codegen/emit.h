#pragma once

// One walk over a row program produces the code of every emitter. It emits one level after another. Each level is a
// loop over the groups, one vector of groups at a time, and then a loop over the columns, in whole steps and then the
// remainder of the row. Each value is computed once, where it is first needed. So no value depends on the maximum of
// its own group within one dependency chain: the maxima of all groups of the row are computed first.
//
// An emitter is a Builder. Its Value is a vector of lanes() floats, one float, or the codes of either:
//
//   lanes()                                 floats of a vector: 4, 8 or 16
//   begin(program), end()                   the function, and its loop over rows
//   begin_columns(first, last, step)        a loop over columns; returns its Index
//   end_columns()
//   at(column)                              an Index with a constant column
//   constant(number, is_wide), splat(one)
//   splat_halves(first, second)             each fills half of the lanes
//   unary(op, a), binary(op, a, b)          operands are all floats or all vectors; for replace_nan, b is the number
//   ternary(op, a, b, c), replace_zero(a, number, b), select_at_most(a, number, b, c)
//   encode(dtype, floats), decode(dtype, codes)
//   encode_plain(dtype, floats)             for floats that encode_plain_<dtype> accepts: vectors; for bf16 and
//                                           f8e4m3 also one float
//   rounded_f8e4m3(floats)                  the floats that the plain codes of the vectors decode to, in fewer steps
//   load(buffer, index, offset, count)      `count` elements at column index + offset, then zeros
//   store(store, index, offset, codes, count)   to the location that the RowStore describes
//   store_four(store, index, offset, codes)   four whole, consecutive vectors of one-byte codes
//   store_pairs(store, index, offset, first, second, count)   the same, each code of `second` after one of `first`
//   store_two_pairs(store, index, offset, codes)   the same for four vectors of one-byte codes: one pair, then the next
//   load_pairs(buffer, index, offset)       2 * lanes() elements: the even ones and the odd ones
//   joined_pairs(even, odd)                 such floats in the order of the columns, as two vectors
//   prefetch_ahead(buffer, index, ahead, offset)   index + ahead + offset, into the first-level cache; in
//                                           the next row if index + ahead is after the last column
//   prefetch_next(buffer, index, divisor, offset)   index / divisor + offset of the next row, into the
//                                           second-level cache
//   prefetch_store(store, index, offset)    the location that will be written
//   load_one(buffer, index, offset, divisor)    element (index + offset) / divisor
//   store_one(buffer, code)                 the only element
//   load_slot(slot, index, offset), store_slot(slot, index, offset, vector)   a whole vector of scratch
//   load_one_of_slot(slot, index, offset, divisor), store_one_of_slot(slot, index, offset, divisor, float)
//   variable(vector), get(variable), set(variable, vector)
//   first_lanes(vector, count, rest)        the lanes after the first `count` become `rest`
//   sum(vectors)                            the tree of the reference math over 64 floats
//   larger(a, b), largest(vectors)          for values without a sign
//   signed_larger(a, b), signed_largest(vectors)   for any values: NaN wins; of equal zeros, either
//
// A Builder with kTakesShortWays supports fast paths and has more functions: short_ways.h.

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "codegen/emit_prefetches.h"
#include "codegen/emit_reductions.h"
#include "codegen/emit_short_ways.h"
#include "codegen/level_work.h"
#include "codegen/middle_of_chain.h"
#include "codegen/row_program.h"
#include "codegen/short_ways.h"

namespace weft {

template <class Builder>
class RowEmitter : ReductionEmitter<Builder> {
 public:
  RowEmitter(const RowProgram& program, Builder& builder) : ReductionEmitter<Builder>(program, builder) {}

  void run() {
    builder_.begin(program_);
    for (level_ = 0; level_ < program_.levels; ++level_) emit_level();
    for (const RowStore& store : program_.stores)
      if (store.domain <= RowDomain::row) builder_.store_one(store.buffer, code_for(store, one(store.value)));
    builder_.end();
  }

  // For processors with few registers, the instructions of fast paths are emitted in their final order.
  bool is_in_order() const { return ways_ && builder_.has_few_registers(); }

 private:
  using Base = ReductionEmitter<Builder>;
  using Base::are_kept, Base::begin_block, Base::code_for, Base::declare_partials, Base::join_partials, Base::kNothing,
      Base::kVectorsOfBytes, Base::lanes_of_partial, Base::one, Base::set_vector, Base::value_at, Base::vector,
      Base::vectors_of_block;
  using Base::at_once_, Base::program_, Base::builder_, Base::level_, Base::domain_, Base::ways_, Base::is_short_,
      Base::rest_, Base::column_, Base::offset_, Base::largest_, Base::maxima_, Base::block_;
  using typename Base::Index, typename Base::Value, typename Base::Variable;

  void emit_level() {
    for (int id = 0; id < static_cast<int>(program_.values.size()); ++id)
      if (value_at(id).domain <= RowDomain::row && value_at(id).level == level_) one(id);
    for (const RowDomain domain : {RowDomain::group, RowDomain::element})
      if (const LevelWork work = work_of_level(program_, level_, domain); !work.is_empty()) emit_loop(work);
  }

  void emit_loop(const LevelWork& work) {
    domain_ = work.domain;
    declare_partials(work.row_reductions);
    emit_turns_of_ways(work);
    join_partials();
  }

  // Emits a loop over the columns. With a fast path: the guarded fast path, and the full loop as its fallback.
  void emit_turns_of_ways(const LevelWork& work) {
    if constexpr (Builder::kTakesShortWays) {
      if (ways_ && domain_ == RowDomain::element && level_ == ways_->level) {
        if (ways_->early >= 0)
          emit_turns({.kept = {{ways_->early, value_at(ways_->v).slot}}, .by_groups = work.by_groups});
        largest_ = builder_.variable(builder_.splat(builder_.constant(kNothing, false)));
        begin_watch();
        is_short_ = true;
        emit_turns(work);
        is_short_ = false;
        this->add_partials_to_largest();
        std::vector<Value> factors;
        for (const int id : ways_->factors) factors.push_back(one(id));
        is_ordinary_ = builder_.are_ordinary(largest_, watched_, factors);
        if (ways_->roundings.empty()) return;
        builder_.begin_if(is_ordinary_);
        builder_.begin_else();
        this->restart_partials();
        emit_turns(work);
        return builder_.end_if();
      }
      if (ways_ && ways_->has_short_codes() && domain_ == RowDomain::element && level_ == ways_->level + 1) {
        builder_.begin_if(is_ordinary_);
        emit_rests();
        is_short_ = true;
        emit_turns(work);
        is_short_ = false;
        rest_.reset();
        builder_.begin_else();
        emit_turns(work);
        return builder_.end_if();
      }
    }
    emit_turns(work);
  }

  void emit_rests() {
    if constexpr (Builder::kTakesShortWays) {
      if (ways_->divisor < 0) return;
      if (value_at(ways_->divisor).domain == RowDomain::group) return emit_rests_of_groups(builder_, program_, *ways_);
      rest_ = builder_.inverse_rest(builder_.splat(one(ways_->divisor)), builder_.splat(one(ways_->inverse)));
    }
  }

  // Starts the guard. Values that all rows share are checked in the first row only.
  void begin_watch() {
    if constexpr (Builder::kTakesShortWays) {
      watched_ = builder_.pairs_variable(is_watched_once(*ways_, program_));
      if (!is_watched_once(*ways_, program_)) return;
      builder_.begin_if(builder_.is_first_row());
      emit_watch(builder_.begin_columns(0, program_.columns, kVectorsOfBytes * builder_.lanes()), 0, kVectorsOfBytes);
      builder_.end_columns();
      builder_.begin_else();
      builder_.end_if();
    }
  }
  void emit_watch(Index column, std::int64_t offset, int vectors) {
    if constexpr (Builder::kTakesShortWays)
      for (const int w : ways_->watched)
        for (int i = 0; i < vectors; i += 2)
          builder_.watch_pairs(watched_, value_at(w).buffer, column, offset + i * builder_.lanes());
  }

  void emit_turns(const LevelWork& work) {
    const std::int64_t columns = domain_ == RowDomain::group ? program_.columns / program_.group : program_.columns;
    at_once_ = are_long_chains(work) ? Base::kLongAtOnce : Base::kAtOnce;
    const std::int64_t block = block_ = block_of(work);
    std::int64_t turn = block;
    for (const int id : work.row_reductions) turn = std::lcm(turn, std::int64_t{lanes_of_partial(id)});
    const std::int64_t step = turn * program_.tuning.unroll;
    const std::int64_t whole = columns / step * step;
    if constexpr (Builder::kTakesShortWays)
      // The first loop has the shortest blocks.
      if (are_kept(work.group_reductions) && !maxima_)
        maxima_ = builder_.maxima_variable(columns, program_.group, block);
    if (const int ahead = made_ahead(); ahead >= 0 && step == block && whole > step) {
      emit_turns_ahead(work, ahead, whole, block);
    } else if (whole > step) {
      const Index column = builder_.begin_columns(0, whole, step);
      emit_columns(work, column, step, block);
      builder_.end_columns();
    } else if (whole > 0) {
      emit_columns(work, builder_.at(0), whole, block);
    }
    if (whole < columns) emit_columns(work, builder_.at(whole), columns - whole, block);
    if (are_kept(work.group_reductions)) this->emit_kept_maxima(work.group_reductions[0]);
  }

  // The columns that one block computes together: at_once_ vectors, or whole groups if values of groups are needed. A
  // loop over groups takes one vector at a time: there are few groups, and each is little work.
  std::int64_t block_of(const LevelWork& work) const {
    const std::int64_t side_by_side = at_once_ * builder_.lanes();
    if (domain_ == RowDomain::group) return builder_.lanes();
    if (!work.by_groups) return side_by_side;
    if (is_short_ && made_ahead() >= 0) return kVectorsOfBytes * builder_.lanes();
    return std::max<std::int64_t>(side_by_side / program_.group, 1) * program_.group;
  }

  // Whether the dependency chains of this loop (or their halves) are so long that a processor stalls with the usual
  // number of vectors at once. Only machines with vectors of 16 lanes have registers for more. Measured
  // (bench/README.md): chains of this length or more then take 0.84 to 1.03 of the cycles, shorter ones up to 1.22.
  // Fast paths keep more values in registers next to their chains, and would take 1.11 to 1.20.
  static constexpr int kLongChain = 16;
  bool are_long_chains(const LevelWork& work) const {
    if (domain_ != RowDomain::element || work.by_groups || is_short_ || builder_.lanes() < 16) return false;
    return longest_chain(program_, level_) >= (made_ahead() < 0 ? kLongChain : 2 * kLongChain);
  }

  // The value that is software-pipelined (computed one iteration ahead); -1 for none.
  int made_ahead() const {
    if (is_short_) return value_made_ahead(*ways_, program_, level_);
    return domain_ == RowDomain::element ? middle_of_chain(program_, level_, builder_.lanes()) : -1;
  }

  void emit_columns(const LevelWork& work, Index column, std::int64_t count, std::int64_t block) {
    if (domain_ == RowDomain::element) emit_prefetches(builder_, program_, level_, column, count);
    for (std::int64_t offset = 0; offset < count; offset += block) {
      begin_block(column, offset, std::min(block, count - offset));
      emit_block(work);
    }
  }

  // Emits one block for each iteration, with value `ahead` software-pipelined one iteration ahead (middle_of_chain.h).
  void emit_turns_ahead(const LevelWork& work, int ahead, std::int64_t columns, std::int64_t block) {
    std::vector<Variable> made;
    begin_block(builder_.at(0), 0, block);
    const int vectors = vectors_of_block();
    for (int i = 0; i < vectors; ++i) made.push_back(builder_.variable(vector(ahead, i)));
    const auto emit_rest_of_block = [&](Index column) {
      begin_block(column, 0, block);
      for (int i = 0; i < vectors; ++i) set_vector(ahead, i, builder_.get(made[static_cast<std::size_t>(i)]));
      emit_block(work);
    };
    const Index column = builder_.begin_columns(0, columns - block, block);
    emit_prefetches(builder_, program_, level_, column, block);
    begin_block(column, block, block);
    std::vector<Value> next;
    for (int i = 0; i < vectors; ++i) next.push_back(vector(ahead, i));
    emit_rest_of_block(column);
    for (std::size_t i = 0; i < next.size(); ++i) builder_.set(made[i], next[i]);
    builder_.end_columns();
    const Index last = builder_.at(columns - block);
    emit_prefetches(builder_, program_, level_, last, block);
    emit_rest_of_block(last);
  }

  void emit_block(const LevelWork& work) {
    const int lanes = builder_.lanes();
    const int vectors = vectors_of_block();
    this->emit_stores(work, vectors);
    for (const auto [id, slot] : work.kept) {
      const bool has_no_sign = is_short_ && ways_->keeps_magnitudes && id == ways_->v;
      const int kept = has_no_sign ? value_at(ways_->maximum).a : id;
      for (int i = 0; i < vectors; ++i) builder_.store_slot(slot, column_, offset_ + i * lanes, vector(kept, i));
    }
    if (is_short_ && level_ == ways_->level) emit_signs_and_watch(vectors);
    this->emit_reductions(work, vectors);
  }

  void emit_signs_and_watch(int vectors) {
    if constexpr (Builder::kTakesShortWays) {
      for (int i = 0; ways_->signs_at >= 0 && i < vectors; i += kVectorsOfBytes) {
        const auto v = [&](int k) { return vector(ways_->v, i + k); };
        builder_.store_signs(program_.stores[static_cast<std::size_t>(ways_->signs_at)], column_,
                             offset_ + i * builder_.lanes(), {v(0), v(1), v(2), v(3)});
      }
      if (!is_watched_once(*ways_, program_)) emit_watch(column_, offset_, vectors);
    }
  }

  // short_ways.h
  Variable watched_{};
  Value is_ordinary_{};
};

}  // namespace weft
