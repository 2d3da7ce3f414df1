#include "io/sentencepiece_vocabulary.h"

#include <utility>

namespace weft {

Vocabulary vocabulary_from_sentencepiece(SentencePieceTables tables) {
  using Front = SentencePieceTables::Front;
  Vocabulary vocabulary;
  vocabulary.model = tables.is_unigram ? TokenModel::unigram : TokenModel::scores;
  vocabulary.byte_alphabet = false;
  vocabulary.tokens = std::move(tables.tokens);
  vocabulary.scores.assign(tables.scores.begin(), tables.scores.end());
  vocabulary.kinds = std::move(tables.kinds);
  vocabulary.unknown = tables.unknown;
  vocabulary.fuse_unknown = true;
  for (size_t id = 0; id < vocabulary.kinds.size(); ++id) {
    const TokenKind kind = vocabulary.kinds[id];
    // Scores are logarithms of probabilities, so this one wins over others.
    if (kind == TokenKind::user_defined) vocabulary.scores[id] = 0;
    if ((is_special_kind(kind) || kind == TokenKind::user_defined) && !vocabulary.tokens[id].empty())
      vocabulary.added_tokens.push_back({.id = static_cast<int>(id)});
  }

  if (!tables.character_map.empty())
    vocabulary.normalizer.emplace_back(MapCharacters{.bytes = std::move(tables.character_map)});
  if (tables.remove_extra_spaces) vocabulary.normalizer.emplace_back(SqueezeSpaces{});
  // Without extra spaces, a mark after which nothing remains is one of them.
  if (tables.front == Front::every_stretch)
    vocabulary.normalizer.emplace_back(
        PrependText{.text = std::string(kSpaceMark), .also_if_removed = !tables.remove_extra_spaces});
  if (tables.front == Front::first_stretch) {
    vocabulary.steps.emplace_back(Metaspace{.front = Metaspace::Front::first, .split = false});
  } else {
    vocabulary.normalizer.emplace_back(ReplaceText{.pattern = " ", .replacement = std::string(kSpaceMark)});
  }

  Decoder& decoder = vocabulary.decoder;
  decoder.form = Decoder::Form::pieces;
  decoder.replacements = {{std::string(kSpaceMark), " "}};
  decoder.strip_count = tables.front == Front::none ? 0 : 1;
  // As SentencePiece prints it; llama.cpp and Hugging Face print the token of BPE models.
  if (tables.is_unigram) decoder.unknown_text = " \u2047 ";
  return vocabulary;
}

}  // namespace weft
