// The members normalizer, pre_tokenizer and decoder of tokenizer.json.

#include <array>
#include <utility>

#include "base/base64.h"
#include "base/error.h"
#include "base/text.h"
#include "io/tokenizer_json_parts.h"

namespace weft::tokenizer_json {
namespace {

SplitBehavior read_behavior(const Member& behavior) {
  static constexpr std::array<std::pair<std::string_view, SplitBehavior>, 5> kNames = {{
      {"Removed", SplitBehavior::removed},
      {"Isolated", SplitBehavior::isolated},
      {"MergedWithPrevious", SplitBehavior::merged_with_previous},
      {"MergedWithNext", SplitBehavior::merged_with_next},
      {"Contiguous", SplitBehavior::contiguous},
  }};
  const std::string_view wanted = text_of(behavior);
  for (const auto& [name, value] : kNames) {
    if (name == wanted) return value;
  }
  refuse(behavior);
}

PatternSplit read_split(const Member& split) {
  PatternSplit result;
  const Member pattern = member(split, "pattern");
  const Member literal = member(pattern, "String");
  result.is_literal = literal.present;
  result.pattern = text_of(literal.present ? literal : member(pattern, "Regex"));
  result.behavior = read_behavior(member(split, "behavior"));
  result.invert = bool_of(member(split, "invert"), false);
  return result;
}

Metaspace::Front read_front(const Member& metaspace) {
  const Member scheme = member(metaspace, "prepend_scheme");
  if (!scheme.present) {
    // Files of older versions have a flag instead.
    const bool adds = bool_of(member(metaspace, "add_prefix_space"), true);
    return adds ? Metaspace::Front::always : Metaspace::Front::never;
  }
  if (text_of(scheme) == "always") return Metaspace::Front::always;
  if (text_of(scheme) == "first") return Metaspace::Front::first;
  if (text_of(scheme) != "never") refuse(scheme);
  return Metaspace::Front::never;
}

Metaspace read_metaspace(const Member& part) {
  Metaspace step;
  step.mark = text_of(member(part, "replacement"), "\u2581");
  USER_CHECK(!step.mark.empty(), "[tokenizer.json] {}.replacement must be a character, but is empty", part.path);
  step.front = read_front(part);
  step.split = bool_of(member(part, "split"), true);
  step.needs_first_character = step.front == Metaspace::Front::first;
  return step;
}

// The pre-tokenizer "Whitespace" keeps runs of word characters, and runs of other characters that are not white space.
// It is written for Rust's engine, whose \w also has the two joiners. A class has the \w without signs of Latin-1.
constexpr std::string_view kWords = R"([\w\x{200C}\x{200D}]+|[^\s\w\x{200C}\x{200D}]+)";

// Appends the steps of one pre-tokenizer other than ByteLevel.
void read_splitter(const Member& part, std::vector<PreTokenizerStep>& steps) {
  const Member type = member(part, "type");
  const std::string_view name = text_of(type);
  const auto split = [&](std::string_view pattern, SplitBehavior behavior) {
    return PatternSplit{.pattern = std::string(pattern), .behavior = behavior};
  };
  if (name == "Split") {
    steps.emplace_back(read_split(part));
  } else if (name == "Digits") {
    steps.emplace_back(DigitSplit{.individual = bool_of(member(part, "individual_digits"), false)});
  } else if (name == "Metaspace") {
    steps.emplace_back(read_metaspace(part));
  } else if (name == "WhitespaceSplit") {
    steps.emplace_back(split(kWhiteSpacePattern, SplitBehavior::removed));
  } else if (name == "Whitespace") {
    steps.emplace_back(split(kWords, SplitBehavior::removed));
    std::get<PatternSplit>(steps.back()).invert = true;
  } else if (name == "BertPreTokenizer") {
    steps.emplace_back(split(kWhiteSpacePattern, SplitBehavior::removed));
    steps.emplace_back(split(bert_punctuation_pattern(), SplitBehavior::isolated));
  } else if (name == "Punctuation") {
    const Member behavior = member(part, "behavior");
    steps.emplace_back(
        split(bert_punctuation_pattern(), behavior.present ? read_behavior(behavior) : SplitBehavior::isolated));
  } else if (name == "CharDelimiterSplit") {
    steps.emplace_back(split(text_of(member(part, "delimiter")), SplitBehavior::removed));
    std::get<PatternSplit>(steps.back()).is_literal = true;
  } else {
    refuse(type);
  }
}

MapCharacters read_character_map(const Member& part) {
  const Member map = member(part, "precompiled_charsmap");
  auto bytes = decode_base64(text_of(map));
  USER_CHECK(bytes, "[tokenizer.json] {} must be base64, but is {}", map.path, shown(map.json));
  return {.bytes = std::move(*bytes), .by_grapheme = true};
}

ReplaceText read_replacement(const Member& part) {
  const Member pattern = member(part, "pattern");
  const Member literal = member(pattern, "String");
  return {.pattern = std::string(text_of(literal.present ? literal : member(pattern, "Regex"))),
          .is_literal = literal.present,
          .replacement = std::string(text_of(member(part, "content")))};
}

NormalizerStep read_normalizer_step(const Member& part) {
  const Member type = member(part, "type");
  const std::string_view name = text_of(type);
  if (name == "NFC") return UnicodeForm::nfc;
  if (name == "NFD") return UnicodeForm::nfd;
  if (name == "NFKC") return UnicodeForm::nfkc;
  if (name == "NFKD") return UnicodeForm::nfkd;
  if (name == "Lowercase") return Lowercase{};
  if (name == "StripAccents") return StripAccents{};
  if (name == "Prepend") return PrependText{std::string(text_of(member(part, "prepend")))};
  if (name == "Replace") return read_replacement(part);
  if (name == "Precompiled") return read_character_map(part);
  if (name == "Strip")
    return StripSpaces{.left = bool_of(member(part, "strip_left"), true),
                       .right = bool_of(member(part, "strip_right"), true)};
  if (name != "BertNormalizer") refuse(type);
  BertText bert;
  bert.clean = bool_of(member(part, "clean_text"), true);
  bert.separate_chinese = bool_of(member(part, "handle_chinese_chars"), true);
  bert.lowercase = bool_of(member(part, "lowercase"), true);
  bert.strip_accents = bool_of(member(part, "strip_accents"), bert.lowercase);
  return bert;
}

// Strip works on the whole text only after Fuse.
void read_strip(const Member& part, bool is_fused, Decoder& decoder) {
  const Member stop = member(part, "stop");
  if (!is_fused || (stop.present && as<uint64_t>(stop, "a number") != 0)) refuse(part);
  decoder.strip = text_of(member(part, "content"));
  USER_CHECK(!decoder.strip.empty(), "[tokenizer.json] {}.content must be a character, but is empty", part.path);
  decoder.strip_count = as<uint64_t>(member(part, "start"), "a number");
}

void read_decoder_part(const Member& part, bool& is_fused, Decoder& decoder, Vocabulary& vocabulary) {
  const Member type = member(part, "type");
  const std::string_view name = text_of(type);
  if (name == "Fuse") {
    is_fused = true;
  } else if (name == "ByteFallback") {
    decoder.byte_run = Decoder::ByteRun::all_or_nothing;
    decoder.byte_tokens = Decoder::ByteTokens::spelled;
  } else if (name == "Replace") {
    const ReplaceText replace = read_replacement(part);
    if (!replace.is_literal || replace.pattern.empty() || is_fused) refuse(part);
    decoder.replacements.push_back({replace.pattern, replace.replacement});
  } else if (name == "Strip") {
    read_strip(part, is_fused, decoder);
  } else if (name == "Metaspace") {
    const Metaspace metaspace = read_metaspace(part);
    if (metaspace.front != Metaspace::Front::never) decoder.form = Decoder::Form::metaspace;
    decoder.replacements.push_back({metaspace.mark, " "});
  } else if (name == "WordPiece") {
    decoder.form = Decoder::Form::word_piece;
    decoder.clean_up = bool_of(member(part, "cleanup"), true);
    const std::string_view prefix = text_of(member(part, "prefix"), "##");
    if (prefix != vocabulary.continuation) refuse(member(part, "prefix"));
  } else {
    refuse(type);
  }
}

}  // namespace

void read_normalizer(const Member& root, Vocabulary& vocabulary) {
  for (const Member& part : parts_of(root, "normalizer", "normalizers"))
    vocabulary.normalizer.push_back(read_normalizer_step(part));
}

void read_pre_tokenizer(const Member& root, Vocabulary& vocabulary) {
  bool in_byte_alphabet = false;
  bool is_written = false;  // the steps see the alphabet
  for (const Member& part : parts_of(root, "pre_tokenizer", "pretokenizers")) {
    const Member type = member(part, "type");
    const bool keeps_text = text_of(type) != "ByteLevel" && text_of(type) != "Metaspace";
    USER_CHECK(
        keeps_text || !in_byte_alphabet,
        "[tokenizer.json] after the pre-tokenizer ByteLevel only those may follow that keep the text, but {} is {}",
        type.path, quote(text_of(type)));
    if (text_of(type) != "ByteLevel") {
      if (in_byte_alphabet && !std::exchange(is_written, true)) vocabulary.steps.emplace_back(InByteAlphabet{});
      read_splitter(part, vocabulary.steps);
      continue;
    }
    if (bool_of(member(part, "add_prefix_space"), true)) vocabulary.steps.emplace_back(PrefixSpace{});
    if (bool_of(member(part, "use_regex"), true)) {
      vocabulary.steps.emplace_back(PatternSplit{.pattern = std::string(kGpt2Pattern)});
    }
    in_byte_alphabet = true;
  }
  vocabulary.byte_alphabet = in_byte_alphabet;
  vocabulary.byte_level_alone =
      in_byte_alphabet && text_of(member(member(root, "pre_tokenizer"), "type")) == "ByteLevel";
}

void read_decoder(const Member& root, Vocabulary& vocabulary) {
  const std::vector<Member> parts = parts_of(root, "decoder", "decoders");
  USER_CHECK(!parts.empty(), "[tokenizer.json] decoder must be given, but is missing");
  Decoder& decoder = vocabulary.decoder;
  decoder.form = vocabulary.byte_alphabet ? Decoder::Form::bytes : Decoder::Form::pieces;
  decoder.byte_tokens = Decoder::ByteTokens::none;
  decoder.replaces_in_control = true;
  bool is_byte_level = false;
  bool is_fused = false;
  for (const Member& part : parts) {
    const Member type = member(part, "type");
    const bool is_part_of_it = text_of(type) == "ByteLevel" || text_of(type) == "Fuse";
    is_byte_level = is_byte_level || text_of(type) == "ByteLevel";
    USER_CHECK(!is_byte_level || vocabulary.byte_alphabet,
               "[tokenizer.json] decoder ByteLevel needs a pre-tokenizer ByteLevel, but there is none");
    if (vocabulary.byte_alphabet && !is_part_of_it) refuse(type);
    if (!vocabulary.byte_alphabet) read_decoder_part(part, is_fused, decoder, vocabulary);
  }
  USER_CHECK(is_byte_level || !vocabulary.byte_alphabet,
             "[tokenizer.json] decoder must be ByteLevel, as the pre-tokenizer is, but is missing");
}

}  // namespace weft::tokenizer_json
