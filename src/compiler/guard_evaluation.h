#pragma once

// --evaluate-guards: that a graph which was traced once, for all sizes and without guards, is what its code gives for
// each of them.
//
// Two things could make it wrong. Code may branch on a size through guard(); a trace answers that by proof alone and
// lists it (Trace::branches), and it is proved again here for the declared range. Or code tells sizes apart without
// asking, such as by comparing Dims as expressions; so it is traced again with numbers in the place of the symbols,
// which has to give the same graph, with those numbers.

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "ir/trace.h"

namespace weft {

struct GuardReport {
  std::string graph;
  Bounds bounds;                           // the declared ranges
  std::size_t branches = 0;                // on sizes
  std::vector<std::string> unproved = {};  // those that are not proved for the whole range, with their lines
  std::size_t sizes = 0;                   // for which it was traced again
};

class GuardEvaluation {
 public:
  // Traces the same code with these numbers in the place of the symbols.
  using Retrace = std::function<std::shared_ptr<const Graph>(const Bindings& sizes)>;

  // `traced` with the bounds of its symbols, at stage traced. Proves what it branched on, and checks the ends of the
  // ranges and what lies next to them.
  GuardEvaluation(std::shared_ptr<const Graph> traced, const std::vector<SizeBranch>& branches, Retrace retrace);

  // Traces again for these sizes of all symbols, once for each. InternalError, naming the first node, where it is
  // another graph; UserError for a size that is missing or out of its range.
  void check(const Bindings& sizes);

  const GuardReport& report() const { return report_; }

 private:
  void check_from(Bounds::const_iterator symbol, Bindings& sizes);

  std::shared_ptr<const Graph> traced_;
  Retrace retrace_;
  GuardReport report_;
  std::set<Bindings> seen_;
};

// guards: forward, s0 in [1, 512]: 0 branches on sizes, 0 of them not proved; the same graph for 4 sizes
std::string guard_report_text(const GuardReport& report);

}  // namespace weft
