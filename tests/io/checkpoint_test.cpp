#include "io/checkpoint.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/io/checkpoint_parts.h"
#include "tests/thrown_message.h"

namespace weft::checkpoint_test {

using testing::GgufBytes;
using testing::raw;
using namespace checkpoint_parts;

void expect_refused(const std::string& path, std::string_view words) {
  const auto message = message_of([&] { Checkpoint::open(path); });
  EXPECT_NE(message.find(words), std::string::npos) << "wanted: " << words << "\n  came: " << message;
}

TEST(Checkpoint, OpensAGgufFile) {
  const TemporaryFolder folder;
  const auto path = folder / "tiny.gguf";
  write(path, tiny_gguf().bytes());
  const auto checkpoint = Checkpoint::open(path);
  EXPECT_TRUE(checkpoint.is_gguf());
  EXPECT_EQ(checkpoint.path(), path);
  EXPECT_EQ(checkpoint.file_bytes(), static_cast<std::int64_t>(std::filesystem::file_size(path)));
  EXPECT_EQ(checkpoint.architecture(), "llama");
  EXPECT_EQ(checkpoint.config({}).hidden_size, 64);
  EXPECT_EQ(checkpoint.gguf().text("tokenizer.ggml.model"), "gpt2");
  EXPECT_EQ(checkpoint.generation_config().temperature, std::nullopt);
  ASSERT_EQ(checkpoint.tensors().size(), 2U);
  EXPECT_EQ(checkpoint.tensors()[0].name, "norm");
  EXPECT_EQ(checkpoint.tensor("norm").meta, Meta::tensor(DType::f32, {2, 3}));
  EXPECT_EQ(first_of(checkpoint.tensor("norm")), 10);
  EXPECT_EQ(checkpoint.tensor("weight").meta, Meta::tensor(DType::q4_1, {2, 32}));
  EXPECT_EQ(std::memcmp(checkpoint.tensor("weight").data(), std::string(40, 'w').data(), 40), 0);
  EXPECT_EQ(checkpoint.find("bias"), nullptr);
  EXPECT_EQ(message_of([&] { checkpoint.tensor("bias"); }),
            "[" + path + "] wanted tensor bias, but it is not among the 2 there");
}

TEST(Checkpoint, KeepsTheFileMappedForItsTensors) {
  const TemporaryFolder folder;
  write(folder / "tiny.gguf", tiny_gguf().bytes());
  Tensor tensor;
  {
    const auto checkpoint = Checkpoint::open(folder / "tiny.gguf");
    tensor = checkpoint.tensor("norm");
    checkpoint.will_need();
    checkpoint.drop_pages(*checkpoint.find("norm"));
    checkpoint.drop_pages();
  }
  EXPECT_EQ(first_of(tensor), 10);
}

TEST(Checkpoint, OpensAFolderWithOneFile) {
  const Folder folder;
  folder.add("model.safetensors", {counted("model.norm.weight", 1), counted("lm_head.weight", 7)});
  folder.add("generation_config.json", R"({"do_sample": true, "temperature": 0.6, "top_p": 0.9, "top_k": 40,
      "eos_token_id": [5, 2]})");
  const auto checkpoint = Checkpoint::open(folder.path());
  EXPECT_FALSE(checkpoint.is_gguf());
  EXPECT_EQ(checkpoint.architecture(), "llama");
  EXPECT_EQ(checkpoint.config({}).architecture_class, "LlamaForCausalLM");
  EXPECT_EQ(checkpoint.config({}).head_dim, 4);
  EXPECT_EQ(checkpoint.tensors().size(), 2U);
  EXPECT_EQ(checkpoint.tensor("model.norm.weight").meta, Meta::tensor(DType::f32, {2, 3}));
  EXPECT_EQ(first_of(checkpoint.tensor("model.norm.weight")), 1);
  EXPECT_EQ(first_of(checkpoint.tensor("lm_head.weight")), 7);
  const auto generation = checkpoint.generation_config();
  EXPECT_EQ(generation.do_sample, true);
  EXPECT_EQ(generation.temperature, 0.6);
  EXPECT_EQ(generation.top_p, 0.9);
  EXPECT_EQ(generation.top_k, 40);
  EXPECT_EQ(generation.min_p, std::nullopt);
  EXPECT_EQ(generation.eos_token_ids, (std::vector<std::int64_t>{5, 2}));
  EXPECT_THROW(checkpoint.gguf(), InternalError);
}

TEST(Checkpoint, SaysWhichWeightsOfAFolderAreRead) {
  const Folder folder;
  folder.add("model.safetensors", {counted("a", 1)});
  EXPECT_TRUE(Checkpoint::open(folder.path()).notes().empty());
  folder.add("model.safetensors.index.json", R"({"weight_map": {"b": "other.safetensors"}})");
  const auto checkpoint = Checkpoint::open(folder.path());
  EXPECT_NE(checkpoint.find("a"), nullptr);
  ASSERT_EQ(checkpoint.notes().size(), 1U);
  EXPECT_NE(checkpoint.notes()[0].find("model.safetensors is read"), std::string::npos);
  folder.add("model.safetensors.index.json", R"({"weight_map": {"a": "model.safetensors"}})");
  EXPECT_TRUE(Checkpoint::open(folder.path()).notes().empty());
}

// Tensors a and b in one, c in another.
void add_several_files(const Folder& folder) {
  folder.add("model-1.safetensors", {counted("a", 1), counted("b", 2)});
  folder.add("model-2.safetensors", {counted("c", 3)});
  folder.add("model.safetensors.index.json",
             R"({"weight_map": {"a": "model-1.safetensors", "b": "model-1.safetensors", "c": "model-2.safetensors"}})");
}

TEST(Checkpoint, OpensAFolderWithSeveralFiles) {
  const Folder folder;
  add_several_files(folder);
  const auto checkpoint = Checkpoint::open(folder.path());
  EXPECT_EQ(checkpoint.tensors().size(), 3U);
  EXPECT_EQ(first_of(checkpoint.tensor("a")), 1);
  EXPECT_EQ(first_of(checkpoint.tensor("c")), 3);
  EXPECT_EQ(checkpoint.find("c")->file, folder / "model-2.safetensors");
}

// The files of a checkpoint, one after another in one file, by their names.
std::map<std::string, FilePart> write_parts(const Checkpoint& checkpoint, const std::string& path) {
  std::map<std::string, FilePart> parts;
  std::string bytes;
  for (const ModelFile& file : checkpoint.all_files()) {
    bytes.resize((bytes.size() + 63) / 64 * 64);
    parts[file.name] = {bytes.size(), file.bytes.size()};
    bytes.append(reinterpret_cast<const char*>(file.bytes.data()), file.bytes.size());
  }
  write(path, bytes);
  return parts;
}

TEST(Checkpoint, OfPartsOfAFileIsThatOfTheFolder) {
  const Folder folder;
  add_several_files(folder);
  folder.add("tokenizer.json", kTokenizer);
  folder.add("chat_template.jinja", "{{ messages }}");
  folder.add("generation_config.json", R"({"temperature": 0.6})");
  folder.add("pytorch_model.bin", "which nobody reads");
  const auto checkpoint = Checkpoint::open(folder.path());
  const TemporaryFolder elsewhere;
  const auto names = write_parts(checkpoint, elsewhere / "whole");
  EXPECT_EQ(names.size(), 7U);
  const auto parts = Checkpoint::open_parts(elsewhere / "whole", names);
  EXPECT_FALSE(parts.is_gguf());
  EXPECT_EQ(parts.path(), elsewhere / "whole");
  EXPECT_EQ(parts.files(), checkpoint.files());
  EXPECT_EQ(parts.file_bytes(), checkpoint.file_bytes());
  EXPECT_EQ(parts.tensors().size(), 3U);
  EXPECT_EQ(first_of(parts.tensor("c")), 3);
  EXPECT_EQ(parts.find("c")->file, elsewhere / "whole/model-2.safetensors");
  EXPECT_EQ(parts.vocabulary().tokens, checkpoint.vocabulary().tokens);
  EXPECT_EQ(parts.vocabulary().eos, 5);
  EXPECT_EQ(parts.chat_template(), "{{ messages }}");
  EXPECT_EQ(parts.generation_config().temperature, 0.6);
  parts.will_need();
  parts.drop_pages(*parts.find("b"));
  parts.drop_pages();
  EXPECT_EQ(first_of(parts.tensor("b")), 2);
  auto fewer = names;
  fewer.erase("model-2.safetensors");
  EXPECT_NE(message_of([&] { Checkpoint::open_parts(elsewhere / "whole", fewer); }).find("model-2.safetensors"),
            std::string::npos);
}

std::vector<std::string> names_of(const std::vector<CheckpointFile>& files) {
  std::vector<std::string> names;
  for (const CheckpointFile& file : files) names.push_back(file.name);
  return names;
}

TEST(Checkpoint, TheFileOfItsQuantizationIsAmongItsFiles) {
  const Folder folder;
  folder.add("model.safetensors", {counted("a", 1)});
  folder.add("hf_quant_config.json", R"({"quantization": {"quant_algo": "FP8"}})");
  const auto checkpoint = Checkpoint::open(folder.path());
  const auto files = checkpoint.files();
  EXPECT_EQ(names_of(files), (std::vector<std::string>{"config.json", "hf_quant_config.json", "model.safetensors"}));
  const auto all = checkpoint.all_files();
  ASSERT_EQ(all.size(), files.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    EXPECT_EQ(all[i].name, files[i].name);
    EXPECT_EQ(static_cast<std::int64_t>(all[i].bytes.size()), files[i].bytes) << files[i].name;
    EXPECT_EQ(hash_bytes(all[i].bytes), files[i].hash) << files[i].name;
  }
  const auto texts = checkpoint.text_names();
  EXPECT_EQ(std::count(texts.begin(), texts.end(), "hf_quant_config.json"), 0) << "quantize writes a config of its own";
  const TemporaryFolder elsewhere;
  const auto parts = Checkpoint::open_parts(elsewhere / "whole", write_parts(checkpoint, elsewhere / "whole"));
  EXPECT_EQ(parts.files(), files);
  ASSERT_TRUE(parts.config({}).quantization.has_value());
  EXPECT_TRUE(parts.config({}).quantization->static_input);
  folder.add("hf_quant_config.json", R"({"quantization": {"quant_algo": "FP8", "exclude_modules": ["lm_head"]}})");
  EXPECT_NE(Checkpoint::open(folder.path()).files(), files);

  const std::string config = kConfig;
  folder.add("config.json",
             config.substr(0, config.size() - 1) + R"(, "quantization_config": {"quant_method": "fp8"}})");
  EXPECT_EQ(names_of(Checkpoint::open(folder.path()).files()),
            (std::vector<std::string>{"config.json", "model.safetensors"}))
      << "the other file is not read";
}

// As editors on Windows write it.
TEST(Checkpoint, AByteOrderMarkBeforeJsonIsSkipped) {
  const std::string mark = "\xef\xbb\xbf";
  const Folder plain, marked;
  for (const Folder* folder : {&plain, &marked}) {
    const std::string before = folder == &marked ? mark : "";
    folder->add("config.json", before + kConfig);
    folder->add("tokenizer.json", before + kTokenizer);
    folder->add("tokenizer_config.json", before + R"({"pad_token": "c", "chat_template": "T"})");
    folder->add("generation_config.json", before + R"({"temperature": 0.6, "eos_token_id": [2, 5]})");
    folder->add("hf_quant_config.json", before + R"({"quantization": {"quant_algo": "FP8"}})");
    folder->add("one.safetensors", {counted("a", 1)});
    folder->add("model.safetensors.index.json", before + R"({"weight_map": {"a": "one.safetensors"}})");
  }
  const auto wanted = Checkpoint::open(plain.path()), checkpoint = Checkpoint::open(marked.path());
  EXPECT_EQ(checkpoint.config({}).hidden_size, wanted.config({}).hidden_size);
  EXPECT_TRUE(checkpoint.config({}).quantization.has_value());
  EXPECT_EQ(first_of(checkpoint.tensor("a")), 1);
  const Vocabulary vocabulary = checkpoint.vocabulary();
  EXPECT_EQ(vocabulary.tokens, wanted.vocabulary().tokens);
  EXPECT_EQ(vocabulary.padding, 2);
  EXPECT_EQ(vocabulary.end_of_generation, (std::vector<int>{2, 5}));
  EXPECT_EQ(checkpoint.generation_config().temperature, 0.6);
  EXPECT_EQ(checkpoint.chat_template(), "T");
  marked.add("tokenizer.json", mark + mark + kTokenizer);
  EXPECT_NE(message_of([&] { checkpoint.vocabulary(); }), "") << "there is one mark at most";
}

TEST(Checkpoint, OfAPartOfAFileIsThatOfTheGgufFile) {
  const TemporaryFolder folder;
  write(folder / "tiny.gguf", tiny_gguf().bytes());
  const auto checkpoint = Checkpoint::open(folder / "tiny.gguf");
  const auto part = Checkpoint::open_parts(folder / "whole", write_parts(checkpoint, folder / "whole"));
  EXPECT_TRUE(part.is_gguf());
  EXPECT_EQ(part.files(), checkpoint.files());
  EXPECT_EQ(part.files()[0].name, "tiny.gguf");
  EXPECT_EQ(first_of(part.tensor("norm")), 10);
  EXPECT_EQ(part.chat_template(), "{{ messages }}");
}

TEST(Checkpoint, RefusesAnIndexThatDoesNotFitItsFiles) {
  const Folder folder;
  const auto index = [&](const std::string& map) {
    folder.add("model.safetensors.index.json", R"({"weight_map": )" + map + "}");
  };
  folder.add("one.safetensors", {counted("a", 1), counted("b", 2)});
  folder.add("two.safetensors", {counted("c", 3)});
  folder.add("three.safetensors", {counted("c", 3)});
  index(R"({"a": "one.safetensors", "d": "two.safetensors"})");
  expect_refused(folder.path(), "the index has tensor d in two.safetensors, but it is in none of the files");
  index(R"({"a": "two.safetensors", "b": "one.safetensors"})");
  expect_refused(folder.path(), "the index has tensor a in two.safetensors, but it is in ");
  index(R"({"a": "one.safetensors", "c": "two.safetensors", "x": "three.safetensors"})");
  expect_refused(folder.path(), "tensor c is also in ");
  index(R"({"a": "four.safetensors"})");
  expect_refused(folder.path(), "four.safetensors");
}

TEST(Checkpoint, CopiesATensorWhoseAddressItsElementsCannotBeReadFrom) {
  const Folder folder;
  const std::string header = R"({"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                             R"("y":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})";
  folder.add("model.safetensors", raw<std::uint64_t>(header.size()) + header + "x" + raw(2.5F));
  const auto checkpoint = Checkpoint::open(folder.path());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(checkpoint.tensor("y").data()) % 4, 0U);
  EXPECT_EQ(first_of(checkpoint.tensor("y")), 2.5F);
  checkpoint.drop_pages(*checkpoint.find("y"));
}

TEST(Checkpoint, NamesWhatIsMissing) {
  const TemporaryFolder empty;
  expect_refused(empty / "nothing", "nothing] wanted a GGUF file or a model folder, but there is nothing");
  expect_refused(empty.path(), "wanted a folder with config.json, but it has none");
  write(empty / "model.Q4.gguf", tiny_gguf().bytes());
  expect_refused(empty.path(), "; name the file model.Q4.gguf itself to use it");
  write(empty / "nothing.gguf", "");
  expect_refused(empty / "nothing.gguf", "empty");
  write(empty / "text.gguf", "hello");
  expect_refused(empty / "text.gguf", "does not begin with GGUF");
  write(empty / "model.safetensors", "hello");
  expect_refused(empty / "model.safetensors", "name the folder that holds this file");

  const Folder folder;
  expect_refused(folder.path(), "wanted a folder with model.safetensors or pytorch_model.bin, or an index");
  folder.add("consolidated.00.pth", "x");
  expect_refused(folder.path(), "; consolidated.00.pth is in a format that is not read");
  folder.add("pytorch_model-00001-of-00002.bin", "x");
  expect_refused(folder.path(), "; pytorch_model-00001-of-00002.bin is one of several files, whose index is missing");
  folder.add("model.safetensors", {counted("a", 1)});
  EXPECT_EQ(message_of([&] { Checkpoint::open(folder.path()); }), "");
  EXPECT_NE(message_of([&] { Checkpoint::open(folder.path()).vocabulary(); }).find("tokenizer.json"),
            std::string::npos);
  folder.add("config.json", "{}");
  expect_refused(folder.path(), "config.json] wanted model_type");
}

TEST(Checkpoint, OpensAnArchitectureItDoesNotKnow) {
  const TemporaryFolder folder;
  write(folder / "m.gguf", GgufBytes().text("general.architecture", "mamba").bytes());
  const auto checkpoint = Checkpoint::open(folder / "m.gguf");
  EXPECT_EQ(checkpoint.architecture(), "mamba");
  const auto message = message_of([&] { checkpoint.config({}); });
  EXPECT_NE(message.find("mamba.embedding_length"), std::string::npos);
}

TEST(Checkpoint, OfADummyFolderOnlyTheConfigIsRead) {
  const Folder folder;
  folder.add("model.safetensors", "is not looked at");
  const auto describe = [](const Checkpoint& config) {
    EXPECT_EQ(config.config({}).hidden_size, 8);
    EXPECT_TRUE(config.tensors().empty());
    return std::vector<NamedMeta>{{"weight", Meta::tensor(DType::bf16, {1000, 1000})},
                                  {"norm", Meta::tensor(DType::f32, {8})},
                                  {"scale", Meta::tensor(DType::f32, {1})}};
  };
  const auto checkpoint = Checkpoint::open_dummy(folder / "", describe);
  EXPECT_TRUE(checkpoint.is_dummy());
  EXPECT_FALSE(checkpoint.has_vocabulary());
  EXPECT_EQ(checkpoint.file_bytes(), 0);
  EXPECT_EQ(checkpoint.tensor("weight").meta, Meta::tensor(DType::bf16, {1000, 1000}));
  EXPECT_EQ(checkpoint.tensor("weight").storage, checkpoint.tensor("norm").storage);
  EXPECT_EQ(checkpoint.tensor("weight").data()[1'999'999], std::byte{0});
  EXPECT_EQ(first_of(checkpoint.tensor("scale")), 1);
  folder.add("vocab.txt", "");
  EXPECT_TRUE(Checkpoint::open_dummy(folder / "", describe).has_vocabulary());
  std::filesystem::remove(folder / "vocab.txt");
  folder.add("tokenizer.json", kTokenizer);
  EXPECT_TRUE(Checkpoint::open_dummy(folder / "", describe).has_vocabulary());
  EXPECT_FALSE(message_of([&] { Checkpoint::open(folder / ""); }).empty());
}

// The divisor of the frequencies of positions is no weight.
TEST(Checkpoint, OfADummyFileTheTypesAndTheFrequenciesAreRead) {
  const TemporaryFolder folder;
  auto file = tiny_gguf();
  write(folder / "m.gguf", file.tensor("rope_freqs.weight", {1}, testing::kGgmlF32, raw(8.0F)).bytes());
  const auto checkpoint =
      Checkpoint::open_dummy(folder / "m.gguf", [](const Checkpoint&) { return std::vector<NamedMeta>(); });
  EXPECT_TRUE(checkpoint.is_dummy());
  EXPECT_TRUE(checkpoint.has_vocabulary());
  EXPECT_EQ(checkpoint.tensor("norm").meta, Meta::tensor(DType::f32, {2, 3}));
  EXPECT_EQ(first_of(checkpoint.tensor("norm")), 0);
  EXPECT_EQ(checkpoint.tensor("weight").data()[39], std::byte{0});
  EXPECT_EQ(first_of(checkpoint.tensor("rope_freqs.weight")), 8);
}

TEST(Checkpoint, RefusesAFileCutInsideItsTensors) {
  const TemporaryFolder folder;
  const auto bytes = tiny_gguf().bytes();
  for (std::size_t size = bytes.size() - 100; size < bytes.size() - 24; size += 10) {
    write(folder / "cut.gguf", bytes.substr(0, size));
    expect_refused(folder / "cut.gguf", "is it complete?");
  }
}

}  // namespace weft::checkpoint_test
