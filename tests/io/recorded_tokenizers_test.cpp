// The tokenizers of tests/data/tokenizers give the ids and texts that other programs give: sentencepiece, tokenizers,
// tiktoken, llama.cpp and transformers. Where they differ, the recorded keys of a file say which of them it follows.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/json.h"
#include "base/utf8.h"
#include "io/added_tokens.h"
#include "io/checkpoint.h"
#include "io/detokenizer.h"
#include "io/sentencepiece_model.h"
#include "io/text_vocabulary.h"
#include "io/tokenizer.h"
#include "io/tokenizer_json.h"
#include "tests/base/temporary_folder.h"

namespace weft::recorded_tokenizers_test {

using Ids = std::vector<int>;
using Keys = std::vector<std::string>;

std::string path_of(const std::string& name) { return std::string(WEFT_TEST_DATA) + "/tokenizers/" + name; }

std::string read(const std::string& name) {
  std::ifstream file(path_of(name), std::ios::binary);
  EXPECT_TRUE(file.good()) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

// "ids" is recorded for each case; the other keys only where they differ.
std::vector<Json> recorded(const Json& one, const Keys& keys, const std::string& what) {
  std::vector<Json> values;
  for (const std::string& key : keys) {
    const std::string name = key == "ids" ? what : key + "_" + what;
    values.push_back(one.contains(name) ? one.at(name) : one.at(what));
  }
  return values;
}

bool is_one_of(const Json& value, const std::vector<Json>& wanted) {
  return std::find(wanted.begin(), wanted.end(), value) != wanted.end();
}

std::string streamed(const Tokenizer& tokenizer, const Ids& ids) {
  StreamingDetokenizer stream(tokenizer);
  std::string text;
  for (const int id : ids) {
    const std::string part = stream.push(id);
    EXPECT_FALSE(first_invalid_utf8(part));
    text += part;
  }
  return text + stream.finish();
}

void expect_recorded(const Tokenizer& tokenizer, const std::string& folder, const Keys& keys) {
  const Json file = Json::parse(read(folder + "/cases.json"));
  int tried = 0;
  for (const Json& one : file.at("cases")) {
    const std::string text = one.at("text");
    const std::vector<Json> wanted = recorded(one, keys, "ids");
    const Ids ids = tokenizer.encode(text, {.add_special = false});
    EXPECT_TRUE(is_one_of(ids, wanted)) << text << "\n" << Json(ids) << " instead of " << wanted.front();
    const Ids whole = tokenizer.encode(text);
    EXPECT_EQ(whole.size(), ids.size() + file.at("prefix").size() + file.at("suffix").size());
    // A tokenizer.model alone lacks the tokens that were added next to it.
    const auto known = std::find_if(wanted.begin(), wanted.end(), [&](const Json& some) {
      const Ids some_ids = some;
      return std::all_of(some_ids.begin(), some_ids.end(), [&](int id) { return id < tokenizer.token_count(); });
    });
    ASSERT_NE(known, wanted.end()) << text;
    const Ids recorded_ids = known->get<Ids>();
    const std::string back = tokenizer.decode(recorded_ids);
    if (one.contains("decoded")) {
      EXPECT_TRUE(is_one_of(back, recorded(one, keys, "decoded"))) << Json(back) << " of " << one;
    }
    EXPECT_EQ(streamed(tokenizer, recorded_ids), back);
    ++tried;
  }
  EXPECT_GT(tried, 300);
}

Tokenizer from_json(const std::string& name) { return Tokenizer(read_tokenizer_json(read(name))); }
Tokenizer from_gguf(const std::string& name) { return Tokenizer(Checkpoint::open(path_of(name)).vocabulary()); }
Tokenizer from_model(const std::string& name) { return Tokenizer(read_sentencepiece_model(read(name), name, true)); }

TEST(RecordedTokenizers, SentencePieceBpe) {
  expect_recorded(from_json("spm_bpe/tokenizer.json"), "spm_bpe", {"ids"});
  expect_recorded(from_json("spm_bpe/tokenizer_metaspace.json"), "spm_bpe", {"tokenizers_metaspace"});
  expect_recorded(from_gguf("spm_bpe/vocab.gguf"), "spm_bpe", {"ids", "llama_cpp"});
  expect_recorded(from_model("spm_bpe/tokenizer.model"), "spm_bpe", {"ids", "sentencepiece", "llama_cpp"});
}

TEST(RecordedTokenizers, Gemma) {
  expect_recorded(from_json("spm_gemma/tokenizer.json"), "spm_gemma", {"ids"});
  expect_recorded(from_gguf("spm_gemma/vocab.gguf"), "spm_gemma", {"ids", "llama_cpp"});
  expect_recorded(from_model("spm_gemma/tokenizer.model"), "spm_gemma", {"ids", "sentencepiece", "llama_cpp"});
}

TEST(RecordedTokenizers, Unigram) {
  expect_recorded(from_json("unigram_t5/tokenizer.json"), "unigram_t5", {"tokenizers"});
  expect_recorded(from_gguf("unigram_t5/vocab.gguf"), "unigram_t5", {"ids", "llama_cpp"});
  expect_recorded(from_model("unigram_t5/tokenizer.model"), "unigram_t5", {"ids", "sentencepiece", "llama_cpp"});
}

TEST(RecordedTokenizers, WordPiece) {
  expect_recorded(from_json("wordpiece_uncased/tokenizer.json"), "wordpiece_uncased", {"ids"});
  expect_recorded(from_gguf("wordpiece_uncased/vocab.gguf"), "wordpiece_uncased", {"ids", "llama_cpp"});
  expect_recorded(Tokenizer(read_word_list(read("wordpiece_uncased/vocab.txt"), "vocab.txt", true)),
                  "wordpiece_uncased", {"ids"});
}

TEST(RecordedTokenizers, Tiktoken) {
  Vocabulary vocabulary = read_tiktoken(read("tiktoken_o200k/vocab.tiktoken"), "vocab.tiktoken");
  const Json encoding = Json::parse(read("tiktoken_o200k/encoding.json"));
  vocabulary.steps = {PatternSplit{.pattern = encoding.at("pat_str").get<std::string>()}};
  add_tokens_by_text(encoding.at("special_tokens"), "encoding.json", true, vocabulary);
  const Tokenizer tokenizer(std::move(vocabulary));
  expect_recorded(tokenizer, "tiktoken_o200k", {"ids"});
  const Json file = Json::parse(read("tiktoken_o200k/cases.json"));
  for (const Json& one : file.at("cases")) {
    if (!one.contains("plain_ids")) continue;
    EXPECT_EQ(tokenizer.encode(one.at("text").get<std::string>(), {.parse_special = false, .add_special = false}),
              one.at("plain_ids").get<Ids>());
  }
}

Vocabulary of_folder_with_pair(const Json& files) {
  const TemporaryFolder folder;
  for (const auto& [name, contents] : files.items()) std::ofstream(folder / name) << contents;
  for (const std::string name : {"vocab.json", "merges.txt"})
    std::filesystem::copy_file(path_of("vocab_merges/" + name), folder / name);
  return Checkpoint::open_dummy(folder.path(), [](const Checkpoint&) { return std::vector<NamedMeta>(); }).vocabulary();
}

// The folders have the same vocabulary and other models, special tokens and flags.
TEST(RecordedTokenizers, VocabAndMerges) {
  const Json file = Json::parse(read("vocab_merges/cases.json"));
  int tried = 0;
  for (const auto& [name, folder] : file.at("folders").items()) {
    SCOPED_TRACE(name);
    const Tokenizer tokenizer(of_folder_with_pair(folder.at("files")));
    const auto id_of = [&](const char* key) {
      const Json& id = folder.at(key);
      return id.is_null() ? std::optional<int>() : id.get<int>();
    };
    EXPECT_EQ(tokenizer.vocabulary().bos, id_of("bos_token"));
    EXPECT_EQ(tokenizer.vocabulary().eos, id_of("eos_token"));
    EXPECT_EQ(tokenizer.vocabulary().padding, id_of("pad_token"));
    EXPECT_TRUE(tokenizer.vocabulary().unknown_keys.empty()) << tokenizer.vocabulary().unknown_keys.front();
    for (const Json& one : folder.at("cases")) {
      const Ids ids = one.at("ids");
      EXPECT_EQ(tokenizer.encode(one.at("text").get<std::string>()), ids) << one;
      EXPECT_EQ(tokenizer.decode(ids), one.at("decoded").get<std::string>());
      EXPECT_EQ(streamed(tokenizer, ids), one.at("decoded").get<std::string>());
      ++tried;
    }
  }
  EXPECT_GT(tried, 200);
}

}  // namespace weft::recorded_tokenizers_test
