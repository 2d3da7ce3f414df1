#include "io/known_keys.h"

#include <set>

#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/thrown_message.h"

namespace weft::known_keys_test {

constexpr KeyTable kTables[] = {KeyTable::config,
                                KeyTable::rope,
                                KeyTable::quantization,
                                KeyTable::quantization_group,
                                KeyTable::quantization_arguments,
                                KeyTable::gguf_general,
                                KeyTable::gguf_model,
                                KeyTable::gguf_tokenizer,
                                KeyTable::tokenizer_config,
                                KeyTable::generation_config};

std::string refusal(KeyTable table, const std::string& key, const Json& value) {
  return message_of([&] { unknown_keys(table, Json{{key, value}}, "file", "in."); });
}

TEST(KnownKeys, EachIsInItsTableOnce) {
  for (const KeyTable table : kTables) {
    std::set<std::string_view> names;
    for (const KnownKey& key : known_keys(table)) EXPECT_TRUE(names.insert(key.name).second) << key.name;
    EXPECT_FALSE(names.empty());
  }
}

TEST(KnownKeys, OnlyThoseThatChangeResultsAreRefusedAndOnlyWithAnEffect) {
  for (const KeyTable table : kTables)
    for (const KnownKey& key : known_keys(table)) {
      const std::string name(key.name), message = refusal(table, name, "strange");
      EXPECT_EQ(message.empty(), key.kind != KeyClass::changes) << name;
      EXPECT_EQ(refusal(table, name, nullptr), "") << name;
      if (key.kind != KeyClass::changes) continue;
      EXPECT_FALSE(key.why.empty()) << name;
      EXPECT_NE(message.find("[file] in." + name + " asks for "), std::string::npos) << message;
      for (const std::string& value : split_text(std::string(key.without_effect), '|'))
        if (!value.empty()) {
          EXPECT_EQ(refusal(table, name, parse_json(value)), "") << name << " " << value;
        }
    }
}

TEST(KnownKeys, AnArchitecturesOwnKeysAreNotRefused) {
  const std::vector<std::string_view> own = {"logit_scale"};
  const Json json{{"logit_scale", 2}, {"mine", 1}, {"logits_scaling", 1.0}};
  EXPECT_EQ(unknown_keys(KeyTable::config, json, "file", "", own), (std::vector<std::string>{"mine"}));
  EXPECT_NE(message_of([&] { unknown_keys(KeyTable::config, json, "file"); }).find("logit_scale"), std::string::npos);
}

}  // namespace weft::known_keys_test
