#include "server/score_template.h"

#include <gtest/gtest.h>

namespace weft::score_template_test {

std::string rendered(const ScorePrompt& prompt, const std::optional<std::string>& instruction = {}) {
  return ScoreTemplate(prompt).render("{document}?", "a {query}", instruction, Vocabulary());
}

TEST(ScoreTemplate, OfAPlainTextIsFilledOnce) {
  const ScorePrompt plain{.source = "Q {query} D {document}, {query}.", .is_plain = true};
  EXPECT_EQ(rendered(plain), "Q {document}? D a {query}, {document}?.");
  EXPECT_TRUE(ScoreTemplate(plain).has_both_texts(Vocabulary()));
  EXPECT_FALSE(ScoreTemplate(plain).reads_instructions());
  EXPECT_FALSE(ScoreTemplate({.source = "{query}", .is_plain = true}).has_both_texts(Vocabulary()));
}

TEST(ScoreTemplate, OfJinjaHasMessagesByRole) {
  const char* each = "{% for m in messages %}{{ m.role }}={{ m.content }};{% endfor %}{{ instruction }}";
  EXPECT_EQ(rendered({.source = each}), "query={document}?;document=a {query};");
  EXPECT_EQ(rendered({.source = each, .instruction = "do"}), "system=do;query={document}?;document=a {query};");
  EXPECT_EQ(rendered({.source = each, .instruction = "do"}, "else"),
            "system=else;query={document}?;document=a {query};else");
  const char* parts = "{% for m in messages %}{{ m.content[0].type }}:{{ m.content[0].text }};{% endfor %}";
  EXPECT_EQ(rendered({.source = parts, .has_parts = true}), "text:{document}?;text:a {query};");
}

TEST(ScoreTemplate, HasTheVariablesOfTheFolder) {
  const char* end = "{{ messages[0].content }}{{ messages[1].content }}{{ add_generation_prompt }}{{ x }}";
  EXPECT_EQ(rendered({.source = end}), "{document}?a {query}False");
  EXPECT_EQ(rendered({.source = end, .arguments = {{"add_generation_prompt", true}, {"x", 3}}}),
            "{document}?a {query}True3");
  EXPECT_EQ(rendered({.source = end, .arguments = {{"add_generation_prompt", "yes"}}}), "{document}?a {query}False");
}

TEST(ScoreTemplate, OfAChatHasNotBothTexts) {
  EXPECT_FALSE(ScoreTemplate({.source = "{{ messages[0].content }}"}).has_both_texts(Vocabulary()));
  EXPECT_FALSE(ScoreTemplate({.source = "{{ raise_exception('roles') }}"}).has_both_texts(Vocabulary()));
}

}  // namespace weft::score_template_test
