// Checkpoints of codes on fake devices of several GPUs. The GPU's library multiplies codes with scales of rows or of
// blocks if it can; otherwise weights are converted to numbers. The tests also check which weights stay in the host's
// memory.

#include <cmath>

#include <gtest/gtest.h>

#include "builtin/context.h"
#include "builtin/cuda_device.h"
#include "builtin/models.h"
#include "quantize/quantize_checkpoint.h"
#include "tests/engine/tiny_model.h"
#include "tests/sample_checkpoint.h"

namespace weft::fake_device_codes_test {

using nlohmann::json;
using Settings = std::vector<std::pair<std::string, std::string>>;
using Logits = std::vector<std::vector<float>>;

class FakeDeviceCodes : public ::testing::Test {
 protected:
  static std::shared_ptr<Context> context_of(const Settings& settings, const std::string& device) {
    Options options;
    apply_environment(options, process_environment());
    set_option(options, "device", device, "test");
    set_option(options, "dtype", "bf16", "test");
    set_option(options, "max-num-batched-tokens", "16", "test");
    for (const auto& [name, value] : settings) set_option(options, name, value, "test");
    return make_context(options);
  }
  std::unique_ptr<Engine> engine(const std::string& path, int capability, const Settings& settings = {},
                                 std::uint64_t seed = 1) const {
    const auto context = context_of(settings, "fake-cuda");
    put_on_fake_cuda(*context, {.seed = seed, .compute_capability = capability}, {});
    return std::make_unique<Engine>(context, Checkpoint::open(path), models_);
  }
  std::unique_ptr<Engine> engine_on_host(const std::string& path, const Settings& settings = {}) const {
    return std::make_unique<Engine>(context_of(settings, "cpu"), Checkpoint::open(path), models_);
  }
  std::string quantized(const QuantizeRecipe& recipe, const std::string& name, const std::string& plain) const {
    ThreadPool threads(2);
    quantize_checkpoint(Checkpoint::open(plain), model_, recipe, folder_ / name, threads);
    return folder_ / name;
  }
  std::string quantized(NumberFormat format, const std::string& name, std::int64_t block = 128) const {
    return quantized({.format = format, .block = {block, block}, .inputs = {}}, name, plain_);
  }

  const ModelRegistry models_ = make_model_registry();
  const ModelDefinition model_ = models_.find("llama", "test");
  const TemporaryFolder folder_;
  // Widths of two and of three groups of 128: rows of block scales are padded to four.
  const SampleCheckpoint sample_{model_, json{{"hidden_size", 256}, {"intermediate_size", 384}, {"head_dim", 64}}, 5};
  const std::string plain_ = sample_.write_folder(folder_, "plain", DType::bf16);
};

// "linear@cublaslt" and the like, of the layers' products; the head's are of numbers always.
std::map<std::string, int> products_of(Engine& engine) {
  std::map<std::string, int> products;
  for (const PlanStep& step : engine.runner().forward_plan()->steps)
    if (step.kernel != nullptr && step.kernel->op.starts_with("linear"))
      ++products[step.kernel->op + "@" + step.kernel->provider];
  return products;
}

using Products = std::map<std::string, int>;

// Activations of bf16 differ by a step if sums had another order, and then a few codes may differ, too.
constexpr double kOfAnotherOrder = 0.02;

TEST_F(FakeDeviceCodes, InBlocksAreMultipliedByTheLibraryOfHopperHoweverManyRowsThereAre) {
  const std::string path = quantized(NumberFormat::fp8_block, "blocks");
  const std::vector<int> ids = some_ids(21);
  const Logits of_host = all_logits(*engine_on_host(path), ids);
  const auto eager = engine(path, 90, {{"cc.cudagraph_mode", "NONE"}, {"expect-fusions", "all"}});
  EXPECT_EQ(products_of(*eager), (Products{{"linear_fp8_block@cublaslt", 8}}));
  const Logits wanted = all_logits(*eager, ids);
  EXPECT_LT(logit_difference(wanted, of_host), kOfAnotherOrder);
  std::uint64_t seed = 1;
  for (const char* sizes : {"1,3,5,16", "2,8"})  // 21 tokens are 16 and 5, of which 5 may be made up to 8
    EXPECT_EQ(
        all_logits(*engine(path, 90,
                           {{"cc.cudagraph_mode", "FULL"}, {"cc.cudagraph_capture_sizes", sizes}, {"check-replay", ""}},
                           ++seed),
                   ids),
        wanted)
        << sizes;
  EXPECT_LT(logit_difference(all_logits(*engine(path, 90, {{"enforce-eager", ""}}), ids), wanted), kOfAnotherOrder);
}

// The rows of a weight's scales are padded to four, including the last row.
TEST_F(FakeDeviceCodes, InOneRowOfBlocksHaveRoomForTheScalesThatMakeItUp) {
  const SampleCheckpoint narrow(model_, json{{"hidden_size", 128}, {"intermediate_size", 384}, {"head_dim", 64}}, 5);
  const std::string plain = narrow.write_folder(folder_, "narrow", DType::bf16);
  const std::string path =
      quantized({.format = NumberFormat::fp8_block, .block = {128, 128}, .inputs = {}}, "narrow blocks", plain);
  const std::vector<int> ids = some_ids(5);
  const Logits of_host = all_logits(*engine_on_host(path), ids);
  for (const char* mode : {"NONE", "FULL"}) {
    const auto engine = this->engine(path, 90, {{"cc.cudagraph_mode", mode}});
    EXPECT_EQ(products_of(*engine), (Products{{"linear_fp8_block@cublaslt", 8}}));
    EXPECT_LT(logit_difference(all_logits(*engine, ids), of_host), kOfAnotherOrder) << mode;
  }
}

// Merged weights have a scale for each row, which the library does not accept together with one scale of x.
TEST_F(FakeDeviceCodes, WithScalesOfInputsAreMultipliedWeightByWeight) {
  std::vector<LinearInput> inputs;
  for (int layer = 0; layer < 2; ++layer) {
    const std::string prefix = fmt::format("model.layers.{}.", layer);
    const auto names = [&](std::initializer_list<const char*> parts) {
      std::vector<std::string> all;
      for (const char* part : parts) all.push_back(prefix + part + ".weight");
      return all;
    };
    inputs.push_back({names({"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}), 4});
    inputs.push_back({names({"self_attn.o_proj"}), 4});
    inputs.push_back({names({"mlp.gate_proj", "mlp.up_proj"}), 4});
    inputs.push_back({names({"mlp.down_proj"}), 4});
  }
  const std::string path =
      quantized({.format = NumberFormat::fp8, .block = {}, .inputs = std::move(inputs)}, "static", plain_);
  const std::vector<int> ids = some_ids(5);
  const Logits codes = all_logits(*engine_on_host(path), ids);
  for (const int capability : {89, 90}) {
    const auto engine = this->engine(path, capability);
    EXPECT_EQ(products_of(*engine), (Products{{"linear_scaled@cublaslt", 14}}));
    EXPECT_LT(logit_difference(all_logits(*engine, ids), codes), kOfAnotherOrder) << capability;
  }
  EXPECT_EQ(products_of(*engine(path, 80)), (Products{{"linear@cublaslt", 8}}));
}

TEST_F(FakeDeviceCodes, AreNumbersWhereTheGpuHasNoProductForTheirScales) {
  const std::vector<int> ids = some_ids(5);
  struct Case {
    const char* name;
    NumberFormat format;
    std::map<int, const char*> products;  // by compute capability
    std::int64_t block = 128;
  };
  const char* const numbers = "linear@cublaslt";
  const char* const scaled = "linear_scaled@cublaslt";
  const Case cases[] = {
      {"blocks", NumberFormat::fp8_block, {{80, numbers}, {89, numbers}, {100, numbers}}},
      {"small blocks", NumberFormat::fp8_block, {{90, numbers}}, 64},
      {"tokens", NumberFormat::fp8_per_token, {{80, numbers}, {89, numbers}, {90, scaled}, {120, numbers}}},
      {"whole", NumberFormat::fp8, {{80, numbers}, {90, scaled}}},  // one scale of each weight, one of each token
      {"int8", NumberFormat::int8, {{90, numbers}}},
  };
  for (const Case& one : cases) {
    const std::string path = quantized(one.format, one.name, one.block);
    const Logits codes = all_logits(*engine_on_host(path), ids);
    const Logits exact =
        all_logits(*engine_on_host(path, {{"activation-precision", "exact"}, {"kv-cache-dtype", "f16"}}), ids);
    EXPECT_GT(logit_difference(codes, exact), kOfAnotherOrder) << one.name << ": nothing is told apart";
    for (const auto& [capability, product] : one.products) {
      SCOPED_TRACE(fmt::format("{} on {}", one.name, capability));
      const auto engine = this->engine(path, capability);
      EXPECT_EQ(products_of(*engine), (Products{{product, 8}}));
      EXPECT_LT(logit_difference(all_logits(*engine, ids), product == scaled ? codes : exact), kOfAnotherOrder);
    }
  }
}

// Where an option, and not the GPU, leaves no kernel for codes.
TEST_F(FakeDeviceCodes, AreSaidToBeNumbersWhereAnOptionMakesThem) {
  const std::string path = quantized(NumberFormat::fp8_per_token, "tokens");
  const auto notes = [&](int capability, const Settings& settings) {
    return engine(path, capability, settings)->runner().notes();
  };
  const std::int64_t codes = 2 * (256 * (256 + 128 + 128) + 256 * 256 + 3 * 256 * 384);
  const auto note = [&](const std::string& option) {
    return std::vector{fmt::format(
        "{} leaves fake-cuda:0 without a kernel that multiplies the codes of 14 weights, "
        "model.layers.0.self_attn.q_proj.weight the first: they are loaded as bf16, {} bytes in place of {}",
        option, 2 * codes, codes)};
  };
  const std::vector<std::string> none;
  const Settings invariant{{"batch-invariant", ""}}, native{{"ir-op-priority.linear_scaled", "native"}};
  EXPECT_EQ(notes(90, {}), none);
  EXPECT_EQ(notes(90, invariant), note("--batch-invariant"));
  EXPECT_EQ(notes(90, native), note("--ir-op-priority.linear_scaled=native"));
  EXPECT_EQ(notes(90, {invariant[0], native[0]}), note("--batch-invariant and --ir-op-priority.linear_scaled=native"));
  EXPECT_EQ(notes(80, invariant), none) << "the GPU has no such product";
  EXPECT_EQ(notes(90, {invariant[0], {"activation-precision", "exact"}}), none) << "numbers were asked for";
  EXPECT_EQ(engine_on_host(path, invariant)->runner().notes(), none);
}

TEST_F(FakeDeviceCodes, AreRefusedByNameWhereTheGpuHasNoProductOfThem) {
  const auto context = context_of({}, "fake-cuda");
  EXPECT_EQ(context->kernels.refusal("linear_fp8_block", "cublaslt"), "");
  put_on_fake_cuda(*context, {.compute_capability = 100}, {});
  EXPECT_EQ(context->kernels.refusal("linear_fp8_block", "cublaslt"),
            "scales of blocks want a GPU of compute capability 9.0, and it has 10.0");
  EXPECT_EQ(context->kernels.refusal("linear_scaled", "cublaslt"), "");
  put_on_fake_cuda(*context, {.compute_capability = 80}, {});
  EXPECT_EQ(context->kernels.refusal("linear_scaled", "cublaslt"),
            "products of fp8 codes want a GPU of compute capability 8.9 or newer, and it has 8.0");
}

TEST_F(FakeDeviceCodes, OfBlocksAreConvertedToNumbers) {
  const SampleCheckpoint sample(model_, json{{"hidden_size", 256}, {"intermediate_size", 512}, {"head_dim", 64}}, 5);
  for (const DType dtype : {DType::q6_k, DType::iq4_xs, DType::iq2_xxs}) {
    const std::string path = sample.write_gguf(folder_, std::string(dtype_text(dtype)) + ".gguf", dtype);
    const auto on_device = engine(path, 90);
    EXPECT_EQ(products_of(*on_device), (Products{{"linear@cublaslt", 8}})) << dtype_text(dtype);
    const Logits wanted =
        all_logits(*engine_on_host(path, {{"activation-precision", "exact"}, {"kv-cache-dtype", "f16"}}), some_ids(5));
    EXPECT_LT(logit_difference(all_logits(*on_device, some_ids(5)), wanted), 0.02) << dtype_text(dtype);
  }
}

TEST_F(FakeDeviceCodes, AndAllOtherWeightsAreInTheDevicesMemoryAlone) {
  const auto expect_on_device = [](Engine& engine, std::int64_t at_least) {
    const MemoryUse use = engine.runner().memory_use();
    EXPECT_EQ(use.weights - use.weights_of_device, 0);
    EXPECT_GT(use.weights_of_device, at_least);
    EXPECT_LT(use.weights_of_device, at_least * 3 / 2);
    all_logits(engine, some_ids(5));  // nothing is asked for again
    EXPECT_EQ(engine.runner().memory_use().weights_of_device, use.weights_of_device);
    EXPECT_EQ(engine.runner().memory_use().weights, use.weights);
  };
  // For q4_1 in the file, and an embedding of q8_0.
  const std::string file = write_tiny_model(folder_);
  const auto on_host = engine_on_host(file, {{"activation-precision", "exact"}, {"ir-op-priority.linear", "native"}});
  EXPECT_EQ(on_host->runner().memory_use().weights_of_device, 0);
  const std::int64_t layers = 2 * (64 * (64 + 32 + 32) + 64 * 64 + 3 * 64 * 96);
  expect_on_device(*engine(file, 90), 2 * (layers + 257 * 64));
  const std::string blocks = quantized(NumberFormat::fp8_block, "blocks");
  const std::int64_t codes = 2 * (256 * (256 + 128 + 128) + 256 * 256 + 3 * 256 * 384);
  expect_on_device(*engine(blocks, 90), codes + 2 * 257 * 256);
  expect_on_device(*engine(blocks, 80), 2 * (codes + 257 * 256));
}

}  // namespace weft::fake_device_codes_test
