#pragma once

// Emits the values of a row program in one block of columns, through the Builder of emit.h. Each value is computed
// once, where it is first needed.

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "codegen/emit_short_ways.h"
#include "codegen/emit_value.h"
#include "codegen/row_program.h"
#include "codegen/short_ways.h"

namespace weft {

template <class Builder>
class BlockEmitter {
 protected:
  using Value = typename Builder::Value;
  using Index = typename Builder::Index;
  using Variable = typename Builder::Variable;

  BlockEmitter(const RowProgram& program, Builder& builder) : program_(program), builder_(builder) {
    if constexpr (Builder::kTakesShortWays) {
      const bool has_lanes = builder.lanes() >= Builder::kLeastLanesOfMaxima;
      keeps_maxima_ = has_lanes && program.group > 0 && program.columns <= kMostMaxima * kPairedColumns;
      if (has_lanes && (keeps_maxima_ || program.group == 0) && builder.takes_short_ways(program))
        ways_ = find_short_ways(program);
      if (ways_ && !builder.has_few_registers()) ways_->early = -1;
    }
  }

  const RowValue& value_at(int id) const { return program_.values[static_cast<std::size_t>(id)]; }
  bool comes_in_pairs() const { return program_.in_pairs && domain_ == RowDomain::element; }
  // Whether each half of both vectors of a pair belongs to a different group.
  bool has_two_groups() const {
    return comes_in_pairs() && program_.group > 0 && program_.group < std::int64_t{2} * builder_.lanes();
  }

  // Begins a block: `count` columns from column + offset on. They are whole groups if values of groups are needed;
  // otherwise whole vectors, or the remainder of the row.
  void begin_block(Index column, std::int64_t offset, std::int64_t count) {
    column_ = column;
    offset_ = offset;
    count_ = count;
    vectors_.clear();
    codes_.clear();
    groups_.clear();
  }

  int vectors_of_block() const { return static_cast<int>((count_ + builder_.lanes() - 1) / builder_.lanes()); }
  int lanes_of(int i) const {
    return static_cast<int>(std::min<std::int64_t>(builder_.lanes(), count_ - i * builder_.lanes()));
  }

  // Returns a value of the row or of the whole program.
  Value one(int id) {
    if (const auto known = ones_.find(id); known != ones_.end()) return known->second;
    const RowValue& value = value_at(id);
    CHECK(!is_row_reduction(value.op), "value {} of a row program is wanted before its level is done", id);
    const Value made = value.op == RowOp::load
                           ? decoded(value.buffer, builder_.load_one(value.buffer, builder_.at(0), 0, 1))
                           : compute(value, [&](int operand) { return one(operand); });
    return ones_[id] = made;
  }

  // The index of the group of vector `i`, counted from the block's first group. For pairs, the first group of the pair.
  int group_of(int i) const {
    const int vector = comes_in_pairs() ? i / 2 * 2 : i;
    return program_.group > 0 ? static_cast<int>(vector * builder_.lanes() / program_.group) : 0;
  }

  // Returns a value of a group of the current block, or of a wider domain, in a loop over columns.
  Value of_group(int id, int group) {
    const RowValue& value = value_at(id);
    if (value.domain <= RowDomain::row) return one(id);
    if (const auto known = groups_.find({id, group}); known != groups_.end()) return known->second;
    const std::int64_t offset = offset_ + group * program_.group;
    Value made{};
    if (value.slot >= 0) {
      made = builder_.load_one_of_slot(value.slot, column_, offset, program_.group);
    } else if (value.op == RowOp::load) {
      made = decoded(value.buffer, builder_.load_one(value.buffer, column_, offset, program_.group));
    } else {
      made = compute(value, [&](int operand) { return of_group(operand, group); });
    }
    return groups_[{id, group}] = made;
  }

  // Returns vector `i` of a value in the current block. Several vectors are computed together, so that a processor
  // finds independent operations close to each other. Long dependency chains use more vectors.
  static constexpr int kAtOnce = 4, kLongAtOnce = 8;
  Value vector(int id, int i) {
    if (const auto known = vectors_.find({id, i}); known != vectors_.end()) return known->second;
    const int first = i / at_once_ * at_once_;
    for (int k = first; k < std::min(first + at_once_, vectors_of_block()); ++k) vectors_[{id, k}] = make_vector(id, k);
    return vectors_.at({id, i});
  }

  // Sets a vector that was computed before this block.
  void set_vector(int id, int i, Value made) { vectors_[{id, i}] = made; }

  Value make_vector(int id, int i) {
    const RowValue& value = value_at(id);
    const std::int64_t offset = offset_ + i * builder_.lanes();
    Value made{};
    if (value.domain < domain_) {
      const bool is_of_two = value.domain == RowDomain::group && has_two_groups();
      const Value first = of_group(id, group_of(i));
      made = is_of_two ? builder_.splat_halves(first, of_group(id, group_of(i) + 1)) : builder_.splat(first);
    } else if (value.slot >= 0 && (value.level < level_ || is_group_reduction(value.op))) {
      made = builder_.load_slot(value.slot, column_, offset);
    } else if (value.op == RowOp::load) {
      made = decoded(value.buffer, code(id, i));
    } else if (is_short_ && has_short_way(*ways_, program_, level_, id)) {
      if constexpr (Builder::kTakesShortWays)
        made = emit_short_value(builder_, program_, *ways_, id, column_, offset, [&](int operand) {
          return rest_ && operand == ways_->divisor ? *rest_ : vector(operand, i);
        });
    } else if (value.op == RowOp::convert && value.is_plain && value.dtype == DType::f8e4m3) {
      made = builder_.rounded_f8e4m3(vector(value.a, i));
    } else if (value.op == RowOp::convert) {
      made = builder_.decode(value.dtype, code(id, i));
    } else {
      made = compute(value, [&](int operand) { return vector(operand, i); });
    }
    return made;
  }

  // The codes of a `load`, or of a `convert` that is computed here. Users decode them and a store writes them.
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

  static constexpr std::int64_t kMostMaxima = 2048;  // maxima kept as vectors at most

  const RowProgram& program_;
  Builder& builder_;
  int level_ = 0;
  RowDomain domain_ = RowDomain::element;  // of the current loop
  std::map<int, Value> ones_;
  std::optional<ShortWays> ways_;
  int at_once_ = kAtOnce;      // vectors that the current loop computes together
  bool is_short_ = false;      // whether the current loop is the fast path
  bool keeps_maxima_ = false;  // whether maxima of groups are kept as vectors
  std::optional<Value> rest_;  // of a row's scale, in a fast path
  Index column_{};
  std::int64_t offset_ = 0;
  std::int64_t count_ = 0;

 private:
  std::map<std::pair<int, int>, Value> vectors_;  // by value and index of the vector
  std::map<std::pair<int, int>, Value> codes_;
  std::map<std::pair<int, int>, Value> groups_;  // by value and index of the group
};

}  // namespace weft
