// Every kernel of provider cuda against the meaning of its op, bit for bit: on the op's samples, on rows of more
// columns than a block takes at once, and on the calls that vLLM recorded.

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "compiler/sample_call.h"
#include "io/safetensors.h"
#include "tests/cuda/cuda_context.h"
#include "tests/recorded_difference.h"
#include "tests/recorded_op.h"
#include "tests/recorded_quantization.h"

namespace weft::every_cuda_kernel_test {

std::vector<std::string> ops_of_cuda(const Context& context) {
  std::vector<std::string> ops;
  for (const std::string& op : context.kernels.ops())
    if (context.kernels.find(op, "cuda") != nullptr) ops.push_back(op);
  return ops;
}

// Whether the kernel takes the call; compares if so.
bool agrees(const Context& context, const std::string& op, const SampleCall& call) {
  SCOPED_TRACE(call.text);
  std::vector<Tensor> came;
  try {
    came = by_cuda(context, op, call.operands, call.attributes);
  } catch (const UserError&) {
    return false;
  }
  EXPECT_EQ(difference_of_results(meaning_of(context, op, call.operands, call.attributes), came), "") << op;
  return true;
}

TEST(EveryCudaKernel, AgreesWithTheMeaningOnEverySampleItTakes) {
  const auto context = cuda_context();
  const std::vector<std::string> ops = ops_of_cuda(*context);
  EXPECT_GE(ops.size(), 14u);
  for (const std::string& op : ops) {
    int taken = 0;
    for (Sample sample : context->ops.at(op).samples) {
      for (const SampleCall& call : sample_calls(context->ops.at(op), sample)) taken += agrees(*context, op, call);
      // Samples of int8 have groups of 32 and 50.
      if (op.find("quant_int8") == std::string::npos || sample.tensors[0].shape.back() % 128 != 0) continue;
      for (auto& [name, value] : sample.attributes)
        if (name == "group_size") value = Attribute(std::int64_t{64});
      for (const SampleCall& call : sample_calls(context->ops.at(op), sample)) taken += agrees(*context, op, call);
    }
    EXPECT_GT(taken, 0) << op << " takes none of the samples";
  }
}

// 256 threads take 2048 columns of bf16 and 1024 of f32 at once.
TEST(EveryCudaKernel, AgreesOnRowsOfManyTurnsAndInEveryForm) {
  const auto context = cuda_context();
  for (const std::string& op : ops_of_cuda(*context)) {
    if (op.find("rms_norm") == std::string::npos) continue;
    for (const std::int64_t columns : {64, 576, 1024, 2304, 4224}) {
      for (Sample sample : context->ops.at(op).samples) {
        const std::int64_t width = sample.tensors[0].shape.back();
        for (SampleTensor& tensor : sample.tensors)
          if (!tensor.shape.empty() && tensor.shape.back() == width) tensor.shape.back() = columns;
        for (auto& [name, value] : sample.attributes) {
          if (name == "group_size") value = Attribute(std::int64_t{64});
          if (name == "variance_size" && !value.is_none()) value = Attribute(std::int64_t{40});
        }
        for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
          const SampleCall call = make_sample_call(context->ops.at(op), sample, dtype);
          EXPECT_TRUE(agrees(*context, op, call) || call.operands[0].meta.rank() != 2 ||
                      op.find("quant") != std::string::npos)
              << op << " " << call.text;
        }
      }
    }
  }
}

TEST(EveryCudaKernel, SaysWhyItRefuses) {
  const auto context = cuda_context();
  const auto refusal = [&](const char* op, Meta x, const NamedAttributes& given) -> std::string {
    const Tensor tensor = Tensor::empty(std::move(x));
    try {
      by_cuda(*context, op, {tensor}, complete_attributes(context->ops.at(op).schema, given));
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  const auto bf16 = [](Shape shape) { return Meta::tensor(DType::bf16, std::move(shape)); };
  const char* groups = "per_token_group_quant_fp8";
  EXPECT_NE(refusal(groups, bf16({4, 80}), {{"group_size", 16}}).find("groups have 16 columns"), std::string::npos);
  EXPECT_NE(refusal(groups, bf16({2, 4, 64}), {{"group_size", 64}}).find("contiguous matrices"), std::string::npos);
  EXPECT_NE(
      refusal("per_token_group_quant_int8", bf16({4, 64}), {{"group_size", 64}, {"rounding", EnumWord{"toward_zero"}}})
          .find("rounds toward_zero"),
      std::string::npos);
}

// The recorded calls of one family that an op of this provider computes.
TEST(EveryCudaKernel, GivesWhatVllmRecorded) {
  const auto context = cuda_context();
  for (const std::string& op : ops_of_cuda(*context)) context->priorities.set(op, {"cuda"});
  int passed = 0;
  for (const char* family : {"fused", "quant_kernels", "ir_ops"}) {
    const std::string path = fmt::format("{}/ops/{}", WEFT_TEST_DATA, family);
    const auto manifest = nlohmann::ordered_json::parse(read_file(path + ".manifest.json", 64u << 20));
    const MappedFile file(path + ".safetensors");
    std::map<std::string, SafetensorsTensor> stored;
    for (const SafetensorsTensor& tensor : Safetensors::parse(file.bytes(), file.path()).tensors)
      stored.emplace(tensor.name, tensor);
    for (const auto& entry : manifest.at("cases")) {
      const std::string op = entry.at("op"), name = entry.at("case");
      const auto tensors = [&](const char* side, const nlohmann::ordered_json& described) {
        RecordedTensors found;
        for (const auto& [key, facts] : described.items()) {
          const SafetensorsTensor& tensor = stored.at(name + "/" + side + "/" + key);
          const Meta meta = Meta::tensor(dtype_of_torch(facts.at("dtype").get<std::string>()),
                                         Shape(tensor.shape.begin(), tensor.shape.end()));
          found.emplace_back(key, Tensor::from_bytes(meta, file.bytes().data() + tensor.offset));
        }
        return found;
      };
      if (op == "gelu_and_mul_sparse" || op == "gemma_rms_norm") continue;
      const RecordedTensors wanted = tensors("out", entry.at("outputs"));
      const RecordedCall call{op, name, tensors("in", entry.at("inputs")), wanted, entry.at("attributes")};
      const std::vector<Tensor> came = run_recorded(call, *context, "cuda");
      EXPECT_EQ(recorded_difference(comparable(op, wanted), came, entry,
                                    manifest.value("reasons", nlohmann::ordered_json::array()))
                    .text,
                "")
          << name;
      ++passed;
    }
  }
  EXPECT_GE(passed, 300);
}

}  // namespace weft::every_cuda_kernel_test
