#include "io/expert_config.h"

#include <algorithm>
#include <string>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "io/layer_config.h"

namespace weft {
namespace {

constexpr Range<std::int64_t> kExperts = {0, 65536};
constexpr Range<std::int64_t> kExpertWidths = {1, 1 << 20};
constexpr Range<double> kExpertFactors = {0, 1e6};

// The names of an expert config's keys in one format of files.
struct ExpertKeyNames {
  std::string_view count, used, width, groups, used_groups, scale, normalizes, first, last, step, offset;
};

// Newer versions of transformers write one key for the number of experts of all architectures.
constexpr std::string_view kNewCount = "num_local_experts";

ExpertKeyNames names_in_folder(const ExpertFacts& facts) {
  return {facts.count,      facts.used,  facts.width, "n_group",  "topk_group", "routed_scaling_factor",
          "norm_topk_prob", facts.first, facts.last,  facts.step, facts.offset};
}

// In configs of newer versions of transformers, in place of the number of dense layers.
constexpr std::string_view kKindsOfLayers = "mlp_layer_types";

constexpr ExpertKeyNames kGgufNames = {"expert_count",
                                       "expert_used_count",
                                       "expert_feed_forward_length",
                                       "expert_group_count",
                                       "expert_group_used_count",
                                       "expert_weights_scale",
                                       "expert_weights_norm",
                                       "leading_dense_block_count",
                                       "",
                                       "interleave_moe_layer_step",
                                       ""};

template <class Fields>
void check_groups_of_experts(const Fields& fields, const ExpertKeyNames& names, const ExpertConfig& experts) {
  USER_CHECK(experts.used <= experts.count, "[{}] {} must be at most {} {}, but is {}", fields.where(),
             fields.name(names.used), fields.name(names.count), experts.count, experts.used);
  USER_CHECK(experts.count % experts.groups == 0, "[{}] {} must divide {} {}, but is {}", fields.where(),
             fields.name(names.groups), fields.name(names.count), experts.count, experts.groups);
  USER_CHECK(experts.used_groups <= experts.groups, "[{}] {} must be at most {} {}, but is {}", fields.where(),
             fields.name(names.used_groups), fields.name(names.groups), experts.groups, experts.used_groups);
  const std::int64_t candidates = experts.count / experts.groups * experts.used_groups;
  USER_CHECK(experts.used <= candidates, "[{}] {} must be at most {}, the experts of {} groups, but is {}",
             fields.where(), fields.name(names.used), candidates, experts.used_groups, experts.used);
}

// The score of a group is the sum of its best experts, if scores are sigmoids.
template <class Fields>
void check_best_of_group(const Fields& fields, const ExpertKeyNames& names, const ExpertConfig& experts) {
  const std::int64_t size = experts.count / experts.groups;
  USER_CHECK(experts.scores != ExpertScores::sigmoid || experts.groups == 1 || size >= ExpertConfig::kBestOfGroup,
             "[{}] {} must make groups of at least {} of {} {}, but is {}", fields.where(), fields.name(names.groups),
             ExpertConfig::kBestOfGroup, fields.name(names.count), experts.count, experts.groups);
}

std::optional<std::int64_t> experts_of_token(const JsonFields& fields, std::string_view key) {
  return number_of_all_layers(fields, key, {1, kExperts.greatest});
}
std::optional<std::int64_t> experts_of_token(const GgufFields& fields, std::string_view key) {
  return integer_in(fields, key, {1, kExperts.greatest});
}

template <class Fields>
void read_routed_layers(const Fields& fields, const ExpertKeyNames& names, ModelConfig& config) {
  const std::int64_t first = integer_in(fields, names.first, {0, kLayers.greatest}).value_or(0),
                     last = integer_in(fields, names.last, {-1, kLayers.greatest}).value_or(-1),
                     step = integer_in(fields, names.step, {1, kLayers.greatest}).value_or(1);
  const std::int64_t offset = integer_in(fields, names.offset, {0, step - 1}).value_or(step - 1);
  if (first == 0 && last == -1 && step == 1) return;
  for (std::int64_t layer = 0; layer < config.layer_count; ++layer)
    config.has_experts.push_back(layer >= first && (last == -1 || layer <= last) && layer % step == offset);
}

// Reads what the files of both formats state alike. Null if they state no experts.
template <class Fields>
ExpertConfig* read_common(const Fields& fields, const ExpertKeyNames& names, const ExpertFacts& facts,
                          ModelConfig& config) {
  config.expert_count = integer_in(fields, names.count, kExperts).value_or(0);
  if (config.expert_count == 0 || (facts.one_is_none && config.expert_count == 1)) return nullptr;
  ExpertConfig& experts = config.experts.emplace();
  experts.count = config.expert_count;
  const auto used = experts_of_token(fields, names.used);
  experts.used = used ? *used : needed_integer_in(fields, names.used, {1, kExperts.greatest});
  experts.width = integer_in(fields, names.width, kExpertWidths).value_or(config.intermediate_size);
  experts.scores = facts.scores;
  experts.keeps_dense = facts.keeps_dense;
  experts.weighs_inputs = facts.weighs_inputs;
  experts.normalizes = fields.find_boolean(names.normalizes).value_or(facts.normalizes);
  experts.scale = real_in(fields, names.scale, kExpertFactors).value_or(1);
  experts.groups = integer_in(fields, names.groups, {1, kExperts.greatest}).value_or(1);
  experts.used_groups = integer_in(fields, names.used_groups, {1, kExperts.greatest}).value_or(experts.groups);
  check_groups_of_experts(fields, names, experts);
  read_routed_layers(fields, names, config);
  return &experts;
}

// How experts are chosen follows from the architecture; these keys only state it again.
void check_choice(const JsonFields& fields, ExpertScores scores) {
  const auto check = [&](const char* key, const std::vector<std::string_view>& known) {
    const auto text = fields.find_text(key);
    USER_CHECK(!text || std::find(known.begin(), known.end(), *text) != known.end(), "[{}] {} must be {}, but is {}",
               fields.where(), fields.name(key), fmt::join(known, " or "), quote(*text));
  };
  if (scores == ExpertScores::sigmoid) {
    check("scoring_func", {"sigmoid", "noaux_tc"});  // the latter in files of dots.llm1
    check("topk_method", {"noaux_tc"});
  } else {
    check("scoring_func", {"softmax"});
    check("topk_method", {"greedy", "group_limited_greedy"});
  }
}

}  // namespace

std::vector<std::string_view> expert_keys(const std::optional<ExpertFacts>& facts) {
  if (!facts || facts->count.empty()) return {};
  const ExpertKeyNames names = names_in_folder(*facts);
  return {names.count,         names.used,          names.width,       names.groups,  names.used_groups,
          names.scale,         names.normalizes,    names.first,       names.last,    names.step,
          facts->shared_width, facts->shared_count, facts->enabled_by, "topk_method", "scoring_func",
          "mlp_only_layers",   kKindsOfLayers,      facts->layers,     names.offset};
}

std::vector<std::string_view> gguf_expert_keys() {
  const ExpertKeyNames& names = kGgufNames;
  return {names.count,           names.used,          names.width, names.groups, names.used_groups,
          names.scale,           names.normalizes,    names.first, names.step,   "expert_shared_feed_forward_length",
          "expert_shared_count", "expert_gating_func"};
}

// The gate of the first expert, in folders of mlx-lm whose stacks were split (io/mlx_stacks.h). Folders of transformers
// with the same models have one stack for gate and up.
constexpr const char* kGatesOfExperts[] = {
    "model.layers.{}.mlp.experts.0.gate_proj.weight", "model.layers.{}.block_sparse_moe.experts.0.w1.weight",
    "model.layers.{}.feed_forward.experts.0.gate_proj.weight", "model.layers.{}.experts.0.gate_proj.weight"};

// The rules are those of transformers.
void read_experts(const JsonFields& fields, const std::optional<ExpertFacts>& facts, ModelConfig& config) {
  if (!facts || facts->count.empty()) {
    config.expert_count = integer_in(fields, kNewCount, kExperts).value_or(0);
    return;
  }
  if (!facts->enabled_by.empty() && !fields.find_boolean(facts->enabled_by).value_or(false)) return;
  ExpertKeyNames names = names_in_folder(*facts);
  if (fields.has(kNewCount)) names.count = kNewCount;
  ExpertConfig* const experts = read_common(fields, names, *facts, config);
  if (experts == nullptr) return;
  experts->is_merged = facts->is_merged_in_folders;
  check_choice(fields, experts->scores);
  if (fields.find_text("topk_method") == "greedy") experts->groups = experts->used_groups = 1;
  check_best_of_group(fields, names, *experts);
  if (!facts->shared_width.empty())
    experts->shared_width = integer_in(fields, facts->shared_width, {0, kExpertWidths.greatest}).value_or(0);
  if (const auto shared = integer_in(fields, facts->shared_count, kExperts); shared && !facts->shared_count.empty())
    experts->shared_width = experts->width * *shared;
  if (fields.has(facts->layers)) {
    config.has_experts.assign(static_cast<std::size_t>(config.layer_count), false);
    for (const std::int64_t layer : fields.find_integers(facts->layers)) {
      USER_CHECK(layer >= 0 && layer < config.layer_count, "[{}] {} must be numbers of layers below {}, but has {}",
                 fields.where(), facts->layers, config.layer_count, layer);
      config.has_experts[static_cast<std::size_t>(layer)] = true;
    }
    return;
  }
  if (std::vector<bool> routed = layers_of_words(fields, kKindsOfLayers, {"sparse"}, {"dense"}, config.layer_count);
      !routed.empty()) {
    config.has_experts = std::move(routed);
    return;
  }
  const std::vector<std::int64_t> dense = fields.find_integers("mlp_only_layers");
  if (!dense.empty()) config.has_experts.resize(static_cast<std::size_t>(config.layer_count), true);
  for (const std::int64_t layer : dense)
    if (layer >= 0 && layer < config.layer_count) config.has_experts[static_cast<std::size_t>(layer)] = false;
}

RoutedLayers routed_layers(const ModelConfig& config) {
  RoutedLayers layers;
  while (layers.first < config.layer_count && !config.routes(static_cast<int>(layers.first))) ++layers.first;
  std::int64_t next = layers.first + 1;
  while (next < config.layer_count && !config.routes(static_cast<int>(next))) ++next;
  if (next < config.layer_count) layers.step = next - layers.first;
  return layers;
}

Json expert_json(const ModelConfig& config, const ExpertFacts& facts) {
  const ExpertKeyNames names = names_in_folder(facts);
  const ExpertConfig& experts = config.experts.value();
  Json json{{names.count, experts.count},
            {names.used, experts.used},
            {names.width, experts.width},
            {names.groups, experts.groups},
            {names.used_groups, experts.used_groups},
            {names.scale, experts.scale},
            {names.normalizes, experts.normalizes}};
  if (!names.first.empty()) json[names.first] = routed_layers(config).first;
  if (const std::int64_t step = routed_layers(config).step; step > 1) json[names.step] = step;
  if (!names.offset.empty()) json[names.offset] = routed_layers(config).first;
  if (!facts.enabled_by.empty()) json[facts.enabled_by] = true;
  if (!facts.shared_width.empty()) json[facts.shared_width] = experts.shared_width;
  // Of several groups transformers' softmax takes the best ones only if it is asked to.
  if (experts.scores == ExpertScores::softmax && experts.groups > 1) json["topk_method"] = "group_limited_greedy";
  if (!facts.shared_count.empty()) json[facts.shared_count] = experts.shared_width / experts.width;
  return json;
}

Json no_expert_json(const ExpertFacts& facts) {
  if (facts.count.empty() || !facts.enabled_by.empty()) return Json::object();
  return {{facts.count, 0}};
}

void read_expert_layout(const std::function<const Meta*(const std::string&)>& find_tensor, ModelConfig& config) {
  if (!config.experts) return;
  const std::int64_t first = routed_layers(config).first;
  for (const char* gate : kGatesOfExperts)
    if (find_tensor(fmt::format(fmt::runtime(gate), first)) != nullptr) config.experts->is_merged = false;
  // Without tensors the config says who wrote the folder.
  const bool is_of_mlx = config.quantization && config.quantization->groups.layout == GroupLayout::mlx;
  if (is_of_mlx && find_tensor("model.embed_tokens.weight") == nullptr) config.experts->is_merged = false;
  if (config.experts->is_merged) return;
  const Meta* gate_up = find_tensor(fmt::format(fmt::runtime(kModulesGateUp), first));
  if (gate_up == nullptr) return;
  // Square matrices do not show it.
  const std::int64_t count = config.experts->count, hidden = config.hidden_size, width = config.experts->width;
  const Meta* down = find_tensor(fmt::format(fmt::runtime(kModulesDown), first));
  const bool is_transposed = (hidden != 2 * width && gate_up->shape == Shape{count, hidden, 2 * width}) ||
                             (hidden != width && down != nullptr && down->shape == Shape{count, width, hidden});
  config.experts->layout = is_transposed ? ExpertLayout::transposed_modules : ExpertLayout::modules;
  config.experts->is_merged = true;
}

// Newer converters may write one stack for gate and up.
void read_experts(const GgufFields& fields, const Gguf& gguf, const std::optional<ExpertFacts>& facts,
                  ModelConfig& config) {
  if (!facts) {
    config.expert_count = integer_in(fields, kGgufNames.count, kExperts).value_or(0);
    return;
  }
  ExpertConfig* const experts = read_common(fields, kGgufNames, *facts, config);
  if (experts == nullptr) return;
  if (experts->scale == 0) experts->scale = 1;  // as in llama.cpp
  const std::int64_t shared = integer_in(fields, "expert_shared_count", kExperts).value_or(0);
  experts->shared_width = integer_in(fields, "expert_shared_feed_forward_length", {0, kExpertWidths.greatest})
                              .value_or(shared * experts->width);
  const bool may_share = !facts->shared_width.empty() || !facts->shared_count.empty();
  USER_CHECK(experts->shared_width == 0 || may_share, "[{}] {} has no shared expert, but the file has one of width {}",
             fields.where(), config.architecture, experts->shared_width);
  const auto scores = integer_in(fields, "expert_gating_func", {1, 3});
  if (scores) experts->scores = static_cast<ExpertScores>(*scores - 1);
  check_best_of_group(fields, kGgufNames, *experts);
  if (facts->shows_layers_in_gguf) {
    config.has_experts.clear();
    for (std::int64_t layer = 0; layer < config.layer_count; ++layer)
      config.has_experts.push_back(gguf.find_tensor(fmt::format("blk.{}.ffn_gate_inp.weight", layer)) != nullptr);
  }
  const std::int64_t first = routed_layers(config).first;
  const auto has = [&](const char* name) {
    return gguf.find_tensor(fmt::format(fmt::runtime(name), first)) != nullptr;
  };
  experts->is_merged = has("blk.{}.ffn_gate_up_exps.weight");
  if (has("blk.{}.ffn_up.0.weight")) experts->layout = ExpertLayout::single;
}

}  // namespace weft
