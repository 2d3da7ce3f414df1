#pragma once

// A function of Values that is compiled for its calls: the part of compile() (capture/compile.h) that does not depend
// on the types of the arguments.
//
// An entry is the code compiled under one list of guards. Where a call passes the guards of no entry, the function is
// traced and compiled once more, up to a limit; beyond it such calls run op by op.

#include <atomic>
#include <mutex>
#include <thread>

#include "capture/dynamic_dims.h"
#include "capture/guards.h"
#include "capture/recorder.h"

namespace weft {

struct CompileOptions {
  std::string name = {};  // the function's name in messages; empty for its source location
  // Options for this function that replace the Context's: cc.mode and cc.backend here, and any option by its
  // command-line name in `options` below. They need weft::Compiler (include/weft/compile.h), which makes a Context for
  // them; UserError otherwise.
  std::string mode = {}, backend = {};
  // Whether reading a value's contents is an error; otherwise it is a graph break.
  bool fullgraph = false;
  Dynamic dynamic = Dynamic::automatic;
  // How branches on rows that `dynamic` makes symbols are decided; by default the option cc.dynamic_shapes_config.type.
  std::optional<DynamicShapes> dynamic_shapes = {};
  // The largest number of entries, and of continuations at one point of the function; beyond it, calls run op by op.
  std::size_t recompile_limit = 8;
  // The period, in calls, of a check for functions without graph breaks: the C++ code runs again and must do the same
  // to Values as when it was traced. 0 for never; by default the option check-retrace.
  std::optional<std::int64_t> check_retrace = {};
  std::map<std::string, std::string> options = {};  // {{"cc.pass_config.fuse_act_quant", "false"}}

  bool wants_own_context() const { return !mode.empty() || !backend.empty() || !options.empty(); }
};

// The function with the arguments of one call, as CapturedFunction uses it.
class FunctionRun {
 public:
  // Calls the function with these instead of the arguments' Values, and returns its Values.
  virtual Values run(std::span<const Value> values) = 0;
  // Keeps the last result of `run` as the result of this entry; a later call replaces its Values.
  virtual void keep(std::size_t entry) = 0;
  // The position of each leaf (LeafNamer).
  virtual std::vector<std::string> names() const = 0;

 protected:
  ~FunctionRun() = default;
};

// Counts of events.
struct CaptureCounts {
  std::int64_t calls = 0;
  std::int64_t compiled = 0;    // entries
  std::int64_t op_by_op = 0;    // calls that ran fully op by op, or from a graph break on
  std::int64_t retraces = 0;    // runs for check_retrace
  std::int64_t proved = 0;      // branches on sizes that need no guard, as the whole range decides them alike
  std::int64_t boundaries = 0;  // branches on sizes that became bounds of ranges
  std::int64_t checks = 0;      // branches on sizes that are checked in each call
};

// UserError for a Context with a device: functions are compiled for the CPU, and their ops run there.
void check_is_for_cpu(const Context& context);

class CapturedFunction {
 public:
  CapturedFunction(std::shared_ptr<const Context> context, CompileOptions options, std::source_location where);

  // Lock for one call; one thread at a time has it. UserError where this thread already has it: the function calls
  // itself.
  class CallLock {
   public:
    explicit CallLock(CapturedFunction& function);
    ~CallLock();
    CallLock(const CallLock&) = delete;
    CallLock& operator=(const CallLock&) = delete;

   private:
    CapturedFunction& function_;
  };

  void mark_dynamic(const std::string& argument, int dim, const DynamicDim& range, DynamicShapes shapes);

  // The result of a call. `entry`: the entry whose kept result it is, nullopt for the last result of FunctionRun::run.
  // `values`: the replacements for its Values, nullopt where its own are correct.
  struct Outcome {
    std::optional<std::size_t> entry;
    std::optional<Values> values;
  };
  Outcome call(std::span<const Leaf> leaves, FunctionRun& run);
  // As call(), but without results: if these arguments pass the guards of no entry, one is compiled.
  void prepare(std::span<const Leaf> leaves, FunctionRun& run);

  const std::string& name() const { return name_; }
  const CaptureCounts& counts() const { return counts_; }
  std::size_t entry_count() const { return entries_.size(); }
  // The guards of an entry as text, for reports.
  std::vector<std::string> guard_texts(std::size_t entry) const;

 private:
  struct Entry {
    GuardList guards;
    std::vector<std::string> names;  // of the leaves
    RecordedTree tree;
    bool is_settled = false;           // the function asked for a size as a number
    std::vector<std::size_t> tensors;  // the leaves that are tree.inputs
    std::vector<Tensor> taken;         // the inputs of the program's last run
    std::int64_t calls = 0;
  };
  // UserError for arguments that are not allowed in any call.
  void check(std::span<const Leaf> leaves, FunctionRun& run) const;
  [[noreturn]] void refuse_homes(const Leaf& first, const Leaf& other, std::span<const Leaf> leaves,
                                 const FunctionRun& run) const;
  std::size_t find(std::span<const Leaf> leaves) const;
  Outcome use(std::size_t entry, std::span<const Leaf> leaves, FunctionRun& run);
  Outcome miss(std::span<const Leaf> leaves, FunctionRun& run, bool wants_results);
  Outcome run_op_by_op(std::span<const Leaf> leaves, FunctionRun& run);
  // `least`: the symbols of the last attempt, if this one fails; null where this is the last.
  Outcome add_entry(const std::vector<SymbolicDim>& dims, const std::vector<SymbolicDim>* least,
                    std::span<const Leaf> leaves, FunctionRun& run, bool wants_results);
  Values traced(FunctionRun& run, const Entry& entry, bool is_attempt);
  // Logs that `next` is tried after `choice`.
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
  bool compiles_;               // false: runs op by op, by the Context's options
  std::int64_t check_retrace_;  // from CompileOptions or the Context
  std::string name_;
  DynamicDims dynamic_dims_;
  Recorder recorder_;
  StoragePool pool_;  // of results
  std::vector<std::unique_ptr<Entry>> entries_;
  std::map<std::string, std::int64_t> failures_;  // by the subject of the failed guards
  std::string last_failure_;
  bool has_warned_ = false, has_warned_of_ways_ = false;
  bool has_read_ = false;  // whether a run has read a value: a rerun repeats side effects
  // The first of DynamicDims::choices to try: those before it failed in functions that cannot be run twice.
  std::size_t first_choice_ = 0;
  CaptureCounts counts_;

  std::mutex mutex_;
  std::atomic<std::thread::id> owner_;  // relaxed is enough: only the thread that stored its id can read that id
};

}  // namespace weft
