#pragma once

// Finds the rewrite that makes compiled output differ from eager output.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "compiler/pipeline.h"

namespace weft {

// One run with some options: all values that it computed, and the record of what the compiler did.
struct BisectRun {
  std::vector<float> values;
  std::vector<CompileRecord> records;
};

struct BisectResult {
  bool differs = false;
  std::string pass;  // the first pass whose skipping makes both equal; "" when no single one does
  // The pattern, graph and node of the rewrite that makes the difference; `pattern` is "" where the pass applies no
  // patterns.
  std::string pattern;
  std::string graph;
  std::string node;
  int rewrite = 0;   // the index of that rewrite among those of the pass, from 1
  int rewrites = 0;  // how many rewrites the pass makes
  int runs = 0;
};

// Calls `run` with --enforce-eager, then with --skip-pass for each pass that may be skipped, then with
// --limit-rewrites. Values are compared by the rule of tensor/same_elements.h. Where several rewrites are wrong, it
// finds the first one that the pass makes.
BisectResult bisect(const Options& options, const Context& context,
                    const std::function<BisectRun(const Options&)>& run);

}  // namespace weft
