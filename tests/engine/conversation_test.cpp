// A conversation grows by each answered message, and only by those.

#include "engine/conversation.h"

#include <gtest/gtest.h>

#include "tests/engine/tiny_model.h"
#include "tests/thrown_message.h"

namespace weft::conversation_test {

constexpr const char* kTemplate = "{% for m in messages %}[{{ m.role }}:{{ m.content }}]{% endfor %}>";

class ConversationOfTiny : public ::testing::Test {
 protected:
  const TemporaryFolder folder_;
  const std::unique_ptr<Engine> engine_ = tiny_engine(write_tiny_model(folder_));
  Conversation conversation_{*engine_, {.max_tokens = 2, .ignore_end = true}, kTemplate};
};

TEST_F(ConversationOfTiny, AnswersTheWholeConversation) {
  conversation_.add("system", "be brief");
  std::string shown;
  const Conversation::Answer first = conversation_.answer("hi", [&](const std::string& text) { shown += text; });
  EXPECT_EQ(shown, first.generation.text);
  EXPECT_EQ(first.generation.tokens.size(), 2U);
  const std::string prompt = "[system:be brief][user:hi]>";
  const std::vector<int> ids = engine_->tokenizer().encode(prompt, {.add_special = false});
  EXPECT_EQ(first.prompt_tokens, ids.size());
  EXPECT_EQ(engine_->generate(ids, {.max_tokens = 2, .ignore_end = true}).tokens, first.generation.tokens);
  ASSERT_EQ(conversation_.messages().size(), 3U);
  EXPECT_EQ(conversation_.messages()[2], (Json{{"role", "assistant"}, {"content", first.generation.text}}));
}

TEST_F(ConversationOfTiny, IsAsBeforeWhenAMessageCannotBeAnswered) {
  const Json before = conversation_.messages();
  const auto too_long = static_cast<std::size_t>(engine_->max_model_len()) + 1;
  for (const std::string& bad : {std::string(too_long, 'x'), std::string("a\xff")}) {
    EXPECT_NE(message_of([&] { conversation_.answer(bad); }), "");
    EXPECT_EQ(conversation_.messages(), before);
  }
}

TEST(ChatVariables, AreOverriddenByThoseOfAnObject) {
  Vocabulary vocabulary;
  vocabulary.tokens = {"a", "<s>"};
  vocabulary.bos = 1;
  const Json messages{{"messages", {{{"role", "user"}}}}, {"bos_token", "x"}, {"more", 1}};
  const Json variables = chat_variables(vocabulary, messages, true);
  EXPECT_EQ(variables["bos_token"], "x");
  EXPECT_EQ(variables["more"], 1);
  EXPECT_EQ(variables["messages"], messages["messages"]);
  EXPECT_EQ(chat_variables(vocabulary, Json::array(), true)["bos_token"], "<s>");
  EXPECT_FALSE(chat_variables(vocabulary, Json::array(), true).contains("eos_token"));
}

TEST(ChatVariables, HaveTheTextsThatAFileNames) {
  Vocabulary vocabulary;
  vocabulary.tokens = {"<s>", "</s>"};
  vocabulary.bos = 0;
  vocabulary.eos = 1;
  vocabulary.named_texts = {{"sep_token", "<sep>"}, {"bos_token", std::nullopt}};
  const Json variables = chat_variables(vocabulary, Json::array(), true);
  EXPECT_EQ(variables["sep_token"], "<sep>");
  EXPECT_EQ(variables["eos_token"], "</s>");
  EXPECT_FALSE(variables.contains("bos_token")) << "the file says that there is none";
}

TEST(ChatVariables, AreOverriddenByArguments) {
  const Json messages{{"messages", Json::array()}, {"enable_thinking", true}};
  const Json arguments = parse_template_arguments(R"({"enable_thinking": false})", "--chat-template-kwargs");
  EXPECT_EQ(chat_variables({}, messages, true, arguments)["enable_thinking"], false);
}

TEST(TemplateArguments, AreAnObjectWithoutTheConversation) {
  EXPECT_EQ(parse_template_arguments("", "flag"), Json::object());
  for (const char* text : {"[]", "x", R"({"messages": []})", R"({"add_generation_prompt": true})"})
    EXPECT_EQ(message_of([&] { parse_template_arguments(text, "flag"); }).rfind("[flag] ", 0), 0U) << text;
}

TEST_F(ConversationOfTiny, PassesArgumentsToTheTemplate) {
  Conversation conversation(*engine_, {.max_tokens = 1, .ignore_end = true}, "{{ mode }}>", {{"mode", "short"}});
  EXPECT_EQ(conversation.answer("hi").prompt_tokens,
            engine_->tokenizer().encode("short>", {.add_special = false}).size());
}

}  // namespace weft::conversation_test
