#include "io/tokenizer_config.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "io/added_tokens.h"
#include "io/config_fields.h"
#include "io/known_keys.h"

namespace weft {
namespace {

// The fast tokenizers of these classes add BOS before a text (add_bos_token, default true) and EOS after it
// (add_eos_token, default false), and ignore the post_processor of tokenizer.json (transformers 4). All other classes
// use tokenizer.json alone, or the two flags if there is none (Vocabulary::ends_by_config; both default to false).
struct TokenizerClass {
  std::string_view name;  // without the suffix "Fast"
  std::string_view bos;   // used if bos_token is absent
  std::string_view eos;
};
constexpr TokenizerClass kClasses[] = {
    {"LlamaTokenizer", "<s>", "</s>"},
    {"CodeLlamaTokenizer", "<s>", "</s>"},
    {"GemmaTokenizer", "<bos>", "<eos>"},
    {"CohereTokenizer", "<BOS_TOKEN>", "<|END_OF_TURN_TOKEN|>"},
};
// The class for a model type, used if the file names no class.
constexpr std::pair<std::string_view, std::string_view> kClassOfModel[] = {
    {"llama", "LlamaTokenizer"},   {"mistral", "LlamaTokenizer"}, {"mixtral", "LlamaTokenizer"},
    {"gemma", "GemmaTokenizer"},   {"gemma2", "GemmaTokenizer"},  {"gemma3_text", "GemmaTokenizer"},
    {"cohere", "CohereTokenizer"}, {"cohere2", "CohereTokenizer"}};

const TokenizerClass* class_of(const JsonFields& fields, const std::string& model_type) {
  constexpr std::string_view kFast = "Fast";
  std::string name = fields.find_text("tokenizer_class").value_or("");
  if (name.ends_with(kFast)) name.resize(name.size() - kFast.size());
  if (name.empty())
    for (const auto& [model, of_model] : kClassOfModel)
      if (model == model_type) name = of_model;
  const auto* const found = std::find_if(std::begin(kClasses), std::end(kClasses),
                                         [&](const TokenizerClass& one) { return one.name == name; });
  return found == std::end(kClasses) ? nullptr : found;
}

std::optional<int> named_token(const JsonFields& fields, std::string_view key, const Vocabulary& vocabulary) {
  const auto text = named_text(fields, key);
  return text ? find_token(*text, vocabulary) : std::nullopt;
}

void read_named_texts(const JsonFields& fields, Vocabulary& vocabulary) {
  for (const char* key : kNamedTokens)
    if (fields.has(key) || fields.is_null(key)) vocabulary.named_texts[key] = named_text(fields, key);
  // Tokens with names that only this model has. Other files have a list of texts without names here.
  const auto* const more = fields.value("extra_special_tokens");
  if (more == nullptr || !more->is_object()) return;
  const JsonFields own(*more, fields.where(), fields.name("extra_special_tokens") + ".");
  for (const auto& [name, value] : more->items())
    if (value.is_string() || value.is_object()) vocabulary.named_texts[name] = named_text(own, name);
}

// Returns the tokens that encoding adds at one end of a text.
std::vector<int> added_tokens(const JsonFields& fields, const char* flag, const char* key, std::string_view otherwise,
                              bool is_added_if_silent, const Vocabulary& vocabulary) {
  const std::optional<bool> is_asked_for = fields.find_boolean(flag);
  if (!is_asked_for.value_or(is_added_if_silent)) return {};
  std::optional<int> id = named_token(fields, key, vocabulary);
  if (!id && !fields.has(key) && !fields.is_null(key)) id = find_token(otherwise, vocabulary);
  USER_CHECK(id || !is_asked_for, "[{}] {} is true, which wants {}, the text of a token, but it is {}", fields.where(),
             flag, key, fields.has(key) ? shown_json(*fields.value(key)) : "missing");
  return id ? std::vector<int>{*id} : std::vector<int>();
}

// The tokenizers of transformers put the space where their config says so, if ByteLevel is the whole pre-tokenizer. One
// inside a sequence keeps what tokenizer.json says.
void set_prefix_space(bool is_added, Vocabulary& vocabulary) {
  auto& steps = vocabulary.steps;
  std::erase_if(steps, [](const auto& step) { return std::holds_alternative<PrefixSpace>(step); });
  if (!is_added) return;
  steps.emplace_back(PrefixSpace{});
  std::rotate(steps.begin(), std::prev(steps.end()), steps.end());
}

}  // namespace

void apply_tokenizer_config(const Json& json, const std::string& where, const std::string& model_type,
                            Vocabulary& vocabulary) {
  const JsonFields fields(json, where);
  vocabulary.unknown_keys = unknown_keys(KeyTable::tokenizer_config, json, where);
  read_named_texts(fields, vocabulary);
  const auto prefix_space = fields.find_boolean("add_prefix_space");
  if (prefix_space && vocabulary.byte_level_alone) set_prefix_space(*prefix_space, vocabulary);
  if (const auto id = named_token(fields, "bos_token", vocabulary)) vocabulary.bos = id;
  vocabulary.eos = named_token(fields, "eos_token", vocabulary);
  vocabulary.padding = named_token(fields, "pad_token", vocabulary);
  const TokenizerClass* const its_class = class_of(fields, model_type);
  if (its_class == nullptr && !vocabulary.ends_by_config) return;
  const bool has_bos = its_class != nullptr;
  const TokenizerClass named = has_bos ? *its_class : TokenizerClass();
  vocabulary.prefix = added_tokens(fields, "add_bos_token", "bos_token", named.bos, has_bos, vocabulary);
  vocabulary.suffix = added_tokens(fields, "add_eos_token", "eos_token", named.eos, false, vocabulary);
  vocabulary.between = vocabulary.suffix;
  vocabulary.between.insert(vocabulary.between.end(), vocabulary.prefix.begin(), vocabulary.prefix.end());
}

}  // namespace weft
