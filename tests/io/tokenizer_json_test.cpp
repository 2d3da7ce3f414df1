#include "io/tokenizer_json.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/tokenizer.h"
#include "small_vocabulary.h"
#include "tests/thrown_message.h"

namespace weft::tokenizer_json_test {

using nlohmann::json;
using Ids = std::vector<int>;

// A file as the tokenizers library writes it, with the single bytes, "ab", " ab" and one special token.
json small_file() {
  json vocab = json::object();
  for (int byte = 0; byte < 256; ++byte) vocab[in_byte_alphabet(std::string(1, static_cast<char>(byte)))] = byte;
  vocab["ab"] = 256;
  vocab["\u0120ab"] = 257;
  return {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens",
       {{{"id", 258},
         {"content", "<|s|>"},
         {"single_word", false},
         {"lstrip", false},
         {"rstrip", false},
         {"normalized", false},
         {"special", true}}}},
      {"normalizer", nullptr},
      {"pre_tokenizer",
       {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}}},
      {"post_processor", nullptr},
      {"decoder", {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}}},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", nullptr},
        {"continuing_subword_prefix", nullptr},
        {"end_of_word_suffix", nullptr},
        {"fuse_unk", false},
        {"byte_fallback", false},
        {"ignore_merges", false},
        {"vocab", vocab},
        {"merges", {"a b", "\u0120 ab"}}}},
  };
}

Ids encode(const json& file, std::string_view text) { return Tokenizer(read_tokenizer_json(file.dump())).encode(text); }

std::string error_of(const std::string& text) {
  return message_of([&] { Tokenizer tokenizer(read_tokenizer_json(text)); });
}

// The error after one member, given by its JSON pointer, is replaced.
std::string error_with(const std::string& pointer, const json& value) {
  json file = small_file();
  file[json::json_pointer(pointer)] = value;
  return error_of(file.dump());
}

TEST(TokenizerJson, ReadsMergesAsTextsAndAsPairs) {
  json file = small_file();
  EXPECT_EQ(encode(file, "ab ab<|s|>"), (Ids{256, 257, 258}));
  file["model"]["merges"] = json::array({json::array({"a", "b"}), json::array({"\u0120", "ab"})});
  EXPECT_EQ(encode(file, "ab ab<|s|>"), (Ids{256, 257, 258}));
  file["model"].erase("type");
  EXPECT_EQ(encode(file, "ab ab<|s|>"), (Ids{256, 257, 258}));
}

TEST(TokenizerJson, ReadsPreTokenizersInTheirOrder) {
  json file = small_file();
  const json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  const json split = {{"type", "Split"}, {"pattern", {{"String", "b"}}}, {"behavior", "Removed"}, {"invert", false}};
  file["pre_tokenizer"] = {{"type", "Sequence"},
                           {"pretokenizers", {{{"type", "Digits"}, {"individual_digits", true}}, split, byte_level}}};
  EXPECT_EQ(encode(file, "ab1"), (Ids{'a', '1'}));
  EXPECT_FALSE(read_tokenizer_json(file.dump()).byte_level_alone);
  // White space is removed here, and U+24B6 is a word character, so it is no piece of its own.
  file["pre_tokenizer"]["pretokenizers"] = {{{"type", "Whitespace"}}, byte_level};
  file["pre_tokenizer"]["pretokenizers"][1]["add_prefix_space"] = true;
  EXPECT_EQ(encode(file, "ab\u24b6 ."), (Ids{257, 0xE2, 0x92, 0xB6, ' ', '.'}));
  file["pre_tokenizer"] = byte_level;
  EXPECT_TRUE(read_tokenizer_json(file.dump()).byte_level_alone);
  file["pre_tokenizer"]["add_prefix_space"] = true;
  EXPECT_EQ(encode(file, "ab"), (Ids{257}));
}

// Falcon's sequence. Its digits are found in the byte-level alphabet, in which the last byte of "\u4f72" is "\u00b2".
TEST(TokenizerJson, PreTokenizersAfterByteLevelSeeItsAlphabet) {
  json file = small_file();
  file["model"]["vocab"]["12"] = 259;
  file["model"]["vocab"]["\u00bd\u00b2"] = 260;
  file["model"]["vocab"]["\u00e4\u00bd"] = 261;
  file["model"]["merges"] = {"a b", "\u0120 ab", "1 2", "\u00bd \u00b2", "\u00e4 \u00bd"};
  file["pre_tokenizer"] = {{"type", "Sequence"},
                           {"pretokenizers",
                            {{{"type", "Punctuation"}, {"behavior", "Contiguous"}},
                             {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}},
                             {{"type", "Digits"}, {"individual_digits", false}},
                             {{"type", "Split"},
                              {"pattern", {{"Regex", "[0-9][0-9][0-9]"}}},
                              {"behavior", "Isolated"},
                              {"invert", false}}}}};
  EXPECT_EQ(encode(file, "ab 1212"), (Ids{256, ' ', 259, '1', '2'}));
  EXPECT_EQ(encode(file, "\u4f72"), (Ids{0xE4, 260}));
  file["pre_tokenizer"]["pretokenizers"][2] = {{"type", "Metaspace"}};
  EXPECT_NE(error_of(file.dump()).find("pre_tokenizer.pretokenizers[2].type is \"Metaspace\""), std::string::npos);
}

TEST(TokenizerJson, ReadsTheTemplateForOneText) {
  json file = small_file();
  file["post_processor"] = {
      {"type", "Sequence"},
      {"processors",
       {{{"type", "ByteLevel"}, {"trim_offsets", false}},
        {{"type", "TemplateProcessing"},
         {"single",
          {{{"SpecialToken", {{"id", "<|s|>"}, {"type_id", 0}}}},
           {{"Sequence", {{"id", "A"}, {"type_id", 0}}}},
           {{"SpecialToken", {{"id", "end"}, {"type_id", 0}}}}}},
         {"special_tokens",
          {{"<|s|>", {{"id", "<|s|>"}, {"ids", {258}}}}, {"end", {{"id", "end"}, {"ids", {0, 1}}}}}}}}}};
  EXPECT_EQ(encode(file, "a"), (Ids{258, 'a', 0, 1}));
  EXPECT_EQ(read_tokenizer_json(file.dump()).bos, 258);
}

TEST(TokenizerJson, ReadsNormalizerAndAddedTokenFlags) {
  json file = small_file();
  file["normalizer"] = {{"type", "Sequence"}, {"normalizers", {{{"type", "NFC"}}}}};
  EXPECT_EQ(encode(file, "e\u0301"), (Ids{0xC3, 0xA9}));
  json& token = file["added_tokens"][0];
  token["lstrip"] = true;
  EXPECT_EQ(encode(file, "a <|s|> a"), (Ids{'a', 258, ' ', 'a'}));
  token["special"] = false;
  EXPECT_EQ(read_tokenizer_json(file.dump()).kinds[258], TokenKind::user_defined);
}

TEST(TokenizerJson, IdsMayLeaveGapsButNotLargeOnes) {
  json file = small_file();
  file["added_tokens"][0]["id"] = 300;
  const Tokenizer tokenizer(read_tokenizer_json(file.dump()));
  EXPECT_EQ(tokenizer.token_count(), 301);
  EXPECT_EQ(tokenizer.token_bytes(299), "");
  EXPECT_NE(error_with("/added_tokens/0/id", 2'000'000'000).find("must leave at most 65536 gaps"), std::string::npos);
}

TEST(TokenizerJson, EndsOfBertAndRobertaAreTemplates) {
  json file = small_file();
  file["post_processor"] = {
      {"type", "RobertaProcessing"}, {"cls", json::array({"<|s|>", 258})}, {"sep", json::array({"a", 97})}};
  EXPECT_EQ(encode(file, "ab"), (Ids{258, 256, 97}));
}

// A file with characters instead of the byte-level alphabet.
json character_file() {
  json file = small_file();
  file["model"]["vocab"] = {{"<0xC3>", 0}, {"<0xA9>", 1}, {"a", 2}, {"b", 3}, {"\u2581", 4}, {"ab", 5}};
  file["model"]["merges"] = {"a b"};
  file["model"]["byte_fallback"] = true;
  file["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "\u2581"}, {"add_prefix_space", true}};
  file["decoder"] = {{"type", "Sequence"},
                     {"decoders",
                      {{{"type", "Replace"}, {"pattern", {{"String", "\u2581"}}}, {"content", " "}},
                       {{"type", "ByteFallback"}},
                       {{"type", "Fuse"}},
                       {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}};
  return file;
}

TEST(TokenizerJson, CharactersWithByteFallback) {
  const Tokenizer tokenizer(read_tokenizer_json(character_file().dump()));
  EXPECT_EQ(tokenizer.encode("ab \u00e9"), (Ids{4, 5, 4, 0, 1}));
  EXPECT_EQ(tokenizer.decode(Ids{4, 5, 4, 0, 1}), "ab \u00e9");
  EXPECT_EQ(tokenizer.decode(Ids{0, 1, 1}), "\uFFFD\uFFFD\uFFFD");
  json file = character_file();
  file["model"]["byte_fallback"] = false;
  EXPECT_EQ(encode(file, "ab \u00e9"), (Ids{4, 5, 4}));
}

// The decoder alone says whether the spelling of a byte is that byte, as in tokenizers 0.23.3.
TEST(TokenizerJson, TheDecoderSaysWhichTokensAreBytes) {
  json file = character_file();
  file["model"]["byte_fallback"] = false;
  EXPECT_EQ(Tokenizer(read_tokenizer_json(file.dump())).decode(Ids{5, 0, 1}), "ab\u00e9");
  file = character_file();
  file["decoder"] = file["pre_tokenizer"];
  EXPECT_EQ(Tokenizer(read_tokenizer_json(file.dump())).decode(Ids{0, 4}), "<0xC3> ");
}

TEST(TokenizerJson, DecodersChangeTheTextOfControlTokens) {
  json file = character_file();
  file["added_tokens"][0]["content"] = "<\u2581>";
  EXPECT_EQ(Tokenizer(read_tokenizer_json(file.dump())).decode(Ids{2, 258}), "a< >");
}

TEST(TokenizerJson, CharactersHaveTheTokensOfTheVocabularyOnly) {
  json file = character_file();
  file["added_tokens"].push_back({{"id", 259}, {"content", "\u00e9"}, {"special", false}, {"single_word", true}});
  EXPECT_EQ(encode(file, "\u00e9"), (Ids{259}));
  EXPECT_EQ(encode(file, "a\u00e9"), (Ids{4, 2, 0, 1}));
  file["model"]["ignore_merges"] = true;
  EXPECT_EQ(encode(file, "a\u00e9"), (Ids{4, 2, 0, 1}));
  // A whole piece may be the spelling of a byte.
  file["pre_tokenizer"]["add_prefix_space"] = false;
  EXPECT_EQ(encode(file, "<0xC3>"), (Ids{0}));
}

json unigram_file() {
  json file = small_file();
  file["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", "never"}};
  file["decoder"] = file["pre_tokenizer"];
  file["model"] = {{"type", "Unigram"}, {"unk_id", 0}, {"vocab", json::array()}};
  const std::vector<std::pair<std::string, double>> pieces = {
      {"<unk>", 0}, {"\u2581", -2}, {"a", -1}, {"b", -1}, {"ab", -2.5}};
  for (const auto& [text, score] : pieces) file["model"]["vocab"].push_back(json::array({text, score}));
  file["added_tokens"] = {{{"id", 0}, {"content", "<unk>"}, {"special", true}}};
  return file;
}

// The ids of these tests are those of tokenizers 0.22.1.
TEST(TokenizerJson, UnigramSumsScoresInDouble) {
  json file = unigram_file();
  file["model"]["vocab"][4][1] = -2.0;
  EXPECT_EQ(encode(file, "ab"), (Ids{4}));
  // As floats, both sums are -2.
  file["model"]["vocab"][4][1] = -2.00000000001;
  EXPECT_EQ(encode(file, "ab"), (Ids{2, 3}));
}

// Hugging Face's reader of JSON rounds the score of "ab" to the number below it, so that it is not the sum of the
// others.
TEST(TokenizerJson, ScoresAreRoundedAsTheReferenceReadsThem) {
  json file = unigram_file();
  file["model"]["vocab"][3][1] = -6.3847879573784425;
  file["model"]["vocab"][4][1] = -7.3847879573784425;
  EXPECT_EQ(encode(file, "ab"), (Ids{2, 3}));
  file["model"]["vocab"][3][1] = -6.25;
  file["model"]["vocab"][4][1] = -7.25;
  EXPECT_EQ(encode(file, "ab"), (Ids{4}));
}

TEST(TokenizerJson, UnigramHasTheTokensOfItsVocabularyOnly) {
  json file = unigram_file();
  file["added_tokens"].push_back({{"id", 5}, {"content", "aab"}, {"special", false}, {"single_word", true}});
  EXPECT_EQ(encode(file, "aab"), (Ids{5}));
  EXPECT_EQ(encode(file, "baab"), (Ids{3, 2, 2, 3}));
  // This one is in the vocabulary, with a score of its own.
  file["added_tokens"][1] = {{"id", 4}, {"content", "ab"}, {"special", false}, {"single_word", true}};
  EXPECT_EQ(encode(file, "ab"), (Ids{4}));
  EXPECT_EQ(encode(file, "aab"), (Ids{2, 2, 3}));
  file["model"]["vocab"][4][1] = -1.5;
  EXPECT_EQ(encode(file, "aab"), (Ids{2, 4}));
}

TEST(TokenizerJson, UnigramHasBytesAmongItsTokens) {
  json file = unigram_file();
  file["model"]["vocab"].push_back(json::array({"<0x61>", -3}));
  file["model"]["byte_fallback"] = true;
  EXPECT_EQ(encode(file, "b<0x61>"), (Ids{3, 5}));
}

TEST(TokenizerJson, WordPieceKeepsTokensThatAreAlsoAdded) {
  json file = small_file();
  file["pre_tokenizer"] = {{"type", "WhitespaceSplit"}};
  file["decoder"] = {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}};
  file["model"] = {{"type", "WordPiece"},
                   {"unk_token", "[UNK]"},
                   {"continuing_subword_prefix", "##"},
                   {"max_input_chars_per_word", 100},
                   {"vocab", {{"[UNK]", 0}, {"ab", 1}, {"##c", 2}, {"c", 3}}}};
  file["added_tokens"] = {{{"id", 0}, {"content", "[UNK]"}, {"special", true}},
                          {{"id", 1}, {"content", "ab"}, {"special", false}, {"single_word", true}},
                          {{"id", 4}, {"content", "cc"}, {"special", false}, {"single_word", true}}};
  EXPECT_EQ(encode(file, "ab abc ccc"), (Ids{1, 1, 2, 3, 2, 2}));
}

TEST(TokenizerJson, TheFirstMarkNeedsTheFirstCharacterOfTheText) {
  json file = unigram_file();
  file["pre_tokenizer"]["prepend_scheme"] = "first";
  file["normalizer"] = {{"type", "Strip"}, {"strip_left", true}, {"strip_right", true}};
  EXPECT_EQ(encode(file, "a"), (Ids{1, 2}));
  EXPECT_EQ(encode(file, " a"), (Ids{2}));
  file["normalizer"] = {{"type", "Replace"}, {"pattern", {{"Regex", " {2,}"}}}, {"content", " "}};
  EXPECT_EQ(encode(file, "  a"), (Ids{1, 2}));
}

TEST(TokenizerJson, RefusesDecodersThatDoNotFit) {
  const auto with_decoder = [](const json& decoder) {
    json file = character_file();
    file["decoder"] = decoder;
    return error_of(file.dump());
  };
  EXPECT_NE(with_decoder({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}).find("is not supported"),
            std::string::npos);
  EXPECT_NE(with_decoder({{"type", "CTC"}}).find("\"CTC\" is not supported"), std::string::npos);
  EXPECT_NE(with_decoder({{"type", "WordPiece"}, {"prefix", "@@"}}).find("\"@@\" is not supported"), std::string::npos);
}

TEST(TokenizerJson, NamesWhatItDoesNotSupport) {
  const auto names = [](const std::string& message, const std::string& part) {
    return message.find(part) != std::string::npos ? "" : message;
  };
  EXPECT_EQ(names(error_with("/model/type", "WordLevel"), "model.type \"WordLevel\" is not supported"), "");
  EXPECT_EQ(names(error_with("/model/type", "Unigram"), "Unigram model must have no ByteLevel"), "");
  EXPECT_EQ(names(error_with("/model/dropout", 0.1), "model.dropout 0.1 is not supported"), "");
  EXPECT_EQ(names(error_with("/model/end_of_word_suffix", "</w>"), "model.end_of_word_suffix \"</w>\" is not"), "");
  EXPECT_EQ(names(error_with("/normalizer", {{"type", "Nmt"}}), "normalizer.type \"Nmt\" is not supported"), "");
  EXPECT_EQ(names(error_with("/normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", "?"}}), "base64"), "");
  EXPECT_EQ(names(error_with("/pre_tokenizer", {{"type", "UnicodeScripts"}}), "\"UnicodeScripts\" is not"), "");
  EXPECT_EQ(names(error_with("/pre_tokenizer", nullptr), "decoder ByteLevel needs a pre-tokenizer"), "");
  EXPECT_EQ(names(error_with("/post_processor", {{"type", "Other"}}), "\"Other\" is not"), "");
  EXPECT_EQ(names(error_with("/post_processor", {{"type", "BertProcessing"}, {"cls", json::array({"x"})}}), "cls must"),
            "");
  EXPECT_EQ(names(error_with("/decoder", {{"type", "WordPiece"}}), "decoder.type \"WordPiece\" is not supported"), "");
  EXPECT_EQ(names(error_with("/decoder", nullptr), "decoder must be given"), "");
}

TEST(TokenizerJson, SaysWhichMemberIsMissingOrMistyped) {
  const auto says = [](const std::string& pointer, const json& value, const std::string& part) {
    const std::string message = error_with(pointer, value);
    return message.find(part) != std::string::npos ? "" : pointer + ": " + message;
  };
  EXPECT_EQ(says("/model/vocab", 7, "model.vocab must be an object, but is 7"), "");
  EXPECT_EQ(says("/model/vocab/ab", "x", "model.vocab must give \"ab\" a token id, but gives \"x\""), "");
  EXPECT_EQ(says("/model/vocab/ab", -5, "model.vocab must give \"ab\" a token id"), "");
  EXPECT_EQ(says("/model/vocab/ab", 257, "gives id 257 to"), "");
  EXPECT_EQ(says("/model/merges", nullptr, "model.merges must be a list, but is missing"), "");
  EXPECT_EQ(says("/model/merges/0", "ab", "model.merges[0] must be two tokens, but is \"ab\""), "");
  EXPECT_EQ(says("/model/merges/0", json::array({"a"}), "model.merges[0] must be two tokens"), "");
  EXPECT_EQ(says("/model/merges/0", "a c", "the result of merge 0 must be a token, but \"ac\""), "");
  EXPECT_EQ(says("/model", 1, "model must be an object"), "");
  EXPECT_EQ(says("/added_tokens", "x", "added_tokens must be a list"), "");
  EXPECT_EQ(says("/added_tokens/0", "x", "added_tokens[0] must be an object"), "");
  EXPECT_EQ(says("/added_tokens/0/content", 1, "added_tokens[0].content must be a string"), "");
  EXPECT_EQ(says("/added_tokens/0/id", 65, "gives id 65 to \"<|s|>\", which \"A\" has already"), "");
  EXPECT_EQ(says("/pre_tokenizer/type", nullptr, "pre_tokenizer.type must be a string, but is missing"), "");
  EXPECT_EQ(says("/pre_tokenizer/use_regex", "yes", "pre_tokenizer.use_regex must be true or false"), "");
}

TEST(TokenizerJson, TheUnknownTokenIsNeededUnlessAllBytesHaveTokens) {
  json file = small_file();
  file["model"]["unk_token"] = "<unk>";
  const Vocabulary vocabulary = read_tokenizer_json(file.dump());
  EXPECT_FALSE(vocabulary.unknown.has_value());
  EXPECT_EQ(vocabulary.warnings.at(0),
            "[tokenizer.json] model.unk_token \"<unk>\" is left out: there is no such token");
  file["model"]["vocab"].erase("!");
  EXPECT_NE(error_of(file.dump()).find("model.unk_token must be a token, but \"<unk>\""), std::string::npos);
}

TEST(TokenizerJson, RefusesTextThatIsNoJsonObject) {
  EXPECT_NE(error_of("").find("must be JSON"), std::string::npos);
  EXPECT_NE(error_of("{\"model\": ").find("must be JSON"), std::string::npos);
  EXPECT_NE(error_of("[]").find("must be an object"), std::string::npos);
  EXPECT_EQ(error_of("{}"), "[tokenizer.json] model must be an object, but is missing");
  EXPECT_NE(error_of(std::string(100'000, '[')).find("must be JSON"), std::string::npos);
}

TEST(TokenizerJson, EveryTruncationOfAFileIsAnError) {
  const std::string text = small_file().dump();
  for (size_t size = 0; size < text.size(); size += text.size() / 100) {
    EXPECT_THROW(read_tokenizer_json(text.substr(0, size)), UserError) << size;
  }
}

}  // namespace weft::tokenizer_json_test
