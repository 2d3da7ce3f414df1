#include "server/prepared_request.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "engine/conversation.h"
#include "io/chat_messages.h"
#include "server/api_error.h"
#include "server/conversation_parts.h"
#include "server/infill_prompt.h"
#include "server/json_body.h"
#include "server/llama_endpoints.h"
#include "server/pooled_request.h"
#include "server/prompt_ids.h"
#include "server/prompt_length.h"
#include "server/sampling_fields.h"
#include "server/structured_outputs.h"
#include "server/tool_calls/call_constraint.h"
#include "server/tool_calls/tool_messages.h"

namespace weft {
namespace {

constexpr std::int64_t kDefaultMaxTokens = 16;  // OpenAI's, of completions

// The names that the request has for these.
const char* messages_field(const ApiRequest& request) { return request.endpoint == responses ? "input" : "messages"; }
const char* format_field(const ApiRequest& request) {
  if (is_anthropic(request.endpoint)) return "output_config.format";
  return request.endpoint == responses ? "text.format" : "response_format";
}
const char* limit_field(const ApiRequest& request) {
  if (request.endpoint == responses) return "max_output_tokens";
  return request.max_completion_tokens ? "max_completion_tokens" : "max_tokens";
}

// The parts of a message's content, which must be texts, as one text. check_messages() has checked their types.
std::string text_of_parts(const Json& parts) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (is_given(parts[i], "type") && parts[i]["type"] != "text")
      throw wrong_value(fmt::format("[messages] a part of a content has the type {}, but must have the type text: the "
                                    "model reads text alone, and sees no images",
                                    shown(parts[i]["type"])),
                        "messages");
    if (i > 0) text += '\n';
    text += parts[i]["text"].get_ref<const std::string&>();
  }
  return text;
}

Json with_texts(Json messages) {
  for (Json& message : messages) {
    const auto content = message.find("content");
    if (content == message.end() || content->is_null()) {
      // Templates write it. They ask whether there is one only beside calls.
      if (message.value("tool_calls", Json()).empty()) message["content"] = "";
      continue;
    }
    if (content->is_array()) *content = text_of_parts(*content);
  }
  return messages;
}

Json template_variables(const ApiRequest& request, const ServedModel& model) {
  Json arguments = model.template_arguments;
  if (!request.documents.is_null()) arguments["documents"] = request.documents;
  if (request.reasoning_effort) {
    arguments["reasoning_effort"] = *request.reasoning_effort;
    arguments["enable_thinking"] = *request.reasoning_effort != "none";
  }
  if (request.enables_thinking) arguments["enable_thinking"] = *request.enables_thinking;
  if (request.include_reasoning) arguments["include_reasoning"] = *request.include_reasoning;
  for (const auto& [name, value] : request.template_arguments.items()) {
    if (name == "messages" || name == "add_generation_prompt" || name == "tools")
      throw wrong_value(fmt::format("[chat_template_kwargs] must not have {}, which the request defines", name),
                        "chat_template_kwargs");
    arguments[name] = value;
  }
  const bool begins_answer = request.add_generation_prompt.value_or(!request.continue_final_message.value_or(false));
  Json messages = with_parsed_arguments(with_texts(request.messages), messages_field(request));
  if (is_anthropic(request.endpoint)) messages = with_one_system_message(messages, model.reads_late_system);
  if (model.dialect != nullptr && model.dialect->has_channels())
    messages = with_one_text_beside_calls(std::move(messages));
  if (!model.reads_calls) messages = with_calls_as_content(std::move(messages));
  if (!request.tools.is_null()) {
    if (model.reads_tools) {
      arguments["tools"] = request.tools;
    } else {
      messages = with_tools_in_system_message(std::move(messages), request.tools);
    }
  }
  return chat_variables(model.tokenizer->vocabulary(), messages, begins_answer, arguments);
}

const ChatTemplate& template_of(const ApiRequest& request, const ServedModel& model) {
  return !request.tools.is_null() && model.tool_template ? *model.tool_template : *model.chat_template;
}

AnswerForm form_of(const ApiRequest& request, const ServedModel& model, const std::string& prompt) {
  AnswerForm form{.reasoning = model.reasoning, .shows_reasoning = request.include_reasoning.value_or(true)};
  if (form.reasoning != nullptr) form.begins_reasoning = begins_reasoning(prompt, *form.reasoning);
  if (model.dialect != nullptr && model.dialect->has_channels()) form.dialect = model.dialect;
  if (request.tools.is_null()) return form;
  form.tool_choice = request.tool_choice.value_or(ToolChoice{.kind = ToolChoice::Kind::automatic});
  if (form.tool_choice.kind != ToolChoice::Kind::none) form.dialect = model.dialect;
  // --tool-call-parser none says that calls are not looked for, but here they are asked for.
  if (form.must_call() && form.dialect == nullptr) form.dialect = &unknown_dialect();
  form.has_one_call = !request.parallel_tool_calls.value_or(true);
  return form;
}

void add_chat_prompt(PreparedRequest& prepared, const ServedModel& model) {
  const ApiRequest& request = prepared.request;
  RenderedConversation rendered = render_conversation(prepared.request, model);
  prepared.prompt_text = std::move(rendered.text);
  const Json& last = request.messages.back();
  std::string echoed;
  if (request.echo.value_or(false) && last["role"] == "assistant" && last.contains("content") &&
      !last["content"].is_null())
    echoed = last["content"].is_array() ? text_of_parts(last["content"]) : last["content"].get<std::string>();
  prepared.form = form_of(request, model, prepared.prompt_text);
  add_prompt(prepared, std::move(echoed), std::move(rendered.ids), model);
}

void add_prompt_of_parts(PreparedRequest& prepared, const PromptParts& parts, const ServedModel& model) {
  std::vector<int> ids;
  std::string text;
  for (const auto& part : parts) {
    if (const int* id = std::get_if<int>(&part)) {
      check_token(*id, model.vocabulary_size, "prompt");
      ids.push_back(*id);
      if (model.tokenizer != nullptr && *id < model.tokenizer->token_count()) text += model.tokenizer->token_bytes(*id);
    } else {
      const auto& written = std::get<std::string>(part);
      const std::vector<int> more = encoded(written, ids.empty(), model, "prompt");
      ids.insert(ids.end(), more.begin(), more.end());
      text += written;
    }
  }
  add_prompt(prepared, std::move(text), std::move(ids), model);
}

// Anthropic's clients ask for what the largest models answer, whatever the model.
void check_given_limit(const ApiRequest& request, const ServedModel& model) {
  if (is_anthropic(request.endpoint)) return;
  const std::int64_t given = request.max_completion_tokens.value_or(request.max_tokens.value_or(0));
  if (given <= model.max_model_len) return;
  const std::string name = limit_field(request);
  throw wrong_value(fmt::format("[{}] must be at most the maximum context length, {} tokens, but is {}", name,
                                model.max_model_len, given),
                    name);
}

std::int64_t most_tokens(const PreparedRequest& prepared, const ServedModel& model) {
  const ApiRequest& request = prepared.request;
  std::size_t shortest = prepared.prompts[0].ids->size();
  for (const PreparedPrompt& prompt : prepared.prompts) shortest = std::min(shortest, prompt.ids->size());
  // The engine ends an answer at the context as well, so prompts of several lengths need no limits of their own.
  const std::int64_t left =
      std::min(model.max_model_len - static_cast<std::int64_t>(shortest), model.limits.most.value_or(INT64_MAX));
  if (request.n_predict.value_or(-1) >= 0) return std::min(left, *request.n_predict);
  if (request.n_predict) return std::min(left, model.limits.unasked.value_or(left));
  const std::int64_t usual =
      request.endpoint == completions ? kDefaultMaxTokens : std::min(left, model.limits.usual.value_or(left));
  const std::int64_t unasked = model.limits.unasked.value_or(usual);
  return std::min(left, request.max_completion_tokens.value_or(request.max_tokens.value_or(unasked)));
}

void check_least(const SamplingParameters& parameters) {
  if (parameters.min_tokens > parameters.max_tokens)
    throw wrong_value(fmt::format("[min_tokens] must be at most max_tokens, which is {} here, but is {}",
                                  parameters.max_tokens, parameters.min_tokens),
                      "min_tokens");
}

std::shared_ptr<const TokenConstraint> requested_constraint(const PreparedRequest& prepared, const ServedModel& model) {
  const ApiRequest& request = prepared.request;
  const AnswerForm& form = prepared.form;
  const ConstraintCompiler* compiler = model.constraints.get();
  auto asked = constraint_of(request.response_format, request.structured_outputs, compiler, format_field(request));
  const char* llama_field = request.json_schema.is_null() ? "grammar" : "json_schema";
  if (auto constraint = llama_constraint_of(request.json_schema, request.grammar.value_or(""), compiler)) {
    if (asked)
      throw wrong_value(fmt::format("[{}] excludes {} and structured_outputs", llama_field, format_field(request)),
                        llama_field);
    asked = std::move(constraint);
  }
  if (!form.must_call()) return asked;
  if (asked)
    throw wrong_value(fmt::format("[tool_choice] must be none or auto with {}, structured_outputs, json_schema or "
                                  "grammar",
                                  format_field(request)),
                      "tool_choice");
  return call_constraint(request.tools, form.tool_choice, *form.dialect, form.has_one_call, compiler);
}

// A constrained answer may have reasoning before it, if the prompt has begun it or the model can begin it with one
// token.
void constrain(PreparedRequest& prepared, const ServedModel& model) {
  std::shared_ptr<const TokenConstraint>& constraint = prepared.parameters.constraint;
  constraint = requested_constraint(prepared, model);
  AnswerForm& form = prepared.form;
  if (!constraint) return;
  form.is_constrained = true;
  if (form.dialect != nullptr && form.dialect->has_channels()) {
    if (!trim(prepared.prompt_text).ends_with(form.dialect->content_marker))
      constraint = constraint_after_reasoning(model.reasoning_tokens, std::move(constraint), true);
    return;
  }
  if (form.reasoning == nullptr) return;
  const bool is_over = ends_reasoning(prepared.prompt_text, *form.reasoning);
  if (!form.begins_reasoning && (is_over || !model.reasoning_tokens->begin_token())) {
    form.reasoning = nullptr;
  } else {
    constraint = constraint_after_reasoning(model.reasoning_tokens, std::move(constraint), form.begins_reasoning);
  }
}

// The marks that are looked for in the answer.
void show_markers(PreparedRequest& prepared, const ServedModel& model) {
  std::vector<int>& shown = prepared.parameters.shown_special;
  if (prepared.form.reasoning != nullptr) shown = model.reasoning_markers;
  if (prepared.form.dialect == nullptr) return;
  shown.insert(shown.end(), model.call_markers.begin(), model.call_markers.end());
}

}  // namespace

bool AnswerForm::must_call() const {
  return tool_choice.kind == ToolChoice::Kind::required || tool_choice.kind == ToolChoice::Kind::named;
}

std::unique_ptr<AnswerSplitter> AnswerForm::splitter(const Json& tools) const {
  static const Json kNoTools;
  using Kind = ToolChoice::Kind;
  std::unique_ptr<ToolParser> calls;
  if (dialect != nullptr) {
    calls = tool_choice.kind == Kind::named      ? arguments_parser(tool_choice.function)
            : tool_choice.kind == Kind::required ? dialect->envelope_parser()
                                                 : dialect->parser(tool_choice.kind == Kind::none ? kNoTools : tools);
    if (must_call() && dialect->has_channels()) calls = dialect->channel_parser(std::move(calls));
  }
  std::optional<ReasoningParser> reasons;
  if (reasoning != nullptr) reasons.emplace(*reasoning, begins_reasoning, is_constrained);
  if (!calls && !reasons) return nullptr;
  return std::make_unique<AnswerSplitter>(std::move(reasons), std::move(calls),
                                          AnswerSplitter::Calls{.one = has_one_call, .must = must_call()});
}

void check_model(const ApiRequest& request, const ServedModel& model) { chosen_adapter(request, model); }

ServedAdapterPointer chosen_adapter(const ApiRequest& request, const ServedModel& model) {
  const std::string name = request.model.value_or("");
  if (name.empty() || model.has_own_name(name))
    return request.lora.empty() ? model.adapters->of_all() : model.adapters->with_scales(request.lora);
  if (ServedAdapterPointer adapter = model.adapters->find(name)) {
    if (!request.lora.empty()) throw wrong_value("[lora] is for requests that name no adapter as their model", "lora");
    return adapter;
  }
  throw ApiError(404, "NotFoundError",
                 fmt::format("[model] {} is not served here, but {} is; weft serve --served-model-name gives the "
                             "model other names",
                             quote(*request.model), quote(model.names[0])),
                 "model");
}

std::string render_messages(const ApiRequest& request, const ServedModel& model) {
  const char* field = messages_field(request);
  if (!request.messages.is_array() || request.messages.empty())
    throw wrong_value(fmt::format("[{}] must have at least one message", field), field);
  check_tokenizer(model);
  if (request.chat_template && !model.trusts_templates)
    throw wrong_value(
        "[chat_template] a request must not bring its own template: weft serve "
        "--trust-request-chat-template takes it",
        "chat_template");
  if (!model.chat_template && !request.chat_template)
    throw wrong_value(fmt::format("[{}] {}", field, model.missing_template), field);
  try {
    const Json variables = template_variables(request, model);
    std::optional<ChatTemplate> own;
    if (request.chat_template) own.emplace(*request.chat_template);
    const ChatTemplate& chat_template = own ? *own : template_of(request, model);
    return request.continue_final_message.value_or(false) ? render_unfinished(chat_template, variables)
                                                          : chat_template.render(variables);
  } catch (const UserError& error) {
    throw wrong_value(error.what(), field);
  }
}

RenderedConversation render_conversation(ApiRequest& request, const ServedModel& model) {
  if (request.instructions) request.messages = with_instructions(std::move(request.messages), *request.instructions);
  std::string text = render_messages(request, model);
  if (request.endpoint != anthropic_count) check_text_length(text, request, model);
  std::vector<int> ids = encoded(text, request.add_special_tokens.value_or(false), model, messages_field(request));
  return {std::move(text), std::move(ids)};
}

PreparedRequest prepare(ApiRequest request, const ServedModel& model) {
  ServedAdapterPointer adapter = chosen_adapter(request, model);
  check_fields(request);
  if (is_pooled(request.endpoint)) {
    PreparedRequest pooled = prepare_pooled(std::move(request), model);
    pooled.adapter = std::move(adapter);
    return pooled;
  }
  if (!model.generates)
    throw not_made_here(
        "the model generates no text, since it makes embeddings or scores of texts; /v1/embeddings, /v1/score, "
        "/v1/rerank and /classify are there");
  PreparedRequest prepared{.request = std::move(request)};
  prepared.adapter = std::move(adapter);
  prepared.parameters = requested_sampling(prepared.request, model);
  check_given_limit(prepared.request, model);
  if (answers_messages(prepared.request.endpoint)) {
    add_chat_prompt(prepared, model);
  } else if (prepared.request.endpoint == llama_completion) {
    for (const PromptParts& parts : prepared.request.prompt_parts) add_prompt_of_parts(prepared, parts, model);
  } else if (prepared.request.endpoint == infill) {
    add_infill_prompt(prepared, model);
  } else {
    add_completion_prompts(prepared, model);
  }
  prepared.parameters.max_tokens = most_tokens(prepared, model);
  check_least(prepared.parameters);
  constrain(prepared, model);
  show_markers(prepared, model);
  prepared.choices = prepared.request.n.value_or(1);
  const std::int64_t seed = prepared.request.seed.value_or(-1);
  prepared.has_seed = seed != -1 && !(is_llama(prepared.request.endpoint) && seed == std::int64_t{kLlamaRandomSeed});
  if (prepared.has_seed) prepared.parameters.seed = static_cast<std::uint64_t>(*prepared.request.seed);
  // The prompt and the constraint are made of them. They may be large, and it is the I/O thread that frees the request.
  for (Json ApiRequest::*used :
       {&ApiRequest::messages, &ApiRequest::documents, &ApiRequest::template_arguments, &ApiRequest::response_format,
        &ApiRequest::structured_outputs, &ApiRequest::json_schema})
    prepared.request.*used = nullptr;
  return prepared;
}

}  // namespace weft
