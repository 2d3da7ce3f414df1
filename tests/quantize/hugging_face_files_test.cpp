#include "quantize/hugging_face_files.h"

#include <fstream>

#include <gtest/gtest.h>

#include "base/error.h"
#include "io/gguf_pre_tokenizers.h"
#include "io/gguf_vocabulary.h"
#include "io/tokenizer.h"
#include "io/tokenizer_json.h"
#include "tests/base/temporary_folder.h"
#include "tests/io/gguf_bytes.h"
#include "tests/io/small_vocabulary.h"

namespace weft::hugging_face_files_test {

constexpr const char* kText = "It's 12,345 O'Neill\u2019s  caf\u00e9<|end|>\n\n\u4e2d\u6587 x/y <|end|>\t";

GgufTokenizerFields small_fields(std::string_view pre) {
  GgufTokenizerFields fields;
  fields.model = "gpt2";
  fields.pre = pre;
  fields.tokens = small_vocabulary({{"1", "2"}, {" ", "x"}, {"\n", "\n"}}).tokens;
  fields.tokens.push_back("<|end|>");
  fields.token_type.assign(fields.tokens.size(), 1);
  fields.token_type.back() = 3;
  fields.merges = {"1 2", "\u0120 x", "\u010a \u010a"};
  fields.bos_token_id = fields.eos_token_id = static_cast<std::int64_t>(fields.tokens.size()) - 1;
  return fields;
}

TEST(HuggingFaceFiles, ATokenizerReadsBackForEveryPreTokenizer) {
  int tried = 0;
  for (const GgufPreTokenizer& pre : gguf_pre_tokenizers())
    for (const bool adds : {false, true}) {
      GgufTokenizerFields fields = small_fields(pre.name);
      if (!pre.byte_alphabet) {
        EXPECT_THROW(tokenizer_json(vocabulary_from_gguf_fields(fields)), UserError);
        continue;
      }
      fields.add_bos_token = fields.add_eos_token = adds;
      const Tokenizer wanted(vocabulary_from_gguf_fields(fields));
      const Tokenizer read(read_tokenizer_json(tokenizer_json(vocabulary_from_gguf_fields(fields))));
      EXPECT_EQ(read.encode(kText), wanted.encode(kText)) << pre.name;
      EXPECT_EQ(read.encode(kText, {.parse_special = false}), wanted.encode(kText, {.parse_special = false}));
      EXPECT_EQ(read.vocabulary().tokens, wanted.vocabulary().tokens);
      EXPECT_EQ(read.vocabulary().ignore_merges, wanted.vocabulary().ignore_merges);
      ++tried;
    }
  EXPECT_GT(tried, 20);
}

TEST(HuggingFaceFiles, AFoldersOwnKeysStay) {
  const TemporaryFolder folder;
  const std::string path = folder / "m";
  std::filesystem::create_directory(path);
  const nlohmann::json config{{"model_type", "llama"},
                              {"mine", 5},
                              {"dtype", "float32"},
                              {"quantization", {{"bits", 4}}},
                              {"quantization_config", {}}};
  std::ofstream(path + "/config.json") << config.dump();
  std::ofstream(path + "/tokenizer.json") << "{}";
  std::ofstream(path + "/readme.md") << "not copied";
  const std::string weights = "{}      ";
  const std::uint64_t length = weights.size();
  std::ofstream(path + "/model.safetensors")
      << std::string(reinterpret_cast<const char*>(&length), sizeof(length)) << weights;
  const Checkpoint checkpoint = Checkpoint::open(path);
  const auto written = nlohmann::json::parse(config_json(checkpoint, {}, {}, {}, {{"quant_method", "fp8"}}));
  EXPECT_EQ(written, nlohmann::json({{"model_type", "llama"},
                                     {"mine", 5},
                                     {"torch_dtype", "bfloat16"},
                                     {"quantization_config", {{"quant_method", "fp8"}}}}));
  EXPECT_FALSE(nlohmann::json::parse(config_json(checkpoint, {}, {}, {}, nullptr)).contains("quantization_config"));
  const std::map<std::string, std::string> files{{"tokenizer.json", "{}"}};
  EXPECT_EQ(text_files(checkpoint, {}), files);
}

}  // namespace weft::hugging_face_files_test
