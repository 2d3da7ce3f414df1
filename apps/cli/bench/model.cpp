#include "apps/cli/bench/model.h"

#include <chrono>
#include <cmath>
#include <ctime>
#include <numeric>
#include <ostream>
#include <random>
#include <span>

#include <fmt/chrono.h>
#include <fmt/ranges.h>

#include "apps/cli/csv.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"
#include "io/quantized_weight.h"

namespace weft {
namespace {

using Clock = std::chrono::steady_clock;

// What computes. Of a fake device it is the host's emulator.
std::string backend_of(DeviceId device) {
  if (device.type == DeviceType::cpu) return "CPU";
  return device.type == DeviceType::cuda ? "CUDA" : "CPU, emulating " + device_text(device);
}

// Sequences of equal length. The KV pages of each are contiguous, so that the slot of a token is its position after the
// sequence's first slot.
class Sequences {
 public:
  Sequences(ModelRunner& runner, const BenchTest& test)
      : runner_(runner), step_(runner.step_limits()), block_(runner.facts().kv.block), count_(test.sequences) {
    pages_of_each_ = (test.length() + block_ - 1) / block_;
    runner.allocate_pages(count_ * pages_of_each_);
    pages_.resize(static_cast<std::size_t>(count_ * pages_of_each_));
    std::iota(pages_.begin(), pages_.end(), 0);
  }

  void rewind(std::int64_t length) { length_ = length; }
  std::int64_t steps() const { return steps_; }

  // Feeds `count` random tokens of each prompt, one sequence after another, at most `chunk` tokens a step.
  void feed_prompts(std::int64_t count, std::int64_t chunk) {
    const std::int64_t rows_of_step = std::min(chunk, runner_.max_tokens());
    for (std::int64_t sequence = 0; sequence < count_; ++sequence)
      for (std::int64_t fed = 0; fed < count; fed += rows_of_step) {
        begin_step(Phase::prompt);
        add_tokens(sequence, length_ + fed, std::min(rows_of_step, count - fed));
        run_step();
      }
    length_ += count;
  }

  // Feeds `count` random tokens of each sequence, one token of each sequence a step.
  void generate(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i, ++length_) {
      begin_step(Phase::decode);
      for (std::int64_t sequence = 0; sequence < count_; ++sequence) add_tokens(sequence, length_, 1);
      run_step();
    }
  }

 private:
  void begin_step(Phase phase) {
    step_.begin(pages_of_each_, phase);
    rows_ = 0;
  }

  // Tokens of one sequence, of which `length` are in the cache. Their last row wants logits.
  void add_tokens(std::int64_t sequence, std::int64_t length, std::int64_t count) {
    const auto vocabulary = static_cast<std::uint64_t>(runner_.vocabulary_size());
    const std::int64_t first_slot = sequence * pages_of_each_ * block_;
    for (std::int64_t position = length; position < length + count; ++position)
      step_.add_row(static_cast<std::int64_t>(random_() % vocabulary), position, first_slot + position);
    const auto pages = static_cast<std::size_t>(pages_of_each_);
    step_.add_sequence(length + count, std::span(pages_).subspan(static_cast<std::size_t>(sequence) * pages, pages));
    rows_ += count;
    step_.want_logits(rows_ - 1);
  }

  void run_step() {
    runner_.step(step_.input());
    ++steps_;
  }

  ModelRunner& runner_;
  StepBuffer step_;
  std::int64_t block_, count_, pages_of_each_ = 0;
  std::vector<std::int32_t> pages_;
  std::int64_t rows_ = 0;    // of the step that is being filled
  std::int64_t length_ = 0;  // of each sequence
  std::int64_t steps_ = 0;   // run so far
  std::mt19937_64 random_{1};
};

void run_once(Sequences& sequences, const BenchTest& test, std::int64_t chunk) {
  sequences.rewind(test.depth);
  sequences.feed_prompts(test.prompt, chunk);
  sequences.generate(test.generated);
}

std::string now_text() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

std::string size_text(std::int64_t bytes) {
  const double mebibytes = static_cast<double>(bytes) / (1 << 20);
  return mebibytes < 1024 ? fmt::format("{:.2f} MiB", mebibytes) : fmt::format("{:.2f} GiB", mebibytes / 1024);
}

std::string count_text(std::int64_t parameters) {
  const double millions = static_cast<double>(parameters) / 1e6;
  return millions < 1000 ? fmt::format("{:.2f} M", millions) : fmt::format("{:.2f} B", millions / 1000);
}

// Such as "83.1 bandwidth".
std::string share_text(const BenchSamples& samples) {
  const std::optional<double> percent = samples.percent_of_peak();
  return percent ? fmt::format("{:.1f} {}", *percent, samples.least.limit) : "";
}

Json speed_json(const BenchModel& model, const BenchSamples& samples) {
  const std::vector<double> nanoseconds(samples.nanoseconds.begin(), samples.nanoseconds.end());
  const Spread time = spread(nanoseconds), rate = spread(samples.tokens_per_second());
  return {{"cpu_info", model.processor},
          {"backends", model.backend},
          {"model_filename", model.file},
          {"model_type", model.type},
          {"model_size", model.bytes},
          {"model_n_params", model.parameters},
          {"n_batch", model.batch},
          {"n_ubatch", model.batch},
          {"n_threads", model.threads},
          {"type_k", model.kv_dtype},
          {"type_v", model.kv_dtype},
          {"n_prompt", samples.test.prompt},
          {"n_gen", samples.test.generated},
          {"n_depth", samples.test.depth},
          {"n_parallel", samples.test.sequences},
          {"test_time", samples.time},
          {"avg_ns", std::llround(time.mean)},
          {"stddev_ns", std::llround(time.deviation)},
          {"avg_ts", rate.mean},
          {"stddev_ts", rate.deviation},
          {"peak_percent", optional_json(samples.percent_of_peak())},
          {"peak_limit", samples.least.limit.empty() ? Json(nullptr) : Json(samples.least.limit)},
          {"peak_bytes_s", optional_json(model.peaks.bytes.per_second)},
          {"peak_operations_s", optional_json(model.peaks.operations.per_second)},
          {"peak_operations_s_16_bits", optional_json(model.peaks.operations_of_16_bits.per_second)},
          {"peak_operations_s_8_bits", optional_json(model.peaks.operations_of_8_bits.per_second)},
          {"samples_ns", samples.nanoseconds},
          {"samples_ts", samples.tokens_per_second()}};
}

Json row_json(const BenchModel& model, const BenchSamples& samples) {
  Json row = speed_json(model, samples);
  if (samples.breakdown) add_breakdown(row, *samples.breakdown);
  return row;
}

}  // namespace

std::string BenchTest::name() const {
  std::string name;
  if (prompt > 0) name = fmt::format("pp{}", prompt);
  if (generated > 0) name += fmt::format("{}tg{}", name.empty() ? "" : "+", generated);
  if (sequences > 1) name += fmt::format(" x {}", sequences);
  return depth > 0 ? fmt::format("{} @ d{}", name, depth) : name;
}

std::vector<double> BenchSamples::tokens_per_second() const {
  std::vector<double> rates;
  for (std::int64_t time : nanoseconds)
    rates.push_back(1e9 * static_cast<double>(test.tokens()) / static_cast<double>(std::max<std::int64_t>(time, 1)));
  return rates;
}

std::optional<double> BenchSamples::percent_of_peak() const {
  if (least.seconds == 0 || nanoseconds.empty()) return std::nullopt;
  const std::vector<double> times(nanoseconds.begin(), nanoseconds.end());
  return 100 * least.seconds / (spread(times).mean / 1e9);
}

Spread spread(const std::vector<double>& values) {
  if (values.empty()) return {};
  const auto count = static_cast<double>(values.size());
  Spread result;
  for (double value : values) result.mean += value / count;
  double squares = 0;
  for (double value : values) squares += (value - result.mean) * (value - result.mean);
  if (values.size() > 1) result.deviation = std::sqrt(squares / (count - 1));
  return result;
}

BenchModel describe_model(const ModelRunner& runner, const Context& context) {
  BenchModel model{.file = runner.checkpoint().path(),
                   .batch = runner.max_tokens(),
                   .threads = context.device.threads,
                   .backend = backend_of(context.device.id),
                   .processor = context.device.name,
                   .kv_dtype = std::string(dtype_text(runner.facts().kv.dtype))};
  std::map<std::string, std::int64_t> elements_of;
  for (const TensorEntry& entry : runner.checkpoint().tensors()) {
    const Meta meta = meta_of_stored(entry.tensor.meta);
    const std::int64_t elements = element_count(meta.shape).number();
    model.bytes += meta.bytes().number();
    if (entry.name.ends_with("_scale") || entry.name.ends_with("_scale_inv")) continue;  // of codes that are counted
    model.parameters += elements;
    elements_of[std::string(dtype_text(meta.dtype))] += elements;
  }
  std::string common;
  for (const auto& [dtype, elements] : elements_of)
    if (common.empty() || elements > elements_of[common]) common = dtype;
  model.type = runner.checkpoint().architecture() + " " + common;
  return model;
}

void check_bench_test(const ModelRunner& runner, const BenchTest& test) {
  const std::int64_t context = runner.facts().config.context_length;
  USER_CHECK(test.depth <= context && test.prompt <= context && test.generated <= context && test.length() <= context,
             "[bench model] {} must fit into the context of {} tokens", test.name(), context);
  const std::int64_t most = runner.step_limits().sequences;
  USER_CHECK(test.sequences <= most,
             "[-npl] a step takes at most {} sequences (--max-num-seqs, --max-num-batched-tokens), but is to take {}",
             most, test.sequences);
}

BenchSamples run_bench_test(ModelRunner& runner, const BenchTest& test, std::int64_t repetitions, bool warm_up,
                            ThreadPool* threads) {
  BenchSamples samples{.test = test, .time = now_text()};
  Sequences sequences(runner, test);
  sequences.feed_prompts(test.depth, runner.max_tokens());
  if (warm_up) {
    BenchTest short_test = test;
    short_test.generated = std::min<std::int64_t>(test.generated, 1);
    run_once(sequences, short_test, runner.max_tokens());
  }
  std::optional<StepMeter> meter;
  if (threads != nullptr) meter.emplace(runner, *threads);
  const auto repetition = [&] { run_once(sequences, test, runner.max_tokens()); };
  for (std::int64_t i = 0; i < repetitions; ++i) {
    const std::int64_t steps = sequences.steps();
    const auto start = Clock::now();
    repetition();
    samples.nanoseconds.push_back(std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start).count());
    if (meter) meter->measure(repetition, sequences.steps() - steps, static_cast<double>(samples.nanoseconds.back()));
  }
  if (meter) samples.breakdown = meter->breakdown();
  return samples;
}

BenchFormat bench_format(const std::string& format, bool json) {
  const std::vector<std::string> names{"md", "csv", "json", "jsonl"};
  const auto found = std::find(names.begin(), names.end(), json ? "json" : format);
  USER_CHECK(found != names.end(), "[-o] must be md, csv, json or jsonl, but is {}", quote(format));
  return static_cast<BenchFormat>(found - names.begin());
}

void BenchReport::begin() {
  if (format_ == BenchFormat::json) out_ << "[\n";
  if (format_ != BenchFormat::markdown) return;
  out_ << fmt::format("| {:<30} | {:>10} | {:>10} | {:<10} | {:>7} | {:>15} | {:>20} | {:>16} |\n", "model", "size",
                      "params", "backend", "threads", "test", "t/s", "% of peak")
       << fmt::format("| {:-<30} | {:->9}: | {:->9}: | {:-<10} | {:->6}: | {:->14}: | {:->19}: | {:->15}: |\n", "", "",
                      "", "", "", "", "", "");
}

void BenchReport::row(const BenchModel& model, const BenchSamples& samples) {
  const std::string peaks =
      fmt::format("\npeak with {} threads: reads {}\n", model.threads, peak_rates_text(model.peaks));
  if (model.peaks.bytes.per_second && !peaks_.ends_with(peaks)) peaks_ += peaks;
  const Json row = row_json(model, samples);
  switch (format_) {
    case BenchFormat::markdown: {
      const Spread rate = spread(samples.tokens_per_second());
      const std::string text = fmt::format("{:.2f} ± {:.2f}", rate.mean, rate.deviation);
      out_ << fmt::format("| {:<30} | {:>10} | {:>10} | {:<10} | {:>7} | {:>15} | {:>20} | {:>16} |\n", model.type,
                          size_text(model.bytes), count_text(model.parameters), model.backend, model.threads,
                          samples.test.name(), text, share_text(samples));
      if (samples.breakdown)
        below_ +=
            breakdown_markdown(fmt::format("{}, {} threads", samples.test.name(), model.threads), *samples.breakdown);
      break;
    }
    case BenchFormat::csv:
      if (first_) out_ << csv_line(row, true);
      out_ << csv_line(row, false);
      break;
    case BenchFormat::json:
      out_ << (first_ ? "" : ",\n") << json_text(row, 2);
      break;
    case BenchFormat::json_lines:
      out_ << json_text(row) << "\n";
      break;
  }
  out_ << std::flush;
  first_ = false;
}

void BenchReport::end() {
  if (format_ == BenchFormat::json) out_ << "\n]\n";
  if (format_ == BenchFormat::markdown) out_ << peaks_;
  out_ << below_;
}

}  // namespace weft
