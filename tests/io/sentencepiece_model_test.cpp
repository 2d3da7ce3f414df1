#include "io/sentencepiece_model.h"

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.h"
#include "io/tokenizer.h"
#include "tests/thrown_message.h"

namespace weft::sentencepiece_model_test {

using Ids = std::vector<int>;

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value > 127; value >>= 7) bytes += static_cast<char>(value | 128);
  return bytes + static_cast<char>(value);
}
std::string number(unsigned field, std::uint64_t value) { return varint(field << 3) + varint(value); }
std::string bytes(unsigned field, const std::string& value) {
  return varint(field << 3 | 2) + varint(value.size()) + value;
}
std::string piece(const std::string& text, float score, unsigned type = 1) {
  const auto bits = std::bit_cast<std::uint32_t>(score);
  std::string message = bytes(1, text) + varint(2 << 3 | 5);
  for (int i = 0; i < 4; ++i) message += static_cast<char>(bits >> (8 * i));
  return bytes(1, message + number(3, type));
}
std::string pieces() {
  return piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3) + piece("\u2581", -4) + piece("a", -5) +
         piece("\u2581a", -1) + piece("\u2581\u2581", 0, 4);
}
// `type` is 1 for Unigram and 2 for BPE.
std::string model(unsigned type, const std::string& normalizer = number(4, 0)) {
  return pieces() + bytes(2, number(3, type)) + bytes(3, normalizer);
}

Ids encode(const std::string& model, const std::string& text, bool is_legacy = true) {
  return Tokenizer(read_sentencepiece_model(model, "m", is_legacy)).encode(text);
}
std::string error_of(const std::string& model) {
  return message_of([&] { Tokenizer(read_sentencepiece_model(model, "m", true)); });
}

TEST(SentencePieceModel, FrontRules) {
  EXPECT_EQ(encode(model(2), "a"), (Ids{1, 5}));
  EXPECT_EQ(encode(model(2), " a"), (Ids{1, 3, 5}));
  EXPECT_EQ(encode(model(2), " a", false), (Ids{1, 5}));
  EXPECT_EQ(encode(model(2), "a</s>a"), (Ids{1, 5, 2, 5}));
  EXPECT_EQ(encode(model(2), "a</s>a", false), (Ids{1, 5, 2, 4}));
  EXPECT_EQ(encode(model(2, number(3, 0) + number(4, 0)), "a"), (Ids{1, 4}));
}

// The map of this model removes U+0001, and sentencepiece 0.2.3 puts the mark in front of the rest, which is nothing.
TEST(SentencePieceModel, ATextThatNormalizationRemovesHasAMark) {
  // A trie with the key "\x01" and an empty replacement.
  std::vector<std::uint32_t> units(512, 0);
  units[0] = 2u << 10;
  units[2 ^ 1] = 1u | (1u << 8) | (4u << 10);
  units[2 ^ 1 ^ 4] = 0x80000000;
  std::string trie(units.size() * 4, 0);
  std::memcpy(trie.data(), units.data(), trie.size());
  const std::uint32_t size = static_cast<std::uint32_t>(trie.size());
  std::string map(4, 0);
  std::memcpy(map.data(), &size, 4);
  map += trie + std::string(1, 0);
  EXPECT_EQ(encode(model(2, bytes(2, map) + number(4, 0)), "\x01"), (Ids{1, 3}));
  EXPECT_EQ(encode(model(2, bytes(2, map) + number(4, 0)),
                   "\x01"
                   "a"),
            (Ids{1, 5}));
  EXPECT_EQ(encode(model(2, bytes(2, map) + number(4, 1)), "\x01"), (Ids{1}));
}

TEST(SentencePieceModel, UserDefinedPiecesMatchSpaces) { EXPECT_EQ(encode(model(2), "a  a"), (Ids{1, 5, 6, 5})); }

TEST(SentencePieceModel, UnigramEndsWithTheEnd) {
  EXPECT_EQ(encode(model(1, ""), "  a "), (Ids{6, 5, 2}));  // the user-defined piece comes first
  EXPECT_EQ(encode(model(1, ""), "a a x"), (Ids{5, 5, 3, 0, 2}));
}

// As sentencepiece 0.2.3 decodes.
TEST(SentencePieceModel, DecodingRemovesSpacesAtTheBeginIfEncodingDoes) {
  const auto decoded = [](const std::string& normalizer, const Ids& ids) {
    return Tokenizer(read_sentencepiece_model(model(1, normalizer), "m", true)).decode(ids);
  };
  const Ids spaces = {3, 5, 3, 4};
  EXPECT_EQ(decoded(number(3, 0), spaces), "a a");
  EXPECT_EQ(decoded("", spaces), "a a");
  EXPECT_EQ(decoded(number(4, 0), spaces), " a a");
  EXPECT_EQ(decoded(number(3, 0) + number(4, 0), spaces), "  a a");
  EXPECT_EQ(decoded("", {3, 0, 4}), " \u2047 a");
}

TEST(SentencePieceModel, UnigramSumsScoresInFloat) {
  // In float, -2^25 + 1 is -2^25, so "x" and "y" have no better sum than "xy".
  const std::string all = pieces() + piece("x", -33554432) + piece("y", 1) + piece("xy", -33554432);
  EXPECT_EQ(encode(all + bytes(2, number(3, 1)) + bytes(3, number(3, 0)), "xy"), (Ids{9, 2}));
}

TEST(SentencePieceModel, UnknownFieldsAreSkipped) {
  const std::string unknown =
      number(90, 1) + bytes(91, "abc") + varint(92 << 3 | 5) + "1234" + varint(93 << 3 | 1) + "12345678";
  EXPECT_EQ(encode(unknown + model(2) + unknown, "a"), (Ids{1, 5}));
}

TEST(SentencePieceModel, SaysWhatIsWrong) {
  const auto says = [](const std::string& model, const std::string& part) {
    const std::string message = error_of(model);
    return message.starts_with("[m") && message.find(part) != std::string::npos ? "" : message;
  };
  EXPECT_EQ(says("", "must be a SentencePiece model with pieces"), "");
  EXPECT_EQ(says("\x0a", "wanted a length, but ends after 1 bytes"), "");
  EXPECT_EQ(says("\x0a\x05"
                 "ab",
                 "5 bytes of field 1"),
            "");
  EXPECT_EQ(says("\x0b", "wire type 3"), "");
  EXPECT_EQ(says(std::string(11, '\xFF'), "at most 10 bytes"), "");
  EXPECT_EQ(says(number(1, 5), "field 1 of ModelProto must be a message"), "");
  EXPECT_EQ(says(pieces() + bytes(2, number(3, 4)), "model_type must be 1 (Unigram) or 2 (BPE), but is 4"), "");
  EXPECT_EQ(says(piece("a", 0, 9), "type of piece 0 must be 1 to 6, but is 9"), "");
  EXPECT_EQ(says(piece("", 0), "piece 0 must be a text"), "");
  EXPECT_EQ(says(piece("\xC3", 0), "piece 0 must be a text"), "");
  EXPECT_EQ(says(piece("a", std::numeric_limits<float>::quiet_NaN()), "score of piece 0 must be finite"), "");
  EXPECT_EQ(says(pieces() + bytes(2, number(3, 2) + number(40, 7)), "unk_id must be an id below 7, but is 7"), "");
  EXPECT_EQ(says(model(2, number(5, 0)), "wanted escape_whitespaces"), "");
  EXPECT_NE(error_of(pieces() + piece("a", 0) + bytes(2, number(3, 2))).find("must be distinct"), std::string::npos);
}

TEST(SentencePieceModel, EveryTruncationIsReadOrRefused) {
  const std::string whole = model(2);
  for (size_t size = 0; size < whole.size(); ++size) {
    try {
      Tokenizer(read_sentencepiece_model(whole.substr(0, size), "m", true)).encode("a  a\u00e9");
    } catch (const UserError&) {
    }
  }
}

}  // namespace weft::sentencepiece_model_test
