#pragma once

// A request as the engine runs it: prompts as token ids, and parameters. Preparing is what takes long for long prompts,
// so threads of their own do it (worker_pool.h).

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/sampling/sampler.h"
#include "io/embedding_head.h"
#include "server/answer_splitter.h"
#include "server/api_request.h"
#include "server/served_model.h"

namespace weft {

struct PreparedPrompt {
  std::string text;  // with echo: what the answer begins with
  std::shared_ptr<const std::vector<int>> ids;
  std::int64_t second_text = INT64_MAX;  // as NewRequest::second_text
};

// A score is made of two prompts, or of one that has both texts.
struct ScoredPair {
  std::size_t first = 0, second = 0;
};

// What the text of a chat's answer may consist of.
struct AnswerForm {
  const ReasoningFormat* reasoning = nullptr;  // null: there is none
  bool begins_reasoning = false;
  bool shows_reasoning = true;
  bool is_constrained = false;           // what follows the reasoning has an asked form
  const ToolDialect* dialect = nullptr;  // null: the answer has no calls
  ToolChoice tool_choice;
  bool has_one_call = false;

  // Whether the answer consists of calls alone.
  bool must_call() const;
  // nullptr if all of the answer is content. `tools` are those of the request, which the splitter refers to.
  std::unique_ptr<AnswerSplitter> splitter(const Json& tools) const;
};

struct PreparedRequest {
  ApiRequest request;
  std::vector<PreparedPrompt> prompts;
  std::string prompt_text;  // of messages: what the template gives
  AnswerForm form;
  SamplingParameters parameters;   // max_tokens is at most what the shortest prompt leaves
  std::int64_t choices = 1;        // of each prompt
  std::optional<Pooling> pooling;  // of embeddings and scores, which have no other answer
  std::vector<ScoredPair> pairs;   // of scores, in their order
  bool has_seed = false;
  ServedAdapterPointer adapter;  // null: that with which the model was opened
};

// NewRequest::adapter of its sequences.
inline std::shared_ptr<const LoadedAdapter> loaded_adapter(const PreparedRequest& prepared) {
  return prepared.adapter == nullptr ? nullptr : prepared.adapter->loaded;
}

// Of all endpoints that answer by the model. ApiError for a request that the model cannot answer.
PreparedRequest prepare(ApiRequest request, const ServedModel& model);

// The conversation as the model's template writes it.
std::string render_messages(const ApiRequest& request, const ServedModel& model);

struct RenderedConversation {
  std::string text;
  std::vector<int> ids;
};

// The same with its tokens. The instructions of the request become the first of its messages.
RenderedConversation render_conversation(ApiRequest& request, const ServedModel& model);

// The adapter that the request names as its model, or that of its scales. ApiError 404 for another name.
ServedAdapterPointer chosen_adapter(const ApiRequest& request, const ServedModel& model);
void check_model(const ApiRequest& request, const ServedModel& model);

}  // namespace weft
