#pragma once

// A small checkpoint as a folder and as a GGUF file, for tests of Checkpoint.

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "io/checkpoint.h"
#include "io/safetensors_writer.h"
#include "tests/base/temporary_folder.h"
#include "tests/io/gguf_bytes.h"

namespace weft::checkpoint_parts {

inline constexpr auto kConfig =
    R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 8, "intermediate_size": 8,
    "num_hidden_layers": 1, "num_attention_heads": 2, "rms_norm_eps": 1e-5, "vocab_size": 6,
    "max_position_embeddings": 32, "bos_token_id": 4, "eos_token_id": 5})";

inline constexpr auto kTokenizer =
    R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3}, "merges": ["a b"]},
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
    "decoder": {"type": "ByteLevel"},
    "added_tokens": [{"id": 4, "content": "<s>", "special": true}, {"id": 5, "content": "</s>", "special": true}]})";

inline void write(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

inline NamedTensor counted(const std::string& name, int from) {
  NamedTensor item{name, Tensor::empty(Meta::tensor(DType::f32, {2, 3}))};
  for (int i = 0; i < 6; ++i) item.tensor.as<float>()[i] = static_cast<float>(from + i);
  return item;
}

inline float first_of(const Tensor& tensor) {
  float value = 0;
  std::memcpy(&value, tensor.data(), sizeof(value));
  return value;
}

class Folder : public TemporaryFolder {
 public:
  Folder() { write(*this / "config.json", kConfig); }
  void add(const std::string& name, const std::string& text) const { write(*this / name, text); }
  void add(const std::string& name, const std::vector<NamedTensor>& tensors) const {
    write_safetensors(*this / name, tensors);
  }
};

inline testing::GgufBytes tiny_gguf() {
  auto file = testing::tiny_llama_gguf();
  file.text("tokenizer.ggml.model", "gpt2")
      .text("tokenizer.ggml.pre", "gpt-2")
      .texts("tokenizer.ggml.tokens", {"a", "b", "c", "ab", "<s>", "</s>"})
      .i32s("tokenizer.ggml.token_type", {1, 1, 1, 1, 3, 3})
      .texts("tokenizer.ggml.merges", {"a b"})
      .u32("tokenizer.ggml.bos_token_id", 4)
      .u32("tokenizer.ggml.eos_token_id", 5)
      .text("tokenizer.chat_template", "{{ messages }}")
      .text("tokenizer.chat_template.tools", "{{ tools }}");
  std::string values;
  for (int i = 0; i < 6; ++i) values += testing::raw(static_cast<float>(10 + i));
  return file.tensor("norm", {3, 2}, testing::kGgmlF32, values)
      .tensor("weight", {32, 2}, testing::kGgmlQ4_1, std::string(40, 'w'));
}

}  // namespace weft::checkpoint_parts
