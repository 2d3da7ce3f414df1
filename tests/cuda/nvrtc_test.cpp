// CUDA C++ compiled while the program runs, without a driver, and its PTX run in the interpreter.

#include "runtime/cuda/nvrtc.h"

#include <cstdio>
#include <cstring>
#include <filesystem>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "emulator/emulator.h"
#include "kernels/cuda/code/kernel_table.h"
#include "kernels/cuda/lib/arguments.h"
#include "kernels/cuda/lib/group_launch.h"
#include "tensor/convert.h"
#include "tests/cuda/ptx/interpreter.h"
#include "tests/program_run.h"
#include "tests/tensor/random_source.h"
#include "tests/thrown_message.h"

namespace weft::nvrtc_test {

using namespace cuda;

class NvrtcCompiler : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string problem;
    if (Nvrtc::open(nvrtc_places(process_environment()), problem) == nullptr)
      std::printf("count: NVRTC is not run: %s\n", problem.c_str());
  }
  void SetUp() override {
    std::string problem;
    compiler_ = Nvrtc::open(nvrtc_places(process_environment()), problem);
    if (compiler_ == nullptr) GTEST_SKIP() << problem;
  }
  std::unique_ptr<Nvrtc> compiler_;
};

TEST_F(NvrtcCompiler, MakesPtxThatRuns) {
  const NvrtcSource source{.name = "scale.cu",
                           .text =
                               "#include \"factor.h\"\n"
                               "extern \"C\" __global__ void scale(float* x, float by) {\n"
                               "  x[threadIdx.x] = x[threadIdx.x] * by + FACTOR;\n}\n",
                           .headers = {{"factor.h", "#define FACTOR 0.5f\n"}}};
  ptx::Interpreter interpreter(compiler_->compile(source, 90, NvrtcCode::ptx), "scale.ptx");
  EXPECT_EQ(interpreter.architecture(), 90);
  std::vector<float> x(48), wanted(48);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = 1.0f / static_cast<float>(i + 3);
    wanted[i] = x[i] * 1.1f + 0.5f;  // rounded twice, as this is compiled
  }
  struct {
    float* x;
    float by;
  } arguments{x.data(), 1.1f};
  MemoryMap memory;
  memory.allow_writing("x", x.data(), x.size() * sizeof(float));
  interpreter.run("scale", {.threads = 48}, &arguments, 12, memory);
  EXPECT_EQ(x, wanted);
  EXPECT_EQ(compiler_->compile(source, 90, NvrtcCode::machine_code).substr(0, 4),
            "\x7f"
            "ELF");
}

// The project's own kernels, whose headers are handed over as text.
NvrtcSource device_source(const std::string& file) {
  const std::filesystem::path sources = std::filesystem::path(WEFT_SOURCE_ROOT) / "src";
  const auto text = [&](const std::string& name) { return read_file((sources / name).string(), 1u << 20); };
  NvrtcSource source{.name = file, .text = text("kernels/cuda/device/" + file)};
  for (const auto& entry : std::filesystem::directory_iterator(sources / "kernels/cuda/device"))
    if (entry.path().extension() == ".cuh")
      source.headers.emplace_back("kernels/cuda/device/" + entry.path().filename().string(),
                                  read_file(entry.path().string(), 1u << 20));
  for (const char* name : {"kernels/cuda/lib/arguments.h", "kernels/cuda/lib/block_sizes.h", "tensor/reference_math.h",
                           "tensor/float_bits.h"})
    source.headers.emplace_back(name, text(name));
  return source;
}

TEST_F(NvrtcCompiler, MakesOfTheProjectsKernelsWhatNvccMakes) {
  constexpr std::uint32_t kRows = 2, kColumns = 256;
  ptx::Interpreter interpreter(compiler_->compile(device_source("per_token_group_quant.cu"), 90, NvrtcCode::ptx),
                               "per_token_group_quant.ptx");
  EXPECT_GE(interpreter.kernels().size(), 18u);
  RandomSource random(3);
  std::vector<std::byte> x(kRows * kColumns * 2);
  for (std::int64_t i = 0; i < kRows * kColumns; ++i)
    store_float(DType::bf16, x.data(), i, static_cast<float>(random.real(-4, 4)));
  for (const std::string kernel : {"per_token_group_quant_bf16_f8e4m3_128", "per_token_group_quant_bf16_i8_64"}) {
    const std::uint32_t group = kernel.ends_with("_64") ? 64 : 128;
    std::vector<std::byte> codes[2] = {std::vector<std::byte>(kRows * kColumns),
                                       std::vector<std::byte>(kRows * kColumns)};
    std::vector<float> scales[2] = {std::vector<float>(kRows * kColumns / group),
                                    std::vector<float>(kRows * kColumns / group)};
    for (const int way : {0, 1}) {
      PerTokenGroupQuantArguments arguments{.x = x.data(),
                                            .codes = codes[way].data(),
                                            .places = {scales[way].data(), kColumns / group, 1},
                                            .rows = kRows,
                                            .columns = kColumns};
      const LaunchShape shape = plan_groups("test", {.rows = kRows, .groups = kColumns / group, .group_size = group},
                                            arguments.places, arguments.order);
      MemoryMap memory;
      memory.allow_reading("x", x.data(), x.size());
      memory.allow_writing("codes", codes[way].data(), codes[way].size());
      memory.allow_writing("scales", scales[way].data(), scales[way].size() * sizeof(float));
      if (way == 0) {
        Emulator().run(emulated_kernel(kernel), shape, &arguments, memory);
      } else {
        interpreter.run(kernel, shape, &arguments, sizeof arguments, memory);
      }
    }
    EXPECT_TRUE(codes[0] == codes[1]) << kernel;
    EXPECT_EQ(scales[0], scales[1]) << kernel;
  }
}

TEST_F(NvrtcCompiler, SaysWhatItCannotCompile) {
  const NvrtcSource wrong{.name = "wrong.cu", .text = "__global__ void f() { undeclared(1); }"};
  const std::string log = message_of([&] { compiler_->compile(wrong, 90, NvrtcCode::ptx); });
  EXPECT_NE(log.find("[nvrtc] wrong.cu does not compile for sm_90"), std::string::npos) << log;
  EXPECT_NE(log.find("identifier \"undeclared\" is undefined"), std::string::npos) << log;
  const std::string architecture = message_of([&] { compiler_->compile(wrong, 35, NvrtcCode::ptx); });
  EXPECT_NE(architecture.find("wrong.cu is wanted for sm_35, but NVRTC "), std::string::npos) << architecture;
}

TEST(Nvrtc, SaysWhatItLookedForWhereThereIsNone) {
  std::string problem;
  EXPECT_EQ(Nvrtc::open({"/nowhere/libnvrtc.so.13", "libnvrtc.so.0"}, problem), nullptr);
  EXPECT_EQ(problem, "libnvrtc of CUDA 12.0 or newer was not found; looked for /nowhere/libnvrtc.so.13, libnvrtc.so.0");
  const std::string no_library = std::string(WEFT_SOURCE_ROOT) + "/README.md";
  EXPECT_EQ(Nvrtc::open({no_library}, problem), nullptr);
  EXPECT_NE(problem.find("README.md cannot be opened: "), std::string::npos) << problem;
  const std::vector<std::string> places = nvrtc_places([](const std::string& name) -> std::optional<std::string> {
    if (name == "CUDA_HOME") return "/opt/cuda-of-mine";
    return {};
  });
  EXPECT_EQ(places[0], "/opt/cuda-of-mine/lib64/libnvrtc.so.*");
  EXPECT_EQ(places[1], "libnvrtc.so.13");
}

NvrtcStatus old_version(int* major, int* minor) {
  *major = 11;
  *minor = 8;
  return NvrtcStatus::success;
}

TEST(Nvrtc, IsNamedByInfo) {
  const ProgramRun run = run_weft({"info"});
  EXPECT_NE(run.out.find(fmt::format("{:<16}{}\n", "nvrtc", nvrtc_text())), std::string::npos) << run.out;
}

TEST(Nvrtc, RefusesAnotherVersion) {
  std::string problem;
  const auto find = [](const char* symbol) {
    return std::strcmp(symbol, "nvrtcVersion") == 0 ? reinterpret_cast<void*>(&old_version) : nullptr;
  };
  EXPECT_EQ(Nvrtc::open(find, "old.so", problem), nullptr);
  EXPECT_EQ(problem, "old.so is of CUDA 11.8");
  EXPECT_EQ(Nvrtc::open([](const char*) -> void* { return nullptr; }, "empty.so", problem), nullptr);
  EXPECT_EQ(problem, "empty.so has no nvrtcGetErrorString");
}

}  // namespace weft::nvrtc_test
