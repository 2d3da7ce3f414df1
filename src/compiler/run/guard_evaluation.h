#pragma once

// --evaluate-guards checks that a graph which was traced once, for all sizes and without guards, is the graph that its
// code produces for each size.
//
// Two things could make it wrong. First, code may branch on a size through guard(): the trace answers by proof alone
// and lists the branch (Trace::branches), and each is proved again here for the declared range. Second, code may
// distinguish sizes without asking, for example by comparing Dims as expressions: so the code is traced again with
// numbers for the symbols, which must give the same graph with those numbers.

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
  std::vector<std::string> unproved = {};  // branches that are not proved for the whole range, with their source lines
  std::size_t sizes = 0;                   // how many sizes were traced again
};

class GuardEvaluation {
 public:
  // Traces the same code with these numbers instead of the symbols.
  using Retrace = std::function<std::shared_ptr<const Graph>(const Bindings& sizes)>;

  // `traced` has the bounds of its symbols and is at stage traced. The constructor proves each branch, and checks the
  // ends of the ranges and the sizes next to them.
  GuardEvaluation(std::shared_ptr<const Graph> traced, const std::vector<SizeBranch>& branches, Retrace retrace);

  // Traces again for these sizes of all symbols, once for each set of sizes. InternalError, with the first node that
  // differs, where the graph is another; UserError for a size that is missing or out of its range.
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
