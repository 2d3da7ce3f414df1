#pragma once

// Finds the rewrite that makes compiled output differ from eager output.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "compiler/pipeline.h"

namespace weft {

// One run with some options: everything it computed, and what the compiler did for it.
struct BisectRun {
  std::vector<float> values;
  std::vector<CompileRecord> records;
};

struct BisectResult {
  bool differs = false;
  std::string pass;     // the first whose switching off makes both equal; "" when no single one does
  std::string pattern;  // of the one rewrite that makes the difference, where the pass applies patterns
  std::string graph;    // in which it is made
  std::string node;     // at which it is made
  int rewrite = 0;      // its number among those of the pass, from 1
  int rewrites = 0;     // that the pass makes
  int runs = 0;
};

// `run` is called with --enforce-eager, then with --skip-pass for each pass that may be skipped, then with
// --limit-rewrites. Values are compared bit for bit. Where several rewrites are wrong the first that is made is found.
BisectResult bisect(const Options& options, const Context& context,
                    const std::function<BisectRun(const Options&)>& run);

}  // namespace weft
