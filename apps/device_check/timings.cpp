#include "apps/device_check/timings.h"

#include <algorithm>

#include <fmt/core.h>

#include "apps/device_check/device_memory.h"
#include "base/error.h"
#include "kernels/cuda/lib/attention_plan.h"
#include "kernels/cuda/lib/group_launch.h"
#include "kernels/cuda/lib/mathematics.h"
#include "kernels/cuda/lib/silu_and_mul_per_block_quant.h"
#include "runtime/cuda/current_guard.h"

namespace weft::device_check {

using namespace cuda;

namespace {

constexpr int kLaunchesOfGraph = 20, kWarmUps = 3, kGraphs = 13;
constexpr std::size_t kCopiedBytes = std::size_t{1} << 30;
constexpr std::int64_t kGroup = 128;
// Of attention.
constexpr std::uint32_t kHeadDim = 128, kHeadsOfKv = 4, kPageTokens = 16;

// What kernels read and write in one launch; sizes for the largest of them.
struct Buffers {
  void *x, *other, *weight, *middle, *output, *scales, *given;
  std::int32_t* batch;  // of one prompt of all rows: query starts, lengths, a block table
};

struct Size {
  std::uint32_t rows, columns;
};

class Launcher {
 public:
  Launcher(Target& target, Stream stream) : target_(target), stream_(stream) {}
  template <class Arguments>
  void operator()(const std::string& kernel, const LaunchShape& shape, const Arguments& arguments) {
    const std::optional<Function> function = target_.find(kernel, sizeof arguments);
    if (!function) fail_device("[device check] the code has no kernel {}", kernel);
    target_.driver().launch(stream_, *function,
                            {.blocks = {shape.blocks, shape.block_rows, 1}, .threads = {shape.threads, 1, 1}},
                            arguments);
  }

 private:
  Target& target_;
  Stream stream_;
};

using Launch = std::function<void(Launcher&, const Buffers&, Size)>;

ScalePlaces places_of(const Buffers& buffers, Size size) {
  return {static_cast<float*>(buffers.scales), static_cast<std::uint32_t>(size.columns / kGroup), 1};
}

Launch fused_silu(SiluAndMulDesign design, bool rounds, Mathematics mathematics = Mathematics::device) {
  return [=](Launcher& launch, const Buffers& buffers, Size size) {
    const SiluAndMulPerBlockQuant kernel{.rounds = rounds, .design = design, .mathematics = mathematics};
    SiluAndMulPerBlockQuantArguments arguments{.x = buffers.x,
                                               .codes = buffers.output,
                                               .places = places_of(buffers, size),
                                               .rows = size.rows,
                                               .columns = size.columns};
    const LaunchShape shape = kernel.plan(arguments);
    launch(kernel.kernel_name(), shape, arguments);
  };
}

void silu_and_mul(Launcher& launch, const std::string& kernel, const Buffers& buffers, void* output, Size size) {
  constexpr std::uint32_t kThreads = 256, kOfBlock = kThreads * 8;  // 16 bytes of bf16 a thread
  const std::uint32_t slices = (size.columns + kOfBlock - 1) / kOfBlock;
  launch(kernel, {.blocks = size.rows * slices, .threads = kThreads},
         SiluAndMulArguments{.x = buffers.x,
                             .output = output,
                             .scale = static_cast<const float*>(buffers.given),
                             .group_scales = static_cast<std::uint8_t*>(buffers.scales),
                             .rows = size.rows,
                             .columns = size.columns,
                             .slices = divisor_of(slices)});
}
Launch plain_silu(const char* tail, Mathematics mathematics = Mathematics::device) {
  return [kernel = fmt::format("silu_and_mul_bf16_{}_{}", tail, ending_of(mathematics))](
             Launcher& launch, const Buffers& buffers, Size size) {
    silu_and_mul(launch, kernel, buffers, buffers.output, size);
  };
}

void group_quant(Launcher& launch, const Buffers& buffers, const void* x, Size size) {
  const char* kernel = "per_token_group_quant_bf16_f8e4m3_128";
  PerTokenGroupQuantArguments arguments{
      .x = x, .codes = buffers.output, .places = places_of(buffers, size), .rows = size.rows, .columns = size.columns};
  const LaunchShape shape = plan_groups(kernel, {.rows = size.rows, .groups = size.columns / kGroup, .lanes = 8},
                                        arguments.places, arguments.order);
  launch(kernel, shape, arguments);
}

Launch norm(bool adds, const char* tail, Mathematics mathematics = Mathematics::device) {
  const std::string kernel =
      fmt::format("{}rms_norm_bf16_{}_{}", adds ? "fused_add_" : "", tail, ending_of(mathematics));
  return [kernel, adds](Launcher& launch, const Buffers& buffers, Size size) {
    const bool is_of_token = kernel.find("token") != std::string::npos;
    const ScalePlaces of_token{static_cast<float*>(buffers.scales), 1, 1};
    launch(kernel, {.blocks = size.rows, .threads = 256},
           RmsNormArguments{.x = buffers.x,
                            .residual = adds ? buffers.other : nullptr,
                            .residual_output = adds ? buffers.middle : nullptr,
                            .weight = buffers.weight,
                            .output = buffers.output,
                            .places = is_of_token ? of_token : places_of(buffers, size),
                            .given_scale = static_cast<const float*>(buffers.given),
                            .epsilon = 1e-5f,
                            .columns = size.columns,
                            .variance_columns = size.columns,
                            .group = kGroup});
  };
}

// A prompt of all rows; K and V lie in pages in `other`.
Launch attention(AttentionDesign design) {
  return [=](Launcher& launch, const Buffers& buffers, Size size) {
    const std::uint32_t heads = size.columns / kHeadDim, table = size.rows / kPageTokens;
    const AttentionPlan plan = plan_attention({.pages = DType::bf16,
                                               .tokens = size.rows,
                                               .sequences = 1,
                                               .heads = heads,
                                               .kv_heads = heads / kHeadsOfKv,
                                               .head_dim = kHeadDim,
                                               .table_tokens = size.rows},
                                              design);
    const AttentionArguments arguments{.query = buffers.x,
                                       .output = buffers.output,
                                       .kind = ElementKind::bf16,
                                       .tokens = size.rows,
                                       .token_stride = size.columns,
                                       .heads = heads,
                                       .scale = 0.1275f,  // log2(e) / sqrt(kHeadDim)
                                       .group = divisor_of(kHeadsOfKv),
                                       .pages = {.pages = buffers.other,
                                                 .kind = ElementKind::bf16,
                                                 .block = divisor_of(kPageTokens),
                                                 .heads = heads / kHeadsOfKv,
                                                 .head_dim = kHeadDim},
                                       .has_chunks = true,
                                       .query_starts = buffers.batch,
                                       .lengths = buffers.batch + 2,
                                       .block_table = buffers.batch + 3,
                                       .sequences = 1,
                                       .max_blocks = table,
                                       .sharers = divisor_of(plan.sharers)};
    launch(plan.kernel, plan.shape, arguments);
    if (plan.sharers > 1) launch(plan.finish, plan.finish_shape, arguments);
  };
}

struct Subject {
  const char* what;
  std::vector<Size> sizes;
  double bytes_of_element;  // that must be moved for an element of the result
  Launch launch;
  bool in_graph = true;
};

const std::vector<Subject>& subjects() {
  constexpr double kScale = 4.0 / kGroup;
  static const std::vector<Size> of_layer = {{128, 14336}, {1024, 14336}, {8192, 14336}};
  static const std::vector<Size> of_norm = {{128, 4096}, {1024, 4096}, {8192, 4096}};
  static const std::vector<Size> of_prompt = {{512, 4096}, {2048, 4096}, {8192, 4096}};
  static const Launch unfused = [](Launcher& launch, const Buffers& buffers, Size size) {
    silu_and_mul(launch, "silu_and_mul_bf16_plain_device", buffers, buffers.middle, size);
    group_quant(launch, buffers, buffers.middle, size);
  };
  static const Launch quant = [](Launcher& launch, const Buffers& buffers, Size size) {
    group_quant(launch, buffers, buffers.x, size);
  };
  static const std::vector<Subject> all = {
      {"silu_and_mul + group-128 fp8, fused", of_layer, 5 + kScale, fused_silu(SiluAndMulDesign::fast, true)},
      {"the same, f32 between", of_layer, 5 + kScale, fused_silu(SiluAndMulDesign::fast, false)},
      {"the same, launched one by one", {of_layer[0]}, 5 + kScale, fused_silu(SiluAndMulDesign::fast, true), false},
      {"the same, tree design", of_layer, 5 + kScale, fused_silu(SiluAndMulDesign::tree, true)},
      {"the same, two kernels", of_layer, 9 + kScale, unfused},
      {"the same, fused, house mathematics", of_layer, 5 + kScale,
       fused_silu(SiluAndMulDesign::fast, true, Mathematics::house)},
      {"silu_and_mul", of_layer, 6, plain_silu("plain")},
      {"the same, house mathematics", of_layer, 6, plain_silu("plain", Mathematics::house)},
      {"silu_and_mul + static fp8", of_layer, 5, plain_silu("static_f8e4m3_rounded")},
      {"silu_and_mul + fp4 groups", of_layer, 4 + 0.5 + 1.0 / 16, plain_silu("f4e2m1_rounded")},
      {"per_token_group_quant fp8", of_layer, 3 + kScale, quant},
      {"rms_norm", of_norm, 4, norm(false, "plain")},
      {"the same, house mathematics", of_norm, 4, norm(false, "plain", Mathematics::house)},
      {"rms_norm + static fp8", of_norm, 3, norm(false, "static_f8e4m3")},
      {"rms_norm + per-token fp8", of_norm, 3, norm(false, "token_f8e4m3")},
      {"rms_norm + group-128 fp8", of_norm, 3 + kScale, norm(false, "group_f8e4m3")},
      {"fused_add_rms_norm", of_norm, 8, norm(true, "plain")},
      {"the same, house mathematics", of_norm, 8, norm(true, "plain", Mathematics::house)},
      {"fused_add_rms_norm + group-128 fp8", of_norm, 7 + kScale, norm(true, "group_f8e4m3")},
      {"attention of a prompt, matrix units", of_prompt, 5, attention(AttentionDesign::matrix_units)},
      {"the same, multiply-adds", of_prompt, 5, attention(AttentionDesign::multiply_adds)},
  };
  return all;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Of what `run` queues, in microseconds.
double median_time(Target& target, const std::function<void(Stream)>& run) {
  Driver& driver = target.driver();
  const Stream stream = target.stream();
  const Owner<EventObject> before(driver, driver.create_event(target.device(), true));
  const Owner<EventObject> after(driver, driver.create_event(target.device(), true));
  std::vector<double> times;
  for (int i = 0; i < kWarmUps + kGraphs; ++i) {
    driver.record(*before, stream);
    run(stream);
    driver.record(*after, stream);
    driver.synchronize(*after);
    if (i >= kWarmUps) times.push_back(1e3 * static_cast<double>(driver.milliseconds_between(*before, *after)));
  }
  return median(std::move(times));
}

double copied_bytes_per_second(Target& target) {
  constexpr int kCopies = 10;
  DeviceMemory memory(target);
  void* from = memory.add(kCopiedBytes);
  void* to = memory.add(kCopiedBytes);
  target.driver().fill(target.stream(), from, 1, kCopiedBytes);
  const double microseconds = median_time(target, [&](Stream stream) {
    for (int i = 0; i < kCopies; ++i) target.driver().copy(stream, to, from, kCopiedBytes);
  });
  return 2.0 * kCopies * static_cast<double>(kCopiedBytes) / (microseconds * 1e-6);
}

Buffers add_buffers(DeviceMemory& memory, Size size) {
  const std::size_t elements = std::size_t{size.rows} * size.columns;
  const auto rows = static_cast<std::int32_t>(size.rows);
  std::vector<std::int32_t> batch = {0, rows, rows};
  for (std::uint32_t page = 0; page * kPageTokens < size.rows; ++page) batch.push_back(static_cast<std::int32_t>(page));
  return {.x = memory.add_numbers(2 * elements),
          .other = memory.add_numbers(elements),
          .weight = memory.add_numbers(size.columns),
          .middle = memory.add(2 * elements),
          .output = memory.add(2 * elements),
          .scales = memory.add(elements / 16 + 4 * std::size_t{size.rows}),
          .given = memory.add_number(0.01f),
          .batch = static_cast<std::int32_t*>(memory.add_words(batch))};
}

// One launch, in microseconds.
double time_of(Target& target, const Subject& subject, Size size) {
  Driver& driver = target.driver();
  DeviceMemory memory(target);
  // So many that the caches hold none of them when its turn comes again.
  const double bytes = subject.bytes_of_element * size.rows * size.columns;
  const double caches = 4.0 * static_cast<double>(driver.facts(target.device()).level_two_bytes);
  std::vector<Buffers> sets;
  for (int count = std::clamp(static_cast<int>(caches / bytes) + 1, 1, kLaunchesOfGraph); count > 0; --count)
    sets.push_back(add_buffers(memory, size));
  const auto launch_all = [&](Stream stream) {
    Launcher launch(target, stream);
    for (std::size_t i = 0; i < kLaunchesOfGraph; ++i) subject.launch(launch, sets[i % sets.size()], size);
  };
  launch_all(target.stream());  // loads the code, which a capture must not
  driver.synchronize(target.stream());
  if (!subject.in_graph) return median_time(target, launch_all) / kLaunchesOfGraph;
  CaptureScope scope(driver, target.stream());
  launch_all(target.stream());
  const Owner<GraphObject> graph = scope.end();
  const Owner<ExecutableObject> executable(driver, driver.instantiate(*graph));
  return median_time(target, [&](Stream stream) { driver.launch(stream, *executable); }) / kLaunchesOfGraph;
}

}  // namespace

std::vector<Timing> planned_timings() {
  std::vector<Timing> timings;
  for (const Subject& subject : subjects())
    for (const Size size : subject.sizes)
      timings.push_back({.what = subject.what,
                         .rows = size.rows,
                         .columns = size.columns,
                         .bytes = subject.bytes_of_element * size.rows * size.columns,
                         .microseconds = {}});
  return timings;
}

void measure(Target& target, Report& report) {
  report.timings = planned_timings();
  report.copied_bytes_per_second = copied_bytes_per_second(target);
  std::size_t i = 0;
  for (const Subject& subject : subjects())
    for (const Size size : subject.sizes) report.timings[i++].microseconds = time_of(target, subject, size);
}

}  // namespace weft::device_check
