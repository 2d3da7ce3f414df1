// A Hugging Face folder with a file that is missing, truncated, changed at one byte, or wrong in one fact.

#include <cstring>
#include <filesystem>
#include <iostream>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "tests/errors/tiny_files.h"

namespace weft::damaged_folder_test {

using nlohmann::json;

class DamagedFolder : public ::testing::Test {
 protected:
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  // Runs with one file's bytes replaced, and puts them back.
  ProgramRun run_with(const std::string& name, const std::string& bytes) const {
    const std::string good = read_bytes(file(name));
    write_bytes(file(name), bytes);
    ProgramRun run = complete_with(path_);
    write_bytes(file(name), good);
    return run;
  }
  void expect_refused(const std::string& name, const std::string& bytes, const std::string& part) const {
    EXPECT_EQ(breach_of_refusal(run_with(name, bytes), part), "") << bytes.substr(0, 300);
  }
  // A member of a JSON file set to another value.
  void expect_refused(const std::string& name, const json::json_pointer& at, const json& value,
                      const std::string& part) const {
    json changed = json::parse(read_bytes(file(name)));
    changed[at] = value;
    expect_refused(name, changed.dump(), part);
  }
  void cut(const std::string& name, std::size_t size) const {
    const std::string good = read_bytes(file(name));
    DamageCount counts;
    for (const std::size_t length : cuts(size))
      counts.add(run_with(name, good.substr(0, length)), fmt::format("{} cut at {}", name, length));
    counts.print("cuts of " + name);
    EXPECT_EQ(counts.refused(), 100);
  }

  const TemporaryFolder folder_;
  const SampleCheckpoint sample_ = tiny_checkpoint();
  const std::string path_ = sample_.write_folder(folder_, "model", DType::bf16);
};

std::size_t header_size(const std::string& safetensors) {
  std::uint64_t length = 0;
  std::memcpy(&length, safetensors.data(), sizeof(length));
  return sizeof(length) + length;
}

TEST_F(DamagedFolder, IsWholeToBeginWith) {
  const ProgramRun whole = complete_with(path_);
  EXPECT_EQ(whole.status, 0) << whole.err;
  EXPECT_EQ(whole.err, "");
}

TEST_F(DamagedFolder, NamesTheFileThatIsMissing) {
  for (const char* name : {"config.json", "tokenizer.json", "model.safetensors"}) {
    std::filesystem::rename(file(name), file("elsewhere"));
    EXPECT_EQ(breach_of_refusal(complete_with(path_), name), "");
    std::filesystem::create_directory(file(name));
    EXPECT_EQ(breach_of_refusal(complete_with(path_), name), "") << "a folder";
    std::filesystem::remove(file(name));
    std::filesystem::rename(file("elsewhere"), file(name));
  }
  EXPECT_EQ(breach_of_refusal(complete_with(folder_ / "nothing"), "nothing"), "");
  EXPECT_EQ(breach_of_refusal(complete_with(file("config.json")), "config.json"), "");
  EXPECT_EQ(breach_of_refusal(complete_with(file("config.json") + "/x"), "config.json"), "");
  EXPECT_EQ(breach_of_refusal(complete_with("/dev/null"), "/dev/null"), "");
  EXPECT_EQ(breach_of_refusal(complete_with(std::string(5000, 'x')), "xxx"), "");
}

TEST_F(DamagedFolder, IsRefusedWhereverAFileIsCut) {
  const std::string weights = read_bytes(file("model.safetensors"));
  cut("model.safetensors", header_size(weights));
  cut("config.json", read_bytes(file("config.json")).size());
  cut("tokenizer.json", read_bytes(file("tokenizer.json")).size());
  DamageCount data;
  for (const std::size_t size : cuts(weights.size() - header_size(weights)))
    data.add(run_with("model.safetensors", weights.substr(0, header_size(weights) + size)), fmt::format("{}", size));
  data.print("cuts in the data of model.safetensors");
  EXPECT_EQ(data.refused(), 100);
}

TEST_F(DamagedFolder, IsRefusedOrStillWorksWithAnyByteOfAHeaderFlipped) {
  for (const char* name : {"model.safetensors", "config.json", "tokenizer.json"}) {
    const std::string good = read_bytes(file(name));
    const std::size_t size = name == std::string("model.safetensors") ? header_size(good) : good.size();
    DamageCount flips;
    for (std::size_t at = 0; at < size; at += kDamageStep) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << at % 8));
      flips.add(run_with(name, bytes), fmt::format("{}: bit {} of byte {}", name, at % 8, at));
      if (HasFailure()) return;
    }
    flips.print(std::string("flipped bytes of ") + name);
    EXPECT_GT(flips.refused(), flips.runs() / 4);
  }
}

TEST_F(DamagedFolder, IsRefusedWithAbsurdNumbersInTheSafetensorsHeader) {
  const std::string good = read_bytes(file("model.safetensors")), data = good.substr(header_size(good));
  const json header = json::parse(good.substr(8, header_size(good) - 8));
  const auto refused = [&](const json& changed, const std::string& part) {
    const std::string text = changed.dump();
    std::string length(8, '\0');
    const std::uint64_t size = text.size();
    std::memcpy(length.data(), &size, sizeof(size));
    expect_refused("model.safetensors", length + text + data, part);
  };
  const std::string name = "model.norm.weight";
  const json absurd[] = {-1, 1e300, std::uint64_t{1} << 63, ~std::uint64_t{0}, std::int64_t{1} << 40, "1", nullptr};
  for (const json& number : absurd) {
    for (const char* at : {"/shape/0", "/data_offsets/0", "/data_offsets/1"}) {
      json changed = header;
      changed[name][json::json_pointer(at)] = number;
      refused(changed, "model.safetensors]");
    }
    json changed = header;
    changed[name]["shape"] = json::array({number, number});
    refused(changed, "model.safetensors]");
  }
  json changed = header;
  changed[name]["dtype"] = "F7";
  refused(changed, "F7");
  changed = header;
  changed[name]["dtype"] = "I16";
  refused(changed, name);
  changed[name] = 7;
  refused(changed, name);
  for (const std::uint64_t size : {~std::uint64_t{0}, std::uint64_t{1} << 62, std::uint64_t{1} << 33}) {
    std::string bytes = good;
    std::memcpy(bytes.data(), &size, sizeof(size));
    expect_refused("model.safetensors", bytes, "model.safetensors]");
  }
}

TEST_F(DamagedFolder, IsRefusedWithFactsOutOfBounds) {
  const json absurd[] = {-1, 0, 1e300, std::uint64_t{1} << 63, std::int64_t{1} << 40, "1", json::array(), 2.5};
  for (const char* name : {"hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
                           "num_key_value_heads", "max_position_embeddings", "vocab_size"})
    for (const json& value : absurd)
      expect_refused("config.json", json::json_pointer(std::string("/") + name), value, name);
  for (const json& value : {json(-1), json(1e300), json("x"), json::array()})
    for (const char* name : {"rms_norm_eps", "rope_theta"})
      expect_refused("config.json", json::json_pointer(std::string("/") + name), value, name);
  for (const json& value : {json("x"), json(2.5)})
    expect_refused("config.json", json::json_pointer("/eos_token_id"), value, "eos_token_id");
}

TEST_F(DamagedFolder, SaysOnceThatAnEndIsNoTokenAndRuns) {
  for (const int id : {-1, 9}) {
    json config = json::parse(read_bytes(file("config.json")));
    config["eos_token_id"] = id;
    const ProgramRun run = run_with("config.json", config.dump());
    EXPECT_EQ(run.status, 0) << run.err;
    const std::string said = "config.json] eos_token_id " + std::to_string(id) + " is left out";
    const std::size_t at = run.err.find(said);
    EXPECT_NE(at, std::string::npos) << run.err;
    EXPECT_EQ(run.err.find("is left out", at + said.size()), std::string::npos) << run.err;
  }
}

TEST_F(DamagedFolder, IsRefusedWithWhatIsUnknown) {
  const auto at = [](const char* text) { return json::json_pointer(text); };
  expect_refused("config.json", at("/model_type"), "rwkv7", "rwkv7");
  expect_refused("config.json", at("/hidden_act"), "sparkle", "sparkle");
  expect_refused("config.json", at("/torch_dtype"), "f7", "f7");
  expect_refused("config.json", at("/rope_scaling"), {{"rope_type", "sparkle"}, {"factor", 2.0}}, "sparkle");
  expect_refused("config.json", at("/quantization_config"), {{"quant_method", "sparkle"}}, "sparkle");
  expect_refused("tokenizer.json", at("/model/type"), "Sparkle", "Sparkle");
  expect_refused("tokenizer.json", at("/pre_tokenizer/type"), "Sparkle", "Sparkle");
  expect_refused("tokenizer.json", at("/normalizer"), {{"type", "Sparkle"}}, "Sparkle");
  expect_refused("tokenizer.json", at("/decoder/type"), "Sparkle", "Sparkle");
  expect_refused("tokenizer.json", at("/post_processor"), {{"type", "Sparkle"}}, "Sparkle");
}

TEST_F(DamagedFolder, NamesATensorThatIsMissingOrMisshapen) {
  int tried = 0;
  for (const auto& [name, tensor] : sample_.weights()) {
    SampleCheckpoint changed = sample_;
    changed.erase(name);
    EXPECT_EQ(breach_of_refusal(complete_with(changed.write_folder(folder_, "missing", DType::f32)), name), "");
    for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{7}, {32, 7}, {7, 32}, {2, 32, 32}}) {
      changed = sample_;
      changed.reshape(name, shape);
      const ProgramRun run = complete_with(changed.write_folder(folder_, "misshapen", DType::f32));
      EXPECT_EQ(breach_of_refusal(run, "tensor " + name), "");
      EXPECT_NE(run.err.find(shape_text(tensor.meta.shape)), std::string::npos) << run.err;
      EXPECT_NE(run.err.find(shape_text(Shape(shape.begin(), shape.end()))), std::string::npos) << run.err;
      ++tried;
    }
  }
  std::cout << "misshapen tensors: " << tried << "\n";
}

TEST_F(DamagedFolder, IsRefusedWithAnIndexThatDoesNotFit) {
  const std::string sharded = sample_.write_folder(folder_, "sharded", DType::f32, 3);
  EXPECT_EQ(complete_with(sharded).status, 0);
  const std::string index = sharded + "/model.safetensors.index.json", good = read_bytes(index);
  DamageCount counts;
  for (const std::size_t length : cuts(good.size())) {
    write_bytes(index, good.substr(0, length));
    counts.add(complete_with(sharded), fmt::format("{}", length));
  }
  counts.print("cuts of the index");
  EXPECT_EQ(counts.refused(), 100);
  for (const char* name : {"../model/model.safetensors", "/etc/passwd", "..", ""}) {
    json changed = json::parse(good);
    changed["weight_map"]["model.norm.weight"] = name;
    write_bytes(index, changed.dump());
    EXPECT_EQ(breach_of_refusal(complete_with(sharded)), "") << name;
  }
  write_bytes(index, good);
  std::filesystem::remove(sharded + "/model-1.safetensors");
  EXPECT_EQ(breach_of_refusal(complete_with(sharded), "model-1.safetensors"), "");
}

}  // namespace weft::damaged_folder_test
