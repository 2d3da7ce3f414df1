// Row programs on a device: their CUDA C++ is compiled by NVRTC, loaded by the driver and launched through the queue of
// a call, on a fake device whose kernels the PTX interpreter executes. The bits are those of the host's code.

#include "compiler/functions/device_rows.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/error.h"
#include "builtin/context.h"
#include "builtin/cuda_device.h"
#include "cache/cache_files.h"
#include "codegen/compile_rows.h"
#include "runtime/cuda/stream_device.h"
#include "runtime/replay.h"
#include "tests/base/failing_file_system.h"
#include "tests/base/temporary_folder.h"
#include "tests/cuda/compiled_layer.h"
#include "tests/cuda/ptx_images.h"
#include "tests/thrown_message.h"

namespace weft::device_rows_test {

constexpr int kMostRows = CompiledLayer::kMostRows;

// A norm with its residual, a rotation by a table, an activation, quantizations.
constexpr const char* kLayer = R"(
graph layer(%x: f32[s0, 96], %r: f32[s0, 96], %positions: i64[s0], param %norm: f32[96],
    param %table: f32[8, 16], param %up: f32[128, 96]) stage=traced {
  %h, %s = fused_add_rms_norm(%x, %r, %norm, epsilon=1e-05)
  %q = slice(%h, dim=1, start=0, end=64)
  %k = slice(%h, dim=1, start=64, end=96)
  %q1, %k1 = rotary_embedding(%positions, %q, %k, %table, head_size=16, rotary_dim=16)
  %u = linear(%h, %up)
  %g = silu_and_mul(%u)
  %c, %f = per_token_group_quant_int8(%g, group_size=32)
  return %s, %q1, %k1, %c, %f
}
)";

struct Layer : CompiledLayer {
  explicit Layer(std::shared_ptr<Context> context, const std::string& graph = kLayer)
      : CompiledLayer(std::move(context), graph) {}
};

DeviceFunctions functions_of(const Layer& layer) {
  const auto said = layer.context().generated->device_functions();
  EXPECT_TRUE(said.has_value());
  return said.value_or(DeviceFunctions());
}

class LaunchedRows : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
    std::string problem;
    if (cuda::Nvrtc::open(nvrtc_of_this_machine(), problem) != nullptr) return;
    std::printf("count: launches of row programs are not run: %s\n", problem.c_str());
    GTEST_SKIP() << problem;
  }
};

TEST_F(LaunchedRows, HaveTheHostsBitsInEveryModeAndOrderOfWork) {
  Layer on_host(context_of("cpu"));
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Layer on_device(device_context(seed));
    for (const ReplayMode mode : {ReplayMode::none, ReplayMode::full})
      for (const int rows : {1, kMostRows, 1})
        EXPECT_EQ(on_device.run(rows, mode), on_host.run(rows)) << replay_mode_text(mode) << ", seed " << seed;
  }
}

TEST_F(LaunchedRows, AreNodesOfACapture) {
  Layer on_device(device_context());
  const std::size_t functions = generated_kernels(on_device.plan(), on_device.context()).size();
  EXPECT_GE(functions, 3u);
  cuda::StreamDevice& device = *on_device.context().stream_device;
  on_device.run(2);
  EXPECT_EQ(device.queue().launches(), static_cast<std::int64_t>(functions)) << "captured, each once";
  EXPECT_EQ(device.graph_builder().counts().captures, 1);
  on_device.run(2, ReplayMode::none);
  EXPECT_EQ(device.queue().launches(), static_cast<std::int64_t>(2 * functions));
  const DeviceFunctions said = functions_of(on_device);
  EXPECT_EQ(said.functions, on_device.context().generated->size());
  EXPECT_EQ(said.launched, said.functions);
  EXPECT_EQ(said.code, "PTX for sm_90");
  EXPECT_EQ(said.compiler.find("NVRTC "), 0u) << said.compiler;
  EXPECT_EQ(said.reason, "");
}

// The numeric arguments of functions are in the device's memory, like all other data of kernels.
constexpr const char* kTwoEpsilons = R"(
graph norms(%x: f32[s0, 96], param %norm: f32[96], param %w: f32[96, 96]) stage=traced {
  %a = rms_norm(%x, %norm, epsilon=1e-05)
  %b = linear(%a, %w)
  %c = rms_norm(%b, %norm, epsilon=0.25)
  return %a, %c
}
)";

TEST_F(LaunchedRows, ReadTheScalarsInWhichTheyDiffer) {
  Layer on_host(context_of("cpu"), kTwoEpsilons), on_device(device_context(), kTwoEpsilons);
  EXPECT_EQ(generated_kernels(on_device.plan(), on_device.context()).size(), 2u);
  EXPECT_EQ(functions_of(on_device).functions, 1u);
  EXPECT_EQ(functions_of(on_device).launched, 1u);
  for (const ReplayMode mode : {ReplayMode::none, ReplayMode::full})
    for (const int rows : {1, kMostRows, 1}) EXPECT_EQ(on_device.run(rows, mode), on_host.run(rows));
}

// Later levels read values again that an output would have overwritten.
TEST_F(LaunchedRows, LeaveTheirArgumentsAsTheyAre) {
  Layer on_device(device_context()), on_host(context_of("cpu"));
  const auto may_lie_over = [](const Kernel* kernel) {
    return std::any_of(kernel->may_lie_over.begin(), kernel->may_lie_over.end(), [](int over) { return over >= 0; });
  };
  const auto of_host = generated_kernels(on_host.plan(), on_host.context());
  EXPECT_TRUE(std::any_of(of_host.begin(), of_host.end(), may_lie_over));
  for (const Kernel* kernel : generated_kernels(on_device.plan(), on_device.context())) {
    EXPECT_TRUE(kernel->launches) << kernel->op;
    EXPECT_FALSE(may_lie_over(kernel)) << kernel->op;
  }
}

TEST_F(LaunchedRows, AreKeptInTheCompileCacheAsFunctionsAndWithPlans) {
  const TemporaryFolder folder;
  const auto layer = [&](const std::vector<std::string>& nvrtc = nvrtc_of_this_machine()) {
    auto context = device_context(1, nvrtc);
    context->cache = std::make_unique<CompileCache>(CompileCacheSettings{.root = folder / "cache"});
    return Layer(context);
  };
  const auto work = [](const Layer& made, FirstTime kind) {
    return made.context().first_time_work->counts(kind).before_ready;
  };
  Layer compiled = layer();
  const auto functions = static_cast<std::int64_t>(compiled.context().generated->size());
  EXPECT_EQ(work(compiled, FirstTime::compile), 1 + functions) << "the graph; functions for the device alone";
  Layer of_plan = layer();
  EXPECT_EQ(work(of_plan, FirstTime::compile), 0);
  EXPECT_EQ(functions_of(of_plan).launched, functions_of(compiled).launched);
  EXPECT_EQ(of_plan.run(3), compiled.run(3));
  std::filesystem::remove_all(entry_folder(folder / "cache", "plans"));
  Layer of_functions = layer();
  EXPECT_EQ(work(of_functions, FirstTime::compile), 1) << "the graph";
  EXPECT_EQ(work(of_functions, FirstTime::load), functions);
  EXPECT_EQ(of_functions.run(3), compiled.run(3));
  Layer without_nvrtc = layer(kNoNvrtc);
  EXPECT_EQ(work(without_nvrtc, FirstTime::compile), 1) << "the graph";
  EXPECT_EQ(functions_of(without_nvrtc).launched, static_cast<std::size_t>(functions)) << "by what NVRTC left there";
  EXPECT_EQ(without_nvrtc.run(3), compiled.run(3));
}

TEST_F(LaunchedRows, OfTheCacheAreForOneArchitecture) {
  const TemporaryFolder folder;
  const auto layer = [&](const std::vector<std::string>& nvrtc, int capability) {
    auto context = device_context(1, nvrtc, capability);
    context->cache = std::make_unique<CompileCache>(CompileCacheSettings{.root = folder / "cache"});
    return Layer(context);
  };
  EXPECT_GT(functions_of(layer(nvrtc_of_this_machine(), 90)).launched, 0u);
  for (int i = 0; i < 2; ++i) {  // Plans without images are not kept
    Layer other = layer(kNoNvrtc, 80);
    EXPECT_EQ(functions_of(other).launched, 0u);
    const auto functions = static_cast<std::int64_t>(other.context().generated->size());
    EXPECT_EQ(other.context().first_time_work->counts(FirstTime::compile).before_ready, i == 0 ? 1 + functions : 1)
        << "the graph, and the first time functions for the host";
  }
}

TEST_F(LaunchedRows, StayWithTheHostWhereADeviceHasNoRoom) {
  const char* const text = R"(
graph wide(%x: f32[s0, 524288]) stage=traced {
  %c, %f = per_token_group_quant_int8(%x, group_size=32)
  return %c, %f
}
)";
  Layer on_device(device_context(), text), on_host(context_of("cpu"), text);
  EXPECT_EQ(on_device.run(1), on_host.run(1));
  const DeviceFunctions said = functions_of(on_device);
  EXPECT_EQ(said.functions, 1u);
  EXPECT_EQ(said.launched, 0u);
  ASSERT_EQ(said.on_host.size(), 1u);
  EXPECT_EQ(said.on_host[0].first.find("rows_"), 0u);
  EXPECT_NE(said.on_host[0].second.find("sums and maxima of groups take 65536 bytes of shared memory"),
            std::string::npos);
}

// As a driver that is older than NVRTC; from the fourth image on.
TEST_F(LaunchedRows, StayWithTheHostWhereTheDriverRefusesTheirImage) {
  auto context = context_of("fake-cuda");
  const auto read = [count = 0](std::span<const std::byte> image) mutable {
    if (++count > 3) throw std::runtime_error("Unsupported .version 9.1; current version is '9.0'");
    return kernels_of_ptx(image);
  };
  put_on_fake_cuda(*context, {.compute_capability = 90, .read_image = read}, nvrtc_of_this_machine());
  Layer on_device(context), on_host(context_of("cpu"));
  for (const int rows : {1, kMostRows}) EXPECT_EQ(on_device.run(rows), on_host.run(rows));
  const DeviceFunctions said = functions_of(on_device);
  EXPECT_EQ(said.launched, 3u);
  ASSERT_EQ(said.on_host.size(), said.functions - 3);
  EXPECT_NE(said.on_host[0].second.find("Unsupported .version 9.1"), std::string::npos) << said.on_host[0].second;
  EXPECT_TRUE(context->generated->lacks_images());
}

TEST_F(LaunchedRows, NeedAnArchitectureThatNvrtcKnows) {
  const DeviceRows rows(nvrtc_of_this_machine(), 35, cuda::NvrtcCode::ptx);
  EXPECT_EQ(rows.problem().find("the device is sm_35, but NVRTC "), 0u) << rows.problem();
  EXPECT_EQ(rows.compiler_text(), "");
}

class RowsOfTheHost : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
  }
};

TEST_F(RowsOfTheHost, RunInTheStreamsOrderWhereThereIsNoNvrtc) {
  Layer without(device_context(1, kNoNvrtc)), on_host(context_of("cpu"));
  for (const int rows : {1, kMostRows}) EXPECT_EQ(without.run(rows), on_host.run(rows));
  const DeviceFunctions said = functions_of(without);
  EXPECT_EQ(said.functions, without.context().generated->size());
  EXPECT_EQ(said.launched, 0u);
  EXPECT_EQ(said.compiler, "");
  EXPECT_EQ(said.reason, "libnvrtc of CUDA 12.0 or newer was not found; looked for /nowhere/libnvrtc.so.13");
  EXPECT_EQ(without.context().stream_device->queue().launches(), 0);
}

TEST_F(RowsOfTheHost, ReadTheScalarsInWhichTheyDiffer) {
  Layer without(device_context(1, kNoNvrtc), kTwoEpsilons), on_host(context_of("cpu"), kTwoEpsilons);
  EXPECT_EQ(functions_of(without).functions, 1u);
  EXPECT_EQ(without.run(3), on_host.run(3));
}

TEST_F(RowsOfTheHost, RunInTheStreamsOrderWhereNothingExecutesPtx) {
  Layer plain(context_of("fake-cuda")), on_host(context_of("cpu"));
  EXPECT_EQ(plain.run(2), on_host.run(2));
  EXPECT_EQ(functions_of(plain).reason, "a fake device executes no PTX");
  EXPECT_EQ(functions_of(plain).code, "");
}

// The result of a driver for CUDA `driver_version` for functions with images of this PTX. Each function exists twice,
// because tuning cuts rows into other chunks. `reads` counts the images that it read.
std::shared_ptr<Context> with_images(const Layer& from, const std::string& version, int driver_version, int& reads) {
  auto context = context_of("fake-cuda");
  const auto read = [&reads](std::span<const std::byte> image) {
    ++reads;
    return kernels_of_ptx(image);
  };
  put_on_fake_cuda(*context, {.driver_version = driver_version, .read_image = read}, kNoNvrtc);
  for (const Kernel* kernel : generated_kernels(from.plan(), from.context())) {
    const GeneratedObject& object = from.context().generated->object(kernel->op);
    const std::string image =
        fmt::format(".version {}\n.target sm_90\n.address_size 64\n.visible .entry {}()\n{{\n ret;\n}}\n", version,
                    symbol_of(object.function));
    GeneratedFunction function = object.function;
    for (const char* chunks : {"", ".chunks3"}) {
      function.name = object.function.name + chunks;
      context->generated->load(function, object.code, std::as_bytes(std::span(image)), *context);
    }
  }
  return context;
}

TEST_F(RowsOfTheHost, ShareAnImageWithThoseCutIntoOtherChunks) {
  const Layer layer(device_context(1, kNoNvrtc));
  int reads = 0;
  const auto context = with_images(layer, "8.4", 12040, reads);
  const auto kernels = generated_kernels(layer.plan(), layer.context());
  EXPECT_GE(kernels.size(), 3u);
  EXPECT_EQ(reads, static_cast<int>(kernels.size()));
  EXPECT_EQ(context->generated->device_functions()->launched, 2 * kernels.size());
  for (const Kernel* kernel : kernels)
    for (const char* chunks : {"", ".chunks3"})
      EXPECT_TRUE(context->generated->find(kernel->op + chunks)->launches) << kernel->op << chunks;
}

TEST_F(RowsOfTheHost, AreLeftWithItByADriverThatIsOlderThanTheirPtx) {
  const Layer layer(device_context(1, kNoNvrtc));
  int reads = 0;
  const auto context = with_images(layer, "8.5", 12040, reads);
  const DeviceFunctions said = context->generated->device_functions().value();
  EXPECT_EQ(said.launched, 0u);
  ASSERT_EQ(said.on_host.size(), said.functions);
  for (const auto& [function, reason] : said.on_host) {
    EXPECT_FALSE(context->generated->find(function)->launches);
    for (const char* words : {"[fake-cuda:0] cuModuleLoadData: CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
                              "given PTX 8.5 for sm_90, the device is sm_90, its driver for CUDA 12.4"})
      EXPECT_NE(reason.find(words), std::string::npos) << reason;
  }
  EXPECT_TRUE(context->generated->lacks_images()) << "a newer driver may take them";
}

class CountsListings : public FailingFileSystem {
 public:
  CountsListings() : FailingFileSystem(0, 0) {}
  int list(const std::string& path, std::vector<std::string>& names) const override {
    ++listings;
    return FailingFileSystem::list(path, names);
  }
  mutable int listings = 0;
};

// The message of the compiler is looked up in all its entries until one has it: another process may have stored it.
TEST_F(RowsOfTheHost, LookForImagesOfOthersInTheCacheUntilThereAreAny) {
  const TemporaryFolder folder;
  const CountsListings files;
  auto context = device_context(1, kNoNvrtc);
  const CompileCacheSettings settings{.root = folder / "cache"};
  context->cache = std::make_unique<CompileCache>(settings, files);
  std::vector<int> listings{0};
  for (const int group : {16, 32, 64}) {
    const std::size_t functions = context->generated->size();
    const Layer layer(context, fmt::format("graph g(%x: f32[s0, 128]) stage=traced {{\n"
                                           "  %c, %f = per_token_group_quant_int8(%x, group_size={})\n"
                                           "  return %c, %f\n}}\n",
                                           group));
    EXPECT_GT(context->generated->size(), functions);
    listings.push_back(files.listings);
    const CacheKey key = context->generated->device_rows()->key({.name = "other", .text = "other"}, "NVRTC 13.0");
    const bool is_there = group > 16 || CompileCache(settings).store(key, std::vector<std::byte>(8));
    EXPECT_TRUE(is_there);
  }
  EXPECT_GT(listings[1], listings[0]);
  EXPECT_GT(listings[2], listings[1]);
  EXPECT_EQ(listings[3], listings[2]);
}

// The answer of a device to an image.
std::string refusal_of(cuda::StreamDevice& device, const std::string& image) {
  return message_of<DeviceError>([&] { device.load(std::as_bytes(std::span(image)), "nothing"); });
}

TEST(ImagesOfAFakeDevice, AreRefusedWhereNothingExecutesThem) {
  const std::string ptx = ".version 8.0\n.target sm_90\n.address_size 64\n";
  const auto plain = open_fake_cuda({DeviceType::fake_cuda, 0}, {});
  EXPECT_NE(refusal_of(*plain, ptx).find("INVALID_IMAGE"), std::string::npos);
  const auto reads = open_fake_cuda({DeviceType::fake_cuda, 0}, {.read_image = &kernels_of_ptx});
  EXPECT_NE(refusal_of(*reads, ptx).find("INVALID_IMAGE"), std::string::npos) << "no kernel is in it";
  EXPECT_NE(refusal_of(*reads, "neither PTX nor machine code").find("the image"), std::string::npos);
}

TEST(ImagesOfAFakeDevice, AreRefusedWhereTheDeviceIsOlder) {
  const auto ptx = [](int architecture) {
    return fmt::format(".version 8.0\n.target sm_{}\n.address_size 64\n.visible .entry nothing()\n{{\n ret;\n}}\n",
                       architecture);
  };
  const auto device =
      open_fake_cuda({DeviceType::fake_cuda, 0}, {.compute_capability = 89, .read_image = &kernels_of_ptx});
  EXPECT_EQ(refusal_of(*device, ptx(80)), "");
  EXPECT_EQ(refusal_of(*device, ptx(89)), "");
  const std::string said = refusal_of(*device, ptx(90));
  for (const char* words : {"CUDA_ERROR_INVALID_PTX", "the image is PTX for sm_90, the device is sm_89"})
    EXPECT_NE(said.find(words), std::string::npos) << said;
}

}  // namespace weft::device_rows_test
