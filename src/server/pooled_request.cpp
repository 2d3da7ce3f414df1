#include "server/pooled_request.h"

#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "server/json_body.h"
#include "server/prompt_ids.h"
#include "server/prompt_length.h"
#include "server/request_fields.h"

namespace weft {
namespace {

PreparedRequest prepared_texts(ApiRequest request, const ServedModel& model) {
  PreparedRequest prepared{.request = std::move(request), .parameters = {.max_tokens = 1}, .pooling = model.pooling};
  add_completion_prompts(prepared, model);
  return prepared;
}

PreparedRequest prepare_embeddings(ApiRequest request, const ServedModel& model) {
  if (model.embedding_head.scores)
    throw not_made_here(
        "the model scores texts, and makes no embeddings; /v1/score, /v1/rerank and /classify are there");
  const std::int64_t width = model.embedding_head.width;
  if (request.dimensions && *request.dimensions > width)
    throw wrong_value(fmt::format("[dimensions] must be at most the model's {}, but is {}", width, *request.dimensions),
                      "dimensions");
  return prepared_texts(std::move(request), model);
}

PreparedRequest prepare_classes(ApiRequest request, const ServedModel& model) {
  if (!model.embedding_head.scores)
    throw not_made_here(
        fmt::format("the model has no classes: they are the labels of a model whose class is "
                    "...ForSequenceClassification, or of a GGUF file with cls.output{}",
                    model.pooling ? "; this one makes embeddings, and /v1/embeddings is there" : ""));
  return prepared_texts(std::move(request), model);
}

// The tasks are vLLM's.
PreparedRequest prepare_raw_pooling(ApiRequest request, const ServedModel& model) {
  const char* own = model.embedding_head.scores ? "classify" : "embed";
  if (request.task.value_or(own) != own)
    throw wrong_value(fmt::format("[task] must be {} with this model, but is {}", own, quote(*request.task)), "task");
  return prepared_texts(std::move(request), model);
}

std::string read_ranked_texts(simdjson::dom::element value, std::vector<std::string>& texts) {
  texts.clear();
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) {
    texts.emplace_back(text);
    return "";
  }
  simdjson::dom::array list;
  if (value.get(list) != simdjson::SUCCESS) return "a text or a list of texts";
  for (const simdjson::dom::element item : list) {
    simdjson::dom::object object;
    const bool is_text = item.get(text) == simdjson::SUCCESS;
    const auto inner = !is_text && item.get(object) == simdjson::SUCCESS ? last_member(object, "text") : std::nullopt;
    if (!is_text && (!inner || inner->get(text) != simdjson::SUCCESS))
      throw WrongPart{
          fmt::format("item {} must be a text, or an object with a text, but is {}", texts.size(), shown(item))};
    texts.emplace_back(text);
  }
  return "";
}

PreparedPrompt prompt_of(std::vector<int> ids, std::int64_t second, const ApiRequest& request,
                         const ServedModel& model) {
  check_length(ids.size(), request, model);
  return {.ids = std::make_shared<const std::vector<int>>(std::move(ids)), .second_text = second};
}

// Two texts by the template. Where it has the second one is not known, so that cannot be cut.
PreparedPrompt templated_pair(const std::string& first, const std::string& second, const ApiRequest& request,
                              const ServedModel& model) {
  if (!model.missing_score_template.empty()) throw not_made_here(model.missing_score_template);
  std::string text;
  try {
    text = model.score_template->render(first, second, request.instruction, model.tokenizer->vocabulary());
  } catch (const UserError& error) {
    throw wrong_value(error.what(), prompt_field(request));
  }
  check_text_length(text, request, model);
  std::vector<int> ids = encoded(text, model.score_template->adds_special(), model, prompt_field(request));
  const std::int64_t most = request.truncate_prompt_tokens.value_or(-1);
  if (most >= 0 && std::ssize(ids) > most)
    throw wrong_value(fmt::format("[truncate_prompt_tokens] must be at least the {} tokens of a prompt by the model's "
                                  "template, which is not cut, but is {}",
                                  ids.size(), most),
                      "truncate_prompt_tokens");
  return prompt_of(std::move(ids), INT64_MAX, request, model);
}

// Two texts as the tokenizer joins them, whose second text loses its end where truncate_prompt_tokens asks for it.
PreparedPrompt joined_pair(const std::string& first, const std::string& second, const ApiRequest& request,
                           const ServedModel& model) {
  Tokenizer::Pair pair;
  try {
    pair = model.tokenizer->encode_pair(first, second);
  } catch (const UserError& error) {
    throw wrong_value(error.what(), prompt_field(request));
  }
  const std::int64_t given = request.truncate_prompt_tokens.value_or(std::ssize(pair.ids));
  const auto most = static_cast<std::size_t>(given >= 0 ? given : model.max_model_len);
  if (pair.ids.size() > most) {
    const std::size_t after = model.tokenizer->vocabulary().suffix.size(), dropped = pair.ids.size() - most;
    if (dropped > pair.ids.size() - after - pair.second)
      throw wrong_value(fmt::format("[truncate_prompt_tokens] must leave the first text whole, which takes {} tokens, "
                                    "but is {}",
                                    pair.second + after, most),
                        "truncate_prompt_tokens");
    const auto last = pair.ids.end() - static_cast<std::ptrdiff_t>(after);
    pair.ids.erase(last - static_cast<std::ptrdiff_t>(dropped), last);
  }
  return prompt_of(std::move(pair.ids), static_cast<std::int64_t>(pair.second), request, model);
}

// The text of at most so many of its tokens; 0: all of it.
std::string begin_of(const std::string& text, std::int64_t most, const ServedModel& model, const char* field) {
  if (most == 0) return text;
  std::vector<int> ids = encoded(text, false, model, field);
  if (std::ssize(ids) <= most) return text;
  ids.resize(static_cast<std::size_t>(most));
  return model.tokenizer->decode(ids);
}

// The texts as the model reads them; the answer has them whole.
struct RankedTexts {
  std::vector<std::string> first, second;
};
RankedTexts ranked_texts(const ApiRequest& request, const ServedModel& model) {
  const auto begins = [&](const std::vector<std::string>& texts, std::optional<std::int64_t> most, const char* field) {
    if (most.value_or(0) >= model.max_model_len)
      throw wrong_value(
          fmt::format("[{}] must be less than the context of {} tokens, but is {}", field, model.max_model_len, *most),
          field);
    std::vector<std::string> result;
    for (const std::string& text : texts) result.push_back(begin_of(text, most.value_or(0), model, field));
    return result;
  };
  return {begins(request.first_texts, request.max_tokens_per_query, "max_tokens_per_query"),
          begins(request.second_texts, request.max_tokens_per_doc, "max_tokens_per_doc")};
}

// A model that makes embeddings has a prompt for each text: those of the first texts come first.
void add_texts(PreparedRequest& prepared, const RankedTexts& texts, const ServedModel& model) {
  for (const auto* each : {&texts.first, &texts.second})
    prepared.request.prompts.insert(prepared.request.prompts.end(), each->begin(), each->end());
  add_completion_prompts(prepared, model);
}

PreparedRequest prepare_ranking(ApiRequest request, const ServedModel& model) {
  const EmbeddingHead& head = model.embedding_head;
  check_tokenizer(model);
  if (head.scores && head.width != 1)
    throw not_made_here(
        fmt::format("the model has {} classes; one that ranks texts has one, and /classify is there", head.width));
  if (request.first_texts.empty()) throw wrong_value("[text_1] must have at least one text", "text_1");
  const char* field = prompt_field(request);
  if (request.second_texts.empty()) throw wrong_value(fmt::format("[{}] must have at least one text", field), field);
  const std::size_t firsts = request.first_texts.size(), seconds = request.second_texts.size();
  if (firsts != 1 && firsts != seconds)
    throw wrong_value(
        fmt::format("[text_1] must be one text, or as many as text_2 has, {}, but has {}", seconds, firsts), "text_1");
  const bool reads_instructions = model.score_template && model.score_template->reads_instructions();
  if (!request.instruction.value_or("").empty() && !reads_instructions)
    throw not_made_here("the prompt of the model's scores has no place for an instruction");
  PreparedRequest prepared{.request = std::move(request), .parameters = {.max_tokens = 1}, .pooling = model.pooling};
  const ApiRequest& own = prepared.request;
  const RankedTexts texts = ranked_texts(own, model);
  if (!head.scores) add_texts(prepared, texts, model);
  for (std::size_t i = 0; i < seconds; ++i) {
    const std::size_t first = firsts == 1 ? 0 : i;
    prepared.pairs.push_back(head.scores ? ScoredPair{i, i} : ScoredPair{first, firsts + i});
    const auto pair_of = model.score_template ? templated_pair : joined_pair;
    if (head.scores) prepared.prompts.push_back(pair_of(texts.first[first], texts.second[i], own, model));
  }
  return prepared;
}

}  // namespace

std::string read_first_texts(simdjson::dom::element value, ApiRequest& request) {
  return read_ranked_texts(value, request.first_texts);
}

std::string read_second_texts(simdjson::dom::element value, ApiRequest& request) {
  return read_ranked_texts(value, request.second_texts);
}

PreparedRequest prepare_pooled(ApiRequest request, const ServedModel& model) {
  if (!model.pooling && request.endpoint != classify)
    throw not_made_here(
        "the model states no pooling of hidden states, as embedding models do: weft serve --pooling last, mean or cls "
        "gives it one");
  switch (request.endpoint) {
    case embeddings:
    case llama_embedding:
      return prepare_embeddings(std::move(request), model);
    case classify:
      return prepare_classes(std::move(request), model);
    case raw_pooling:
      return prepare_raw_pooling(std::move(request), model);
    default:
      return prepare_ranking(std::move(request), model);
  }
}

}  // namespace weft
