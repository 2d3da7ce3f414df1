#pragma once

// Configs of a tiny model, as config.json and as GGUF metadata, for tests of their readers.

#include <string>

#include <nlohmann/json.hpp>

#include "builtin/models.h"
#include "io/model_config.h"
#include "tests/io/gguf_bytes.h"
#include "tests/thrown_message.h"

namespace weft::tiny_config {

using nlohmann::json;
using testing::as_bytes;
using testing::GgufBytes;

inline json tiny_json() {
  return json::parse(R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
    "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "vocab_size": 48, "max_position_embeddings": 128,
    "tie_word_embeddings": true, "hidden_act": "silu", "torch_dtype": "bfloat16", "bos_token_id": 1,
    "eos_token_id": [7, 2, 7], "pad_token_id": null})");
}

inline const ArchitectureFacts& facts_of(const std::string& architecture) {
  static const ModelRegistry models = make_model_registry();
  return models.find(architecture, "test").facts;
}

inline ModelConfig read(const json& config) {
  const auto& type = config["model_type"];
  const bool is_known = type.is_string() && type != "";
  return model_config_from_json(config.dump(), "config.json",
                                is_known ? facts_of(type.get<std::string>()) : ArchitectureFacts());
}

// The refusal of the tiny config after one key got another value.
inline std::string refusal(const std::string& key, const json& value) {
  auto config = tiny_json();
  config[key] = value;
  return message_of([&] { read(config); });
}

struct Parsed {
  std::string bytes;
  Gguf gguf;
  explicit Parsed(const GgufBytes& file) : bytes(file.bytes()), gguf(Gguf::parse(as_bytes(bytes), "model.gguf")) {}
};

inline ModelConfig read(const GgufBytes& file) {
  const Parsed parsed(file);
  const auto architecture = parsed.gguf.find_text("general.architecture");
  return model_config_from_gguf(parsed.gguf, architecture ? facts_of(std::string(*architecture)) : ArchitectureFacts());
}

// A tiny model's metadata without one key, so that a test can put another value there.
inline GgufBytes without(std::string_view left_out, const std::string& architecture = "llama") {
  GgufBytes file;
  const auto u32 = [&](const char* name, std::uint32_t value) {
    if (const std::string key = architecture + "." + name; key != left_out) file.u32(key, value);
  };
  file.text("general.architecture", architecture);
  u32("block_count", 2);
  u32("context_length", 128);
  u32("embedding_length", 64);
  u32("feed_forward_length", 96);
  u32("attention.head_count", 4);
  u32("attention.head_count_kv", 2);
  u32("vocab_size", 48);
  const std::string epsilon = architecture + ".attention.layer_norm_rms_epsilon";
  if (left_out != epsilon) file.f32(epsilon, 1e-5F);
  return file;
}

}  // namespace weft::tiny_config
