#include "engine/weights/weights.h"

#include <cstring>

#include <gtest/gtest.h>

#include "builtin/context.h"
#include "builtin/models.h"
#include "tests/engine/tiny_model.h"
#include "tests/sample_checkpoint.h"

namespace weft::weights_test {

class LoadedWeights : public ::testing::Test {
 protected:
  Tensor load(const std::string& name, WeightRole role) {
    return weights_.tensor({"model.layers." + name + ".weight"}, role);
  }

  const TemporaryFolder folder_;
  const ModelDefinition model_ = make_model_registry().find("llama", "test");
  const SampleCheckpoint sample_{model_};
  const std::string path_ = sample_.write_folder(folder_, "model", DType::bf16);
  const std::shared_ptr<Context> context_ = make_context(Options());
  const Checkpoint checkpoint_ = Checkpoint::open(path_);
  const ModelFacts facts_{.config = checkpoint_.config(model_.facts), .dtype = DType::bf16};
  Weights weights_{*context_, checkpoint_, facts_};
};

// Small weights share large pages: each begins in the cache line after the previous one.
TEST_F(LoadedWeights, LieOneAfterAnother) {
  constexpr std::int64_t kLine = 64;
  const Tensor norm = load("0.input_layernorm", WeightRole::vector);
  const Tensor up = load("0.mlp.up_proj", WeightRole::linear), down = load("1.mlp.down_proj", WeightRole::linear);
  const auto behind = [](const Tensor& tensor) {
    return tensor.data() + (tensor.storage->bytes() + kLine - 1) / kLine * kLine;
  };
  EXPECT_EQ(up.data(), behind(norm));
  EXPECT_EQ(down.data(), behind(up));
  for (const Tensor& tensor : {norm, up, down})
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data()) % kLine, 0u) << tensor.meta.text();
  EXPECT_EQ(load("0.input_layernorm", WeightRole::vector).data(), norm.data());
}

// One of them stays valid when others are created and destroyed, and when the loader is gone.
TEST_F(LoadedWeights, KeepTheirMemory) {
  Tensor norm;
  {
    Weights gone(*context_, checkpoint_, facts_);
    norm = gone.tensor({"model.norm.weight"}, WeightRole::vector);
    gone.tensor({"lm_head.weight"}, WeightRole::linear);
  }
  const Tensor& stored = checkpoint_.tensor("model.norm.weight");
  ASSERT_EQ(norm.storage->bytes(), stored.meta.bytes().number());
  EXPECT_EQ(std::memcmp(norm.data(), stored.data(), static_cast<std::size_t>(norm.storage->bytes())), 0);
}

}  // namespace weft::weights_test
