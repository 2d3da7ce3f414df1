// The linear family of every provider at the shapes of SmolLM2-135M, against what the machine can do.
//
//   linear_bench [--benchmark_filter=linear_int8/cpu/.*/rows:512] [--benchmark_repetitions=5]
//
// Counters: GOP_s and of_peak (percent of the byte-product peak, where the host has AVX2 or VNNI), GB_s and of_read
// (percent of a plain read of memory). Few rows walk copies of the weight that together exceed the caches, as layers
// do. WEFT_CPU_FEATURES is the ceiling as for the program. On a shared machine take the best of several repetitions.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include "ir/sample.h"
#include "kernels/registry.h"
#include "tensor/block_format.h"
#include "tensor/tensor.h"

namespace weft {

namespace {

constexpr std::int64_t kBeyondCaches = 96 << 20;

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

const char* ceiling() {
  const char* text = std::getenv("WEFT_CPU_FEATURES");
  return text == nullptr ? "" : text;
}

struct Machine {
  explicit Machine(int thread_count) : device(describe_cpu(ceiling(), thread_count)), threads(thread_count) {
    for (const KernelEntry& entry : kernel_table()) entry.define(registry);
    registry.prepare(device);
    for (int i = 0; i < 5; ++i) {
      read_gigabytes = std::max(read_gigabytes, measure_read());
      product_gigaops = std::max(product_gigaops, measure_products());
    }
  }

  double measure_read() {
    static std::vector<std::int64_t> memory(kBeyondCaches / 8, 1);
    constexpr std::int64_t kParts = 16;
    std::atomic<std::int64_t> total{0};
    const double start = seconds();
    threads.run(kParts, [&](std::int64_t part, int) {
      const std::int64_t words = static_cast<std::int64_t>(memory.size()) / kParts;
      std::int64_t sum = 0;
      for (std::int64_t i = part * words; i < (part + 1) * words; ++i) sum += memory[static_cast<std::size_t>(i)];
      total += sum;
    });
    return kBeyondCaches / (seconds() - start) / 1e9;
  }

  // Twelve independent chains of the instruction that multiplies bytes. 0 where the host has none.
  double measure_products() {
    constexpr std::int64_t kTurns = 200000;
    if (device.features < CpuFeatures::avx2) return 0;
    const bool wide = device.features >= CpuFeatures::avx512_vnni;
    const double start = seconds();
    threads.run(threads.threads(), [&](std::int64_t, int) {
      std::int64_t turns = kTurns;
#define WEFT_TWELVE(op) \
  op "0\n" op "1\n" op "2\n" op "3\n" op "4\n" op "5\n" op "6\n" op "7\n" op "8\n" op "9\n" op "10\n" op "11\n"
#define WEFT_TURNS(body)                                                                                           \
  asm volatile("1:\n" body "dec %0\njnz 1b\nvzeroupper"                                                            \
               : "+r"(turns)                                                                                       \
               :                                                                                                   \
               : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", \
                 "xmm12", "xmm13", "xmm14", "xmm15", "cc")
      if (wide)
        WEFT_TURNS(WEFT_TWELVE("vpdpbusd %%zmm14, %%zmm15, %%zmm"));
      else
        WEFT_TURNS(WEFT_TWELVE("vpmaddubsw %%ymm14, %%ymm15, %%ymm"));
    });
    return 12.0 * kTurns * (wide ? 128 : 64) * threads.threads() / (seconds() - start) / 1e9;
  }

  DeviceDescription device;
  KernelRegistry registry;
  ThreadPool threads;
  double read_gigabytes = 0;
  double product_gigaops = 0;
};

Machine& machine(int threads) {
  static std::vector<std::unique_ptr<Machine>> machines(64);
  auto& one = machines[static_cast<std::size_t>(threads)];
  if (!one) one = std::make_unique<Machine>(threads);
  return *one;
}

// Arbitrary codes, scales near 1 (f16 0x3c00): subnormals would be measured instead.
Tensor random_weight(DType dtype, std::int64_t columns, std::int64_t depth) {
  if (is_block(dtype) && block_format(dtype).quantize == nullptr) {
    // Rows are copies of 32: drawing finite blocks takes long.
    constexpr std::int64_t kDrawn = 32;
    const Tensor some = make_sample_tensor(SampleTensor("w", {kDrawn, depth}, dtype), dtype, 1);
    Tensor weight = Tensor::empty(Meta::tensor(dtype, {columns, depth}));
    const std::int64_t bytes = some.meta.bytes().number();
    for (std::int64_t row = 0; row < columns; row += kDrawn)
      std::memcpy(weight.data() + row / kDrawn * bytes, some.data(), static_cast<std::size_t>(bytes));
    return weight;
  }
  std::mt19937 random(1);
  Tensor weight = Tensor::empty(Meta::tensor(dtype, {columns, depth}));
  const DTypeInfo& info = dtype_info(dtype);
  for (std::int64_t at = 0; at < weight.meta.bytes().number(); at += info.block_bytes) {
    for (std::int64_t i = 0; i < info.block_bytes; ++i) weight.data()[at + i] = static_cast<std::byte>(random());
    const std::uint16_t ones[2] = {0x3c00, 0x3c00};
    if (is_block(dtype)) std::memcpy(weight.data() + at, ones, dtype == DType::q4_1 ? 4 : 2);
    if (dtype == DType::bf16 || dtype == DType::f16) std::memcpy(weight.data() + at, ones, 2);
    if (dtype == DType::f32) std::memset(weight.data() + at, 0x3c, 4);
  }
  return weight;
}

// Copies of the weight as the provider reads it: in the packing it has for it, or else plain.
std::vector<Tensor> weights_for(const Machine& machine, const std::string& provider, const Tensor& plain,
                                std::int64_t total_bytes) {
  const Packing* packing = nullptr;
  for (const auto& [name, candidate] : machine.registry.packings())
    if (candidate.provider == provider && candidate.accepts(plain.meta, machine.device)) packing = &candidate;
  Tensor first = plain;
  if (packing != nullptr) {
    ThreadPool one(1);
    first = pack_weight(*packing, {&plain, 1}, one);
  }
  std::vector<Tensor> copies{first};
  const std::int64_t bytes = first.storage->bytes();
  while (static_cast<std::int64_t>(copies.size()) < total_bytes / bytes) {
    copies.push_back({first.meta, Storage::allocate(bytes), 0});
    std::memcpy(copies.back().data(), first.data(), static_cast<std::size_t>(bytes));
  }
  return copies;
}

Tensor filled(DType dtype, Shape shape, std::uint8_t byte) {
  Tensor tensor = Tensor::empty(Meta::tensor(dtype, std::move(shape)));
  std::memset(tensor.data(), byte, static_cast<std::size_t>(tensor.meta.bytes().number()));
  return tensor;
}

struct Linear {
  const char* name;
  const char* op;
  DType dtype;
  std::int64_t columns;
  std::int64_t depth;
};

void run(benchmark::State& state, const Linear& linear, const std::string& provider, std::int64_t rows,
         int thread_count) {
  Machine& on = machine(thread_count);
  const Tensor plain = random_weight(linear.dtype, linear.columns, linear.depth);
  const std::vector<Tensor> weights = weights_for(on, provider, plain, rows <= 8 ? kBeyondCaches : 0);
  const bool quantized = std::strcmp(linear.op, "linear_int8") == 0;
  // Models of bf16 weights have rows of bf16.
  const DType dtype = linear.dtype == DType::bf16 ? DType::bf16 : DType::f32;
  std::vector<std::optional<Tensor>> operands;
  if (quantized)
    operands = {filled(DType::i8, {rows, linear.depth}, 5), filled(DType::f32, {rows, linear.depth / 32}, 0x3c),
                weights[0]};
  else
    operands = {filled(dtype, {rows, linear.depth}, 0x3c), weights[0], std::nullopt};
  const Tensor result = Tensor::empty(Meta::tensor(dtype, {rows, linear.columns}));

  std::vector<std::optional<Meta>> metas;
  std::vector<TensorView> views;
  for (const auto& operand : operands) {
    metas.push_back(operand ? std::optional(operand->meta) : std::nullopt);
    views.push_back(operand ? operand->view() : TensorView{});
  }
  const Attributes attributes = {{"dtype", DType::f32}};
  const TensorView result_view = result.view();
  const Kernel& kernel = *on.registry.find(linear.op, provider);
  const KernelRequest request{metas, {&result.meta, 1}, attributes, {rows, rows}};
  if (const Verdict verdict = kernel.supports(request); !verdict) return state.SkipWithError(verdict.reason().c_str());
  const std::int64_t bytes = kernel.scratch_bytes ? kernel.scratch_bytes(request).number() : 0;
  const auto scratch = Storage::allocate(std::max<std::int64_t>(bytes, 64));

  std::size_t turn = 0;
  for (auto _ : state) {
    views[quantized ? 2 : 1] = weights[turn++ % weights.size()].view();
    kernel.run({views, {&result_view, 1}, attributes, {scratch->data(), static_cast<std::size_t>(bytes)}, on.threads});
  }

  const auto per_second = [&](double amount) {
    return benchmark::Counter(amount, benchmark::Counter::kIsIterationInvariantRate);
  };
  const double gigaops = 2.0 * static_cast<double>(rows * linear.columns * linear.depth) / 1e9;
  const double gigabytes = static_cast<double>(weights[0].storage->bytes()) / 1e9;
  state.counters["GOP_s"] = per_second(gigaops);
  state.counters["GB_s"] = per_second(gigabytes);
  state.counters["of_read"] = per_second(100 * gigabytes / on.read_gigabytes);
  if (quantized && on.product_gigaops > 0) state.counters["of_peak"] = per_second(100 * gigaops / on.product_gigaops);
}

void define_benchmarks() {
  const std::vector<Linear> all = {
      {"qkv", "linear_int8", DType::q4_1, 960, 576},          {"o", "linear_int8", DType::q4_1, 576, 576},
      {"gate_up", "linear_int8", DType::q4_1, 3072, 576},     {"down", "linear_int8", DType::q4_1, 576, 1536},
      {"gate_up", "linear_int8", DType::q4_0, 3072, 576},     {"gate_up", "linear_int8", DType::q8_0, 3072, 576},
      {"gate_up", "linear_int8", DType::q4_1, 11264, 2048},   {"gate_up", "linear_int8", DType::q4_k, 11264, 2048},
      {"gate_up", "linear_int8", DType::q5_k, 11264, 2048},   {"gate_up", "linear_int8", DType::q6_k, 11264, 2048},
      {"gate_up", "linear_int8", DType::q3_k, 11264, 2048},   {"gate_up", "linear_int8", DType::q2_k, 11264, 2048},
      {"gate_up", "linear_int8", DType::iq4_xs, 11264, 2048}, {"gate_up", "linear_int8", DType::q5_0, 11264, 2048},
      {"head", "linear_int8", DType::q8_0, 49152, 576},       {"gate_up", "linear", DType::f32, 3072, 576},
      {"gate_up", "linear", DType::bf16, 3072, 576},          {"down", "linear", DType::bf16, 576, 1536},
      {"gate_up", "linear", DType::q4_1, 3072, 576},          {"up", "linear", DType::f32, 1536, 576},
  };
  KernelRegistry registry;
  for (const KernelEntry& entry : kernel_table()) entry.define(registry);
  for (const Linear& linear : all)
    for (const std::int64_t rows : {1, 4, 64, 512})
      for (const int threads : {1, 2})
        for (const std::string& provider : registry.providers(linear.op)) {
          // The reference takes minutes.
          if (provider == "reference" || (rows > 4 && std::strcmp(linear.name, "head") == 0)) continue;
          const std::string name = fmt::format("{}/{}/{}/{}/rows:{}/threads:{}", linear.op, provider, linear.name,
                                               dtype_text(linear.dtype), rows, threads);
          const auto body = [=](benchmark::State& state) { run(state, linear, provider, rows, threads); };
          benchmark::RegisterBenchmark(name.c_str(), body)->UseRealTime()->Unit(benchmark::kMicrosecond);
        }
}

}  // namespace
}  // namespace weft

int main(int count, char** arguments) {
  weft::define_benchmarks();
  benchmark::Initialize(&count, arguments);
  if (benchmark::ReportUnrecognizedArguments(count, arguments)) return 2;
  benchmark::RunSpecifiedBenchmarks();
}
