#pragma once

// Finds fast paths that compute codes of groups or rows in fewer steps. They are valid for ordinary numbers only:
//
//   v = bf16(bf16(a) * w)     with roundings (row_math.h) that are right except for tiny or huge values
//   m = group_max |v|         or row_max
//   codes of v / scale(m)     without a check for NaN
//
// The guard is checked for each row while v is computed. It requires that m is at most 2^64, so nothing before it was
// huge, infinite or NaN, and that w is below 2^65. Otherwise the fallback computes v again. The roundings are wrong for
// tiny values only, and so is a tiny quotient of silu halfway between two bf16: bf16(a) below 2^-125, and then v below
// 2^-59 on both paths. The maximum of such a group has no effect, since the scale is computed from at least 2^-58. Then
// v / scale is at most 2^-16 and has the code of 0 with its sign (scales: simplify_rows). The shortest fast paths lose
// the sign of 0 itself. They are used only for codes without signed zeros, or if v is a product of loaded values, whose
// signs are then copied from memory into the codes.
//
// A Builder (emit.h) with kTakesShortWays has these functions for programs with takes_short_ways(program):
//
//   has_few_registers()                     too few for several dependency chains at once
//   short_bf16(rounding, floats)            returns floats
//   inverse_rest(b, c), shorter_quotient(a, rest, c)   row_math.h
//   store_ordinary_f8e4m3(store, index, offset, floats, signs)   four vectors, as store_two_pairs stores codes
//   store_signs(store, index, offset, floats)   stores the signs where the codes will be
//   pairs_variable(is_of_call)              for the largest magnitudes among pairs of bf16, of a row or of a whole call
//   watch_pairs(variable, buffer, index, offset)   includes the values of load_pairs in it
//   are_ordinary(largest, watched, numbers)   whether floats are at most 2^64, pairs below 2^65, and no number negative
//   begin_if(truth), begin_else(), end_if(), is_first_row()   of the call
//
// If it has at least kLeastLanesOfMaxima lanes, it also has these for the maxima of groups, which are kept in vectors:
//
//   maxima_variable(columns, group, block)  room for the vectors of each block of columns
//   keep_maxima(variable, index, offset, block, maxima)   for the block at index + offset: one vector for each group,
//                                           for each two groups (a power of two of them), or for the part of a group
//                                           that the block is
//   largest_of_each(variable, index, group, block)   the maximum of each of lanes() groups, from group `index` on

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "codegen/level_work.h"

namespace weft {

enum class ShortRounding : std::uint8_t {
  split,    // keeps the sign of 0
  fused,    // may lose the sign of 0
  half_up,  // for x / bf16_silu_divisor x, which is halfway between two bf16 only if it is tiny
};

struct ShortWays {
  int level = 0;     // the level that computes v and m; the next one computes the codes
  int maximum = -1;  // m
  int v = -1;
  std::map<int, ShortRounding> roundings;  // by conversion to bf16: `v`, if it is one, and its factor
  // A value that is computed for the whole row first and stored where v will be; -1 for none. The dependency chains are
  // then so short that a processor can begin the next one before the current one ends. If there are registers for more
  // chains at once, one loop is as fast and stalls less on memory.
  int early = -1;
  std::vector<int> watched;     // loads that the guard checks: `w`
  bool is_ordinary_f8 = false;  // whether codes are computed in fewer steps, too
  // Loads whose product has the sign of v, and factors of v that are one number for the row. Empty if that is not
  // known.
  std::vector<int> signs, factors;
  bool keeps_magnitudes = false;  // whether v is kept without its sign
  // If `signs` is empty: the store at whose location the signs are kept until its codes are written. -1 for none.
  int signs_at = -1;
  // The operands of the quotients: the scale, which is replaced by the remainder of 1 / scale beyond `inverse`, and
  // `inverse`. -1 for none.
  int divisor = -1, inverse = -1;

  bool has_short_codes() const { return is_ordinary_f8 || divisor >= 0; }
};

class ShortWaysFinder {
 public:
  explicit ShortWaysFinder(const RowProgram& program) : program_(program), users_(program.values.size()) {
    for (int id = 0; id < static_cast<int>(program.values.size()); ++id)
      for (const int operand : {at(id).a, at(id).b, at(id).c})
        if (operand >= 0) users_[static_cast<std::size_t>(operand)].push_back(id);
    // A store is recorded as user -1.
    for (const RowStore& store : program.stores) users_[static_cast<std::size_t>(store.value)].push_back(-1);
  }

  // Returns nothing if there is no fast path, or more than one.
  std::optional<ShortWays> find() const {
    if (!program_.in_pairs) return std::nullopt;
    std::optional<ShortWays> found;
    for (int id = 0; id < static_cast<int>(program_.values.size()); ++id) {
      if (at(id).op != RowOp::group_max && at(id).op != RowOp::row_max) continue;
      if (found) return std::nullopt;
      found = ways_by(id);
      if (!found) return std::nullopt;
    }
    return found;
  }

 private:
  static constexpr double kLeastOfScales = 0x1p-58;

  const RowValue& at(int id) const { return program_.values[static_cast<std::size_t>(id)]; }
  const std::vector<int>& users(int id) const { return users_[static_cast<std::size_t>(id)]; }
  bool is(int id, RowOp op) const { return id >= 0 && at(id).op == op; }
  bool is_bf16(int id) const { return is(id, RowOp::convert) && at(id).dtype == DType::bf16; }
  bool loads_bf16(int id) const {
    return is(id, RowOp::load) && at(id).domain == RowDomain::element &&
           program_.buffers[static_cast<std::size_t>(at(id).buffer)].dtype == DType::bf16;
  }

  std::optional<ShortWays> ways_by(int maximum) const {
    const int magnitude = at(maximum).a;
    if (!is(magnitude, RowOp::abs) || users(magnitude).size() != 1) return std::nullopt;
    const int v = at(magnitude).a;
    ShortWays ways{.level = at(maximum).level - 1, .maximum = maximum, .v = v};
    const LevelWork work = work_of_level(program_, ways.level, RowDomain::element);
    if (!work.stores.empty() || work.row_reductions.size() + work.group_reductions.size() != 1) return std::nullopt;
    if (!hides_the_least(maximum) || !is_for_codes(v, magnitude, ways)) return std::nullopt;
    // If other values read the codes, they need all signs, and may compute the codes again in a later level.
    const bool are_stored = are_stored_alone(v, magnitude);
    if (!are_stored || !find_signs(v, ways)) ways.signs.clear();
    if (!ways.is_ordinary_f8 || ways.signs.empty()) ways.factors.clear();
    const bool has_signs_of_0 = ways.is_ordinary_f8 && ways.signs.empty();
    if (!are_stored || has_signs_of_0 || !has_rest(ways)) ways.divisor = ways.inverse = -1;
    if (loads_bf16(v) && work.kept.empty() && ways.is_ordinary_f8) return ways;
    if (!is_bf16(v) || at(v).level != ways.level || work.kept != std::vector<LevelWork::Kept>{{v, at(v).slot}})
      return std::nullopt;
    const ShortRounding rounding = has_signs_of_0 ? ShortRounding::split : ShortRounding::fused;
    ways.roundings[v] = rounding;
    if (has_signs_of_0) ways.signs_at = are_stored ? place_of_signs(v) : -1;
    ways.keeps_magnitudes = ways.signs_at >= 0 || (!ways.signs.empty() && has_f8_alone(v, magnitude));
    if (is(at(v).a, RowOp::mul)) {
      const RowValue& product = at(at(v).a);
      for (const auto& [factor, w] : {std::pair(product.a, product.b), std::pair(product.b, product.a)}) {
        if (!is_bf16(factor) || !loads_bf16(w) || users(factor).size() != 1 || users(at(v).a).size() != 1) continue;
        if (at(factor).level != ways.level || at(factor).domain != RowDomain::element) continue;
        ways.watched.push_back(w);
        ways.roundings[factor] = rounding;
        round_factor(factor, ways);
        break;
      }
    }
    return ways;
  }

  void round_factor(int factor, ShortWays& ways) const {
    const RowValue& quotient = at(at(factor).a);
    if (quotient.op != RowOp::div || !is(quotient.b, RowOp::bf16_silu_divisor)) return;
    if (at(quotient.b).a != quotient.a || users(quotient.b).size() != 1) return;
    ways.roundings[factor] = ShortRounding::half_up;
    ways.early = quotient.b;
  }

  // Whether all maxima below 2^-59 lead to the same scale.
  bool hides_the_least(int id) const {
    while (users(id).size() == 1 && users(id)[0] >= 0) {
      id = users(id)[0];
      const RowValue& value = at(id);
      if (!is(value.b, RowOp::constant)) return false;
      const double number = at(value.b).number;
      if (value.op == RowOp::at_least) return number >= kLeastOfScales;
      const bool is_less =
          (value.op == RowOp::div && number >= 1) || (value.op == RowOp::mul && number > 0 && number <= 1);
      if (!is_less) return false;
    }
    return false;
  }

  // Whether v is used only for its magnitude and for quotients that become codes.
  bool is_for_codes(int v, int magnitude, ShortWays& ways) const {
    bool has_codes = false;
    for (const int user : users(v)) {
      if (user == magnitude) continue;
      if (!is(user, RowOp::short_quotient) || at(user).a != v || users(user).size() != 1) return false;
      const int code = users(user)[0];
      if (!is(code, RowOp::convert) || !at(code).is_plain) return false;
      ways.divisor = at(user).b;
      ways.inverse = at(user).c;
      ways.is_ordinary_f8 = ways.is_ordinary_f8 || at(code).dtype == DType::f8e4m3;
      has_codes = true;
    }
    return has_codes;
  }

  bool has_f8_alone(int v, int magnitude) const {
    return std::all_of(users(v).begin(), users(v).end(),
                       [&](int user) { return user == magnitude || at(users(user)[0]).dtype == DType::f8e4m3; });
  }

  // The only store of codes of v, if the codes are fp8 and the store overlaps no input; otherwise -1.
  int place_of_signs(int v) const {
    int found = -1;
    for (int i = 0; i < static_cast<int>(program_.stores.size()); ++i) {
      const RowStore& store = program_.stores[static_cast<std::size_t>(i)];
      const int quotient = at(store.value).a;
      if (!is(store.value, RowOp::convert) || !is(quotient, RowOp::short_quotient) || at(quotient).a != v) continue;
      const bool is_free = program_.buffers[static_cast<std::size_t>(store.buffer)].over < 0;
      if (found >= 0 || at(store.value).dtype != DType::f8e4m3 || !is_free) return -1;
      found = i;
    }
    return found;
  }

  // Whether the codes of v's quotients are only stored, in their own dtype.
  bool are_stored_alone(int v, int magnitude) const {
    const auto is_stored_alone = [&](int code) {
      return std::all_of(users(code).begin(), users(code).end(), [](int user) { return user < 0; }) &&
             std::all_of(program_.stores.begin(), program_.stores.end(), [&](const RowStore& store) {
               return store.value != code ||
                      program_.buffers[static_cast<std::size_t>(store.buffer)].dtype == at(code).dtype;
             });
    };
    return std::all_of(users(v).begin(), users(v).end(),
                       [&](int user) { return user == magnitude || is_stored_alone(users(user)[0]); });
  }

  // Finds loads whose signs give a value's sign. Fails for a load that the program also overwrites, because its signs
  // are then lost.
  bool find_signs(int id, ShortWays& ways) const {
    const RowValue& value = at(id);
    if (value.op == RowOp::constant && std::signbit(value.number)) return false;
    if (value.domain <= RowDomain::row) {
      ways.factors.push_back(id);
      return true;
    }
    if (loads_bf16(id)) {
      ways.signs.push_back(id);
      return std::none_of(program_.buffers.begin(), program_.buffers.end(),
                          [&](const RowBuffer& buffer) { return buffer.over == value.buffer; });
    }
    if (is_bf16(id)) return find_signs(value.a, ways);
    if (value.op == RowOp::mul) return find_signs(value.a, ways) && find_signs(value.b, ways);
    return value.op == RowOp::div && is(value.b, RowOp::bf16_silu_divisor) && find_signs(value.a, ways);
  }

  // Whether the scale of the quotients belongs to the row, or to groups and is in scratch for these quotients only.
  bool has_rest(const ShortWays& ways) const {
    const auto waits = [&](int id) { return at(id).domain == RowDomain::group && at(id).slot >= 0; };
    if (at(ways.divisor).domain == RowDomain::row) return true;
    if (!waits(ways.divisor) || !waits(ways.inverse) || at(ways.divisor).op == RowOp::group_max) return false;
    return std::all_of(users(ways.divisor).begin(), users(ways.divisor).end(), [&](int user) {
      return is(user, RowOp::short_quotient) && at(user).b == ways.divisor && at(user).c == ways.inverse;
    });
  }

  const RowProgram& program_;
  std::vector<std::vector<int>> users_;  // by value
};

// The program is finished.
inline std::optional<ShortWays> find_short_ways(const RowProgram& program) { return ShortWaysFinder(program).find(); }

}  // namespace weft
