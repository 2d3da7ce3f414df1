// Generated functions of a device without libweft_llvm.so: NVRTC compiles them, and the host's code is not needed. The
// fake device hides its memory, as a GPU does, so that a kernel of the host in a Plan is an error.

#include <cstdio>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/error.h"
#include "builtin/cuda_device.h"
#include "cache/cache_files.h"
#include "codegen/compile_rows.h"
#include "compiler/functions/device_rows.h"
#include "compiler/pieces.h"
#include "tests/base/temporary_folder.h"
#include "tests/cuda/compiled_layer.h"
#include "tests/cuda/ptx_images.h"
#include "tests/thrown_message.h"

namespace weft::rows_without_llvm_test {

// As in Gemma: embeddings times a scalar, for which the device has no kernel, a norm and gelu.
constexpr const char* kLayer = R"(
graph layer(%x: f32[s0, 96], param %norm: f32[96]) stage=traced {
  %e = mul_scalar(%x, value=9.5)
  %h = rms_norm(%e, %norm, epsilon=1e-06)
  %g = gelu_tanh_and_mul(%h)
  return %e, %g
}
)";
constexpr const char* kMissing = "libweft_llvm.so is not installed";

enum class Host { has_llvm, lacks_llvm };

std::shared_ptr<Context> context_on_device(Host host, const std::vector<std::string>& nvrtc,
                                           cuda::ReadImage read = &kernels_of_ptx) {
  auto context = context_of("fake-cuda");
  put_on_fake_cuda(*context, {.compute_capability = 90, .hides_memory = true, .read_image = std::move(read)}, nvrtc);
  if (host == Host::lacks_llvm) context->generated->leave_out_host(kMissing);
  return context;
}

class RowsWithoutLlvm : public testing::Test {
 protected:
  void SetUp() override {
    std::string problem;
    if (cuda::Nvrtc::open(nvrtc_of_this_machine(), problem) != nullptr) return;
    std::printf("count: row programs without LLVM are not run: %s\n", problem.c_str());
    GTEST_SKIP() << problem;
  }

  CompiledLayer layer(Host host, const std::vector<std::string>& nvrtc = nvrtc_of_this_machine()) const {
    auto context = context_on_device(host, nvrtc);
    context->cache = std::make_unique<CompileCache>(CompileCacheSettings{.root = root_});
    return {std::move(context), kLayer};
  }

  const TemporaryFolder folder_;
  const std::string root_ = folder_ / "cache";
};

std::int64_t compiled(const CompiledLayer& layer) {
  return layer.context().first_time_work->counts(FirstTime::compile).before_ready;
}

TEST_F(RowsWithoutLlvm, HaveTheBitsOfTheHost) {
  testing::internal::CaptureStderr();
  CompiledLayer on_device = layer(Host::lacks_llvm);
  CompiledLayer on_host(context_of("cpu"), kLayer);
  for (const ReplayMode mode : {ReplayMode::none, ReplayMode::full})
    for (const int rows : {1, CompiledLayer::kMostRows}) EXPECT_EQ(on_device.run(rows, mode), on_host.run(rows));
  EXPECT_EQ(testing::internal::GetCapturedStderr().find("no code can be generated"), std::string::npos);
  const DeviceFunctions said = on_device.context().generated->device_functions().value();
  EXPECT_GE(said.functions, 1u);
  EXPECT_EQ(said.launched, said.functions);
  EXPECT_EQ(said.reason, "");
  EXPECT_EQ(said.host_problem, kMissing);
  for (const Kernel* kernel : generated_kernels(on_device.plan(), on_device.context()))
    EXPECT_TRUE(on_device.context().generated->object(kernel->op).code.empty()) << kernel->op;
}

TEST_F(RowsWithoutLlvm, MeetRequireCodegen) {
  const auto context = context_on_device(Host::lacks_llvm, nvrtc_of_this_machine());
  context->options.require_codegen = true;
  CompiledLayer on_device(context, kLayer);
  EXPECT_GE(generated_kernels(on_device.plan(), *context).size(), 1u);
}

// A program with LLVM finds the entries of one without, and the reverse.
TEST_F(RowsWithoutLlvm, ShareTheCompileCacheWithThoseThatHaveIt) {
  for (const Host first : {Host::lacks_llvm, Host::has_llvm}) {
    std::filesystem::remove_all(root_);
    const Host second = first == Host::has_llvm ? Host::lacks_llvm : Host::has_llvm;
    CompiledLayer kept = layer(first);
    const auto functions = static_cast<std::int64_t>(kept.context().generated->size());
    EXPECT_EQ(compiled(kept), 1 + functions) << "the graph";
    for (const Host host : {first, second}) {
      CompiledLayer found = layer(host);
      EXPECT_EQ(compiled(found), 0);
      EXPECT_EQ(found.run(3), kept.run(3));
    }
    std::filesystem::remove_all(entry_folder(root_, "plans"));
    for (const Host host : {second, first}) {
      CompiledLayer of_functions = layer(host, kNoNvrtc);
      EXPECT_LE(compiled(of_functions), 1) << "the graph";
      EXPECT_EQ(of_functions.context().generated->device_functions()->launched, static_cast<std::size_t>(functions));
      EXPECT_EQ(of_functions.run(3), kept.run(3));
    }
  }
}

std::string refusal_of(const std::shared_ptr<Context>& context) {
  return message_of<DeviceError>([&] { CompiledLayer(context, kLayer); });
}

TEST_F(RowsWithoutLlvm, SayWhatIsMissingWhereThereIsNoNvrtcEither) {
  const auto context = context_on_device(Host::lacks_llvm, kNoNvrtc);
  testing::internal::CaptureStderr();
  EXPECT_NE(refusal_of(context).find("@reference, a kernel of the host"), std::string::npos);
  const std::string warning = testing::internal::GetCapturedStderr();
  for (const char* words : {"no code can be generated", kMissing, "for the device: libnvrtc", "/nowhere/libnvrtc"})
    EXPECT_NE(warning.find(words), std::string::npos) << warning;
  EXPECT_FALSE(generates_code(*context));
}

// As a driver that is older than NVRTC.
TEST_F(RowsWithoutLlvm, SayThatTheDriverRefusesTheirImage) {
  const auto read = [](std::span<const std::byte>) -> cuda::FakeImage {
    throw std::runtime_error("Unsupported .version 9.1");
  };
  const auto context = context_on_device(Host::lacks_llvm, nvrtc_of_this_machine(), read);
  testing::internal::CaptureStderr();
  EXPECT_NE(refusal_of(context), "");
  const std::string warning = testing::internal::GetCapturedStderr();
  for (const char* words : {kMissing, "Unsupported .version 9.1"})
    EXPECT_NE(warning.find(words), std::string::npos) << warning;
  EXPECT_EQ(context->generated->size(), 0u);
}

// A Plan that was stored with images only is compiled anew if the driver accepts none of them.
TEST_F(RowsWithoutLlvm, AreNoUseInAPlanWhereTheDriverRefusesTheirImage) {
  if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  layer(Host::lacks_llvm);
  const auto context = context_of("fake-cuda");
  const auto read = [](std::span<const std::byte>) -> cuda::FakeImage { throw std::runtime_error("too new"); };
  put_on_fake_cuda(*context, {.compute_capability = 90, .read_image = read}, nvrtc_of_this_machine());
  context->cache = std::make_unique<CompileCache>(CompileCacheSettings{.root = root_});
  testing::internal::CaptureStderr();
  CompiledLayer again(context, kLayer);
  const std::string warning = testing::internal::GetCapturedStderr();
  for (const char* words : {"the plans of layer in the compile cache", "code of the device alone", "too new"})
    EXPECT_NE(warning.find(words), std::string::npos) << warning;
  CompiledLayer on_host(context_of("cpu"), kLayer);
  EXPECT_EQ(again.run(2), on_host.run(2));
}

TEST_F(RowsWithoutLlvm, AreLaunchedOrNotRun) {
  CompiledLayer on_device(context_on_device(Host::has_llvm, nvrtc_of_this_machine()), kLayer);
  const Kernel& kernel = *generated_kernels(on_device.plan(), on_device.context()).at(0);
  const Attributes none;
  const KernelCall call{
      .operands = {}, .results = {}, .attributes = none, .scratch = {}, .threads = *on_device.context().threads};
  const std::string said = message_of<DeviceError>([&] { kernel.run(call); });
  EXPECT_NE(said.find("[" + kernel.op + "] is compiled for the device alone"), std::string::npos) << said;
}

TEST_F(RowsWithoutLlvm, AreNamedByTheirCompiler) {
  const auto with = context_on_device(Host::lacks_llvm, nvrtc_of_this_machine());
  EXPECT_EQ(with->generated->device_compiler_text().find("NVRTC "), 0u);
  const auto without = context_on_device(Host::lacks_llvm, kNoNvrtc);
  EXPECT_EQ(without->generated->device_compiler_text().find("none: libnvrtc"), 0u);
  EXPECT_EQ(context_of("cpu")->generated->device_compiler_text(), "");
  EXPECT_EQ(context_of("fake-cuda")->generated->device_compiler_text(), "none: a fake device executes no PTX");
}

}  // namespace weft::rows_without_llvm_test
