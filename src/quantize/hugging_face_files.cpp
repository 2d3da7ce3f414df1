#include "quantize/hugging_face_files.h"

#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "base/utf8.h"
#include "io/config_fields.h"
#include "io/expert_config.h"
#include "io/feed_forward_config.h"
#include "io/half_config.h"
#include "io/latent_config.h"
#include "io/layer_config.h"
#include "io/recurrent_config.h"

namespace weft {
namespace {

constexpr int kIndent = 2;

// JSON can contain only UTF-8 text.
void check_utf8(const std::string& text, const char* what) {
  USER_CHECK(!first_invalid_utf8(text), "[tokenizer] {} must be UTF-8, but is {}", what, quote(text));
}

Json rope_scaling_json(const Checkpoint& checkpoint, const RopeConfig& rope) {
  const RopeScaling& scaling = rope.scaling;
  const bool is_longrope = scaling.type == RopeScalingType::longrope;
  const std::string tensor = is_longrope ? kLongFactors : rope.frequency_factors;
  USER_CHECK(
      tensor.empty(),
      "[{}] holds rotary frequencies as a tensor, {}, which config.json cannot express; wanted the folder it was made "
      "from",
      checkpoint.path(), tensor);
  if (scaling.type == RopeScalingType::none) return nullptr;
  Json json{{"rope_type", rope_scaling_text(scaling.type)}, {"factor", scaling.factor}};
  if (scaling.type != RopeScalingType::linear)
    json["original_max_position_embeddings"] = scaling.original_context_length;
  if (scaling.type == RopeScalingType::llama3) {
    json["low_freq_factor"] = scaling.low_freq_factor;
    json["high_freq_factor"] = scaling.high_freq_factor;
  }
  if (scaling.type == RopeScalingType::yarn) {
    json["beta_fast"] = scaling.beta_fast;
    json["beta_slow"] = scaling.beta_slow;
    if (scaling.attention_factor) json["attention_factor"] = *scaling.attention_factor;
    if (scaling.mscale) json["mscale"] = *scaling.mscale;
    if (scaling.mscale_all_dim) json["mscale_all_dim"] = *scaling.mscale_all_dim;
  }
  if (rope.query_scale_beta != 0) json["llama_4_scaling_beta"] = rope.query_scale_beta;
  return json;
}

Json ids_json(const std::vector<std::int64_t>& ids) {
  if (ids.empty()) return nullptr;
  return ids.size() == 1 ? Json(ids[0]) : Json(ids);
}

// One key of a folder may stand for several tensors of a GGUF file, of which all are there or none.
void add_switches(Json& json, const ModelConfig& config, const std::vector<SwitchKey>& switches) {
  std::map<std::string_view, const SwitchKey*> first;
  for (const SwitchKey& one : switches) {
    const SwitchKey& known = *first.emplace(one.folder, &one).first->second;
    USER_CHECK(config.*known.field == config.*one.field,
               "[quantize] {} of config.json would stand for {} and {}, but the model has only {}", one.folder,
               known.gguf_tensor, one.gguf_tensor, config.*one.field ? one.gguf_tensor : known.gguf_tensor);
    json[one.folder] = config.*one.field;
  }
}

// The layers that have a window or rotary positions, and what only some architectures have.
void add_own_keys(Json& json, const ModelConfig& c, const ArchitectureFacts& facts) {
  const bool is_partial = c.rope.rotary_dim != c.head_dim && !c.latents;
  if (is_partial || parse_json(facts.defaults).contains("partial_rotary_factor"))
    json["partial_rotary_factor"] = static_cast<double>(c.rope.rotary_dim) / static_cast<double>(c.head_dim);
  if (c.sliding_rope && c.sliding_rope->theta != c.rope.theta) json["rope_local_base_freq"] = c.sliding_rope->theta;
  if (facts.window) json["sliding_window"] = nullptr;
  if (c.sliding_window) {
    json["sliding_window"] = *c.sliding_window;
    const bool has_types = facts.window && !facts.window->types.empty();
    Json words = Json::array();
    for (int layer = 0; layer < c.layer_count; ++layer)
      words.push_back(has_types            ? (c.window_of(layer) ? "local" : "global")
                      : c.window_of(layer) ? "sliding_attention"
                                           : "full_attention");
    if (has_types) {
      json[facts.window->types] = Json::array({Json::array({std::move(words), 1})});
    } else {
      json["layer_types"] = std::move(words);
      json["use_sliding_window"] = true;
    }
  }
  const bool has_positions = c.rope_of(0) != nullptr || facts.rotary.unrotated_period || c.sliding_window;
  USER_CHECK(has_positions || facts.rotary.switch_in_gguf.empty() || !facts.rotary.kind_in_folders.empty(),
             "[{}] must not be false: the layers of {} in folders have rotary positions", facts.rotary.switch_in_gguf,
             c.architecture);
  if (!facts.rotary.kind_in_folders.empty()) json[facts.rotary.kind_in_folders] = has_positions ? "rope" : "nope";
  if (facts.rotary.unrotated_period) {
    json["no_rope_layers"] = Json::array();
    for (int layer = 0; layer < c.layer_count; ++layer)
      json["no_rope_layers"].push_back(c.rope_of(layer) == nullptr ? 0 : 1);
  }
  for (const double cut : c.gate_cuts) json["activation_sparsity_pattern"].push_back(part_below(cut));
  Json& place = facts.inner_object.empty() ? json : json[facts.inner_object];
  for (const NumberKey& number : facts.numbers)
    if (!number.folder.empty()) place[number.folder] = c.*number.field;
  // Other programs tell architectures apart by some of these keys, so files without them get none.
  const Json defaults = parse_json(facts.defaults);
  for (const CountKey& count : facts.counts)
    if (c.*count.field != ModelConfig().*count.field || defaults.contains(std::string(count.folder)))
      json[count.folder] = c.*count.field;
  add_switches(json, c, facts.switches);
}

Json config_of_gguf(const Checkpoint& checkpoint, const ModelConfig& c, const ArchitectureFacts& facts,
                    const Json& sample) {
  Json json{{"architectures", sample.at("architectures")},
            {"model_type", sample.at("model_type")},
            {"hidden_act", c.hidden_act},
            {"hidden_size", c.hidden_size},
            {"num_hidden_layers", c.layer_count},
            {"num_attention_heads", c.head_count},
            {"num_key_value_heads", c.kv_head_count},
            {"head_dim", c.head_dim},
            {"vocab_size", c.vocab_size},
            {"max_position_embeddings", c.context_length},
            {facts.norm.epsilon, c.norm_eps},
            {"rope_theta", c.rope.theta},
            {"rope_scaling", rope_scaling_json(checkpoint, c.rope)},
            {"tie_word_embeddings", c.tie_word_embeddings},
            {"bos_token_id", c.bos_token_id ? Json(*c.bos_token_id) : Json()},
            {"eos_token_id", ids_json(c.eos_token_ids)},
            {"pad_token_id", c.pad_token_id ? Json(*c.pad_token_id) : Json()}};
  add_own_keys(json, c, facts);
  json.update(feed_forward_json(c, facts));
  if (facts.experts) json.update(c.experts ? expert_json(c, *facts.experts) : no_expert_json(*facts.experts));
  if (c.recurrent) json.update(recurrent_json(c, *facts.recurrent));
  if (facts.halves) json.update(half_json(c.halves, *facts.halves));
  if (c.latents) {
    // All heads share the latents of keys and values; only what is rotated has the width of a head.
    json.update(latent_json(*c.latents));
    json["num_key_value_heads"] = c.head_count;
    json["head_dim"] = c.latents->rotary_dim;
  }
  for (const auto& [own, usual] : facts.key_names)
    if (auto value = json.find(usual); value != json.end()) {
      Json moved = std::move(*value);
      json.erase(value);
      json[own] = std::move(moved);
    }
  return json;
}

Json pre_tokenizer_json(const Vocabulary& vocabulary) {
  static constexpr std::pair<SplitBehavior, const char*> kBehaviors[] = {
      {SplitBehavior::removed, "Removed"},
      {SplitBehavior::isolated, "Isolated"},
      {SplitBehavior::merged_with_previous, "MergedWithPrevious"},
      {SplitBehavior::merged_with_next, "MergedWithNext"},
      {SplitBehavior::contiguous, "Contiguous"}};
  Json steps = Json::array();
  bool prefix_space = false;
  for (const PreTokenizerStep& step : vocabulary.steps) {
    if (const auto* split = std::get_if<PatternSplit>(&step)) {
      Json one{{"type", "Split"}, {"pattern", {{split->is_literal ? "String" : "Regex", split->pattern}}}};
      for (const auto& [behavior, name] : kBehaviors)
        if (behavior == split->behavior) one["behavior"] = name;
      one["invert"] = split->invert;
      steps.push_back(std::move(one));
    } else if (const auto* digits = std::get_if<DigitSplit>(&step); digits && digits->in_thousands) {
      for (const char* pattern : {R"(\p{N}+)", R"((?=(?:\p{N}{3})+(?!\p{N})))"})
        steps.push_back(
            {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}});
    } else if (digits) {
      steps.push_back({{"type", "Digits"}, {"individual_digits", digits->individual}});
    } else {
      prefix_space = true;
    }
  }
  steps.push_back(
      {{"type", "ByteLevel"}, {"add_prefix_space", prefix_space}, {"trim_offsets", true}, {"use_regex", false}});
  return {{"type", "Sequence"}, {"pretokenizers", steps}};
}

Json post_processor_json(const Vocabulary& vocabulary) {
  if (vocabulary.prefix.empty() && vocabulary.suffix.empty()) return nullptr;
  Json single = Json::array(), tokens = Json::object();
  const auto add = [&](const std::vector<int>& ids) {
    for (const int id : ids) {
      const std::string& text = vocabulary.tokens[static_cast<std::size_t>(id)];
      single.push_back({{"SpecialToken", {{"id", text}, {"type_id", 0}}}});
      tokens[text] = {{"id", text}, {"ids", {id}}, {"tokens", {text}}};
    }
  };
  add(vocabulary.prefix);
  single.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  add(vocabulary.suffix);
  Json pair = single;
  pair.push_back({{"Sequence", {{"id", "B"}, {"type_id", 1}}}});
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", tokens}};
}

std::map<std::string, std::string> files_of_gguf(const Checkpoint& checkpoint, const ModelConfig& config) {
  const Vocabulary vocabulary = checkpoint.vocabulary();
  std::map<std::string, std::string> files{{"tokenizer.json", tokenizer_json(vocabulary)}};
  Json tokenizer{{"tokenizer_class", "PreTrainedTokenizerFast"},
                 {"model_max_length", config.context_length},
                 {"clean_up_tokenization_spaces", false}};
  const auto name = [&](const char* key, const std::optional<int>& id) {
    if (id) tokenizer[key] = vocabulary.tokens[static_cast<std::size_t>(*id)];
  };
  name("bos_token", vocabulary.bos);
  name("eos_token", vocabulary.eos);
  name("pad_token", vocabulary.padding);
  if (const auto chat = checkpoint.chat_template()) {
    check_utf8(*chat, "the chat template");
    tokenizer["chat_template"] = *chat;
  }
  if (const auto names = checkpoint.chat_template_names(); !names.empty()) {
    Json list = Json::array();
    if (tokenizer.contains("chat_template"))
      list.push_back({{"name", "default"}, {"template", tokenizer["chat_template"]}});
    for (const std::string& its_name : names) {
      const std::string text = checkpoint.chat_template(its_name).value();
      check_utf8(text, "the chat template");
      list.push_back({{"name", its_name}, {"template", text}});
    }
    tokenizer["chat_template"] = std::move(list);
  }
  files["tokenizer_config.json"] = json_text(tokenizer, kIndent);
  if (!vocabulary.end_of_generation.empty()) {
    Json generation = Json::object();
    if (vocabulary.bos) generation["bos_token_id"] = *vocabulary.bos;
    generation["eos_token_id"] = ids_json({vocabulary.end_of_generation.begin(), vocabulary.end_of_generation.end()});
    files["generation_config.json"] = json_text(generation, kIndent);
  }
  return files;
}

}  // namespace

std::string tokenizer_json(const Vocabulary& vocabulary) {
  USER_CHECK(
      vocabulary.model == TokenModel::merges && vocabulary.byte_alphabet,
      "[tokenizer] a tokenizer.json can be written for byte-level BPE, but the file has another tokenizer; wanted "
      "the folder it was made from");
  Json tokens = Json::object(), merges = Json::array(), added = Json::array();
  // Appends to the underlying vector, because the object's own insertion compares each key with all earlier ones. The
  // keys are distinct.
  auto& members = tokens.get_ref<Json::object_t&>();
  for (std::size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    check_utf8(vocabulary.tokens[id], "a token");
    if (!vocabulary.tokens[id].empty()) members.push_back({vocabulary.tokens[id], id});
  }
  for (const Merge& merge : vocabulary.merges) {
    check_utf8(merge.text, "a merge");
    merges.push_back(merge.text.substr(0, merge.left_bytes) + " " + merge.text.substr(merge.left_bytes));
  }
  for (const AddedToken& token : vocabulary.added_tokens) {
    const auto id = static_cast<std::size_t>(token.id);
    added.push_back({{"id", token.id},
                     {"content", vocabulary.tokens[id]},
                     {"single_word", token.single_word},
                     {"lstrip", token.strip_left},
                     {"rstrip", token.strip_right},
                     {"normalized", token.normalized},
                     {"special", vocabulary.kinds[id] != TokenKind::user_defined}});
  }
  const bool has_unknown = vocabulary.unknown.has_value();
  const Json unknown =
      has_unknown ? Json(vocabulary.tokens[static_cast<std::size_t>(*vocabulary.unknown)]) : Json(nullptr);
  // The only one of byte-level vocabularies in GGUF files is NFC.
  const Json normalizer = vocabulary.normalizer.empty() ? Json(nullptr) : Json{{"type", "NFC"}};
  const Json bytes{{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}};
  return json_text(Json{{"version", "1.0"},
                        {"truncation", nullptr},
                        {"padding", nullptr},
                        {"added_tokens", added},
                        {"normalizer", normalizer},
                        {"pre_tokenizer", pre_tokenizer_json(vocabulary)},
                        {"post_processor", post_processor_json(vocabulary)},
                        {"decoder", bytes},
                        {"model",
                         {{"type", "BPE"},
                          {"dropout", nullptr},
                          {"unk_token", unknown},
                          {"continuing_subword_prefix", nullptr},
                          {"end_of_word_suffix", nullptr},
                          {"fuse_unk", vocabulary.fuse_unknown},
                          {"byte_fallback", false},
                          {"ignore_merges", vocabulary.ignore_merges},
                          {"vocab", tokens},
                          {"merges", merges}}}},
                   kIndent);
}

std::string config_json(const Checkpoint& checkpoint, const ModelConfig& config, const ArchitectureFacts& facts,
                        const Json& sample, const Json& quantization) {
  Json json = checkpoint.is_gguf() ? config_of_gguf(checkpoint, config, facts, sample)
                                   : parse_json(checkpoint.folder_file("config.json").value());
  for (const char* key : {"quantization", "quantization_config", "compression_config"}) {
    json.erase(key);
    if (const auto text = json.find("text_config"); text != json.end() && text->is_object()) text->erase(key);
  }
  json.erase("dtype");
  json["torch_dtype"] = "bfloat16";
  if (!quantization.is_null()) json["quantization_config"] = quantization;
  return json_text(json, kIndent) + "\n";
}

std::map<std::string, std::string> text_files(const Checkpoint& checkpoint, const ModelConfig& config) {
  if (checkpoint.is_gguf()) return files_of_gguf(checkpoint, config);
  std::map<std::string, std::string> files;
  for (const std::string& name : checkpoint.text_names()) files[name] = checkpoint.folder_file(name).value();
  return files;
}

}  // namespace weft
