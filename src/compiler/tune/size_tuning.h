#pragma once

// Tuning of exact sizes, with --tuning-budget: the provider of each call and the loop cuts of each generated function
// are timed at exactly that size before it is compiled.
//
// Tuning starts from the graph as compiled with the default choices. First it times the providers of the graph's calls,
// on weights in their current layout; then, with the best providers, its functions (compiler/tune/tune_functions.h).
// These choices stay as they are: those that the user made, those that the budget does not reach, and with
// --batch-invariant each choice of a kernel. A function computes the same bits however its loops are cut. Nothing is
// timed in a process that is one of several ranks, since all ranks must choose alike.
//
// Measurements are stored in the compile cache, by the traced graph and the machine; the next start with the same
// budget reads them from there.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "codegen/row_program.h"
#include "compiler/tune/tuning_database.h"

namespace weft {

struct Context;
class Graph;

struct SizeTuning {
  TuningDatabase measured;  // calls and functions, each at one size
  double seconds = 0;       // the time that tuning took
  std::int64_t budget = 0;  // in seconds; 0 where nothing was to be timed
  int left = 0;             // calls and functions that the budget did not reach
  bool was_found = false;   // whether the measurements were found in the compile cache
  std::map<std::int64_t, std::map<std::string, RowTuning>> functions;  // by rows and name; only non-default tunings

  // The functions of a range; empty where it is not an exact size.
  const std::map<std::string, RowTuning>& functions_at(TokenRange range) const;
  // The program with the tuning of the range.
  RowProgram tuned(const RowProgram& program, TokenRange range) const;
  // All decisions as text, for keys. "" where there are none.
  std::string decisions_text() const;

  // Serializes the measurements; the decisions follow from them.
  std::vector<std::byte> bytes() const;
  // UserError where bytes() did not make the bytes.
  static SizeTuning from_bytes(std::span<const std::byte> bytes);
};

// Tunes the ranges that are exact sizes and stores the result in the Context; with stored Plans it uses their
// measurements instead. Returns false where there is nothing to do. UserError where compiling the graph would be one.
bool tune_sizes(const Graph& traced, Context& context, std::span<const TokenRange> ranges);

}  // namespace weft
