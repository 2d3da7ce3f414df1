#pragma once

// What a captured function does while it runs. Each op that is called is held against what earlier runs did; as long as
// it is the same, nothing is computed or built. Where the function wants to know what a value holds, the segment up to
// there runs: compiled if it was seen before, else op by op, to be compiled once it is known what is used of it.
//
// What earlier runs did is handed out again, but at the home of this run, so that a Value that was kept from an earlier
// one is told from it: it is refused.

#include <deque>
#include <functional>

#include "capture/recording.h"
#include "compiler/context.h"
#include "compiler/eager.h"
#include "tensor/storage_pool.h"

namespace weft {

// All that is known of what a function does under one set of guards.
struct RecordedTree {
  Values inputs;                    // the arguments' tensors, in order
  Bounds bounds;                    // of the symbols in their sizes
  std::set<std::string> unbacked;   // symbols that nothing may be decided by but their bounds
  std::set<std::string> droppable;  // symbols that nobody insists on: where they do not fit, a call's numbers take over
  std::vector<std::unique_ptr<Segment>> starts;
  bool has_choice = false;  // fewer symbols may be tried
  bool has_reads = false;   // whether what it does depends on what values hold
};

// A branch on sizes.
struct Decision {
  DimCondition condition;   // as it held
  bool is_proved = false;   // by the bounds of the sizes
  bool is_settled = false;  // the function wanted the number itself
};

class Recorder {
 public:
  // `function` names it in messages. `most_ways`: how many segments a place may have to go on with; where another one
  // comes, it runs op by op.
  Recorder(const Context& context, std::string function, std::string graph_name, bool fullgraph, std::size_t most_ways);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  enum class Purpose : std::uint8_t {
    run,
    attempt,  // as run once something was read; before, what does not fit a symbol is an error, and another try follows
    trace,    // there are no tensors: where they would be wanted, Stopped is thrown
    check,    // nothing new may happen: UserError where the function does not do the same again
  };
  struct Stopped {};  // no error: what is tried goes no further

  // The home of one run's Values.
  class Home final : public Evaluator {
   public:
    explicit Home(Recorder& recorder) : Evaluator(recorder.context_.ops), recorder_(recorder) {}
    Recorder& recorder() const { return recorder_; }
    std::size_t run = 0;  // the last one that had it

    void called_from(const CallSite& site) override { recorder_.site_ = site; }
    // Where the call is the step that comes next: it was checked and completed when it was recorded.
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

  // Values for arguments of these types; a tree begins with them. begin() gives them the home of its run.
  Values inputs(const std::vector<Meta>& metas, const std::vector<std::string>& names);
  // A run begins, with tensors for tree.inputs and sizes for the symbols, and lasts as long as what is given back; the
  // tree must live as long. What an earlier one left half done is gone. Outside of runs Values are refused.
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
  // The function returned these. What is new becomes part of the tree. UserError for a value of another run.
  void finish(const Values& results);
  // The Values of the last run belong to its tree, which stays; of trees with reads finish() does that.
  void keep() { kept_values_ = used_values_; }

  // Of a run that is finished, of a tree with reads: what the results hold. They own their memory, or look into
  // arguments.
  std::vector<Tensor> results(const Values& results);
  const std::vector<Decision>& decisions() const { return decisions_; }
  // All values of the run, by number.
  std::span<GraphValue* const> values() const { return values_; }
  // Whether the function of the last run has seen what a value holds, so that to run it again would be noticed.
  bool has_read() const { return !read_.empty(); }
  // Whether memory of arguments, or that was brought, may have been written over in the last run.
  bool has_written_over();
  // Not empty: what was new in the last run ran op by op, and nothing is kept of it.
  const std::string& why_not_kept() const { return why_not_kept_; }

  // run_eagerly() of capture/run_eagerly.h.
  Values run_eagerly(const Values& values, const std::function<Values(const Values&)>& function,
                     const Reading& reading);

 private:
  // What Home's functions of these names do.
  const Values* repeated(const Home& home, Literal op, const Operands& operands, const GivenAttributes& given,
                         bool maybe_inplace);
  Values evaluate(const Op& op, const Values& operands, const Attributes& attributes, bool maybe_inplace);
  bool ends_a_graph(const Op& op) const;
  Tensor read(const Value& value, const Reading& reading);
  bool decide(const DimCondition& condition, const Reading& reading);
  std::int64_t settle(const Dim& size, const Reading& reading);

  void end_run();
  // A tensor of the function's own, as a value of this type.
  Value bring(Tensor tensor, Meta meta);
  Value fresh_value(Meta meta, std::string name, int number, const Op* op = nullptr, const CallSite& site = {});
  // Of `home`'s run, which the function goes by.
  void check_running(const Home& home, std::string_view user) const;
  int checked_number(const Value& value, std::string_view user) const;
  [[noreturn]] void refuse(const Value& value, std::string_view user) const;
  void check_one_run(std::string_view op, const Operands& operands) const;
  void check_one_device(const Op& op, const Values& operands) const;
  bool are_operands_of(const RecordedStep& step, const Operands& operands) const;
  // As infer_results, which runs again with numbers where symbols do not fit.
  std::vector<Meta> infer(const Op& op, const Values& operands, const Attributes& attributes);
  SegmentGraph graph_for(const Segment& segment, const std::vector<int>& results);
  // Whether symbols that do not fit may become this call's numbers from here on; then `go_on_by_numbers` makes them so.
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
  void prepare_to_give_away(const Segment& segment);
  bool is_from_outside(const Tensor& given);
  void note_given_away(const Segment& segment);
  const Tensor& input_of(int number);
  void run_op_by_op(const Segment& segment);
  const Tensor& tensor_of(int number);
  std::span<const Tensor> arguments() const { return {tensors_.data(), tree_->inputs.size()}; }
  void set_tensor(int number, Tensor tensor);
  // What is new on the way is compiled.
  void keep_path();
  void note_wanted();
  void compile_path();
  void log_break(const Segment& segment) const;
  // The ranges of the symbols in them that are unbacked; empty when none is.
  std::string unbacked_text(std::initializer_list<Dim> sizes) const;

  const Context& context_;
  std::string function_, graph_name_;
  bool fullgraph_;
  std::size_t most_ways_;
  // What Values that were handed out look into: the first `kept_values_` belong to trees, those up to `used_values_` to
  // the run; of what others there are the next run takes some.
  std::deque<RecordedValue> graph_values_;
  std::size_t kept_values_ = 0, used_values_ = 0;
  std::deque<Home> homes_;  // that of inputs, then of the last runs; the next takes a new one, or that of longest ago
  std::size_t runs_ = 0;    // that began
  StoragePool pool_;        // of results
  EagerEvaluator eager_;    // the home of Values that functions to be run eagerly see

  // Of one run.
  RecordedTree* tree_ = nullptr;  // null outside of runs, as is its home
  Home* home_ = nullptr;
  Purpose purpose_ = Purpose::run;
  Bindings sizes_;
  Numbers numbers_;                  // in the place of the symbols, once one does not fit; else empty
  std::vector<GraphValue*> values_;  // by number
  std::vector<Tensor> tensors_;      // by number; undefined where it is not known
  std::vector<Decision> decisions_;
  std::vector<int> read_;  // numbers, whatever segment they are of
  CallSite site_;          // of the call that comes
  struct Gone {
    int number;
    int before;  // values of smaller numbers were there already
    Tensor tensor;
  };
  std::vector<Gone> gone_;                                 // what segments that ran may have written over
  std::vector<Segment*> path_;                             // that ended
  std::vector<std::unique_ptr<Segment>>* ways_ = nullptr;  // where the segment stands that is gone along
  Segment* segment_ = nullptr;                             // known so far; null while drafting
  std::size_t position_ = 0;                               // of the next step in it
  Segment* draft_ = nullptr;                               // new; null while going along a known one
  std::unique_ptr<Segment> fresh_;                         // the first that is new, with those that follow it
  std::vector<std::unique_ptr<Segment>>* fresh_belongs_to_ = nullptr;
  std::string why_not_kept_;  // not empty: what is new is run op by op
};

}  // namespace weft
