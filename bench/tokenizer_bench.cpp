// How long tokenizers take to load, and to encode a text of 1 MB.
//
//   tokenizer_bench [PATH...]
//
// Each PATH is a GGUF file or a folder. Without one: vocabularies of 256,000 random pieces, as a tokenizer.model of BPE
// and of Unigram and as a tokenizer.json with merges; the last is also the byte-level one. The best of several rounds;
// on a shared machine the others tell little.

#include <algorithm>
#include <bit>
#include <functional>
#include <random>
#include <string>
#include <unordered_set>
#include <vector>

#include <fmt/core.h>

#include "base/json.h"
#include "base/stopwatch.h"
#include "io/checkpoint.h"
#include "io/sentencepiece_model.h"
#include "io/tokenizer.h"
#include "io/tokenizer_json.h"

namespace weft {
namespace {

constexpr size_t kPieces = 256'000;
constexpr size_t kTextBytes = 1'000'000;
constexpr int kRounds = 5;

// Texts that grow from earlier ones, as the pieces of a trained vocabulary do: piece i is piece left[i] + piece
// right[i].
struct Pieces {
  std::vector<std::string> texts;
  std::vector<std::pair<size_t, size_t>> parts;
};

Pieces random_pieces() {
  std::mt19937 random(1);
  Pieces pieces;
  std::unordered_set<std::string> known;
  const auto add = [&](const std::string& text, size_t left, size_t right) {
    if (!known.insert(text).second) return;
    pieces.texts.push_back(text);
    pieces.parts.emplace_back(left, right);
  };
  add(std::string(kSpaceMark), 0, 0);
  for (char c = 'a'; c <= 'z'; ++c) add(std::string(1, c), 0, 0);
  const size_t letters = pieces.texts.size();
  while (pieces.texts.size() < kPieces) {
    // Frequent pieces are early ones.
    const auto draw = [&] {
      const double u = std::uniform_real_distribution<double>(0, 1)(random);
      return static_cast<size_t>(u * u * static_cast<double>(pieces.texts.size()));
    };
    const size_t left = draw(), right = std::max<size_t>(1, random() % 2 == 0 ? 1 + random() % (letters - 1) : draw());
    const std::string text = pieces.texts[left] + pieces.texts[right];
    if (text.size() <= 16 && text.find(kSpaceMark, 1) == text.npos) add(text, left, right);
  }
  return pieces;
}

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value > 127; value >>= 7) bytes += static_cast<char>(value | 128);
  return bytes + static_cast<char>(value);
}

std::string field(unsigned id, const std::string& bytes) { return varint(id << 3 | 2) + varint(bytes.size()) + bytes; }

std::string model_file(const Pieces& pieces, unsigned type) {
  std::string file;
  const auto add = [&](const std::string& text, float score, unsigned kind) {
    const auto bits = std::bit_cast<std::uint32_t>(score);
    std::string message = field(1, text) + varint(2 << 3 | 5);
    for (int i = 0; i < 4; ++i) message += static_cast<char>(bits >> (8 * i));
    file += field(1, message + varint(3 << 3) + varint(kind));
  };
  add("<unk>", 0, 2);
  for (size_t i = 0; i < pieces.texts.size(); ++i) add(pieces.texts[i], -static_cast<float>(i) / 20'000, 1);
  return file + field(2, varint(3 << 3) + varint(type)) + field(3, varint(4 << 3) + varint(0));
}

std::string json_file(const Pieces& pieces) {
  Json vocabulary = Json::object(), merges = Json::array();
  auto& members = vocabulary.get_ref<Json::object_t&>();
  for (size_t i = 0; i < pieces.texts.size(); ++i) {
    members.push_back({pieces.texts[i], i});
    if (pieces.parts[i].second != 0)
      merges.push_back(pieces.texts[pieces.parts[i].first] + " " + pieces.texts[pieces.parts[i].second]);
  }
  const Json mark = {{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpaceMark}};
  return json_text(
      Json{{"normalizer", mark},
           {"decoder", {{"type", "ByteFallback"}}},
           {"model", {{"type", "BPE"}, {"byte_fallback", true}, {"vocab", vocabulary}, {"merges", merges}}}});
}

std::string text_of_words() {
  std::mt19937 random(2);
  std::string text;
  while (text.size() < kTextBytes) {
    for (std::uint32_t n = 1 + random() % 9; n > 0; --n) text += static_cast<char>('a' + random() % 26);
    text += ' ';
  }
  return text;
}

double best_milliseconds(const std::function<void()>& work) {
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    const Stopwatch watch;
    work();
    best = std::min(best, watch.total());
  }
  return best;
}

void measure(const std::string& name, const std::function<Vocabulary()>& read) {
  const double load = best_milliseconds([&] { const Tokenizer tokenizer(read()); });
  const Tokenizer tokenizer(read());
  const std::string words = text_of_words();
  std::string no_spaces;
  for (const char c : words)
    if (c != ' ') no_spaces += c;
  size_t tokens = 0;
  const double encode = best_milliseconds([&] { tokens = tokenizer.encode(words).size(); });
  const double one_word = best_milliseconds([&] { tokenizer.encode(no_spaces); });
  fmt::print("{:32} {:>8} tokens, load {:6.1f} ms; {:>7} bytes to {:>7} tokens {:6.1f} ms; without spaces {:6.1f} ms\n",
             name, tokenizer.token_count(), load, words.size(), tokens, encode, one_word);
}

}  // namespace
}  // namespace weft

int main(int count, char** arguments) {
  using namespace weft;
  for (int i = 1; i < count; ++i) {
    const std::string path = arguments[i];
    measure(path, [&] { return Checkpoint::open(path).vocabulary(); });
  }
  if (count > 1) return 0;
  const auto pieces = random_pieces();
  const std::string bpe = model_file(pieces, 2), unigram = model_file(pieces, 1), json = json_file(pieces);
  measure("tokenizer.model, BPE", [&] { return read_sentencepiece_model(bpe, "bpe", true); });
  measure("tokenizer.model, Unigram", [&] { return read_sentencepiece_model(unigram, "unigram", true); });
  measure("tokenizer.json, merges", [&] { return read_tokenizer_json(json); });
  return 0;
}
