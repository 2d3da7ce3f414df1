// Text that the engine holds back is in a stream that the server cuts, in every API.

#include "server/held_text.h"

#include <gtest/gtest.h>

#include "server/generation.h"
#include "server/llama_completion.h"
#include "server/messages_answer.h"
#include "server/responses_answer.h"
#include "tests/engine/tiny_model.h"
#include "tests/server/recorded_reply.h"

namespace weft::held_text_test {

std::unique_ptr<RunningRequest> answer_of(Endpoint endpoint, const ServedModel& model,
                                          const std::shared_ptr<HttpReply>& reply) {
  PreparedRequest prepared;
  prepared.request.endpoint = endpoint;
  prepared.request.stream = true;
  prepared.parameters.stop = {"BBBx"};
  prepared.prompts.push_back({"", std::make_shared<const std::vector<int>>(3, 'p')});
  switch (endpoint) {
    case llama_completion:
      return std::make_unique<LlamaCompletion>(std::move(prepared), model, 5, reply);
    case responses:
      return std::make_unique<ResponsesAnswer>(std::move(prepared), model, "ID", 5, reply);
    case anthropic_messages:
      return std::make_unique<MessagesAnswer>(std::move(prepared), model, "ID", 5, reply);
    default:
      return std::make_unique<Generation>(std::move(prepared), model, "ID", 5, reply);
  }
}

// The text of an event.
std::string text_of(const Json& event, Endpoint endpoint) {
  switch (endpoint) {
    case llama_completion:
      return event["content"];
    case responses:
      return event["type"] == "response.output_text.delta" ? event["delta"].get<std::string>() : "";
    case anthropic_messages:
      return event["type"] == "content_block_delta" ? event["delta"]["text"].get<std::string>() : "";
    case chat:
      return event["choices"][0]["delta"].value("content", Json(""));
    default:
      return event["choices"][0]["text"];
  }
}

TEST(HeldText, IsGivenOutWhenAStreamIsCut) {
  const TemporaryFolder folder;
  const auto engine = tiny_engine(write_tiny_model(folder));  // whose tokens are bytes
  ServedModel model;
  model.names = {"m"};
  model.tokenizer = &engine->tokenizer();
  for (const Endpoint endpoint : {completions, chat, llama_completion, responses, anthropic_messages}) {
    const auto reply = std::make_shared<RecordedReply>();
    const auto answer = answer_of(endpoint, model, reply);
    answer->begin(7);
    const std::pair<int, const char*> tokens[] = {{'a', "a"}, {'B', ""}, {'b', "Bb"}, {'B', ""}, {'B', ""}, {0xC3, ""}};
    for (const auto& [token, text] : tokens)
      answer->take({.ticket = 5, .event = {.token = token, .text = text, .finished = FinishReason::none}});
    answer->abort();
    EXPECT_TRUE(reply->has_ended);
    std::string joined;
    for (const Json& event : reply->events) joined += text_of(event, endpoint);
    EXPECT_EQ(joined, "aBbBB\xEF\xBF\xBD") << endpoint;
  }
}

}  // namespace weft::held_text_test
