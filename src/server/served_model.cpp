#include "server/served_model.h"

#include <algorithm>
#include <cctype>
#include <ctime>
#include <span>

#include <fmt/format.h>

#include "base/content_hash.h"
#include "base/error.h"
#include "base/text.h"
#include "base/utf8.h"
#include "base/version.h"
#include "engine/conversation.h"
#include "options/options_text.h"
#include "server/prompt_length.h"

namespace weft {
namespace {

// The same for everything that gives the same answers: program, options that change code, and the model's size and
// types. Weights are not read for it.
std::string fingerprint_of(Engine& engine, const ServedModelSettings& settings) {
  if (settings.fingerprint_mode == "none") return "";
  if (settings.fingerprint_mode == "custom") return settings.fingerprint_value;
  ContentHasher hasher;
  hasher.add(kVersion);
  for (const auto& [name, value] : code_options(engine.context().options)) hasher.add(name).add(value);
  const Checkpoint& checkpoint = engine.runner().checkpoint();
  hasher.add(checkpoint.architecture()).add(checkpoint.file_bytes());
  const Options& options = engine.context().options;
  for (const auto* list : {&options.lora, &options.lora_scaled, &options.lora_modules})
    for (const std::string& adapter : *list) hasher.add(adapter);
  const std::string hash = hasher.finish().hex().substr(0, 8);
  return settings.fingerprint_mode == "hash" ? hash : fmt::format("weft-{}-{}", kVersion, hash);
}

// Whether a word is in the source of a template, not as a part of another word.
bool has_whole_word(std::string_view source, std::string_view word) {
  const auto is_part = [&](std::size_t at) {
    return at < source.size() && (std::isalnum(static_cast<unsigned char>(source[at])) != 0 || source[at] == '_');
  };
  for (std::size_t at = 0; (at = source.find(word, at)) != std::string_view::npos; ++at)
    if ((at == 0 || !is_part(at - 1)) && !is_part(at + word.size())) return true;
  return false;
}

// Whether a template writes a system message where it is in the conversation. Others fail, or put it first.
bool writes_late_system(const ChatTemplate& chat_template, const Vocabulary& vocabulary) {
  const Json conversation = {{{"role", "system"}, {"content", "a"}},
                             {{"role", "user"}, {"content", "b"}},
                             {{"role", "assistant"}, {"content", "c"}},
                             {{"role", "user"}, {"content", "the question"}},
                             {{"role", "system"}, {"content", "the remark"}}};
  try {
    const std::string text = chat_template.render(chat_variables(vocabulary, conversation, true));
    const std::size_t question = text.find("the question"), remark = text.find("the remark");
    return question != std::string::npos && remark != std::string::npos && question < remark;
  } catch (const UserError&) {
    return false;
  }
}

std::vector<int> special_tokens(const Tokenizer& tokenizer, std::span<const std::string_view> texts) {
  std::vector<int> ids;
  for (const std::string_view text : texts) {
    const std::optional<int> id = tokenizer.find(text);
    if (id && tokenizer.is_special(*id)) ids.push_back(*id);
  }
  return ids;
}

// How answers are parsed, by the templates' sources or as the settings say.
void set_parsers(ServedModel& model, const Engine& engine, const ServedModelSettings& settings,
                 const std::string& chat_template, const std::string& tool_template) {
  if (settings.tool_call_parser == "auto") {
    model.dialect = &dialect_of(tool_template, model.tokenizer->vocabulary());
  } else if (settings.tool_call_parser != "none") {
    model.dialect = find_dialect(settings.tool_call_parser);
    CHECK(model.dialect != nullptr, "no dialect {}", settings.tool_call_parser);
  }
  const bool has_channels = model.dialect != nullptr && model.dialect->has_channels();
  USER_CHECK(settings.reasoning_parser != kChannelReasoning || has_channels,
             "[--reasoning-parser] {} is for models whose answers have channels, as gpt-oss, but the calls of this one "
             "have the form {}",
             kChannelReasoning, model.dialect == nullptr ? "none" : model.dialect->name);
  if (settings.reasoning_parser == "auto" || settings.reasoning_parser == kChannelReasoning) {
    model.reasoning = has_channels ? nullptr : reasoning_format_of(chat_template);
  } else if (settings.reasoning_parser != "none") {
    model.reasoning = find_reasoning_format(settings.reasoning_parser);
    CHECK(model.reasoning != nullptr, "no reasoning format {}", settings.reasoning_parser);
  }
  model.reads_tools = has_whole_word(tool_template, "tools");
  model.reads_calls = has_whole_word(tool_template, "tool_calls");
  const Vocabulary& vocabulary = model.tokenizer->vocabulary();
  model.reads_late_system = writes_late_system(*model.chat_template, vocabulary) &&
                            (!model.tool_template || writes_late_system(*model.tool_template, vocabulary));
  if (model.dialect != nullptr) model.call_markers = special_tokens(*model.tokenizer, model.dialect->markers);
  if (model.dialect != nullptr && model.dialect->has_channels()) {
    const std::string marker(model.dialect->content_marker);
    model.reasoning_tokens = std::make_shared<const ReasoningTokens>(*model.tokenizer, engine.end_tokens(),
                                                                     model.vocabulary_size, marker, marker);
    return;
  }
  if (model.reasoning == nullptr) return;
  const std::string_view markers[] = {model.reasoning->begin, model.reasoning->end};
  model.reasoning_markers = special_tokens(*model.tokenizer, markers);
  model.reasoning_tokens =
      std::make_shared<const ReasoningTokens>(*model.tokenizer, engine.end_tokens(), model.vocabulary_size,
                                              std::string(model.reasoning->begin), std::string(model.reasoning->end));
}

// A template that is given may be one for chats: one for scores names the roles of both texts.
void set_score_template(ServedModel& model, const Checkpoint& checkpoint, const ServedModelSettings& settings) {
  const std::optional<ScorePrompt>& stated = model.embedding_head.prompt;
  const Vocabulary& vocabulary = model.tokenizer->vocabulary();
  const std::string source =
      settings.chat_template.empty() ? "" : chosen_chat_template(&checkpoint, settings.chat_template, Json::object());
  if (has_whole_word(source, "query") && has_whole_word(source, "document")) {
    ScoreTemplate given({.source = source,
                         .instruction = stated ? stated->instruction : "",
                         .arguments = settings.template_arguments,
                         .adds_special = true});
    if (given.has_both_texts(vocabulary)) {
      model.score_template.emplace(std::move(given));
      return;
    }
  }
  if (!stated) return;
  model.score_template.emplace(*stated);
  if (!model.score_template->has_both_texts(vocabulary))
    model.missing_score_template =
        "the model's chat template does not write messages with the roles query and document; weft serve "
        "--chat-template FILE gives it one that does";
}

}  // namespace

bool ServedModel::has_own_name(const std::string& name) const {
  return std::find(names.begin(), names.end(), name) != names.end();
}

const std::string& ServedModel::name_of(const ServedAdapterPointer& adapter) const {
  return adapter == nullptr || adapter->name.empty() ? names[0] : adapter->name;
}

ServedModel make_served_model(Engine& engine, const ServedModelSettings& settings) {
  const Checkpoint& checkpoint = engine.runner().checkpoint();
  ServedModel model{.root = replace_invalid_utf8(settings.root),
                    .created = std::time(nullptr),
                    .fingerprint = fingerprint_of(engine, settings),
                    .max_model_len = engine.max_model_len(),
                    .vocabulary_size = engine.runner().vocabulary_size(),
                    .generates = engine.runner().facts().config.generates(),
                    .embedding_head = engine.embedding_head(),
                    .most_sequences = engine.context().options.max_num_seqs,
                    .tokenizer = engine.has_tokenizer() ? &engine.tokenizer() : nullptr,
                    .trusts_templates = settings.trusts_templates,
                    .template_arguments = settings.template_arguments,
                    .answers = settings.answers};
  model.pooling = settings.pooling ? settings.pooling : model.embedding_head.pooling;
  // A path may be any bytes, but requests, answers and metrics are UTF-8.
  for (const std::string& name : settings.names) model.names.push_back(replace_invalid_utf8(name));
  model.adapters = std::make_shared<AdapterTable>(engine, model.names);
  if (engine.has_tokenizer()) {
    model.fill_tokens = fill_tokens(engine.tokenizer().vocabulary());
    model.most_bytes_of_token = most_bytes_of_token(engine.tokenizer());
    model.constraints = std::make_shared<const ConstraintCompiler>(
        engine.tokenizer(), engine.end_tokens(), static_cast<std::size_t>(engine.runner().vocabulary_size()));
  }
  const bool has_template = !settings.chat_template.empty() || checkpoint.chat_template().has_value();
  if (has_template) {
    const Json with_tools{{"tools", Json::array()}};
    const std::string plain = chosen_chat_template(&checkpoint, settings.chat_template, Json::object());
    // A template that is given is for all requests.
    const std::string of_tools =
        settings.chat_template.empty() ? chosen_chat_template(&checkpoint, "", with_tools) : plain;
    model.chat_template.emplace(plain);
    model.template_source = plain;
    if (of_tools != plain) model.tool_template.emplace(of_tools);
    if (model.tokenizer != nullptr) set_parsers(model, engine, settings, plain, of_tools);
  } else {
    model.missing_template = "the model has no chat template; weft serve --chat-template FILE gives it one";
  }
  if (model.embedding_head.scores && model.tokenizer != nullptr) set_score_template(model, checkpoint, settings);
  model.cache_config = {{"block_size", std::to_string(engine.page_tokens())},
                        {"cache_dtype", engine.context().options.kv_cache_dtype},
                        {"enable_prefix_caching", engine.context().options.enable_prefix_caching ? "True" : "False"},
                        {"num_gpu_blocks", std::to_string(engine.page_count())}};
  model.defaults = sampling_parameters(settings.defaults, checkpoint, engine.context().log);
  model.llama_defaults = llama_defaults();
  settings.defaults.take_given(model.llama_defaults);
  model.limits = answer_limits(settings.defaults, checkpoint);
  return model;
}

}  // namespace weft
