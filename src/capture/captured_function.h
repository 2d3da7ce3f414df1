#pragma once

// A function of Values, compiled for the calls it gets: what compile() in capture/compile.h gives, without the types of
// its arguments.
//
// An entry is what was compiled under one list of guards. Where no entry's guards let a call in, the function is traced
// and compiled once more, up to a limit; from then on such calls run op by op.

#include <atomic>
#include <mutex>
#include <thread>

#include "capture/dynamic_dims.h"
#include "capture/guards.h"
#include "capture/recorder.h"

namespace weft {

struct CompileOptions {
  std::string name = {};  // of the function in messages; empty for the place where it was compiled
  // Other options than the Context's, for this function alone: cc.mode and cc.backend, and below any by its name as on
  // the command line. Of weft::Compiler (include/weft/compile.h), which makes a Context for them; UserError elsewhere.
  std::string mode = {}, backend = {};
  // Whether to ask what a value holds is an error, in the place of ending a graph.
  bool fullgraph = false;
  Dynamic dynamic = Dynamic::automatic;
  // How rows that `dynamic` makes symbols may be branched on; the option cc.dynamic_shapes_config.type where nothing
  // is said.
  std::optional<DynamicShapes> dynamic_shapes = {};
  // How often it is compiled, and how many ways to go on there may be at one place; what else comes runs op by op.
  std::size_t recompile_limit = 8;
  // Every so many calls of a function without graph breaks its C++ code runs again, and must do to Values what it did
  // when it was traced; 0 for never. The option check-retrace where nothing is said.
  std::optional<std::int64_t> check_retrace = {};
  std::map<std::string, std::string> options = {};  // {{"cc.pass_config.fuse_act_quant", "false"}}

  bool wants_own_context() const { return !mode.empty() || !backend.empty() || !options.empty(); }
};

// The function with the arguments of one call, as CapturedFunction sees it.
class FunctionRun {
 public:
  // The function, called with these in the place of the arguments' Values; gives the Values that it returned.
  virtual Values run(std::span<const Value> values) = 0;
  // What `run` gave last is what this entry gives, but for the tensors.
  virtual void keep(std::size_t entry) = 0;
  // Where each leaf stands (LeafNamer).
  virtual std::vector<std::string> names() const = 0;

 protected:
  ~FunctionRun() = default;
};

// How often something happened.
struct CaptureCounts {
  std::int64_t calls = 0;
  std::int64_t compiled = 0;    // entries
  std::int64_t op_by_op = 0;    // calls that ran without anything compiled, or went on in a way that is not
  std::int64_t retraces = 0;    // runs for check_retrace
  std::int64_t proved = 0;      // branches on sizes that need no guard, as they go the same way in the whole range
  std::int64_t boundaries = 0;  // branches on sizes that became ends of ranges
  std::int64_t checks = 0;      // branches on sizes that are looked at in each call
};

// UserError for a Context of another device: functions are compiled for the CPU, and its ops run there.
void check_is_for_cpu(const Context& context);

class CapturedFunction {
 public:
  CapturedFunction(std::shared_ptr<const Context> context, CompileOptions options, std::source_location where);

  // Taken for a call, by one thread at a time. UserError where the thread has it already: a function that calls itself.
  class Turn {
   public:
    explicit Turn(CapturedFunction& function);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    CapturedFunction& function_;
  };

  void mark_dynamic(const std::string& argument, int dim, const DynamicDim& range, DynamicShapes shapes);

  // What a call gives: the entry whose kept result it is, nothing for what FunctionRun::run gave last; and what to put
  // in the place of its Values, nothing where they are right as they are.
  struct Outcome {
    std::optional<std::size_t> entry;
    std::optional<Values> values;
  };
  Outcome call(std::span<const Leaf> leaves, FunctionRun& run);
  // As a call, but without results: where nothing lets these arguments in, it is compiled now.
  void prepare(std::span<const Leaf> leaves, FunctionRun& run);

  const std::string& name() const { return name_; }
  const CaptureCounts& counts() const { return counts_; }
  std::size_t entry_count() const { return entries_.size(); }
  // The guards of an entry, as texts; for people.
  std::vector<std::string> guard_texts(std::size_t entry) const;

 private:
  struct Entry {
    GuardList guards;
    std::vector<std::string> names;  // of the leaves
    RecordedTree tree;
    bool is_settled = false;           // the function wanted a size as a number
    std::vector<std::size_t> tensors;  // which leaves are tree.inputs
    std::vector<Tensor> taken;         // by the program in its last run
    std::int64_t calls = 0;
  };
  // UserError for arguments that no call may have, whatever it runs.
  void check(std::span<const Leaf> leaves, FunctionRun& run) const;
  [[noreturn]] void refuse_homes(const Leaf& first, const Leaf& other, std::span<const Leaf> leaves,
                                 const FunctionRun& run) const;
  std::size_t find(std::span<const Leaf> leaves) const;
  Outcome use(std::size_t entry, std::span<const Leaf> leaves, FunctionRun& run);
  Outcome miss(std::span<const Leaf> leaves, FunctionRun& run, bool wants_results);
  Outcome run_op_by_op(std::span<const Leaf> leaves, FunctionRun& run);
  // `least`: what is tried where this fails; null where nothing is.
  Outcome add_entry(const std::vector<SymbolicDim>& dims, const std::vector<SymbolicDim>* least,
                    std::span<const Leaf> leaves, FunctionRun& run, bool wants_results);
  Values traced(FunctionRun& run, const Entry& entry, bool is_attempt);
  // That `next` is tried in the place of `choice`.
  void log_fewer_symbols(const std::vector<SymbolicDim>& choice, const std::vector<SymbolicDim>& next,
                         std::string_view why) const;
  std::unique_ptr<Entry> begin_entry(const std::vector<SymbolicDim>& dims, std::span<const Leaf> leaves,
                                     std::vector<std::string> names);
  void finish_whole(Entry& entry, const std::vector<SymbolicDim>& dims, std::span<const Leaf> leaves,
                    const Bindings& sizes);
  void compile_other_sides(const std::vector<SymbolicDim>& dims, std::span<const Leaf> leaves, FunctionRun& run,
                           std::size_t first);
  Values whole_results(Entry& entry, std::span<const Leaf> leaves);
  Values values_of(std::vector<Tensor> tensors, std::span<const Leaf> leaves);
  void log_recompile(std::span<const Leaf> leaves);
  void log_entry(std::size_t entry) const;
  void warn_of_limit();
  [[noreturn]] void refuse_another_try(const std::string& why) const;
  void warn_of_ways();

  std::shared_ptr<const Context> context_;
  CompileOptions options_;
  bool compiles_;               // or runs op by op, by the Context's options
  std::int64_t check_retrace_;  // of CompileOptions or the Context
  std::string name_;
  DynamicDims dynamic_dims_;
  Recorder recorder_;
  StoragePool pool_;  // of results
  std::vector<std::unique_ptr<Entry>> entries_;
  std::map<std::string, std::int64_t> failures_;  // by what the guards that failed ask about
  std::string last_failure_;
  bool has_warned_ = false, has_warned_of_ways_ = false;
  bool has_read_ = false;         // in some run so far: its side effects count
  std::size_t first_choice_ = 0;  // of DynamicDims::choices: those before it failed where they could not be tried twice
  CaptureCounts counts_;

  std::mutex mutex_;
  std::atomic<std::thread::id> owner_;  // relaxed: only the thread that set it ever finds itself here
};

}  // namespace weft
