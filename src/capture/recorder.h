#pragma once

// Follows a captured function while it runs. Each op call is compared with the steps of earlier runs; while they are
// equal, nothing is computed or built. Where the function reads a value, the segment up to that point runs: as a
// compiled program if it was seen before, else op by op, and it is compiled once its used values are known.
//
// The recorded Values are returned again, but with the home of this run. A Value that the function kept from an earlier
// run has another home and is refused.

#include <deque>
#include <functional>

#include "capture/recording.h"
#include "compiler/context.h"
#include "compiler/run/eager.h"
#include "tensor/storage_pool.h"

namespace weft {

// All recorded runs of a function under one set of guards.
struct RecordedTree {
  Values inputs;  // the arguments' tensors, in order
  Bounds bounds;  // of the symbols in the inputs' sizes
  // Symbols for which a branch must be decided by their bounds.
  std::set<std::string> unbacked;
  // Symbols that the author did not ask for: where they do not fit, a call's numbers replace them.
  std::set<std::string> droppable;
  std::vector<std::unique_ptr<Segment>> starts;
  bool has_choice = false;  // whether fewer symbols may be tried
  bool has_reads = false;   // whether the function reads what values hold
};

// A branch on sizes.
struct Decision {
  DimCondition condition;   // the condition, in the form that was true
  bool is_proved = false;   // proved by the bounds of the sizes
  bool is_settled = false;  // the function asked for the number itself
};

class Recorder {
 public:
  // `function` is the name in messages. `most_ways`: the largest number of segments that may follow one point of the
  // tree; further ones run op by op.
  Recorder(const Context& context, std::string function, std::string graph_name, bool fullgraph, std::size_t most_ways);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  enum class Purpose : std::uint8_t {
    run,
    // Like `run` once a value was read. Before that, an op that does not accept a symbol is an error, and another
    // attempt follows.
    attempt,
    trace,  // there are no tensors: a read throws Stopped
    check,  // UserError where the function does not repeat its recorded steps
  };
  struct Stopped {};  // not an error: ends a trace

  // The home of one run's Values.
  class Home final : public Evaluator {
   public:
    explicit Home(Recorder& recorder) : Evaluator(recorder.context_.ops), recorder_(recorder) {}
    Recorder& recorder() const { return recorder_; }
    std::size_t run = 0;  // the last run that used this home

    void called_from(const CallSite& site) override { recorder_.site_ = site; }
    // Fast path for a call that equals the next recorded step, which was checked and completed when it was recorded.
    const Values* repeated(Literal op, const Operands& operands, const GivenAttributes& given,
                           bool maybe_inplace) override {
      return recorder_.repeated(*this, op, operands, given, maybe_inplace);
    }
    Values evaluate(const Op& op, const Values& operands, const Attributes& attributes, bool maybe_inplace) override;
    Value value(Tensor tensor) override;
    Tensor read(const Value& value, const Reading& reading) override;
    bool decide(const DimCondition& condition, const Reading& reading) override;
    std::int64_t settle(const Dim& size, const Reading& reading) override;

   private:
    Recorder& recorder_;
  };

  // Makes Values for arguments of these types, the inputs of a new tree. begin() sets their home to that of its run.
  Values inputs(const std::vector<Meta>& metas, const std::vector<std::string>& names);
  // Begins a run, with tensors for tree.inputs and sizes for the symbols; it ends when the returned object is
  // destroyed. The tree must outlive the run. State of an earlier unfinished run is dropped. Values are refused outside
  // runs.
  class Running {
   public:
    explicit Running(Recorder& recorder) : recorder_(recorder) {}
    ~Running() { recorder_.end_run(); }
    Running(const Running&) = delete;
    Running& operator=(const Running&) = delete;

   private:
    Recorder& recorder_;
  };
  [[nodiscard]] Running begin(RecordedTree& tree, std::vector<Tensor> tensors, Bindings sizes, Purpose purpose);
  // Ends the run: the function returned these. New steps become part of the tree. UserError for a value of another run.
  void finish(const Values& results);
  // Keeps the Values of the last run for its tree, which the caller keeps; for trees with reads, finish() does this.
  void keep() { kept_values_ = used_values_; }

  // The tensors of the results, after finish() of a tree with reads. They own their memory, or alias arguments.
  std::vector<Tensor> results(const Values& results);
  const std::vector<Decision>& decisions() const { return decisions_; }
  // All values of the run, by index.
  std::span<GraphValue* const> values() const { return values_; }
  // Whether the function has read a value in the last run, so that running it again would repeat visible effects.
  bool has_read() const { return !read_.empty(); }
  // Whether the last run may have overwritten memory of arguments or of tensors that the function supplied.
  bool has_written_over();
  // If not empty, the new steps of the last run ran op by op, and none are kept, for this reason.
  const std::string& why_not_kept() const { return why_not_kept_; }

  // run_eagerly() of capture/run_eagerly.h.
  Values run_eagerly(const Values& values, const std::function<Values(const Values&)>& function,
                     const Reading& reading);

 private:
  // These implement the functions of Home with the same names.
  const Values* repeated(const Home& home, Literal op, const Operands& operands, const GivenAttributes& given,
                         bool maybe_inplace);
  Values evaluate(const Op& op, const Values& operands, const Attributes& attributes, bool maybe_inplace);
  bool ends_a_graph(const Op& op) const;
  Tensor read(const Value& value, const Reading& reading);
  bool decide(const DimCondition& condition, const Reading& reading);
  std::int64_t settle(const Dim& size, const Reading& reading);

  void end_run();
  // Makes a value of this type from a tensor that the function supplied.
  Value bring(Tensor tensor, Meta meta);
  Value fresh_value(Meta meta, std::string name, int number, const Op* op = nullptr, const CallSite& site = {});
  // Refuses a `home` that is not that of the current run.
  void check_running(const Home& home, std::string_view user) const;
  int checked_number(const Value& value, std::string_view user) const;
  [[noreturn]] void refuse(const Value& value, std::string_view user) const;
  void check_one_run(std::string_view op, const Operands& operands) const;
  void check_one_device(const Op& op, const Values& operands) const;
  bool are_operands_of(const RecordedStep& step, const Operands& operands) const;
  // Like infer_results; where symbols do not fit, it runs again with numbers.
  std::vector<Meta> infer(const Op& op, const Values& operands, const Attributes& attributes);
  SegmentGraph graph_for(const Segment& segment, const std::vector<int>& results);
  // Whether symbols that do not fit may be replaced by this call's numbers from here on; go_on_by_numbers does that.
  bool may_go_on_by_numbers() const;
  void go_on_by_numbers(const std::string& why);
  template <class Fits>
  RecordedStep* next_known(const Fits& fits);
  const Values& accept(RecordedStep& step);
  template <class Fits>
  bool ends_as_known(const Fits& fits);
  void start_drafting(const std::string& what);
  void enter(std::vector<std::unique_ptr<Segment>>& ways);
  void end_draft(Segment::End end, std::vector<int> ends_in, const Reading& reading);
  void leave_segment();
  void run_segment(Segment& segment);
  void prepare_donations(const Segment& segment);
  bool is_from_outside(const Tensor& given);
  void note_donations(const Segment& segment);
  const Tensor& input_of(int number);
  void run_op_by_op(const Segment& segment);
  const Tensor& tensor_of(int number);
  std::span<const Tensor> arguments() const { return {tensors_.data(), tree_->inputs.size()}; }
  void set_tensor(int number, Tensor tensor);
  // Compiles the new segments of the path.
  void keep_path();
  void note_wanted();
  void compile_path();
  void log_break(const Segment& segment) const;
  // The ranges of the unbacked symbols in the sizes; empty when there are none.
  std::string unbacked_text(std::initializer_list<Dim> sizes) const;

  const Context& context_;
  std::string function_, graph_name_;
  bool fullgraph_;
  std::size_t most_ways_;
  // The storage of the Values that were returned: the first `kept_values_` belong to trees, those up to `used_values_`
  // to the current run; later runs reuse the rest.
  std::deque<RecordedValue> graph_values_;
  std::size_t kept_values_ = 0, used_values_ = 0;
  std::deque<Home> homes_;  // that of inputs, then of the last runs; the oldest is reused
  std::size_t runs_ = 0;    // number of runs that began
  StoragePool pool_;        // of results
  EagerEvaluator eager_;    // the home of Values in functions that run eagerly

  // State of one run.
  RecordedTree* tree_ = nullptr;  // null outside runs, as is home_
  Home* home_ = nullptr;
  Purpose purpose_ = Purpose::run;
  Bindings sizes_;
  Numbers numbers_;                  // replace the symbols, once one does not fit; else empty
  std::vector<GraphValue*> values_;  // by number
  std::vector<Tensor> tensors_;      // by index; undefined where unknown
  std::vector<Decision> decisions_;
  std::vector<int> read_;  // indices of values that were read, in any segment
  CallSite site_;          // of the next call
  struct Gone {
    int number;
    int before;  // values below this index existed before
    Tensor tensor;
  };
  std::vector<Gone> gone_;                                 // tensors that segments may have overwritten
  std::vector<Segment*> path_;                             // segments that ended
  std::vector<std::unique_ptr<Segment>>* ways_ = nullptr;  // the list that contains the current segment
  Segment* segment_ = nullptr;                             // recorded, and equal so far; null while drafting
  std::size_t position_ = 0;                               // index of the next step in it
  Segment* draft_ = nullptr;                               // new; null while following a recorded segment
  std::unique_ptr<Segment> fresh_;                         // the first new segment, with its followers
  std::vector<std::unique_ptr<Segment>>* fresh_belongs_to_ = nullptr;
  std::string why_not_kept_;  // if not empty: new steps run op by op
};

}  // namespace weft
