#include "io/half_config.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "io/layer_config.h"

namespace weft {
namespace {

struct HalfWord {
  std::string_view word;
  char letter;
  HalfKind kind;
};
constexpr HalfWord kHalves[] = {{"linear_attention", 'M', HalfKind::recurrent},
                                {"full_attention", '*', HalfKind::attention},
                                {"mlp", '-', HalfKind::feed_forward},
                                {"moe", 'E', HalfKind::experts},
                                {"mamba", 'M', HalfKind::recurrent},
                                {"attention", '*', HalfKind::attention}};

std::vector<HalfKind> halves_of_words(const JsonFields& fields, std::string_view key) {
  std::vector<HalfKind> halves;
  const Json& list = *fields.value(key);
  USER_CHECK(list.is_array(), "[{}] {} must be a list of words, but is {}", fields.where(), key, shown_json(list));
  for (const Json& one : list) {
    const auto* found =
        std::find_if(std::begin(kHalves), std::end(kHalves), [&](const HalfWord& half) { return one == half.word; });
    USER_CHECK(found != std::end(kHalves), "[{}] {} must be mamba, attention, mlp or moe, but has {}", fields.where(),
               key, shown_json(one));
    halves.push_back(found->kind);
  }
  return halves;
}

std::vector<HalfKind> halves_of_letters(const JsonFields& fields, std::string_view key) {
  std::vector<HalfKind> halves;
  const std::string text = fields.find_text(key).value_or("");
  for (const char one : text) {
    const auto* found =
        std::find_if(std::begin(kHalves), std::end(kHalves), [&](const HalfWord& half) { return one == half.letter; });
    USER_CHECK(found != std::end(kHalves), "[{}] {} must be of the letters M, *, - and E, but is {}", fields.where(),
               key, quote(text));
    halves.push_back(found->kind);
  }
  return halves;
}

// Those of transformers' default, which has four layers, in turn.
std::vector<HalfKind> usual_halves(std::int64_t layers) {
  constexpr HalfKind kUsual[] = {HalfKind::recurrent, HalfKind::experts, HalfKind::attention, HalfKind::feed_forward};
  std::vector<HalfKind> halves;
  for (std::int64_t layer = 0; layer < layers; ++layer) halves.push_back(kUsual[layer % std::ssize(kUsual)]);
  return halves;
}

}  // namespace

std::vector<std::string_view> half_keys(const std::optional<HalfFacts>& facts) {
  if (!facts) return {};
  return {facts->words, facts->letters};
}

Json half_json(const std::vector<HalfKind>& halves, const HalfFacts& facts) {
  if (facts.letters.empty()) return Json::object();  // all layers are recurrent
  std::string letters;
  for (const HalfKind kind : halves)
    letters += std::find_if(std::begin(kHalves), std::end(kHalves), [&](const HalfWord& half) {
                 return half.kind == kind;
               })->letter;
  return {{facts.letters, letters}};
}

// As in transformers, num_hidden_layers has no effect where the layers are listed.
void read_halves(const JsonFields& fields, const HalfFacts& facts, ModelConfig& config) {
  if (facts.words.empty()) {
    config.layer_count = needed_integer_in(fields, "num_hidden_layers", kLayers);
    config.halves.assign(static_cast<std::size_t>(config.layer_count), HalfKind::recurrent);
    return;
  }
  const bool has_words = fields.has(facts.words);
  if (!has_words && !fields.has(facts.letters)) {
    config.layer_count = needed_integer_in(fields, "num_hidden_layers", kLayers);
    config.halves = usual_halves(config.layer_count);
    return;
  }
  config.halves = has_words ? halves_of_words(fields, facts.words) : halves_of_letters(fields, facts.letters);
  config.layer_count = std::ssize(config.halves);
  USER_CHECK(config.layer_count >= kLayers.least && config.layer_count <= kLayers.greatest,
             "[{}] {} must have {} to {} layers, but has {}", fields.where(), has_words ? facts.words : facts.letters,
             kLayers.least, kLayers.greatest, config.layer_count);
}

void read_halves(const Gguf& gguf, ModelConfig& config) {
  for (std::int64_t layer = 0; layer < config.layer_count; ++layer) {
    // By two tensors of each kind, so that a missing one is named as such.
    const auto has = [&](const char* one, const char* other) {
      const auto is_there = [&](const char* name) {
        return gguf.find_tensor(fmt::format("blk.{}.{}.weight", layer, name)) != nullptr;
      };
      return is_there(one) || is_there(other);
    };
    config.halves.push_back(has("ssm_in", "ssm_out")               ? HalfKind::recurrent
                            : has("ffn_gate_inp", "ffn_down_exps") ? HalfKind::experts
                            : has("ffn_up", "ffn_down")            ? HalfKind::feed_forward
                                                                   : HalfKind::attention);
  }
}

}  // namespace weft
