// The text parts of a checkpoint: its tokenizer and its chat templates.

#include <algorithm>
#include <filesystem>

#include <fmt/core.h>

#include "base/error.h"
#include "base/sort.h"
#include "io/checkpoint.h"
#include "io/config_fields.h"
#include "io/folder_vocabulary.h"
#include "io/gguf_vocabulary.h"
#include "io/message_marks.h"
#include "io/text_config.h"
#include "io/tokenizer_config.h"

namespace weft {
namespace {

std::vector<std::string> to_strings(const std::optional<std::vector<std::string_view>>& texts) {
  return texts ? std::vector<std::string>(texts->begin(), texts->end()) : std::vector<std::string>();
}

// The bytes of an array of 8-bit numbers; "" if there is none.
std::string gguf_bytes(const Gguf& gguf, std::string_view key) {
  const GgufValue* value = gguf.find(key);
  if (value == nullptr) return {};
  const bool is_bytes = value->is_array && (value->type == GgufType::u8 || value->type == GgufType::i8);
  USER_CHECK(is_bytes, "[{}] {} must be an array of 8-bit numbers, but is {}", gguf.where(), key, value->type_name());
  return {reinterpret_cast<const char*>(value->data.data()), value->data.size()};
}

std::vector<std::string> gguf_texts(const Gguf& gguf, std::string_view key) {
  const auto texts = gguf.find_texts(key);
  USER_CHECK(texts, "[{}] wanted the key {}, an array of text, but there is none", gguf.where(), key);
  return to_strings(texts);
}

// Whether any normal token has two or more characters, so that merges make it.
bool has_merged_tokens(const GgufTokenizerFields& fields) {
  constexpr std::int32_t kNormal = 1;
  for (std::size_t i = 0; i < fields.tokens.size(); ++i) {
    const std::string& token = fields.tokens[i];
    const bool is_normal = i >= fields.token_type.size() || fields.token_type[i] == kNormal;
    const auto characters = std::count_if(token.begin(), token.end(),
                                          [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
    if (is_normal && characters > 1) return true;
  }
  return false;
}

Vocabulary vocabulary_from_gguf(const Gguf& gguf) {
  GgufTokenizerFields fields;
  fields.model = gguf.text("tokenizer.ggml.model");
  fields.pre = gguf.find_text("tokenizer.ggml.pre").value_or("");
  fields.tokens = gguf_texts(gguf, "tokenizer.ggml.tokens");
  for (const auto type : gguf.find_integers("tokenizer.ggml.token_type").value_or(std::vector<std::int64_t>())) {
    USER_CHECK(type >= 0 && type <= INT32_MAX, "[{}] tokenizer.ggml.token_type must hold 0 to {}, but has {}",
               gguf.where(), INT32_MAX, type);
    fields.token_type.push_back(static_cast<std::int32_t>(type));
  }
  const bool has_merges = gguf.find("tokenizer.ggml.merges") != nullptr || has_merged_tokens(fields);
  if (has_merges && (fields.model == "gpt2" || fields.model == "gemma4"))
    fields.merges = gguf_texts(gguf, "tokenizer.ggml.merges");
  for (const double score : gguf.find_reals("tokenizer.ggml.scores").value_or(std::vector<double>()))
    fields.scores.push_back(static_cast<float>(score));
  fields.character_map = gguf_bytes(gguf, "tokenizer.ggml.precompiled_charsmap");
  fields.bos_token_id = gguf.find_integer("tokenizer.ggml.bos_token_id");
  fields.eos_token_id = gguf.find_integer("tokenizer.ggml.eos_token_id");
  for (const std::string_view key : gguf_end_keys())
    if (const auto id = gguf.find_integer(fmt::format("tokenizer.ggml.{}", key)))
      fields.other_ends.emplace_back(key, *id);
  fields.padding_token_id = gguf.find_integer("tokenizer.ggml.padding_token_id");
  fields.unknown_token_id = gguf.find_integer("tokenizer.ggml.unknown_token_id");
  fields.separator_token_id = gguf.find_integer("tokenizer.ggml.seperator_token_id");
  fields.cls_token_id = gguf.find_integer("tokenizer.ggml.cls_token_id");
  // The second names are those of older files.
  const auto fill_token = [&](const char* name, const char* older) {
    const auto id = gguf.find_integer(fmt::format("tokenizer.ggml.{}", name));
    return id ? id : gguf.find_integer(fmt::format("tokenizer.ggml.{}", older));
  };
  fields.fim_pre_token_id = fill_token("fim_pre_token_id", "prefix_token_id");
  fields.fim_suf_token_id = fill_token("fim_suf_token_id", "suffix_token_id");
  fields.fim_mid_token_id = fill_token("fim_mid_token_id", "middle_token_id");
  fields.add_bos_token = gguf.find_boolean("tokenizer.ggml.add_bos_token");
  fields.add_eos_token = gguf.find_boolean("tokenizer.ggml.add_eos_token");
  fields.add_sep_token = gguf.find_boolean("tokenizer.ggml.add_sep_token");
  fields.add_space_prefix = gguf.find_boolean("tokenizer.ggml.add_space_prefix");
  fields.remove_extra_whitespaces = gguf.find_boolean("tokenizer.ggml.remove_extra_whitespaces");
  fields.lowercase = gguf.find_boolean("tokenizer.ggml.normalizer.lowercase");
  return vocabulary_from_gguf_fields(std::move(fields));
}

// Reads the small files of a folder by name. A missing file is nullopt.
class Folder {
 public:
  explicit Folder(const Checkpoint& checkpoint) : checkpoint_(checkpoint) {}

  std::string where(std::string_view name) const { return (std::filesystem::path(checkpoint_.path()) / name).string(); }
  std::optional<Json> json(std::string_view name) const {
    const auto text = checkpoint_.folder_file(name);
    if (!text) return std::nullopt;
    return parse_config_json(*text, where(name));
  }

 private:
  const Checkpoint& checkpoint_;
};

// The ids that are tokens. Any other id begins or ends nothing and adds a warning.
std::vector<int> token_ids(const Json& json, const std::string& where, const char* key, Vocabulary& vocabulary) {
  std::vector<int> result;
  for (const auto id : JsonFields(json, where).find_integers(key)) {
    if (id >= 0 && id < static_cast<std::int64_t>(vocabulary.tokens.size())) {
      result.push_back(static_cast<int>(id));
    } else {
      vocabulary.warnings.push_back(no_such_token(where, key, id));
    }
  }
  return result;
}

void add_ends(const Json& json, const std::string& where, Vocabulary& vocabulary) {
  const std::vector<int> ends = token_ids(json, where, "eos_token_id", vocabulary);
  vocabulary.end_of_generation.insert(vocabulary.end_of_generation.end(), ends.begin(), ends.end());
}

VocabularyFolder vocabulary_folder(const Checkpoint& checkpoint) {
  return {checkpoint.path(), checkpoint.architecture(),
          [&checkpoint](std::string_view name) { return checkpoint.folder_file(name); }};
}

// The vocabulary file defines how to split text, but not which token begins or ends it, so other files are read too.
Vocabulary vocabulary_from_folder(const Checkpoint& checkpoint) {
  const Folder folder(checkpoint);
  auto [vocabulary, json] = read_vocabulary_file(vocabulary_folder(checkpoint));
  if (json) apply_tokenizer_config(*json, folder.where("tokenizer_config.json"), checkpoint.architecture(), vocabulary);
  const auto config = folder.json("config.json");
  const std::string config_path = folder.where("config.json");
  const Json text = config ? text_config(*config, config_path) : Json::object();
  const auto begins = token_ids(text, config_path, "bos_token_id", vocabulary);
  if (!vocabulary.bos && !begins.empty()) vocabulary.bos = begins.front();

  // Each file may name ends that the others lack. The list of generation_config.json is usually the longest.
  if (const auto generation = folder.json("generation_config.json"))
    add_ends(*generation, folder.where("generation_config.json"), vocabulary);
  add_ends(text, config_path, vocabulary);
  if (config && config->contains("text_config")) add_ends(*config, config_path, vocabulary);
  std::vector<int>& ends = vocabulary.end_of_generation;
  if (!vocabulary.eos && !ends.empty()) vocabulary.eos = ends.front();
  if (vocabulary.eos) ends.push_back(*vocabulary.eos);
  sort_without_repeats(ends);
  show_message_marks(vocabulary);
  return vocabulary;
}

constexpr std::string_view kTemplateFolder = "additional_chat_templates", kTemplateEnding = ".jinja";

// The file of a template that has a name other than "default".
std::string template_file(std::string_view name) {
  return fmt::format("{}/{}{}", kTemplateFolder, name, kTemplateEnding);
}

std::vector<std::string> names_of_template_files(const ModelFiles& files) {
  const std::size_t begin = kTemplateFolder.size() + 1;  // after the slash
  std::vector<std::string> names;
  for (const std::string& file : files.names_in(kTemplateFolder))
    if (file.ends_with(kTemplateEnding))
      names.push_back(file.substr(begin, file.size() - begin - kTemplateEnding.size()));
  return names;
}

// The value of chat_template is a template, or a list of objects with `name` and `template`.
std::optional<std::string> template_in(const JsonFields& fields, std::string_view name) {
  const auto* value = fields.value("chat_template");
  if (value == nullptr) return std::nullopt;
  if (!value->is_array()) {
    auto text = fields.find_text("chat_template");
    return name == "default" ? text : std::nullopt;
  }
  std::optional<std::string> found;
  for (std::size_t i = 0; i < value->size(); ++i) {
    const JsonFields entry((*value)[i], fields.where(), fmt::format("{}[{}].", fields.name("chat_template"), i));
    for (const char* key : {"name", "template"})
      USER_CHECK(entry.find_text(key), "[{}] wanted {}, a text, but there is none", entry.where(), entry.name(key));
    if (entry.find_text("name") == name && !found) found = entry.find_text("template");
  }
  return found;
}

}  // namespace

// What reads a vocabulary does not know where it is: its messages begin with [tokenizer] or [tokenizer.json].
Vocabulary Checkpoint::vocabulary() const {
  try {
    return is_gguf() ? vocabulary_from_gguf(gguf()) : vocabulary_from_folder(*this);
  } catch (const UserError& error) {
    const std::string_view message = error.what();
    if (!message.starts_with("[tokenizer")) throw;
    fail_user("[{}] {}", path(), message);
  }
}

bool Checkpoint::has_vocabulary() const {
  const auto names = vocabulary_file_names();
  return is_gguf() ||
         std::any_of(names.begin(), names.end(), [&](std::string_view name) { return source().has(name); });
}

std::vector<std::string> Checkpoint::text_names() const {
  std::vector<std::string> names;
  const auto add = [&](std::string_view name) {
    if (source().has(name)) names.emplace_back(name);
  };
  for (const std::string_view name : vocabulary_file_names()) add(name);
  for (const char* name : {"encoding.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
                           "merges.txt", "generation_config.json", "chat_template.jinja", "chat_template.json"})
    add(name);
  for (const std::string& name : names_of_template_files(source())) names.push_back(template_file(name));
  return names;
}

std::vector<std::string> Checkpoint::chat_template_names() const {
  std::vector<std::string> names;
  if (is_gguf()) {
    constexpr std::string_view kPrefix = "tokenizer.chat_template.";
    for (const GgufEntry& entry : gguf().entries())
      if (entry.key.starts_with(kPrefix)) names.emplace_back(entry.key.substr(kPrefix.size()));
  } else {
    names = names_of_template_files(source());
    const Json json = Folder(*this).json("tokenizer_config.json").value_or(Json::object());
    const auto list = json.find("chat_template");
    if (list != json.end() && list->is_array())
      for (const auto& item : *list)
        if (item.is_object() && item.contains("name") && item["name"].is_string()) names.push_back(item["name"]);
    std::erase(names, "default");
  }
  sort_without_repeats(names);
  return names;
}

std::optional<std::string> Checkpoint::chat_template(std::string_view name) const {
  if (is_gguf()) {
    const auto key =
        name == "default" ? std::string("tokenizer.chat_template") : fmt::format("tokenizer.chat_template.{}", name);
    const auto text = gguf().find_text(key);
    if (!text) return std::nullopt;
    return std::string(*text);
  }
  const std::string file_name = name == "default" ? "chat_template.jinja" : template_file(name);
  const bool is_plain = name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
  if (is_plain)
    if (auto text = folder_file(file_name)) return text;
  const Folder folder(*this);
  for (const auto file : {"tokenizer_config.json", "chat_template.json"}) {
    const auto json = folder.json(file);
    if (!json) continue;
    if (auto text = template_in(JsonFields(*json, folder.where(file)), name)) return text;
  }
  return std::nullopt;
}

}  // namespace weft
