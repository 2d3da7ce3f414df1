#pragma once

// Additions from outside the tree, as plain data: ops, kernels, default priorities, passes and patterns. make_context
// (builtin/context.h) joins them with the tree's own and checks all of them; it registers either everything or nothing.
// In C++:
//
//   Registrations mine("my server");
//   mine.register_op("doubled", [](OpDefinition& op) { op.schema("doubled(Tensor x) -> Tensor"); ... });
//   mine.register_impl("rms_norm", "mine", run_rms_norm, {.supports = ..., .batch_invariant = true});
//   auto context = make_context(options, std::move(mine));
//
// Shared libraries fill the same structure (plugin.h).

#include <functional>
#include <string>
#include <vector>

#include "ir/pattern.h"
#include "kernels/select.h"
#include "passes/pass.h"

namespace weft {

// The properties of a kernel besides its code; see Kernel for each. Unlike in the tree, the defaults of
// `batch_invariant` and `capture` promise nothing.
struct KernelTraits {
  std::string schema = {};
  TokenRange rows = Kernel().rows;
  std::function<Verdict(const DeviceDescription&)> supported = {};
  std::function<Verdict(const KernelRequest&)> supports = {};
  std::vector<int> writes = {};
  bool batch_invariant = false;
  LaunchGraphClass launch_graph = LaunchGraphClass::never;
  std::function<Dim(const KernelRequest&)> scratch_bytes = {};
  std::string note = {};
};

class Registrations {
 public:
  using Define = std::function<void(OpDefinition&)>;
  using Run = std::function<void(const KernelCall&)>;

  // Messages use `origin` to say where the additions come from.
  explicit Registrations(std::string origin = "registered by the program") : origin_(std::move(origin)) {}

  // An op with a meaning, or with a shape rule only. Without a meaning it is opaque, and one of its kernels is used as
  // its meaning.
  void register_op(std::string name, Define define);
  void register_impl(std::string op, std::string provider, Run run, KernelTraits traits = {});
  // Placed before the device's defaults for the op, and after the user's own list.
  void register_priority(std::string op, std::vector<std::string> providers);
  // Runs after all built-in passes of the stage and keeps the graph at that stage.
  void register_pass(std::string name, Stage stage, std::function<PassResult(Graph&, PassContext&)> run);
  // Definitions in graph text. Unless they are trusted, make_context refuses patterns that do not hold when they are
  // tried. Only tests that need wrong rewrites set `is_trusted`.
  void register_patterns(std::string text, bool is_trusted = false);

  // Appends everything of `other`.
  void append(Registrations other);

  struct OpRow {
    std::string name, origin;
    Define define;
  };
  struct PriorityRow {
    std::string op, origin;
    std::vector<std::string> providers;
  };
  struct PassRegistration {
    PassRow row;
    std::string origin;
  };
  struct PatternText {
    std::string text, origin;
    bool is_trusted = false;
  };
  const std::vector<OpRow>& ops() const { return ops_; }
  const std::vector<Kernel>& kernels() const { return kernels_; }
  const std::vector<PriorityRow>& priorities() const { return priorities_; }
  const std::vector<PassRegistration>& passes() const { return passes_; }
  const std::vector<PatternText>& patterns() const { return patterns_; }

 private:
  std::string origin_;
  std::vector<OpRow> ops_;
  std::vector<Kernel> kernels_;
  std::vector<PriorityRow> priorities_;
  std::vector<PassRegistration> passes_;
  std::vector<PatternText> patterns_;
};

// The steps of joining, in this order. Every mistake is a UserError that names the op, the provider and the origin.

// UserError for a name that is taken or invalid, and for what OpDefinition refuses.
void add_ops(OpTable& ops, const Registrations& registrations);

// UserError for a provider that is reserved, invalid or already there. The kernel of an opaque op is also added as
// `reference`, so that it runs wherever a meaning would; `batch_invariant` says whether that kernel must be
// batch-invariant.
void add_kernels(KernelRegistry& kernels, const OpTable& ops, const Registrations& registrations, bool batch_invariant);

// Compares what each kernel says of its op with the op: its name, its schema, and which arguments are written over.
// Checks every kernel of the Context, including those of the tree.
void check_kernels(const KernelRegistry& kernels, const OpTable& ops);

// Adds the default priorities. An op from outside without default priorities gets its own providers, in the order of
// their names.
void add_priorities(PriorityLists& priorities, const KernelRegistry& kernels, const OpTable& ops,
                    const Registrations& registrations);

// UserError for a name that is invalid or in `taken`.
std::vector<PassRow> checked_passes(const Registrations& registrations, std::vector<std::string> taken);

struct ParsedPattern {
  Pattern pattern;
  std::string origin;
  bool is_trusted = false;
};

// Parses and checks the patterns; all names differ.
std::vector<ParsedPattern> parse_patterns(const Registrations& registrations, const OpTable& ops);

}  // namespace weft
