#pragma once

// Tuning of exact sizes, with --tuning-budget: who computes each call, and how each generated function is cut, timed at
// exactly that size before it is compiled.
//
// What is timed is what the graph comes to by the default choices: the providers of its calls, on weights as they are
// laid out; then, with the best of those, its functions (compiler/tune_functions.h). What the user named stays, what
// the budget does not reach stays as by default, and with --batch-invariant so does every choice of a kernel. A
// function gives the same bits however it is cut. In a process that is one of several ranks nothing is timed, since
// all ranks have to choose alike.
//
// Measurements are kept in the compile cache, by what the graph was traced to and the machine: with the same budget the
// next start takes them from there.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "codegen/row_program.h"
#include "compiler/tuning_database.h"

namespace weft {

struct Context;
class Graph;

struct SizeTuning {
  TuningDatabase measured;  // calls and functions, each at one size
  double seconds = 0;       // that it took
  std::int64_t budget = 0;  // seconds it was given; 0 where nothing was to be timed
  int left = 0;             // calls and functions that the budget did not reach
  bool was_found = false;   // in the compile cache
  std::map<std::int64_t, std::map<std::string, RowTuning>> functions;  // by rows and name; what is not as by default

  // Of a range; nothing where it is no exact size.
  const std::map<std::string, RowTuning>& functions_at(TokenRange range) const;
  // The program as it is to be compiled for the range.
  RowProgram tuned(const RowProgram& program, TokenRange range) const;
  // Everything that was decided, for keys. "" where nothing was.
  std::string decisions_text() const;

  // What was measured, for keeping; decisions follow from it.
  std::vector<std::byte> bytes() const;
  // UserError where the bytes are not what bytes() gave.
  static SizeTuning from_bytes(std::span<const std::byte> bytes);
};

// Tunes those of the ranges that are exact sizes and tells the Context; with stored Plans what was measured for those
// is told. False where there is nothing to do. UserError for what compiling the graph would be one for.
bool tune_sizes(const Graph& traced, Context& context, std::span<const TokenRange> ranges);

}  // namespace weft
