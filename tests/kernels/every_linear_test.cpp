// Every provider of the linear family at sizes beyond the samples: several slices of columns and blocks of rows.

#include <cstring>
#include <map>

#include <gtest/gtest.h>

#include "kernels/provider.h"
#include "tests/kernels/cpu_linear_support.h"
#include "tests/test_context.h"

namespace weft::every_linear_test {

struct LinearCall {
  std::string op;
  std::vector<Tensor> operands;
  Attributes attributes;
  Meta result;
};

// A reason, or the result.
struct Outcome {
  std::string refusal;
  Tensor result;
};

Outcome run(const Kernel& kernel, const LinearCall& call, ThreadPool& threads) {
  const std::vector<std::optional<Meta>> metas = metas_of(call.operands);
  const KernelRequest request{metas, {&call.result, 1}, call.attributes, {1, 4096}};
  if (const Verdict verdict = kernel.supports(request); !verdict) return {verdict.reason(), {}};
  const std::int64_t bytes = kernel.scratch_bytes ? kernel.scratch_bytes(request).number() : 0;
  std::vector<std::byte> memory(static_cast<std::size_t>(bytes + 64));
  std::byte* scratch = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64);
  std::vector<TensorView> views;
  for (const Tensor& operand : call.operands) views.push_back(operand.defined() ? operand.view() : TensorView());
  const Tensor result = Tensor::empty(call.result);
  std::memset(result.data(), 0x7f, static_cast<std::size_t>(call.result.bytes().number()));
  const TensorView view = result.view();
  kernel.run({views, {&view, 1}, call.attributes, {scratch, static_cast<std::size_t>(bytes)}, threads});
  return {"", result};
}

LinearCall float_call(DType dtype, DType weight, std::int64_t rows, std::int64_t columns, bool bias) {
  constexpr std::int64_t kDepth = 72;
  return {"linear",
          {random_floats(dtype, {rows, kDepth}, 1), random_weight(weight, columns, kDepth, 2),
           bias ? random_floats(weight, {columns}, 3) : Tensor()},
          {},
          Meta::tensor(dtype, {rows, columns})};
}

LinearCall int8_call(DType dtype, DType weight, std::int64_t rows, std::int64_t columns) {
  const std::int64_t depth = whole_blocks(weight, 96);
  const Tensor codes = Tensor::empty(Meta::tensor(DType::i8, {rows, depth}));
  for (std::int64_t i = 0; i < rows * depth; ++i)
    codes.data()[i] = static_cast<std::byte>(i % 3 == 0 ? 0x81 : i % 5 == 0 ? 0x7f : i * 37);
  return {"linear_int8",
          {codes, random_floats(DType::f32, {rows, depth / 32}, 4), random_weight(weight, columns, depth, 5)},
          {{"dtype", dtype}},
          Meta::tensor(dtype, {rows, columns})};
}

// The rows of three experts, sorted; the second one has most of them, and the stack has one more.
LinearCall grouped_int8_call(DType dtype, DType weight, std::int64_t rows, std::int64_t columns) {
  LinearCall call = int8_call(dtype, weight, rows, columns);
  constexpr std::int64_t kExperts = 4;
  const std::int64_t depth = call.operands[0].meta.shape[1].number();
  Tensor stack = random_weight(weight, kExperts * columns, depth, 6);
  stack.meta = Meta::tensor(weight, {kExperts, columns, depth});
  const Tensor experts = Tensor::empty(Meta::tensor(DType::i32, {rows}));
  for (std::int64_t row = 0; row < rows; ++row)
    experts.as<std::int32_t>()[row] = row < rows / 8 ? 0 : row < rows - rows / 8 ? 1 : 3;
  return {"grouped_linear_int8",
          {call.operands[0], call.operands[1], stack, experts, random_floats(DType::f32, {kExperts, columns}, 7)},
          call.attributes,
          call.result};
}

std::vector<LinearCall> calls() {
  std::vector<LinearCall> all;
  for (const DType dtype : {DType::f32, DType::bf16})
    for (const std::int64_t rows : {1, 3, 514})
      for (const std::int64_t columns : {1, 129})
        for (const bool bias : {false, true}) all.push_back(float_call(dtype, dtype, rows, columns, bias));
  all.push_back(float_call(DType::bf16, DType::f32, 2, 260, true));
  all.push_back(float_call(DType::f32, DType::f16, 2, 260, true));
  for (const DType weight : integer_block_types())
    for (const std::int64_t rows : {1, 130})
      for (const std::int64_t columns : {3, 129})
        for (const DType dtype : {DType::f32, DType::bf16}) {
          all.push_back(int8_call(dtype, weight, rows, columns));
          all.push_back(grouped_int8_call(dtype, weight, rows, columns));
        }
  return all;
}

// The op's providers that this host can use.
std::vector<const Kernel*> kernels_of(const Context& context, const std::string& op) {
  std::vector<const Kernel*> kernels;
  for (const std::string& provider : context.kernels.providers(op))
    if (const Kernel* kernel = context.kernels.find(op, provider)) kernels.push_back(kernel);
  return kernels;
}

TEST(EveryLinear, AgreesWithTheReferenceOverSlicesAndBlocksOfRows) {
  const auto context = test_context();
  std::map<std::string, int> ran;
  for (const LinearCall& call : calls()) {
    const Op& op = context->ops.at(call.op);
    const Outcome wanted = run(*context->kernels.find(call.op, "reference"), call, *context->threads);
    for (const Kernel* kernel : kernels_of(*context, call.op)) {
      SCOPED_TRACE(call.op + "@" + kernel->provider + " " + call.operands[0].meta.text() + " " + call.result.text());
      const Outcome came = run(*kernel, call, *context->threads);
      if (!came.result.defined()) continue;
      ++ran[call.op + "@" + kernel->provider];
      EXPECT_EQ(difference(wanted.result, came.result, op.tolerance(call.result.dtype), call.op.ends_with("int8")), "");
    }
  }
  for (const char* op : {"linear", "linear_int8", "grouped_linear_int8"})
    for (const Kernel* kernel : kernels_of(*context, op))
      EXPECT_GE(ran[std::string(op) + "@" + kernel->provider], 12) << op << "@" << kernel->provider;
}

// ThreadSanitizer does not see the locks of a library that was built without it, and reports the accesses that they
// guard as races.
bool is_hidden_from_the_sanitizer([[maybe_unused]] const Kernel& kernel) {
#ifdef __SANITIZE_THREAD__
  for (const ProviderEntry& entry : provider_table())
    if (entry.name == kernel.provider) return entry.version != nullptr;
#endif
  return false;
}

// Data that threads share without a lock changes bits only now and then; ThreadSanitizer reports it in any run.
#ifdef __SANITIZE_THREAD__
constexpr int kRepeats = 2;
#else
constexpr int kRepeats = 20;
#endif

TEST(EveryLinear, GivesTheSameBitsOnAnyNumberOfThreads) {
  const auto one = test_context("host", 1), three = test_context("host", 3);
  for (const LinearCall& call :
       {float_call(DType::f32, DType::f32, 70, 700, true), float_call(DType::f32, DType::f32, 1, 700, true),
        float_call(DType::bf16, DType::bf16, 70, 700, false), int8_call(DType::f32, DType::q4_1, 20, 700),
        grouped_int8_call(DType::f32, DType::q4_1, 20, 700)}) {
    for (const Kernel* kernel : kernels_of(*one, call.op)) {
      if (is_hidden_from_the_sanitizer(*kernel)) continue;
      const Outcome alone = run(*kernel, call, *one->threads);
      if (!alone.result.defined()) continue;
      for (int i = 0; i < kRepeats; ++i) {
        const Outcome shared = run(*three->kernels.find(call.op, kernel->provider), call, *three->threads);
        ASSERT_EQ(shared.refusal, "");
        ASSERT_EQ(difference(alone.result, shared.result, {}, true), "") << call.op << "@" << kernel->provider;
      }
    }
  }
}

TEST(EveryLinear, TakesNoRowsAndWritesNothing) {
  const auto context = test_context();
  for (const LinearCall& call :
       {float_call(DType::f32, DType::f32, 0, 40, true), int8_call(DType::f32, DType::q4_0, 0, 40),
        grouped_int8_call(DType::f32, DType::q4_0, 0, 40)})
    for (const Kernel* kernel : kernels_of(*context, call.op)) {
      SCOPED_TRACE(call.op + "@" + kernel->provider);
      EXPECT_EQ(run(*kernel, call, *context->threads).refusal, "");
    }
}

TEST(EveryLinear, SaysThatItCannotReadAStrangePacking) {
  const auto context = test_context();
  LinearCall call = float_call(DType::f32, DType::f32, 2, 40, false);
  call.operands[1].meta.packed = "nobody";
  for (const Kernel* kernel : kernels_of(*context, call.op))
    EXPECT_NE(run(*kernel, call, *context->threads).refusal, "") << kernel->provider;
}

}  // namespace weft::every_linear_test
