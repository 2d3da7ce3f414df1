// `quantization` of mlx-lm: the codes of all modules, and of single ones under their names. A module that the file has
// no scales of is plain, whatever the config states.

#include "base/error.h"
#include "io/quantization_fields.h"

namespace weft {
namespace {

constexpr std::string_view kOther = "quantization_config";

bool is_of_codes(std::string_view key) { return key == "bits" || key == "group_size" || key == "mode"; }

// What is stated sets the codes; the rest stays.
void read_codes(const JsonFields& fields, GroupedCodes& groups) {
  if (fields.has("mode")) text_among(fields, "mode", {"affine"});
  if (const auto bits = integer_in(fields, "bits", {2, 8})) {
    USER_CHECK(*bits != 7, "[{}] {} must be 2, 3, 4, 5, 6 or 8, but is 7", fields.where(), fields.name("bits"));
    groups.bits = static_cast<int>(*bits);
  }
  if (const auto size = fields.find_integer("group_size")) {
    USER_CHECK(*size == 32 || *size == 64 || *size == 128, "[{}] {} must be 32, 64 or 128, but is {}", fields.where(),
               fields.name("group_size"), *size);
    groups.group_size = *size;
  }
}

// Adds a module that has codes of its own.
void add_module(const JsonFields& own, const std::string& module, const QuantizationConfig& all,
                QuantizationConfig& config) {
  auto changed = std::make_shared<QuantizationConfig>(all);
  read_codes(own, changed->groups);
  for (const std::string& key : own.keys())
    if (!is_of_codes(key)) config.unknown_keys.push_back(own.name(key));
  config.by_name[module] = std::move(changed);
}

}  // namespace

// mlx-lm writes the same object under both keys. Other methods state their name, and AutoRound states its own next to
// codes of mlx.
std::optional<JsonFields> mlx_quantization(const JsonFields& config) {
  const auto own = config.find_object("quantization"), other = config.find_object(kOther);
  const bool has_method = other && other->has("quant_method");
  if (own) {
    const auto* packing = other ? other->value("packing_format") : nullptr;
    USER_CHECK(!has_method || (packing != nullptr && *packing == "mlx"),
               "[{}] {} and {} must not both say how weights are quantized", config.where(),
               config.name("quantization"), config.name(kOther));
    return own;
  }
  if (!other || has_method || !other->has("group_size") || !other->has("bits")) return std::nullopt;
  // Keys of methods that should have stated their name.
  const bool is_of_others = other->has("desc_act") || other->has("zero_point") || other->has("sym");
  return is_of_others ? std::nullopt : other;
}

QuantizationConfig read_mlx(const JsonFields& fields) {
  QuantizationConfig config;
  config.scheme = QuantizationScheme::grouped;
  config.method = "mlx";
  config.reaches_embeddings = true;
  GroupedCodes& groups = config.groups;
  groups.layout = GroupLayout::mlx;
  read_codes(fields, groups);
  needed_integer_in(fields, "bits", {2, 8});
  needed_integer_in(fields, "group_size", {32, 128});
  const QuantizationConfig all = config;
  for (const std::string& key : fields.keys()) {
    const Json& value = *fields.value(key);
    if (is_of_codes(key) || value == true) continue;
    const std::string module = module_pattern(key).name;
    if (value.is_object()) {
      add_module(needed_object(fields, key), module, all, config);
    } else if (value == false) {
      config.by_name[module] = nullptr;
    } else {
      config.unknown_keys.push_back(fields.name(key));
    }
  }
  return config;
}

}  // namespace weft
