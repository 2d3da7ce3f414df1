#include "io/sentencepiece_model.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"
#include "base/text.h"
#include "base/utf8.h"
#include "io/sentencepiece_vocabulary.h"

namespace weft {
namespace {

// One field of a message. A number is in `number`; text, bytes and messages are in `bytes`.
struct Field {
  std::uint64_t id = 0;
  unsigned wire = 0;
  std::uint64_t number = 0;
  std::string_view bytes;
};

constexpr unsigned kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;

class Message {
 public:
  // `name` is that of the message type, for errors.
  Message(std::string_view bytes, const std::string& where, const char* name)
      : all_(bytes), rest_(bytes), where_(where), name_(name) {}

  // Reads the next field; false at the end.
  bool next(Field& field) {
    if (rest_.empty()) return false;
    const std::uint64_t tag = varint("a tag");
    field.id = tag >> 3;
    field.wire = static_cast<unsigned>(tag & 7);
    if (field.wire == kVarint) {
      field.number = varint("a number");
    } else if (field.wire == kBytes) {
      const std::uint64_t length = varint("a length");
      if (length > rest_.size()) fail(fmt::format("{} bytes of field {}", length, field.id));
      field.bytes = rest_.substr(0, length);
      rest_.remove_prefix(length);
    } else if (field.wire == kFixed32 || field.wire == kFixed64) {
      const size_t length = field.wire == kFixed32 ? 4 : 8;
      if (length > rest_.size()) fail(fmt::format("{} bytes of field {}", length, field.id));
      field.number = 0;
      std::memcpy(&field.number, rest_.data(), length);
      rest_.remove_prefix(length);
    } else {
      fail_user("[{}] byte {} of {} must begin a field of protobuf, but has the wire type {}", where_,
                all_.size() - rest_.size(), name_, field.wire);
    }
    return true;
  }

  // The field must have this wire type.
  void expect(const Field& field, unsigned wire, const char* what) const {
    USER_CHECK(field.wire == wire, "[{}] field {} of {} must be {}, but has the wire type {}", where_, field.id, name_,
               what, field.wire);
  }
  bool boolean(const Field& field) const {
    expect(field, kVarint, "true or false");
    return field.number != 0;
  }
  std::int64_t integer(const Field& field) const {
    expect(field, kVarint, "a number");
    return static_cast<std::int64_t>(field.number);
  }

 private:
  [[noreturn]] void fail(const std::string& wanted) const {
    fail_user("[{}] {} wanted {}, but ends after {} bytes", where_, name_, wanted, all_.size());
  }

  // Most numbers have one byte.
  std::uint64_t varint(const char* what) {
    if (!rest_.empty() && static_cast<std::uint8_t>(rest_.front()) < 0x80) {
      const auto value = static_cast<std::uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      return value;
    }
    return long_varint(what);
  }

  std::uint64_t long_varint(const char* what) {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (rest_.empty()) fail(what);
      const auto byte = static_cast<std::uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    fail_user("[{}] {} in {} must have at most 10 bytes, but has more", where_, what, name_);
  }

  std::string_view all_, rest_;
  const std::string& where_;
  const char* name_;
};

struct Model {
  SentencePieceTables tables;
  std::int64_t type = 1;  // of TrainerSpec: 1 is Unigram, 2 is BPE
  std::int64_t unknown = 0, bos = 1, eos = 2, padding = -1;
  bool adds_prefix = true;
  bool escapes_spaces = true;
  bool marks_suffixes = false;
};

void read_piece(std::string_view bytes, const std::string& where, SentencePieceTables& tables) {
  const size_t id = tables.tokens.size();
  std::string text;
  float score = 0;
  std::int64_t type = 1;
  Message message(bytes, where, "SentencePiece");
  Field field;
  while (message.next(field)) {
    if (field.id == 1) {
      message.expect(field, kBytes, "a text");
      text = field.bytes;
    } else if (field.id == 2) {
      message.expect(field, kFixed32, "a float");
      score = std::bit_cast<float>(static_cast<std::uint32_t>(field.number));
    } else if (field.id == 3) {
      type = message.integer(field);
    }
  }
  USER_CHECK(type >= 1 && type <= 6, "[{}] the type of piece {} must be 1 to 6, but is {}", where, id, type);
  USER_CHECK(std::isfinite(score), "[{}] the score of piece {} must be finite, but is {}", where, id, score);
  USER_CHECK(!text.empty() && !first_invalid_utf8(text), "[{}] piece {} must be a text in UTF-8, but is {}", where, id,
             quote(text));
  const auto kind = static_cast<TokenKind>(type);
  // User-defined pieces are matched in the text itself, which has spaces and no marks.
  tables.tokens.push_back(kind == TokenKind::user_defined ? replace_all(text, kSpaceMark, " ") : std::move(text));
  tables.scores.push_back(score);
  tables.kinds.push_back(kind);
}

void read_trainer_spec(std::string_view bytes, const std::string& where, Model& model) {
  Message message(bytes, where, "TrainerSpec");
  Field field;
  while (message.next(field)) {
    switch (field.id) {
      case 3:
        model.type = message.integer(field);
        break;
      case 24:
        model.marks_suffixes = message.boolean(field);
        break;
      case 40:
        model.unknown = message.integer(field);
        break;
      case 41:
        model.bos = message.integer(field);
        break;
      case 42:
        model.eos = message.integer(field);
        break;
      case 43:
        model.padding = message.integer(field);
        break;
      default:
        break;
    }
  }
}

void read_normalizer_spec(std::string_view bytes, const std::string& where, Model& model) {
  Message message(bytes, where, "NormalizerSpec");
  Field field;
  while (message.next(field)) {
    if (field.id == 2) {
      message.expect(field, kBytes, "bytes");
      model.tables.character_map = field.bytes;
    } else if (field.id == 3) {
      model.adds_prefix = message.boolean(field);
    } else if (field.id == 4) {
      model.tables.remove_extra_spaces = message.boolean(field);
    } else if (field.id == 5) {
      model.escapes_spaces = message.boolean(field);
    }
  }
}

Model read_model_proto(std::string_view bytes, const std::string& where) {
  Model model;
  model.tables.remove_extra_spaces = true;
  // A piece takes 16 bytes or more.
  const size_t most_pieces = bytes.size() / 16;
  model.tables.tokens.reserve(most_pieces);
  model.tables.scores.reserve(most_pieces);
  model.tables.kinds.reserve(most_pieces);
  Message message(bytes, where, "ModelProto");
  Field field;
  while (message.next(field)) {
    if (field.id < 1 || field.id > 3) continue;
    message.expect(field, kBytes, "a message");
    if (field.id == 1) read_piece(field.bytes, where, model.tables);
    if (field.id == 2) read_trainer_spec(field.bytes, where, model);
    if (field.id == 3) read_normalizer_spec(field.bytes, where, model);
  }
  USER_CHECK(!model.tables.tokens.empty(), "[{}] must be a SentencePiece model with pieces, but has none", where);
  USER_CHECK(model.type == 1 || model.type == 2, "[{}] model_type must be 1 (Unigram) or 2 (BPE), but is {}", where,
             model.type);
  USER_CHECK(model.escapes_spaces && !model.marks_suffixes,
             "[{}] wanted escape_whitespaces and no treat_whitespace_as_suffix, but has {}", where,
             model.escapes_spaces ? "treat_whitespace_as_suffix" : "no escape_whitespaces");
  return model;
}

}  // namespace

Vocabulary read_sentencepiece_model(std::string_view bytes, const std::string& where, bool is_legacy) {
  Model model = read_model_proto(bytes, where);
  const auto count = static_cast<std::int64_t>(model.tables.tokens.size());
  // A role without a token has a negative id.
  const auto id_of = [&](std::int64_t id, const char* role) -> std::optional<int> {
    const auto signed_id = static_cast<std::int32_t>(id);
    if (signed_id < 0) return std::nullopt;
    USER_CHECK(signed_id < count, "[{}] {} must be an id below {}, but is {}", where, role, count, signed_id);
    return signed_id;
  };
  using Front = SentencePieceTables::Front;
  model.tables.is_unigram = model.type == 1;
  model.tables.front = !model.adds_prefix ? Front::none : is_legacy ? Front::every_stretch : Front::first_stretch;
  model.tables.unknown = id_of(model.unknown, "unk_id");
  const bool removes_spaces = model.tables.remove_extra_spaces;
  Vocabulary vocabulary = vocabulary_from_sentencepiece(std::move(model.tables));
  // Decoding then removes all spaces at the begin, even where encoding adds none.
  if (removes_spaces) vocabulary.decoder.strip_count = std::numeric_limits<size_t>::max();
  vocabulary.bos = id_of(model.bos, "bos_id");
  vocabulary.eos = id_of(model.eos, "eos_id");
  vocabulary.padding = id_of(model.padding, "pad_id");
  if (model.type == 2 && vocabulary.bos) vocabulary.prefix = {*vocabulary.bos};
  if (model.type == 1 && vocabulary.eos) vocabulary.suffix = {*vocabulary.eos};
  return vocabulary;
}

}  // namespace weft
