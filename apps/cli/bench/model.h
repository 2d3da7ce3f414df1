#pragma once

// Measures the speed of the forward pass alone, as llama-bench does: prompt processing (ppN), generation of one token
// at a time (tgN), and both in sequence, each after `depth` tokens that are already in the cache. It measures one
// sequence, or several whose tokens share each step, as llama-batched-bench does. Tokens are random and nothing is
// sampled; there is one warm-up. Each speed has its share of what the machine's peak rates allow. On request it also
// measures where the time of a step goes.

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/bench/breakdown.h"
#include "apps/cli/peak_rates.h"

namespace weft {

struct BenchTest {
  std::int64_t prompt = 0;
  std::int64_t generated = 0;
  std::int64_t depth = 0;
  std::int64_t sequences = 1;  // number of sequences that run together, each with all of the above

  std::int64_t length() const { return depth + prompt + generated; }        // of one sequence
  std::int64_t tokens() const { return sequences * (prompt + generated); }  // computed by the test
  std::string name() const;  // pp512, tg128, pp512+tg128, pp512 @ d256, tg128 x 8
};

// The time of one repetition of a test at the machine's peak rates.
struct LeastTime {
  double seconds = 0;  // 0 where the rates are not known
  std::string limit;   // what most of it is spent on: "bandwidth" or "operations"; "" where it is not known
};

// The times of one test.
struct BenchSamples {
  BenchTest test;
  std::string time;  // when it began, such as 2025-01-31T12:00:00Z
  std::vector<std::int64_t> nanoseconds;
  std::optional<StepBreakdown> breakdown = {};
  LeastTime least = {};

  std::vector<double> tokens_per_second() const;
  // The least time in percent of the mean time; nothing where it is not known. It can exceed 100 where the caches hold
  // the weights.
  std::optional<double> percent_of_peak() const;
};

struct Spread {
  double mean = 0;
  double deviation = 0;  // sample standard deviation; 0 for one value
};
Spread spread(const std::vector<double>& values);

// The facts about the model and the run that each row contains.
struct BenchModel {
  std::string file;
  std::string type;  // architecture and the dtype of most weights
  std::int64_t bytes = 0;
  std::int64_t parameters = 0;
  std::int64_t batch = 0;  // largest number of tokens in one step
  int threads = 0;
  std::string backend;
  std::string processor;
  std::string kv_dtype;
  PeakRates peaks;
};
BenchModel describe_model(const ModelRunner& runner, const Context& context);

// Throws UserError if the test does not fit into the model's context, or its sequences do not fit into one step.
void check_bench_test(const ModelRunner& runner, const BenchTest& test);

// The test must fit (check_bench_test). If `threads` is given, which must be the runner's threads, the samples have a
// breakdown, measured in additional repetitions.
BenchSamples run_bench_test(ModelRunner& runner, const BenchTest& test, std::int64_t repetitions, bool warm_up,
                            ThreadPool* threads = nullptr);

enum class BenchFormat : std::uint8_t { markdown, csv, json, json_lines };
// Returns the format that -o/--output names; `json` is --json. Throws UserError for any other word.
BenchFormat bench_format(const std::string& format, bool json);

// Writes rows as they are measured: call begin, then row for each test, then end.
class BenchReport {
 public:
  BenchReport(BenchFormat format, std::ostream& out) : format_(format), out_(out) {}
  void begin();
  void row(const BenchModel& model, const BenchSamples& samples);
  void end();

 private:
  BenchFormat format_;
  std::ostream& out_;
  bool first_ = true;
  std::string peaks_;  // lines below the markdown table, one for each number of threads
  std::string below_;  // the text below that
};

}  // namespace weft
