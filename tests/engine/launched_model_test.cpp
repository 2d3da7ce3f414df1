// A whole model whose generated functions are launched: compiled by NVRTC and run by the PTX interpreter on a fake
// device, together with the other work of the stream. The numbers are those of the host's code, also from an artifact.

#include <cstdio>

#include <gtest/gtest.h>

#include "base/error.h"
#include "builtin/context.h"
#include "builtin/cuda_device.h"
#include "builtin/models.h"
#include "codegen/compile_rows.h"
#include "engine/artifact/artifact.h"
#include "runtime/cuda/nvrtc.h"
#include "tests/cuda/ptx_images.h"
#include "tests/engine/tiny_model.h"
#include "tests/sample_checkpoint.h"
#include "tests/thrown_message.h"

namespace weft::launched_model_test {

using Settings = std::vector<std::pair<std::string, std::string>>;
using Places = std::vector<std::string>;

Places nvrtc_of_this_machine() { return cuda::nvrtc_places(process_environment()); }
const Places kNoNvrtc = {"/nowhere/libnvrtc.so.13"};

class LaunchedModel : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    std::string problem;
    if (cuda::Nvrtc::open(nvrtc_of_this_machine(), problem) == nullptr)
      std::printf("count: models with launched row programs are not run: %s\n", problem.c_str());
  }
  void SetUp() override {
    if (!can_compile_rows()) GTEST_SKIP() << "libweft_llvm.so was not built";
    std::string problem;
    if (cuda::Nvrtc::open(nvrtc_of_this_machine(), problem) == nullptr) GTEST_SKIP() << problem;
    path_ = write_tiny_model(folder_);
  }

  Options options_of(const Settings& settings) const {
    Options options;
    for (const auto& [name, value] : settings) set_option(options, name, value, "test");
    return options;
  }
  // Generated code computes all ops that it can.
  std::shared_ptr<Context> context_of(Options options) const {
    auto context = make_context(std::move(options));
    for (const auto& [name, op] : context->ops.all())
      if (!op.is_primitive()) context->priorities.set(name, {"native"});
    for (const char* op : {"linear", "attention", "embedding"}) context->priorities.set(op, {"cpu"});
    return context;
  }
  std::shared_ptr<Context> context_on_device(Options options, const Places& nvrtc, int capability = 90) const {
    options.device = "fake-cuda";
    auto context = context_of(std::move(options));
    put_on_fake_cuda(*context, {.seed = 3, .compute_capability = capability, .read_image = &kernels_of_ptx}, nvrtc);
    return context;
  }
  std::unique_ptr<Engine> engine_of(const std::shared_ptr<Context>& context) const {
    return std::make_unique<Engine>(context, Checkpoint::open(path_), make_model_registry());
  }

  TemporaryFolder folder_;
  std::string path_;
  const Settings settings_{
      {"dtype", "f32"},      {"activation-precision", "exact"}, {"kv-cache-dtype", "f16"},
      {"max-num-seqs", "2"}, {"max-num-batched-tokens", "8"},   {"cc.cudagraph_capture_sizes", "1,4"}};
};

std::vector<int> tokens_of(Engine& engine) {
  return engine.generate(some_ids(4), {.temperature = 0, .max_tokens = 3, .ignore_end = true, .stop = {}}).tokens;
}

DeviceFunctions functions_of(const Context& context) {
  const auto said = context.generated->device_functions();
  EXPECT_TRUE(said.has_value());
  return said.value_or(DeviceFunctions());
}

TEST_F(LaunchedModel, GivesTheHostsTokensCapturedAndNot) {
  const std::vector<int> wanted = tokens_of(*engine_of(context_of(options_of(settings_))));
  for (const char* mode : {"NONE", "FULL_AND_PIECEWISE"}) {
    Options options = options_of(settings_);
    set_option(options, "cc.cudagraph_mode", mode, "test");
    const auto context = context_on_device(options, nvrtc_of_this_machine());
    const auto engine = engine_of(context);
    EXPECT_EQ(tokens_of(*engine), wanted) << mode;
    const DeviceFunctions said = functions_of(*context);
    EXPECT_GE(said.functions, 4u);
    EXPECT_EQ(said.launched, said.functions);
    EXPECT_EQ(said.code, "PTX for sm_90");
    EXPECT_GE(context->stream_device->queue().launches(), static_cast<std::int64_t>(said.functions)) << mode;
  }
}

TEST_F(LaunchedModel, HasTheBitsThatTheHostGivesInTheOrderOfTheStream) {
  const auto launched = context_on_device(options_of(settings_), nvrtc_of_this_machine());
  const auto on_host = context_on_device(options_of(settings_), kNoNvrtc);
  EXPECT_EQ(all_logits(*engine_of(launched), some_ids(6)), all_logits(*engine_of(on_host), some_ids(6)));
  EXPECT_EQ(functions_of(*on_host).launched, 0u);
  EXPECT_EQ(functions_of(*on_host).functions, functions_of(*launched).launched);
}

// As a GPU without libweft_llvm.so: the host reads none of its memory, and compiles nothing.
TEST(LaunchedGemma, NeedsNoLlvmOnItsDevice) {
  std::string problem;
  if (cuda::Nvrtc::open(nvrtc_of_this_machine(), problem) == nullptr) GTEST_SKIP() << problem;
  const TemporaryFolder folder;
  const std::string path =
      SampleCheckpoint(make_model_registry().find("gemma", "test")).write_folder(folder, "gemma", DType::bf16);
  const auto logits = [&](bool is_launched) {
    Options options;
    options.device = "fake-cuda";
    options.max_num_batched_tokens = 8;
    const auto context = make_context(options);
    cuda::FakeSettings fake{.hides_memory = is_launched};
    if (is_launched) fake.read_image = &kernels_of_ptx;
    put_on_fake_cuda(*context, std::move(fake), nvrtc_of_this_machine());
    if (is_launched) context->generated->leave_out_host("there is no LLVM");
    Engine engine(context, Checkpoint::open(path), make_model_registry());
    const auto result = all_logits(engine, some_ids(6));
    EXPECT_EQ(functions_of(*context).launched, is_launched ? functions_of(*context).functions : 0);
    return result;
  };
  EXPECT_EQ(logits(true), logits(false)) << "the host's kernels and functions, in the order of the stream";
}

class LaunchedArtifact : public LaunchedModel {
 protected:
  void SetUp() override {
    LaunchedModel::SetUp();
    if (IsSkipped()) return;
    const auto context = context_on_device(options_of(settings_), nvrtc_of_this_machine());
    ModelCompilation model(context, Checkpoint::open(path_), make_model_registry());
    model.compile();
    write_artifact({.path = artifact_, .model = path_}, model);
    functions_ = functions_of(*context).functions;
  }
  std::unique_ptr<Engine> open(const Places& nvrtc, int capability) const {
    const Artifact artifact = Artifact::open(artifact_);
    Options options;
    artifact.take_options(options);
    auto context = context_on_device(std::move(options), nvrtc, capability);
    Checkpoint checkpoint = artifact.open_checkpoint(path_, Options(), process_environment());
    artifact.load_plans(*context, checkpoint);
    return std::make_unique<Engine>(std::move(context), std::move(checkpoint), make_model_registry());
  }

  const std::string artifact_ = folder_ / "tiny.weft";
  std::size_t functions_ = 0;
};

TEST_F(LaunchedArtifact, IsLaunchedWhereThereIsNoNvrtc) {
  const auto engine = open(kNoNvrtc, 90);
  EXPECT_EQ(tokens_of(*engine), tokens_of(*engine_of(context_of(options_of(settings_)))));
  const DeviceFunctions said = functions_of(engine->context());
  EXPECT_EQ(said.launched, functions_);
  EXPECT_EQ(said.functions, functions_);
  EXPECT_EQ(said.compiler, "");
  EXPECT_NE(said.reason.find("/nowhere/libnvrtc.so.13"), std::string::npos) << said.reason;
}

TEST_F(LaunchedArtifact, HasTheTextOfTheDeviceForEachFunction) {
  const Artifact artifact = Artifact::open(artifact_);
  std::map<std::string, std::size_t> ends;
  for (const ArtifactMember& member : artifact.manifest().members)
    if (member.name.starts_with("objects/")) ++ends[member.name.substr(member.name.rfind('.'))];
  EXPECT_EQ(ends.size(), 1u) << "none of the host";
  EXPECT_GE(ends[".ptx"], 4u);
}

TEST_F(LaunchedArtifact, IsRefusedByADeviceOfAnotherArchitecture) {
  for (const int capability : {80, 100}) {
    const std::string message = message_of<UserError>([&] { open(nvrtc_of_this_machine(), capability); });
    EXPECT_NE(
        message.find(fmt::format("was compiled for a GPU of \"sm_90\", but here is a GPU of \"sm_{}\"", capability)),
        std::string::npos)
        << message;
  }
}

}  // namespace weft::launched_model_test
