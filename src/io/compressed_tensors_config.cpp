// quantization_config of compressed-tensors: each element of config_groups has the scheme of the modules that its
// targets name.

#include <map>
#include <optional>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "io/quantization_fields.h"
#include "tensor/quant_key.h"

namespace weft {
namespace {

constexpr std::string_view kPacked = "pack-quantized", kNvfp4 = "nvfp4-pack-quantized", kMixed = "mixed-precision";
constexpr std::string_view kFormats[] = {"float-quantized", "int-quantized", "naive-quantized", kNvfp4, kPacked};
constexpr std::string_view kDense = "dense";         // of sparsity_config, and where no weights are quantized
constexpr std::string_view kEveryLinear = "Linear";  // the class of linear layers

bool is_dynamic(const JsonFields& fields) { return fields.find_boolean("dynamic").value_or(false); }

void check_arguments(const JsonFields& fields, const std::string& type, std::int64_t bits) {
  text_among(fields, "type", {type});
  need_integer(fields, "num_bits", bits);
  need_symmetric(fields);
}

void read_nvfp4(const JsonFields& weights, const std::optional<JsonFields>& input, QuantizationConfig& config) {
  constexpr std::int64_t kBits = 4;
  const auto check = [](const JsonFields& side) {
    check_arguments(side, "float", kBits);
    text_among(side, "strategy", {"tensor_group"});
    need_integer(side, "group_size", kNvfp4Group);
  };
  check(weights);
  if (input) check(*input);
  config.scheme = QuantizationScheme::nvfp4;
  config.codes = DType::f4e2m1;
  config.static_input = input.has_value();
}

// Checks the input's scheme beside that of the weights.
void read_input(const JsonFields& input, const std::string& type, std::int64_t bits, QuantizationConfig& config) {
  check_arguments(input, type, bits);
  if (config.scheme == QuantizationScheme::block) {
    text_among(input, "strategy", {"group"});
    need_integer(input, "group_size", config.block_columns);
    USER_CHECK(is_dynamic(input), "[{}] {} must be true where weights have blocks, but is false", input.where(),
               input.name("dynamic"));
    return;
  }
  config.static_input = !is_dynamic(input);
  text_among(input, "strategy", {config.static_input ? "tensor" : "token"});
}

void read_scaled(const JsonFields& weights, const std::optional<JsonFields>& input, QuantizationConfig& config) {
  constexpr std::int64_t kBits = 8;
  const std::string type = text_among(weights, "type", {"float", "int"});
  config.codes = type == "int" ? DType::i8 : DType::f8e4m3;
  check_arguments(weights, type, kBits);
  USER_CHECK(!is_dynamic(weights), "[{}] {} must be false, but is true", weights.where(), weights.name("dynamic"));
  const std::string strategy = text_among(weights, "strategy", {"tensor", "channel", "block"});
  config.scale_per_row = strategy == "channel";
  if (strategy == "block") {
    USER_CHECK(config.codes == DType::f8e4m3, "[{}] {} must be float where weights have blocks, but is int",
               weights.where(), weights.name("type"));
    read_block(weights, "block_structure", config);
  }
  if (input) read_input(*input, type, kBits, config);
}

// The integer weights of "pack-quantized", whose input stays as it is.
void read_packed(const JsonFields& group, const JsonFields& weights, QuantizationConfig& config) {
  text_among(weights, "type", {"int"});
  const std::int64_t bits = needed_integer_in(weights, "num_bits", {1, 64});
  USER_CHECK(bits == 4 || bits == 8, "[{}] {} must be 4 or 8, but is {}", weights.where(), weights.name("num_bits"),
             bits);
  USER_CHECK(!group.has("input_activations"), "[{}] {} must be null for weights in int{}, but is set", group.where(),
             group.name("input_activations"), bits);
  USER_CHECK(!is_dynamic(weights), "[{}] {} must be false, but is true", weights.where(), weights.name("dynamic"));
  config.scheme = QuantizationScheme::grouped;
  config.groups.bits = static_cast<int>(bits);
  config.groups.has_zero_points = !weights.find_boolean("symmetric").value_or(true);
  config.groups.is_symmetric = !config.groups.has_zero_points;
  const bool has_groups = text_among(weights, "strategy", {"group", "channel"}) == "group";
  if (has_groups) config.groups.group_size = read_group_size(weights, "group_size");
  if (!weights.has("actorder")) return;
  // With "static" and "weight" the groups are consecutive columns in the file, too.
  const auto* order = weights.value("actorder");
  const bool is_true = order->is_boolean() && order->get<bool>();
  const std::string word =
      order->is_boolean() ? "" : text_among(weights, "actorder", {"group", "dynamic", "weight", "static"});
  config.groups.is_reordered = config.groups.group_size > 0 && (is_true || word == "group" || word == "dynamic");
}

// The scheme of a group. `format` is that of all groups, "mixed-precision" if each has its own.
QuantizationConfig read_scheme(const JsonFields& group, std::string_view format) {
  QuantizationConfig config;
  std::string own(format);
  if (format == kMixed) {
    own = text_among(group, "format", {std::begin(kFormats), std::end(kFormats)});
  } else if (group.has("format")) {
    text_among(group, "format", {format});
  }
  const JsonFields weights = needed_object(group, "weights");
  for (const char* side : {"weights", "input_activations"})
    add_unknown_keys(KeyTable::quantization_arguments, group, side, config);
  USER_CHECK(!group.has("output_activations"), "[{}] {} is not supported, but is set", group.where(),
             group.name("output_activations"));
  if (own == kPacked) {
    read_packed(group, weights, config);
    return config;
  }
  const std::optional<JsonFields> input = group.find_object("input_activations");
  config.weights_only = !input;
  if (own == kNvfp4) {
    read_nvfp4(weights, input, config);
  } else {
    read_scaled(weights, input, config);
  }
  return config;
}

// The names of classes other than "Linear" have no dot, and neither do the names of modules outside the layers.
void check_target(const JsonFields& group, const std::string& target) {
  const bool is_name = target.starts_with("re:") || target.find('.') != std::string::npos || target == "lm_head";
  USER_CHECK(is_name || target == kEveryLinear,
             "[{}] {} must be {}, names of modules, or patterns after re:, but one is {}", group.where(),
             group.name("targets"), kEveryLinear, quote(target));
}

// Adds a group's scheme to the config of all groups, for each of its targets.
class GroupReader {
 public:
  GroupReader(const JsonFields& groups, std::string_view format, QuantizationConfig& config)
      : groups_(groups), format_(format), config_(config) {}

  void read(const std::string& name) {
    const JsonFields group = needed_object(groups_, name);
    const std::vector<std::string> targets = texts_of(group, "targets");
    USER_CHECK(!targets.empty(), "[{}] wanted {}, a list of modules, but there is none", group.where(),
               group.name("targets"));
    QuantizationConfig scheme = read_scheme(group, format_);
    add_unknown_keys(KeyTable::quantization_group, groups_, name, config_);
    config_.unknown_keys.insert(config_.unknown_keys.end(), scheme.unknown_keys.begin(), scheme.unknown_keys.end());
    const auto shared = std::make_shared<const QuantizationConfig>(scheme);
    for (const std::string& target : targets) {
      const auto [at, is_new] = group_of_.emplace(target, name);
      USER_CHECK(is_new, "[{}] {} has {}, which {} has, too", group.where(), group.name("targets"), quote(target),
                 groups_.name(at->second));
      check_target(group, target);
      if (target == kEveryLinear) {
        take_for_rest(std::move(scheme));
      } else {
        config_.rules.push_back({module_pattern(target), shared});
      }
    }
  }

 private:
  // All linear layers that no other target names.
  void take_for_rest(QuantizationConfig scheme) {
    scheme.rules = std::move(config_.rules);
    scheme.ignored = std::move(config_.ignored);
    scheme.unknown_keys = std::move(config_.unknown_keys);
    config_ = std::move(scheme);
  }

  const JsonFields& groups_;
  std::string_view format_;
  QuantizationConfig& config_;
  std::map<std::string, std::string> group_of_;  // by target
};

}  // namespace

QuantizationConfig read_compressed_tensors(const JsonFields& fields) {
  constexpr std::string_view kGroups = "config_groups";
  QuantizationConfig config;
  add_ignored(texts_of(fields, "ignore"), config);
  const auto sparsity = fields.find_object("sparsity_config");
  if (sparsity && sparsity->has("format")) text_among(*sparsity, "format", {kDense});
  // Weights that were only made sparse are stored like any others.
  const bool is_plain = sparsity && (!fields.has(kGroups) || fields.value(kGroups)->empty());
  std::vector<std::string_view> formats{kDense};
  if (!is_plain) {
    formats.assign(std::begin(kFormats), std::end(kFormats));
    formats.push_back(kMixed);
  }
  const std::string format = is_plain && !fields.has("format") ? "" : text_among(fields, "format", formats);
  config.covers_rest = false;
  if (is_plain) return config;
  const JsonFields groups = needed_object(fields, kGroups);
  const auto& all = *fields.value(kGroups);
  USER_CHECK(!all.empty(), "[{}] {} must hold groups, but is empty", fields.where(), fields.name(kGroups));
  GroupReader reader(groups, format, config);
  for (const auto& [name, group] : all.items()) reader.read(name);
  return config;
}

}  // namespace weft
