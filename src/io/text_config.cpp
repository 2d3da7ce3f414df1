#include "io/text_config.h"

#include <array>
#include <utility>

#include "base/error.h"
#include "io/config_fields.h"

namespace weft {
namespace {

// Keys that are stated once for the whole checkpoint, next to text_config or in it.
constexpr const char* kShared[] = {"bos_token_id",       "dtype",        "eos_token_id",        "pad_token_id",
                                   "compression_config", "quantization", "quantization_config", "tie_word_embeddings",
                                   "torch_dtype"};

// The module around the language model in older and in newer folders, and the language model's own module; the
// names of the head in GPT-NeoX, InternLM 2 and ChatGLM, and those of the encoder in models with BERT's layers.
constexpr std::array kModules = {std::pair{"language_model.model.", "model."},
                                 std::pair{"model.language_model.", "model."},
                                 std::pair{"language_model.lm_head.", "lm_head."},
                                 std::pair{"embed_out.", "lm_head."},
                                 std::pair{"output.", "lm_head."},
                                 std::pair{"transformer.output_layer.", "lm_head."},
                                 std::pair{"roberta.", "bert."},
                                 std::pair{"mpnet.", "bert."},
                                 std::pair{"electra.", "bert."},
                                 std::pair{"albert.", "bert."}};

// The embedding, or another tensor, in folders whose names lack the module around the layers, and that module.
constexpr std::pair<const char*, const char*> kBareEmbeddings[] = {
    {"emb_ln.weight", "nomic_bert."},
    {"transformer.layer.0.attention.q_lin.weight", "distilbert."},
    {"embed_tokens.weight", "model."},
    {"decoder.embed_tokens.weight", "model."},
    {"embed_in.weight", "gpt_neox."},
    {"wte.weight", "transformer."},
    {"word_embeddings.weight", "transformer."},
    {"embeddings.word_embeddings.weight", "bert."},
    {"embeddings.tok_embeddings.weight", "model."}};

}  // namespace

Json text_config(Json config, const std::string& where) {
  const JsonFields fields(config, where);
  if (!fields.has("text_config")) return config;
  const JsonFields text = fields.find_object("text_config").value();
  Json inner = *fields.value("text_config");
  for (const char* key : kShared)
    if (!text.has(key) && fields.has(key)) inner[key] = config[key];
  // The whole model's key counts, but Qwen's models had the key inside at first.
  constexpr const char* kTied = "tie_word_embeddings";
  const bool is_qwen = fields.find_text("model_type").value_or("").starts_with("qwen");
  if (fields.has(kTied) && !(is_qwen && text.find_boolean(kTied).value_or(false))) inner[kTied] = config[kTied];
  if (fields.has("architectures")) inner["architectures"] = config["architectures"];  // of the whole checkpoint
  if (!text.has("model_type") && fields.has("model_type")) inner["model_type"] = config["model_type"];
  return inner;
}

std::vector<std::string> names_in_checkpoint(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& [outer, own] : kModules)
    if (name.starts_with(own)) names.push_back(outer + std::string(name.substr(std::string_view(own).size())));
  return names;
}

std::string name_in_language_model(std::string_view name) {
  for (const auto& [outer, own] : kModules)
    if (name.starts_with(outer)) return own + std::string(name.substr(std::string_view(outer).size()));
  return std::string(name);
}

std::string_view missing_module(const std::function<bool(std::string_view name)>& has_tensor) {
  for (const auto& [embedding, module] : kBareEmbeddings)
    if (has_tensor(embedding)) return module;
  return "";
}

}  // namespace weft
