#include "quantize/quantize_checkpoint.h"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "builtin/models.h"
#include "io/quantized_weight.h"
#include "io/safetensors_writer.h"
#include "quantize/weight_codes.h"
#include "tensor/convert.h"
#include "tests/sample_checkpoint.h"
#include "tests/thrown_message.h"

namespace weft::quantize_checkpoint_test {

class QuantizeCheckpoint : public ::testing::Test {
 protected:
  const ModelDefinition model_ = make_model_registry().find("llama", "test");
  const SampleCheckpoint sample_{model_};
  const TemporaryFolder folder_;
  const Checkpoint source_ = Checkpoint::open(sample_.write_folder(folder_, "source", DType::bf16));
  ThreadPool threads_{2};
};

TEST_F(QuantizeCheckpoint, SharesManyWeightsOutOverFiles) {
  QuantizeRecipe recipe{.format = NumberFormat::int8};
  const QuantizeSummary one = quantize_checkpoint(source_, model_, recipe, folder_ / "one", threads_);
  recipe.file_bytes = 40'000;
  const QuantizeSummary many = quantize_checkpoint(source_, model_, recipe, folder_ / "many", threads_);
  EXPECT_EQ(one.files, std::vector<std::string>{"model.safetensors"});
  EXPECT_GT(many.files.size(), 2u);
  EXPECT_EQ(one.quantized, 14);
  EXPECT_EQ(many.quantized, one.quantized);
  EXPECT_EQ(many.bytes, one.bytes);
  const Checkpoint a = Checkpoint::open(folder_ / "one"), b = Checkpoint::open(folder_ / "many");
  ASSERT_EQ(a.tensors().size(), b.tensors().size());
  for (const TensorEntry& entry : a.tensors()) {
    const Tensor& other = b.tensor(entry.name);
    ASSERT_EQ(other.meta, entry.tensor.meta) << entry.name;
    EXPECT_EQ(std::memcmp(other.data(), entry.tensor.data(), static_cast<std::size_t>(other.meta.bytes().number())), 0);
  }
}

// A reader would mix the files of both: weights of one model, the chat template and sampling of the other.
TEST_F(QuantizeCheckpoint, LeavesAFolderThatHasAModelAsItIs) {
  std::ofstream(folder_ / "source/chat_template.jinja") << "template of the first";
  std::ofstream(folder_ / "source/generation_config.json") << R"({"temperature": 0.5})";
  const std::string out = folder_ / "out";
  quantize_checkpoint(source_, model_, {}, out, threads_);
  const auto contents = [&] {
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(out))
      files[entry.path().filename()] = read_file(entry.path(), 1 << 24);
    return files;
  };
  const std::map<std::string, std::string> first = contents();
  ASSERT_EQ(first.at("chat_template.jinja"), "template of the first");
  ASSERT_EQ(first.at("generation_config.json"), R"({"temperature": 0.5})");
  const std::string other = SampleCheckpoint(model_, {}, 2).write_folder(folder_, "other", DType::bf16);
  for (const QuantizeRecipe& recipe : {QuantizeRecipe{}, QuantizeRecipe{.format = NumberFormat::int8}}) {
    const std::string message =
        message_of([&] { quantize_checkpoint(Checkpoint::open(other), model_, recipe, out, threads_); });
    EXPECT_EQ(missing_part(message, {"[-o] must be a new or empty folder", out, "\"chat_template.jinja\""}), "");
    EXPECT_EQ(contents(), first);
  }
}

// ModelOpt's file would be read as the quantization of the new weights.
TEST_F(QuantizeCheckpoint, RefusesAFolderWithAnyFile) {
  std::filesystem::create_directory(folder_ / "out");
  quantize_checkpoint(source_, model_, {}, folder_ / "out", threads_);  // an empty folder is as good as none
  Checkpoint::open(folder_ / "out");
  std::filesystem::create_directory(folder_ / "other");
  std::ofstream(folder_ / "other/hf_quant_config.json") << R"({"quantization": {"quant_algo": "FP8"}})";
  const std::string message =
      message_of([&] { quantize_checkpoint(source_, model_, {}, folder_ / "other", threads_); });
  EXPECT_NE(message.find("\"hf_quant_config.json\""), std::string::npos) << message;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "other/config.json"));
  EXPECT_THROW(quantize_checkpoint(source_, model_, {}, source_.path(), threads_), UserError);
}

TEST_F(QuantizeCheckpoint, SaysWhatItLeavesOut) {
  SampleCheckpoint sample = sample_;
  sample.add("model.layers.0.self_attn.rotary_emb.inv_freq", "x", {8});
  const auto source = [&] { return Checkpoint::open(sample.write_folder(folder_, "more", DType::bf16)); };
  const QuantizeSummary summary = quantize_checkpoint(source(), model_, {}, folder_ / "a", threads_);
  ASSERT_EQ(summary.notes.size(), 1U);
  EXPECT_NE(summary.notes[0].find("rotary_emb.inv_freq is not read"), std::string::npos);
  sample.add("model.layers.0.self_attn.o_proj.bias", "y", {64});
  std::filesystem::remove_all(folder_ / "more");
  QuantizeRecipe recipe;
  EXPECT_THROW(quantize_checkpoint(source(), model_, recipe, folder_ / "b", threads_), UserError);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "b"));
}

TEST_F(QuantizeCheckpoint, RefusesAWindowThatTheFolderCouldNotSay) {
  testing::GgufBytes file = sample_.gguf(DType::f32);
  file.u32("llama.attention.sliding_window", 8);
  std::ofstream(folder_ / "m.gguf", std::ios::binary) << file.bytes();
  EXPECT_NE(message_of([&] {
              quantize_checkpoint(Checkpoint::open(folder_ / "m.gguf"), model_, {}, folder_ / "w", threads_);
            }).find("a sliding window of 8"),
            std::string::npos);
}

TEST_F(QuantizeCheckpoint, ItsWeightsAreThoseOfTheCheckpointToHalfAStep) {
  quantize_checkpoint(source_, model_, {.format = NumberFormat::int8}, folder_ / "q", threads_);
  const Checkpoint quantized = Checkpoint::open(folder_ / "q");
  const QuantizationConfig config = quantized.config(model_.facts).quantization.value();
  int weights = 0;
  for (const auto& [name, weight] : sample_.weights()) {
    if (weight.meta.rank() != 2 || !config.quantizes(name)) continue;
    check_quantized_weight(quantized, config, name, weight.meta.shape[0].number(), weight.meta.shape[1].number());
    const Tensor numbers = dequantized_weight(quantized, config, name);
    const float* scales = quantized.tensor(quantized_names(config, name).scale).as<float>();
    const std::int64_t width = weight.meta.shape[1].number();
    for (std::int64_t i = 0; i < element_count(weight.meta.shape).number(); ++i)
      ASSERT_NEAR(numbers.as<float>()[i], weight.as<float>()[i], scales[i / width] * 0.5001F) << name;
    ++weights;
  }
  EXPECT_EQ(weights, 14);
}

// What is read back and written again has the same codes and scales: each group has the largest code of its magnitude.
TEST_F(QuantizeCheckpoint, ItsGroupsAreReadBack) {
  const QuantizeRecipe recipe{.format = NumberFormat::w4a16, .block = {1, 32}};
  quantize_checkpoint(source_, model_, recipe, folder_ / "q", threads_);
  const Checkpoint quantized = Checkpoint::open(folder_ / "q");
  const QuantizationConfig config = quantized.config(model_.facts).quantization.value();
  EXPECT_EQ(config.scheme, QuantizationScheme::grouped);
  model_.check_weights(quantized, quantized.config(model_.facts));
  int weights = 0;
  for (const auto& [name, weight] : sample_.weights()) {
    if (weight.meta.rank() != 2 || !config.quantizes(name)) continue;
    const CodesAndScales wanted = quantize_int4(weight, 32, threads_);
    const QuantizedNames names = quantized_names(config, name);
    const Tensor &codes = quantized.tensor(names.codes), &scales = quantized.tensor(names.scale);
    const Tensor numbers = dequantized_weight(quantized, config, name);
    for (std::int64_t i = 0; i < element_count(weight.meta.shape).number(); ++i) {
      const int code = static_cast<int>(wanted.codes.as<std::uint32_t>()[i / 8] >> i % 8 * 4 & 15) - 8;
      const float scale = load_float(DType::bf16, wanted.scales.data(), i / 32);
      ASSERT_EQ(numbers.as<float>()[i], static_cast<float>(code) * scale) << name << " " << i;
    }
    EXPECT_EQ(std::memcmp(codes.data(), wanted.codes.data(), static_cast<std::size_t>(codes.meta.bytes().number())), 0);
    EXPECT_EQ(std::memcmp(scales.data(), wanted.scales.data(), static_cast<std::size_t>(scales.meta.bytes().number())),
              0);
    ++weights;
  }
  EXPECT_EQ(weights, 14);
}

// Mixtral's files are those of Llama, and both DeepSeeks' are of one architecture, of two ages.
TEST(QuantizeMixtures, MakesTheFolderThatAGgufFileWasMadeFrom) {
  const ModelRegistry models = make_model_registry();
  ThreadPool threads(2);
  for (const char* name : {"mixtral", "deepseek_v2", "deepseek_v3"}) {
    const ModelDefinition& model = models.find(name, "test");
    const SampleCheckpoint sample(model);
    for (const GgufAge age : {GgufAge::current, GgufAge::early}) {
      SCOPED_TRACE(std::string(name) + (age == GgufAge::early ? ", early" : ""));
      const TemporaryFolder folder;
      const Checkpoint source = Checkpoint::open(sample.write_gguf(folder, "m.gguf", DType::f32, age));
      const ModelDefinition& written = models.find_for_folder(source);
      EXPECT_EQ(written.architectures, model.architectures);
      quantize_checkpoint(source, written, {}, folder / "w", threads);
      const Checkpoint checkpoint = Checkpoint::open(folder / "w");
      const ModelConfig config = checkpoint.config(model.facts), &wanted = sample.config();
      model.check_weights(checkpoint, config);
      EXPECT_EQ(config.architecture, name);
      EXPECT_EQ(config.head_dim, wanted.head_dim);
      EXPECT_EQ(config.attention_scale, wanted.attention_scale);
      EXPECT_EQ(config.experts->count, wanted.experts->count);
      EXPECT_EQ(config.experts->groups, wanted.experts->groups);
      EXPECT_EQ(config.experts->normalizes, wanted.experts->normalizes);
      EXPECT_EQ(checkpoint.tensors().size(), sample.weights().size());
      for (const auto& [weight, tensor] : sample.weights()) {
        const Tensor& came = checkpoint.tensor(weight);
        ASSERT_EQ(came.meta.shape, tensor.meta.shape) << weight;
        for (std::int64_t i = 0; i < element_count(came.meta.shape).number(); ++i)
          ASSERT_EQ(load_float(came.meta.dtype, came.data(), i), tensor.as<float>()[i]) << weight << " " << i;
      }
    }
  }
}

// What a folder has that the GGUF file of this model cannot give; "" if there is no such thing.
std::string missing_in_gguf(const ModelDefinition& model, const SampleCheckpoint& sample) {
  const ModelConfig& config = sample.config();
  const Json json = parse_json(sample.config_json());
  // Its key counts the rows before the first position, which a GGUF file does not.
  if (config.first_position_row > 0 && json.at("max_position_embeddings") != config.context_length)
    return "wanted the folder that it was made from";
  if (config.experts && model.facts.experts->is_merged_in_folders) return "wanted the folder that it was made from";
  // Rows of one weight for queries, keys and values would have to move.
  if (config.merges_query_key_value && model.facts.pairing_in_gguf != model.facts.pairing_in_folders)
    return "wanted the folder that it was made from";
  if (!model.facts.layer_numbers.empty()) return "wanted the folder that it was made from";  // these are tensors there
  if (config.rope.scaling.type == RopeScalingType::proportional) return "rope_freqs.weight";
  if (config.rope.scaling.type == RopeScalingType::longrope) return "rope_factors_long.weight";
  return "";
}

// The layouts of GGUF files are undone, and config.json is read as what it was.
TEST(QuantizeGguf, MakesTheFolderOfEveryModel) {
  const ModelRegistry models = make_model_registry();
  ThreadPool threads(2);
  for (const std::string& name : models.architectures()) {
    const ModelDefinition& model = models.find(name, "test");
    const SampleCheckpoint sample(model);
    SCOPED_TRACE(name);
    const TemporaryFolder folder;
    const Checkpoint source = Checkpoint::open(sample.write_gguf(folder, "m.gguf", DType::f32));
    const ModelDefinition& written = models.find_for_folder(source);
    if (written.architectures != model.architectures) continue;  // RoBERTa, whose GGUF files are those of BERT
    const auto quantize = [&] { quantize_checkpoint(source, written, {}, folder / "w", threads); };
    if (const std::string missing = missing_in_gguf(model, sample); !missing.empty()) {
      const std::string message = message_of(quantize);
      EXPECT_NE(message.find(missing), std::string::npos) << message;
      continue;
    }
    const std::string message = message_of(quantize);
    EXPECT_EQ(message, "");
    if (!message.empty()) continue;
    const Checkpoint checkpoint = Checkpoint::open(folder / "w");
    const ModelConfig config = checkpoint.config(written.facts), &wanted = sample.config();
    written.check_weights(checkpoint, config);
    EXPECT_EQ(config.is_recurrent, wanted.is_recurrent);
    EXPECT_EQ(config.halves, wanted.halves);
    EXPECT_EQ(config.recurrent.has_value(), wanted.recurrent.has_value());
    EXPECT_EQ(checkpoint.tensors().size(), sample.weights().size());
    for (const auto& [weight, tensor] : sample.weights()) {
      const Tensor& came = checkpoint.tensor(weight);
      ASSERT_EQ(came.meta.shape, tensor.meta.shape) << weight;
      for (std::int64_t i = 0; i < element_count(came.meta.shape).number(); ++i)
        ASSERT_EQ(load_float(came.meta.dtype, came.data(), i), tensor.as<float>()[i]) << weight << " " << i;
    }
  }
}

// Transformers, vLLM and others know the tensors by the names that the source has.
TEST_F(QuantizeCheckpoint, KeepsTheNamesOfAFolder) {
  const ModelRegistry models = make_model_registry();
  const auto written = [&](const ModelDefinition& model, const std::string& read, const std::string& stored) {
    const SampleCheckpoint sample(model);
    std::vector<NamedTensor> tensors;
    for (const auto& [name, tensor] : sample.weights()) {
      const bool is_renamed = name.starts_with(read);
      tensors.push_back({is_renamed ? stored + name.substr(read.size()) : name, tensor});
    }
    const TemporaryFolder folder;
    const std::string path = sample.write_folder(folder, "named", DType::f32);
    write_safetensors(path + "/model.safetensors", tensors);
    quantize_checkpoint(Checkpoint::open(path), model, {.format = NumberFormat::int8}, folder / "w", threads_);
    return read_file(folder / "w/model.safetensors", 1 << 24) + read_file(folder / "w/config.json", 1 << 20);
  };
  const std::string roberta = written(models.find("bert", "test"), "bert.", "roberta.");
  EXPECT_NE(roberta.find("\"roberta.encoder.layer.0.attention.self.query.weight\""), std::string::npos);
  EXPECT_NE(roberta.find("\"roberta.encoder.layer.0.attention.self.query.weight_scale\""), std::string::npos);
  EXPECT_EQ(roberta.find("\"bert."), std::string::npos);
  const std::string pythia = written(models.find("gpt_neox", "test"), "lm_head.", "embed_out.");
  EXPECT_NE(pythia.find("\"embed_out.weight\""), std::string::npos);
  EXPECT_NE(pythia.find("\"embed_out\""), std::string::npos) << "the module that is not quantized";
  EXPECT_EQ(pythia.find("lm_head"), std::string::npos);
}

TEST_F(QuantizeCheckpoint, NamesTheHeadOfAGgufFileAsFoldersDo) {
  const ModelDefinition model = make_model_registry().find("gpt_neox", "test");
  const std::string path = SampleCheckpoint(model).write_gguf(folder_, "m.gguf", DType::f32);
  quantize_checkpoint(Checkpoint::open(path), model, {}, folder_ / "w", threads_);
  EXPECT_NE(read_file(folder_ / "w/model.safetensors", 1 << 24).find("\"embed_out.weight\""), std::string::npos);
}

TEST_F(QuantizeCheckpoint, RefusesGroupsThatDoNotDivideAWeight) {
  const QuantizeRecipe recipe{.format = NumberFormat::w4a16, .block = {1, 128}};
  const std::string message =
      message_of([&] { quantize_checkpoint(source_, model_, recipe, folder_ / "q", threads_); });
  EXPECT_NE(message.find("[--group-size] 128"), std::string::npos) << message;
  EXPECT_NE(message.find("_proj.weight"), std::string::npos) << message;
}

// The names of the folder would be neither those of mlx-lm nor those of transformers.
TEST_F(QuantizeCheckpoint, RefusesFoldersOfMlxWithStacksOfTheirOwn) {
  const ModelRegistry models = make_model_registry();
  for (const char* name : {"mlx_gpt_oss", "mlx_deepseek_v3"}) {
    const Checkpoint checkpoint = Checkpoint::open(std::string(WEFT_TEST_DATA "/models/") + name);
    const std::string message =
        message_of([&] { quantize_checkpoint(checkpoint, models.find(checkpoint), {}, folder_ / "q", threads_); });
    EXPECT_NE(message.find("wanted the folder that it was made from"), std::string::npos) << name << ": " << message;
  }
}

TEST_F(QuantizeCheckpoint, WantsTheInputsOfEveryLayer) {
  const QuantizeRecipe recipe{.format = NumberFormat::nvfp4,
                              .inputs = {{{"model.layers.0.self_attn.o_proj.weight"}, 1.0F}},
                              .file_bytes = 1};  // a file for each weight: those before the layer are written
  const std::string message =
      message_of([&] { quantize_checkpoint(source_, model_, recipe, folder_ / "q/deep", threads_); });
  EXPECT_NE(message.find("wanted the inputs of "), std::string::npos) << message;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "q"));
}

}  // namespace weft::quantize_checkpoint_test
