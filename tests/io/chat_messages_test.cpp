// Messages as templates get them, and prompts for an answer that is already begun.

#include "io/chat_messages.h"

#include <gtest/gtest.h>

#include "tests/thrown_message.h"

namespace weft::chat_messages_test {

Json messages_of(const char* text) { return template_messages(Json::parse(text)); }

// Templates ask whether the content of a message with calls is none.
TEST(ChatMessages, HaveNoNullsButTheContent) {
  EXPECT_EQ(messages_of(R"([{"role": "assistant", "name": null, "content": null, "tool_calls": [{"id": null}]}, {}])"),
            Json::parse(R"([{"role": "assistant", "content": null, "tool_calls": [{"id": null}]}, {}])"));
}

TEST(ChatMessages, HaveTheirReasoningUnderTheNamesThatTemplatesRead) {
  for (const char* name : {"reasoning_content", "thinking", "reasoning"}) {
    const Json message = template_messages({{{name, "why"}}})[0];
    EXPECT_EQ(message["reasoning_content"], "why") << name;
    EXPECT_EQ(message["thinking"], "why") << name;
  }
  const Json both = messages_of(R"([{"thinking": "a", "reasoning_content": "b"}])")[0];
  EXPECT_EQ(both["thinking"], "a");
  EXPECT_EQ(both["reasoning_content"], "b");
}

TEST(ChatMessages, AreAListOfObjects) {
  EXPECT_NE(message_of([] { messages_of("7"); }).find("[messages] must be a list"), std::string::npos);
  EXPECT_NE(message_of([] { messages_of(R"([{}, "x"])"); }).find("message 1 is a JSON string"), std::string::npos);
}

TEST(ChatMessages, AnAnswerOfSeveralChannelsIsOneMessage) {
  EXPECT_EQ(answer_message("Hello"), (Json{{"role", "assistant"}, {"content", "Hello"}}));
  EXPECT_EQ(answer_message("<|channel|>analysis<|message|>Why?<|start|>assistant<|channel|>final<|message|>Hello"),
            (Json{{"role", "assistant"}, {"content", "Hello"}, {"thinking", "Why?"}}));
  EXPECT_EQ(answer_message("<|channel|>final<|message|>Hello<|message|>"),
            (Json{{"role", "assistant"}, {"content", "Hello<|message|>"}}));
  EXPECT_EQ(answer_message("<|channel|>analysis<|message|>Wh"),
            (Json{{"role", "assistant"}, {"content", ""}, {"thinking", "Wh"}}))
      << "an answer that is cut off";
  EXPECT_EQ(answer_message("<|channel|>fin"), (Json{{"role", "assistant"}, {"content", ""}}));
}

class Unfinished : public ::testing::Test {
 protected:
  static std::string rendered(const std::string& source, const Json& content) {
    return render_unfinished(ChatTemplate(source), {{"messages", {{{"role", "assistant"}, {"content", content}}}}});
  }
};

TEST_F(Unfinished, TextEndsWithTheContent) {
  EXPECT_EQ(rendered("<{{ messages[0].content }}>", "One, "), "<One, ");
  EXPECT_EQ(rendered("<{{ messages[0].content | trim }}>", "  One, "), "<One,") << "the template strips the content";
  const Json parts = {{{"type", "text"}, {"text", "a"}}, {{"type", "text"}, {"text", "b "}}, {{"type", "image"}}};
  EXPECT_EQ(rendered("{% for one in messages[0].content %}[{{ one.text }}]{% endfor %}", parts), "[a][b ");
}

TEST_F(Unfinished, ContentMustBeWritten) {
  EXPECT_NE(message_of([] { rendered("x", "One"); }).find("[messages] the last message cannot"), std::string::npos);
  EXPECT_NE(message_of([] { rendered("{{ messages[0].content | upper }}", "One"); }), "");
  EXPECT_NE(message_of([] { rendered("x", {{{"type", "image"}}}); }).find("wanted text"), std::string::npos);
  EXPECT_NE(message_of([] { rendered("x", 5); }).find("wanted text"), std::string::npos);
  const ChatTemplate chat_template("x");
  EXPECT_NE(message_of([&] {
              render_unfinished(chat_template, {{"messages", Json::array()}});
            }).find("wanted a last message"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              render_unfinished(chat_template, {{"messages", {{{"role", "assistant"}}}}});
            }).find("wanted content"),
            std::string::npos);
}

}  // namespace weft::chat_messages_test
