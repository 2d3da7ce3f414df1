// Lists of paths with names or factors: --lora-modules and --lora-scaled.

#include <gtest/gtest.h>

#include "options/options.h"
#include "tests/thrown_message.h"

namespace weft::named_paths_test {

Words set_to(std::string_view text) {
  Options options;
  set_option(options, "lora-modules", text, "test");
  return options.lora_modules;
}

TEST(NamedPaths, AreWordsOrObjects) {
  const Words both{"a=/x/y", "b=z,1"};
  EXPECT_EQ(set_to("a=/x/y,c=z"), (Words{"a=/x/y", "c=z"}));
  EXPECT_EQ(set_to(R"({"name": "a", "path": "/x/y", "base_model_name": "m"})"), Words{"a=/x/y"});
  EXPECT_EQ(set_to(R"([{"name": "a", "path": "/x/y"}, "b=z,1"])"), both);
  Options options;
  const std::vector<std::string> words{"--lora-modules", "a=/x/y", R"({"name":"b","path":"z,1"})", "--port", "1"};
  EXPECT_EQ(take_option(options, words), 3U);
  EXPECT_EQ(options.lora_modules, both);
  EXPECT_EQ(take_option(options, std::vector<std::string>{"--lora-modules=c=d", "e=f", "g"}), 2U);
  EXPECT_EQ(options.lora_modules.size(), 4U);
  Options json;
  apply_json(json, R"({"lora-modules": [{"name": "a", "path": "/x/y"}, "b=z,1"]})", "test");
  EXPECT_EQ(json.lora_modules, both);
  for (const char* wrong : {"a", "=b", "a=", R"({"name": "a"})", R"({"name": "a=b", "path": "c"})", "{", R"([1])",
                            R"({"name": "a", "path": "b", "rank": 1})"})
    EXPECT_NE(message_of([&] { set_to(wrong); }), "") << wrong;
}

// --lora-scaled, as llama.cpp takes it.
TEST(ScaledPaths, MayBeTwoWords) {
  Options options;
  EXPECT_EQ(take_option(options, std::vector<std::string>{"--lora-scaled", "a.gguf", "0.5", "--port"}), 3U);
  EXPECT_EQ(take_option(options, std::vector<std::string>{"--lora-scaled", "b.gguf:-2", "--port"}), 2U);
  EXPECT_EQ(take_option(options, std::vector<std::string>{"--lora-scaled", "c.gguf:1,d.gguf:2"}), 2U);
  EXPECT_EQ(options.lora_scaled, (Words{"a.gguf:0.5", "b.gguf:-2", "c.gguf:1", "d.gguf:2"}));
  EXPECT_EQ(take_option(options, std::vector<std::string>{"--adapter-path", "e"}), 2U);
  EXPECT_EQ(options.lora, Words{"e"});
}

}  // namespace weft::named_paths_test
