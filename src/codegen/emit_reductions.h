#pragma once

// The reductions of a row program's loops, of rows and of groups, through the Builder of emit.h. A row's reduction has
// partial results in vectors of variables during a loop over columns, and they are joined after it.

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "codegen/emit_stores.h"
#include "codegen/level_work.h"
#include "codegen/row_program.h"
#include "codegen/short_ways.h"
#include "tensor/reference_math.h"

namespace weft {

template <class Builder>
class ReductionEmitter : protected StoreEmitter<Builder> {
 protected:
  using Base = StoreEmitter<Builder>;
  using Base::comes_in_pairs, Base::group_of, Base::has_two_groups, Base::lanes_of, Base::value_at, Base::vector;
  using Base::program_, Base::builder_, Base::level_, Base::domain_, Base::ones_, Base::ways_, Base::keeps_maxima_,
      Base::is_short_, Base::column_, Base::offset_;
  using typename Base::Index, typename Base::Value, typename Base::Variable;

  ReductionEmitter(const RowProgram& program, Builder& builder) : Base(program, builder) {}

  // The start value of reductions, also used for lanes after the end of the row. Partial sums that begin with 0 are
  // never -0, so adding another 0 changes no bit. No value without a sign is smaller than 0.
  static constexpr float kNothing = 0.0f;
  float nothing_of(int id) const {
    return value_at(id).op == RowOp::row_signed_max ? -std::numeric_limits<float>::infinity() : kNothing;
  }

  Value start_of(int id) { return builder_.splat(builder_.constant(static_cast<double>(nothing_of(id)), false)); }

  // The number of floats in the partial results of a row's reduction. A maximum that propagates NaN has a longer
  // latency than a sum, and its order does not matter, so it uses eight vectors of partial results.
  int lanes_of_partial(int id) const {
    constexpr int kChains = 8;
    return value_at(id).op == RowOp::row_signed_max ? std::max(kReferenceSumLanes, kChains * builder_.lanes())
                                                    : kReferenceSumLanes;
  }

  // Declares the partial results of a loop's row reductions.
  void declare_partials(const std::vector<int>& reductions) {
    partial_.clear();
    for (const int id : reductions)
      for (int i = 0; i < lanes_of_partial(id) / builder_.lanes(); ++i)
        partial_[id].push_back(builder_.variable(start_of(id)));
  }

  void restart_partials() {
    for (const auto& [id, variables] : partial_)
      for (const Variable& part : variables) builder_.set(part, start_of(id));
  }

  // Joins the partial results to the values of the row.
  void join_partials() {
    for (auto& [id, variables] : partial_) {
      std::vector<Value> partial;
      for (Variable& variable : variables) partial.push_back(builder_.get(variable));
      const RowOp op = value_at(id).op;
      ones_[id] = op == RowOp::row_sum          ? sum_of(std::move(partial))
                  : op == RowOp::row_signed_max ? builder_.signed_largest(partial)
                                                : builder_.largest(partial);
    }
  }

  void add_partials_to_largest() {
    for (const auto& [id, variables] : partial_)
      for (const Variable& part : variables)
        builder_.set(largest_, builder_.larger(builder_.get(largest_), builder_.get(part)));
  }

  // Emits the reductions of the current block.
  void emit_reductions(const LevelWork& work, int vectors) {
    const int lanes = builder_.lanes();
    for (int id : work.group_reductions)
      value_at(id).op == RowOp::group_max ? emit_maximum(id, vectors, are_kept(work.group_reductions))
                                          : emit_group_sums(id, vectors);
    for (const int id : work.row_reductions) {
      std::vector<Variable>& variables = partial_.at(id);
      for (int i = 0; i < vectors; ++i) {
        Value term = vector(term_of(id), i);
        if (lanes_of(i) < lanes) term = builder_.first_lanes(term, lanes_of(i), nothing_of(id));
        Variable& partial = variables[static_cast<std::size_t>(offset_ / lanes + i) % variables.size()];
        builder_.set(partial, with_term(id, builder_.get(partial), term));
      }
    }
  }

  // The maximum of one group is a dependency chain on one or two lanes. So the maxima of several groups are computed
  // together: each group keeps one vector until all groups are done.
  bool are_kept(const std::vector<int>& reductions) const {
    return keeps_maxima_ && domain_ == RowDomain::element && reductions.size() == 1 &&
           value_at(reductions[0]).op == RowOp::group_max;
  }
  void emit_kept_maxima(int id) {
    if constexpr (Builder::kTakesShortWays) {
      const Index group = builder_.begin_columns(0, program_.columns / program_.group, builder_.lanes());
      const Value largest = builder_.largest_of_each(*maxima_, group, program_.group, block_);
      builder_.store_slot(value_at(id).slot, group, 0, largest);
      if (is_short_) builder_.set(largest_, builder_.larger(builder_.get(largest_), largest));
      builder_.end_columns();
    }
  }

  // short_ways.h
  Variable largest_{};
  std::optional<Variable> maxima_;
  std::int64_t block_ = 0;  // columns of a whole block in the current loop

 private:
  // The sum of the 64 partial sums of a row or a group.
  Value sum_of(std::vector<Value> partial) {
    for (std::size_t i = 0; comes_in_pairs() && i < partial.size(); i += 2)
      std::tie(partial[i], partial[i + 1]) = builder_.joined_pairs(partial[i], partial[i + 1]);
    return builder_.sum(partial);
  }

  // Whether a row's maximum skips NaN by itself, because the program replaces NaN by kNothing before it.
  bool passes_over_nan(int id) const {
    const RowValue& value = value_at(value_at(id).a);
    return value_at(id).op == RowOp::row_max && value.op == RowOp::replace_nan &&
           value.number == static_cast<double>(kNothing) && value.level == level_;
  }
  int term_of(int id) const { return passes_over_nan(id) ? value_at(value_at(id).a).a : value_at(id).a; }
  Value with_term(int id, Value partial, Value term) {
    if (value_at(id).op == RowOp::row_sum) return builder_.binary(RowOp::add, partial, term);
    if (value_at(id).op == RowOp::row_signed_max) return builder_.signed_larger(partial, term);
    return passes_over_nan(id) ? builder_.binary(RowOp::at_least, partial, term) : builder_.larger(partial, term);
  }

  void emit_maximum(int id, int vectors, bool is_kept) {
    std::vector<Value> terms;
    for (int i = 0; i < vectors; ++i) terms.push_back(vector(value_at(id).a, i));
    if (is_kept) return keep_maxima(terms);
    for (int i = 0; has_two_groups() && i < vectors; i += 2)
      std::tie(terms[i], terms[i + 1]) = builder_.joined_pairs(terms[i], terms[i + 1]);
    const int of_group = static_cast<int>(program_.group / builder_.lanes());
    for (int i = 0; i < vectors; i += of_group) {
      const auto first = terms.begin() + i;
      builder_.store_one_of_slot(value_at(id).slot, column_, offset_ + i * builder_.lanes(), program_.group,
                                 builder_.largest({first, first + of_group}));
    }
  }
  // Keeps the maxima of the groups of the current block, or of the part of a group that it is.
  void keep_maxima(const std::vector<Value>& terms) {
    if constexpr (Builder::kTakesShortWays) {
      const int of_vector = has_two_groups() ? 2 : 1;
      const auto vectors = static_cast<std::size_t>(std::max<std::int64_t>(block_ / program_.group / of_vector, 1));
      std::vector<Value> maxima(vectors, builder_.splat(builder_.constant(kNothing, false)));
      const auto number_of = [&](std::size_t i) { return group_of(static_cast<int>(i)) / of_vector; };
      for (std::size_t i = 0; i < terms.size(); ++i) {
        Value& largest = maxima[static_cast<std::size_t>(number_of(i))];
        const bool is_first = i == 0 || number_of(i) != number_of(i - 1);
        largest = is_first ? terms[i] : builder_.larger(largest, terms[i]);
      }
      builder_.keep_maxima(*maxima_, column_, offset_, block_, maxima);
    }
  }

  void emit_group_sums(int id, int vectors) {
    const int lanes = builder_.lanes();
    const Value nothing = builder_.splat(builder_.constant(kNothing, false));
    const int of_group = static_cast<int>(program_.group / lanes);
    for (int first = 0; first < vectors; first += of_group) {
      std::vector<Value> partial(static_cast<std::size_t>(kReferenceSumLanes / lanes), nothing);
      std::size_t number = 0;
      for (const int summed : {value_at(id).a, value_at(id).b})
        for (int i = 0; summed >= 0 && i < of_group; ++i, ++number) {
          Value& part = partial[number % partial.size()];
          part = builder_.binary(RowOp::add, part, vector(summed, first + i));
        }
      builder_.store_one_of_slot(value_at(id).slot, column_, offset_ + first * lanes, program_.group,
                                 sum_of(std::move(partial)));
    }
  }

  std::map<int, std::vector<Variable>> partial_;  // by row reduction: 64 floats, or more (lanes_of_partial)
};

}  // namespace weft
