#include "io/own_fields.h"

#include "base/error.h"
#include "io/expert_config.h"
#include "io/feed_forward_config.h"
#include "io/half_config.h"
#include "io/latent_config.h"
#include "io/layer_config.h"
#include "io/recurrent_config.h"

namespace weft {
namespace {

constexpr Range<double> kNumberFactors = {-1e6, 1e6};
constexpr std::int64_t kMostCounted = 1 << 24;

void check_what_is_always_there(const JsonFields& fields, const ArchitectureFacts& facts) {
  for (const std::string_view key : facts.always)
    USER_CHECK(fields.find_boolean(key).value_or(true), "[{}] {} must be true for this architecture, but is false",
               fields.where(), key);
}

template <class Fields>
void read_counts(const Fields& fields, const ArchitectureFacts& facts, std::string_view CountKey::*kind,
                 ModelConfig& config) {
  for (const CountKey& count : facts.counts)
    if (!(count.*kind).empty())
      config.*count.field = integer_in(fields, count.*kind, {0, kMostCounted}).value_or(config.*count.field);
}

// Files of Llama 4 have the number 4 for a switch. As in Python, 0 is off.
std::optional<bool> find_switch(const JsonFields& fields, std::string_view key) {
  const Json* value = fields.value(key);
  return value != nullptr && value->is_number() ? *value != 0 : fields.find_boolean(key);
}

void read_number_lists(const JsonFields& fields, const ArchitectureFacts& facts, ModelConfig& config) {
  for (const NumberListKey& list : facts.number_lists) {
    std::vector<double*> numbers;
    for (double ModelConfig::*field : list.fields) numbers.push_back(&(config.*field));
    read_list(fields, list.folder, kNumberFactors, numbers);
  }
}

}  // namespace

std::vector<std::string_view> own_keys(const ArchitectureFacts& facts, CheckpointFormat format) {
  const bool is_folder = format == CheckpointFormat::hugging_face;
  std::vector<std::string_view> keys = facts.keys;
  keys.insert(keys.end(), facts.always.begin(), facts.always.end());
  keys.push_back(facts.norm.epsilon);
  if (facts.bidirectional != Bidirectional::never) keys.push_back("attention.causal");
  for (const std::string_view key : {facts.rotary.width, facts.rotary.kind_in_folders}) keys.push_back(key);
  for (const std::string_view key : feed_forward_keys(facts)) keys.push_back(key);
  for (const NumberKey& number : facts.numbers) keys.push_back(is_folder ? number.folder : number.gguf);
  for (const NumberListKey& list : facts.number_lists) keys.push_back(list.folder);
  if (!is_folder)
    for (const LayerNumbersKey& list : facts.layer_numbers) keys.push_back(list.gguf);
  if (is_folder)
    for (const KeyName& name : facts.key_names) keys.push_back(name.own);
  for (const CountKey& count : facts.counts) keys.push_back(is_folder ? count.folder : count.gguf);
  for (const SwitchKey& one : facts.switches) keys.push_back(is_folder ? one.folder : one.gguf);
  for (const std::string_view key : is_folder ? recurrent_keys(facts.recurrent) : gguf_recurrent_keys(facts.recurrent))
    keys.push_back(key);
  if (is_folder)
    for (const std::string_view key : half_keys(facts.halves)) keys.push_back(key);
  for (const std::string_view key : is_folder ? expert_keys(facts.experts) : gguf_expert_keys())
    if (facts.experts) keys.push_back(key);
  if (facts.has_latents)
    for (const std::string_view key : is_folder ? latent_keys() : gguf_latent_keys()) keys.push_back(key);
  return keys;
}

void read_own_counts(const JsonFields& fields, const ArchitectureFacts& facts, ModelConfig& config) {
  read_counts(fields, facts, &CountKey::folder, config);
}

void read_own_counts(const GgufFields& fields, const Gguf& gguf, const ArchitectureFacts& facts, ModelConfig& config) {
  read_counts(fields, facts, &CountKey::gguf, config);
  for (const CountKey& count : facts.counts)
    if (const GgufTensor* tensor = gguf.find_tensor(count.gguf_tensor); tensor != nullptr && !tensor->shape.empty())
      config.*count.field = tensor->shape.front();
}

void read_own_fields(const JsonFields& fields, const ArchitectureFacts& facts, ModelConfig& config) {
  for (const NumberKey& number : facts.numbers)
    config.*number.field = real_in(fields, number.folder, kNumberFactors).value_or(config.*number.field);
  read_number_lists(fields, facts, config);
  for (const SwitchKey& one : facts.switches)
    config.*one.field = find_switch(fields, one.folder).value_or(config.*one.field);
  check_what_is_always_there(fields, facts);
}

void read_own_fields(const GgufFields& fields, const Gguf& gguf, const ArchitectureFacts& facts, ModelConfig& config) {
  const Json defaults = parse_json(facts.defaults);
  for (const NumberKey& number : facts.numbers) {
    if (number.gguf.empty()) continue;
    const auto value = real_in(fields, number.gguf, kNumberFactors);
    config.*number.field = value ? *value : defaults.value(number.folder, config.*number.field);
  }
  for (const LayerNumbersKey& list : facts.layer_numbers)
    config.*list.field = numbers_of_layers(fields, gguf, list.gguf, config.layer_count);
  for (const SwitchKey& one : facts.switches) {
    if (!one.gguf.empty()) {
      const auto value = fields.find_boolean(one.gguf);
      config.*one.field = value ? *value : defaults.value(one.folder, config.*one.field);
    } else if (!one.gguf_tensor.empty()) {
      config.*one.field = gguf.find_tensor(one.gguf_tensor) != nullptr;
      if (one.gguf_tensor == "blk.0.attn_q.bias")
        config.*one.field |= gguf.find_tensor("blk.0.attn_qkv.bias") != nullptr;
    }
  }
}

}  // namespace weft
