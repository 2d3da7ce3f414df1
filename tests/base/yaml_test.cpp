#include "base/yaml.h"

#include <gtest/gtest.h>

#include "tests/thrown_message.h"

namespace weft::yaml_test {

Json read(const std::string& text) { return json_of_yaml(text, "c.yaml"); }
std::string problem(const std::string& text) {
  return message_of([&] { read(text); });
}

TEST(Yaml, IsWhatJsonSays) {
  EXPECT_EQ(read("# vLLM's example\nmodel: meta-llama/Llama-3.1-8B-Instruct\nhost: \"127.0.0.1\"\nport: 6379\n"
                 "uvicorn-log-level: info\nmin-p: 0.5\nslots: true\nempty:\nnames:\n  - a\n  - '1'\n"
                 "speculative-config: {method: ngram, num_speculative_tokens: 5}\n"),
            parse_json(R"({"model": "meta-llama/Llama-3.1-8B-Instruct", "host": "127.0.0.1", "port": 6379,
                           "uvicorn-log-level": "info", "min-p": 0.5, "slots": true, "empty": null,
                           "names": ["a", "1"], "speculative-config": {"method": "ngram", "num_speculative_tokens": 5}})"));
  EXPECT_EQ(read("a: nan\nb: -1\nc: 1e3\nd: 12:30\ne: -x\nf: '~'"),
            parse_json(R"({"a": "nan", "b": -1, "c": 1000.0, "d": "12:30", "e": "-x", "f": "~"})"));
  EXPECT_EQ(read(""), Json(nullptr));
}

TEST(Yaml, RefusesWhatIsNotAFileOfFlags) {
  EXPECT_NE(problem("a: 1\nb: [1").find("[c.yaml] is not YAML: line"), std::string::npos) << problem("a: 1\nb: [1");
  EXPECT_NE(problem("a: 1\na: 2").find("line 2: the key \"a\" is there twice"), std::string::npos);
  EXPECT_NE(problem("[1]: 2").find("a key must be a text"), std::string::npos);
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string below = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + below;
    for (int j = 0; j < 8; ++j) bomb += ", " + below;
    bomb += "]\n";
  }
  EXPECT_NE(problem(bomb).find("larger or deeper"), std::string::npos);
  EXPECT_NE(problem("a: &a [*a]").find("larger or deeper"), std::string::npos);
}

}  // namespace weft::yaml_test
