#pragma once

// Reports quantizations that are written out in primitives and that `raise` did not recover. Each is compared with the
// facts of its scheme:
//
//   per_token_group_quant_fp8: %q: group quantization to f8e4m3: scale divides by 440, wanted 448
//
// A quantization is a cast to codes of values that were divided by a scale of their largest magnitude. It has one scale
// for each row, or one for each group of a row.

#include <map>
#include <set>

#include "passes/pass.h"
#include "passes/scheme_table.h"

namespace weft {

// What was found on the way from the codes back to the values.
struct WrittenQuantization {
  const Node* codes = nullptr;           // the cast
  const GraphValue* values = nullptr;    // that are quantized, before casts and views
  const GraphValue* measured = nullptr;  // whose largest magnitude the scale has; the same in every scheme
  const GraphValue* scale = nullptr;     // null if the values are multiplied by something else than 1 / scale
  std::int64_t group = 0;                // columns that share a scale; -1 for whole rows
  bool multiplies_codes = false;
  std::optional<double> min, max;        // bounds of the clamp before the cast
  std::vector<std::string> rounding;     // ops between division and cast that round
  std::vector<std::string> other_codes;  // ops between division and cast that no scheme has there
  std::vector<double> divisors;          // of the scale
  std::vector<double> factors;           // of the scale
  std::optional<std::string> power;      // the direction in which the scale is rounded to a power of two
  bool has_limit = false;                // an upper bound of the scale
  bool has_magnitude = false;            // the largest of magnitudes, not of signed values
  bool replaces_nan = false;             // before the largest is taken
  std::vector<std::string> other_scale;  // ops of the scale that no scheme has there
  std::set<const Node*> inner;           // that nothing else may read: all but the cast and the scale
};

// Reads back from a cast to codes. Returns nothing if the values are not divided by a scale of a largest magnitude.
std::optional<WrittenQuantization> read_quantization(const Node& cast);

// What differs from the scheme, each as "scale divides by 440, wanted 448". The row has steps.
std::vector<std::string> differences(const WrittenQuantization& written, const SchemeRow& row);

// A report for each quantizer that a written-out quantization almost is. The graph is at stage pure, and after
// spell_alike.
std::vector<PatternReport> near_quantizations(Graph& graph, const OpTable& ops);

}  // namespace weft
