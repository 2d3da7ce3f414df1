#pragma once

// Speed of the forward pass alone, measured as llama-bench does: prompt processing (ppN), generation one token at a
// time (tgN), both in a row, each after `depth` tokens that are in the cache already; of one sequence, or of several
// whose tokens share each step, as llama-batched-bench does. Random tokens, no sampling; one warm-up. On demand also
// where the time of a step goes.

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/bench_breakdown.h"

namespace weft {

struct BenchTest {
  std::int64_t prompt = 0;
  std::int64_t generated = 0;
  std::int64_t depth = 0;
  std::int64_t sequences = 1;  // that run together, each with all of the above

  std::int64_t length() const { return depth + prompt + generated; }        // of one sequence
  std::int64_t tokens() const { return sequences * (prompt + generated); }  // that are computed
  std::string name() const;  // pp512, tg128, pp512+tg128, pp512 @ d256, tg128 x 8
};

// Seconds and tokens per second of one test.
struct BenchSamples {
  BenchTest test;
  std::string time;  // when it began, as 2025-01-31T12:00:00Z
  std::vector<std::int64_t> nanoseconds;
  std::optional<StepBreakdown> breakdown = {};

  std::vector<double> tokens_per_second() const;
};

struct Spread {
  double mean = 0;
  double deviation = 0;  // of a sample; 0 for one value
};
Spread spread(const std::vector<double>& values);

// What the rows say of the model and the run.
struct BenchModel {
  std::string file;
  std::string type;  // architecture and the dtype most weights have
  std::int64_t bytes = 0;
  std::int64_t parameters = 0;
  std::int64_t batch = 0;  // most tokens in one step
  int threads = 0;
  std::string backend;
  std::string processor;
  std::string kv_dtype;
};
BenchModel describe_model(const ModelRunner& runner, const Context& context);

// UserError when the test does not fit into the model's context, or its sequences into one step.
void check_bench_test(const ModelRunner& runner, const BenchTest& test);

// For a test that fits. With the runner's threads the samples have a breakdown, of repetitions besides those asked for.
BenchSamples run_bench_test(ModelRunner& runner, const BenchTest& test, std::int64_t repetitions, bool warm_up,
                            ThreadPool* threads = nullptr);

enum class BenchFormat : std::uint8_t { markdown, csv, json, json_lines };
// Of -o/--output; `json` is --json. UserError for another word.
BenchFormat bench_format(const std::string& format, bool json);

// Writes rows as they come: begin, row for each test, end.
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
  std::string below_;  // what markdown says below the table
};

}  // namespace weft
