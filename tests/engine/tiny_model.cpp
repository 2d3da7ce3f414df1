#include "tests/engine/tiny_model.h"

#include <cmath>
#include <filesystem>
#include <fstream>

#include "builtin/context.h"
#include "builtin/models.h"
#include "engine/open_checkpoint.h"
#include "ir/sample.h"
#include "tests/io/gguf_bytes.h"
#include "tests/io/small_vocabulary.h"

namespace weft {
namespace {

using testing::GgufBytes;

constexpr std::int64_t kWidth = 64, kFeedForward = 96, kKvWidth = 32;

std::string random_bytes(DType dtype, std::int64_t rows, std::int64_t columns, std::uint64_t seed,
                         Fill fill = Fill::normal) {
  const Tensor tensor = make_sample_tensor(SampleTensor("w", {rows, columns}, dtype, fill), dtype, seed);
  return {reinterpret_cast<const char*>(tensor.data()), static_cast<std::size_t>(tensor.meta.bytes().number())};
}

void add_matrix(GgufBytes& file, const std::string& name, std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  file.tensor(name, {static_cast<std::uint64_t>(columns), static_cast<std::uint64_t>(rows)}, testing::kGgmlQ4_1,
              random_bytes(DType::q4_1, rows, columns, seed));
}

void add_norm(GgufBytes& file, const std::string& name, std::uint64_t seed) {
  file.tensor(name, {kWidth}, testing::kGgmlF32, random_bytes(DType::f32, 1, kWidth, seed, Fill::positive));
}

// Returns the number of tokens.
std::int64_t add_vocabulary(GgufBytes& file, const std::vector<std::string>& added_tokens) {
  std::vector<std::string> tokens = small_vocabulary({}).tokens;
  std::vector<std::int32_t> kinds(tokens.size(), 1);
  tokens.push_back("<end>");
  kinds.push_back(3);
  for (const std::string& token : added_tokens) {
    tokens.push_back(token);
    kinds.push_back(4);
  }
  file.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "gpt-2");
  file.texts("tokenizer.ggml.tokens", tokens)
      .i32s("tokenizer.ggml.token_type", kinds)
      .texts("tokenizer.ggml.merges", {});
  file.u32("tokenizer.ggml.eos_token_id", 256);
  return std::ssize(tokens);
}

}  // namespace

std::string write_tiny_model(const TemporaryFolder& folder, std::uint64_t seed,
                             const std::vector<std::string>& added_tokens) {
  GgufBytes file;
  const std::int64_t vocabulary = add_vocabulary(file, added_tokens);
  file.text("general.architecture", "llama")
      .u32("llama.block_count", 2)
      .u32("llama.context_length", 128)
      .u32("llama.embedding_length", kWidth)
      .u32("llama.feed_forward_length", kFeedForward)
      .u32("llama.attention.head_count", 4)
      .u32("llama.attention.head_count_kv", 2)
      .f32("llama.attention.layer_norm_rms_epsilon", 1e-5F)
      .f32("llama.rope.freq_base", 10000.0F)
      .u32("llama.rope.dimension_count", 16)
      .u32("llama.vocab_size", static_cast<std::uint32_t>(vocabulary));
  file.tensor("token_embd.weight", {kWidth, static_cast<std::uint64_t>(vocabulary)}, testing::kGgmlQ8_0,
              random_bytes(DType::q8_0, vocabulary, kWidth, seed));
  for (int layer = 0; layer < 2; ++layer) {
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    const std::uint64_t s = seed * 100 + static_cast<std::uint64_t>(layer) * 10;
    add_norm(file, prefix + "attn_norm.weight", s + 1);
    add_matrix(file, prefix + "attn_q.weight", kWidth, kWidth, s + 2);
    add_matrix(file, prefix + "attn_k.weight", kKvWidth, kWidth, s + 3);
    add_matrix(file, prefix + "attn_v.weight", kKvWidth, kWidth, s + 4);
    add_matrix(file, prefix + "attn_output.weight", kWidth, kWidth, s + 5);
    add_norm(file, prefix + "ffn_norm.weight", s + 6);
    add_matrix(file, prefix + "ffn_gate.weight", kFeedForward, kWidth, s + 7);
    add_matrix(file, prefix + "ffn_up.weight", kFeedForward, kWidth, s + 8);
    add_matrix(file, prefix + "ffn_down.weight", kWidth, kFeedForward, s + 9);
  }
  add_norm(file, "output_norm.weight", seed + 7);
  const std::string path = folder / "tiny.gguf";
  std::ofstream(path, std::ios::binary) << file.bytes();
  return path;
}

std::string write_config_only(const TemporaryFolder& folder, const std::string& architecture,
                              const nlohmann::json& changes) {
  nlohmann::json config = nlohmann::json::parse(make_model_registry().find(architecture, "test").sample_config);
  config["model_type"] = architecture;
  config.update(changes);
  static int written = 0;
  const std::string path = folder / ("config-" + std::to_string(++written));
  std::filesystem::create_directory(path);
  std::ofstream(path + "/config.json") << config;
  return path;
}

std::unique_ptr<Engine> tiny_engine(const std::string& path,
                                    const std::vector<std::pair<std::string, std::string>>& given) {
  Options options;
  apply_environment(options, process_environment());
  for (const auto& [name, value] : given) set_option(options, name, value, "test");
  const ModelRegistry models = make_model_registry();
  return std::make_unique<Engine>(make_context(options), open_checkpoint(path, options, models), models);
}

std::vector<std::vector<float>> all_logits(Engine& engine, const std::vector<int>& ids) {
  std::vector<int> rows;
  for (std::size_t i = 0; i < ids.size(); ++i) rows.push_back(static_cast<int>(i));
  std::vector<std::vector<float>> logits;
  engine.score(ids, rows, [&](int, std::span<const float> row) { logits.emplace_back(row.begin(), row.end()); });
  return logits;
}

double logit_difference(const std::vector<std::vector<float>>& came, const std::vector<std::vector<float>>& wanted) {
  double squares = 0, all = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    for (std::size_t j = 0; j < wanted[i].size(); ++j) {
      const double d = static_cast<double>(came[i][j]) - static_cast<double>(wanted[i][j]);
      squares += d * d;
      all += static_cast<double>(wanted[i][j]) * static_cast<double>(wanted[i][j]);
    }
  return std::sqrt(squares / all);
}

std::vector<int> some_ids(int count, int seed) {
  std::vector<int> ids;
  for (int i = 0; i < count; ++i) ids.push_back((i * 37 + seed * 11) % 250);
  return ids;
}

}  // namespace weft
