// `quantization` of mlx-lm: the codes of all modules, and of single ones under their names. A module that the file has
// no scales of is plain, whatever the config states.

#include <algorithm>
#include <iterator>

#include "base/error.h"
#include "io/mlx_stacks.h"
#include "io/quantization_fields.h"

namespace weft {
namespace {

constexpr std::string_view kOther = "quantization_config";

bool is_of_codes(std::string_view key) {
  return key == "bits" || key == "group_size" || key == "mode" || key == "global_scale";
}

constexpr std::string_view kAffine = "affine";

// A mode with its usual codes. Those of floats have no others.
struct Mode {
  std::string_view name;
  std::int64_t bits, group_size;
  CodeValues values = CodeValues::integers;
  DType codes = DType::u8, scales = DType::f32;  // of floats
};
constexpr Mode kModes[] = {{kAffine, 4, 64},
                           {"mxfp4", 4, 32, CodeValues::floats, DType::f4e2m1, DType::f8e8m0},
                           {"nvfp4", 4, 16, CodeValues::floats, DType::f4e2m1, DType::f8e4m3},
                           {"mxfp8", 8, 32, CodeValues::floats, DType::f8e4m3, DType::f8e8m0}};

const Mode& mode_of(const JsonFields& fields) {
  std::vector<std::string_view> names;
  for (const Mode& mode : kModes) names.push_back(mode.name);
  const std::string name = fields.has("mode") ? text_among(fields, "mode", names) : std::string(kAffine);
  return *std::find_if(std::begin(kModes), std::end(kModes), [&](const Mode& mode) { return mode.name == name; });
}

void check_integers(const JsonFields& fields, const GroupedCodes& groups) {
  const int bits = groups.bits;
  const std::int64_t size = groups.group_size;
  USER_CHECK(bits >= 2 && bits <= 8 && bits != 7, "[{}] {} must be 2, 3, 4, 5, 6 or 8, but is {}", fields.where(),
             fields.name("bits"), bits);
  USER_CHECK(size == 32 || size == 64 || size == 128, "[{}] {} must be 32, 64 or 128, but is {}", fields.where(),
             fields.name("group_size"), size);
}

// What is not stated is usual for the mode, whatever the codes of other modules are.
void read_codes(const JsonFields& fields, QuantizationConfig& config) {
  const Mode& mode = mode_of(fields);
  GroupedCodes& groups = config.groups;
  groups.values = mode.values;
  groups.scales = mode.scales;
  groups.bits = static_cast<int>(integer_in(fields, "bits", {1, 64}).value_or(mode.bits));
  groups.group_size = fields.find_integer("group_size").value_or(mode.group_size);
  USER_CHECK(!fields.find_boolean("global_scale").value_or(false),
             "[{}] {} must be false, because scales of whole experts are not read", fields.where(),
             fields.name("global_scale"));
  if (mode.values == CodeValues::integers) return check_integers(fields, groups);
  config.codes = mode.codes;
  USER_CHECK(groups.bits == mode.bits && groups.group_size == mode.group_size,
             "[{}] {} and {} must be {} and {} where {} is {}, but are {} and {}", fields.where(), fields.name("bits"),
             fields.name("group_size"), mode.bits, mode.group_size, fields.name("mode"), mode.name, groups.bits,
             groups.group_size);
}

using ModuleConfig = std::shared_ptr<const QuantizationConfig>;

void add_module(const std::string& module, const ModuleConfig& own, QuantizationConfig& config) {
  config.by_name[module] = own;
  if (const std::string parts = parts_of_stack(module); !parts.empty()) config.by_name[parts] = own;
}

// Adds a module that has codes of its own.
void add_module(const JsonFields& own, const std::string& module, const QuantizationConfig& all,
                QuantizationConfig& config) {
  auto changed = std::make_shared<QuantizationConfig>(all);
  read_codes(own, *changed);
  for (const std::string& key : own.keys())
    if (!is_of_codes(key)) config.unknown_keys.push_back(own.name(key));
  add_module(module, std::move(changed), config);
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
  config.groups.layout = GroupLayout::mlx;
  read_codes(fields, config);
  needed_integer_in(fields, "bits", {2, 8});
  needed_integer_in(fields, "group_size", {16, 128});
  const QuantizationConfig all = config;
  for (const std::string& key : fields.keys()) {
    const Json& value = *fields.value(key);
    if (is_of_codes(key) || value == true) continue;
    const std::string module = module_pattern(key).name;
    if (value.is_object()) {
      add_module(needed_object(fields, key), module, all, config);
    } else if (value == false) {
      add_module(module, nullptr, config);
    } else {
      config.unknown_keys.push_back(fields.name(key));
    }
  }
  return config;
}

}  // namespace weft
