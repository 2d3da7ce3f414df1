// Templates that use what the templates of published models use give the texts that transformers gives.
// tests/data/templates/make.py recorded them.

#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "engine/conversation.h"
#include "io/chat_messages.h"
#include "tests/thrown_message.h"

namespace weft::recorded_templates_test {

std::string read(const std::string& name) {
  std::ifstream file(std::string(WEFT_TEST_DATA) + "/templates/" + name, std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Recorded {
  Json renderings = Json::parse(read("renderings.json"));
  Json conversations = Json::parse(read("conversations.json"));
  std::map<std::string, std::string> templates;

  Vocabulary vocabulary() const {
    Vocabulary result;
    for (const auto& [name, text] : renderings["tokens"].items()) result.named_texts[name] = text.get<std::string>();
    return result;
  }

  std::string rendering(const Json& one) {
    const std::string& name = one["template"].get_ref<const std::string&>();
    std::string& source = templates[name];
    if (source.empty()) source = read(name + ".jinja");
    Json conversation = conversations[one["conversation"].get_ref<const std::string&>()];
    if (conversation.contains("tools") && conversation["tools"] == "all") conversation["tools"] = renderings["tools"];
    const Json variables = chat_variables(vocabulary(), conversation, one.value("add_generation_prompt", false),
                                          one.value("arguments", Json::object()));
    const ChatTemplate chat_template(source);
    return one.contains("continue_final_message") ? render_unfinished(chat_template, variables)
                                                  : chat_template.render(variables);
  }
};

TEST(RecordedTemplates, GiveTheTextsOfTransformers) {
  Recorded recorded;
  int texts = 0, continued = 0, failures = 0;
  for (const Json& one : recorded.renderings["cases"]) {
    const std::string name = one["template"].get<std::string>() + ", " + one["conversation"].get<std::string>();
    std::string text;
    const std::string failure = message_of([&] { text = recorded.rendering(one); });
    if (one.contains("fails")) {
      EXPECT_NE(failure, "") << name << " gave " << text << "\ninstead of " << one["fails"];
      ++failures;
      continue;
    }
    EXPECT_EQ(failure, "") << name;
    EXPECT_EQ(text, one["text"]) << name << " " << one.value("arguments", Json());
    continued += one.contains("continue_final_message") ? 1 : 0;
    ++texts;
  }
  EXPECT_GT(texts, 700);
  EXPECT_GT(continued, 50);
  EXPECT_GT(failures, 50);
  EXPECT_GT(recorded.templates.size(), 15U);
}

}  // namespace weft::recorded_templates_test
