#pragma once

// Reads quantization_config of config.json: how the weights of linear layers and their inputs are quantized. It follows
// vLLM: quant_method fp8, with or without weight_block_size; compressed-tensors with groups of modules that have fp8,
// int8 or NVFP4 weights, and activations or not, or integer weights alone; modelopt with fp8 or NVFP4; quark with fp8
// or int8; fbgemm_fp8, gptq, awq, auto-round, bitsandbytes, bitnet, and mxfp4 for experts. Or `quantization` of mlx-lm.
// Any other content is a UserError that names the key, because a partly understood scheme would give wrong numbers.
//
//   scheme   codes          scales of a weight [N, K]                  input
//   scaled   f8e4m3, i8     one, or one per row                        one scale in the checkpoint, or one per token
//   block    f8e4m3         [ceil(N / rows), ceil(K / columns)]        groups of `columns`
//   nvfp4    f4e2m1         f8e4m3 [N, K / 16], times one per weight   the same, times one scale in the checkpoint
//   grouped  2 to 8 bits,   [N, K / group], and zero points or         as it is (io/grouped_weight.h)
//            or floats      minimums
//   mxfp4    f4e2m1         exponents [E, N, K / 32] of stacks         as it is

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace weft {

class JsonFields;
class Regex;

enum class QuantizationScheme : std::uint8_t { scaled, block, nvfp4, grouped, mxfp4 };

// The tensors of a weight with grouped codes, and the order of the codes in them: see io/grouped_weight.h.
enum class GroupLayout : std::uint8_t { compressed_tensors, gptq, awq, bitsandbytes, mlx };

// The value of a code, before it is multiplied by its scale: the code minus the zero point, or a real number. Floats
// are of the dtype QuantizationConfig::codes.
enum class CodeValues : std::uint8_t { integers, nf4, fp4, floats };

// How files have codes of -1, 0 and 1: io/ternary_weight.h. The scheme is `scaled`, and codes are read as i8.
enum class TernaryForm : std::uint8_t { none, packed, rounded };

struct GroupedCodes {
  GroupLayout layout = GroupLayout::compressed_tensors;
  int bits = 4;  // of a code: 2, 3, 4 or 8; of mlx also 5 and 6
  CodeValues values = CodeValues::integers;
  DType scales = DType::f32;     // of floats: the dtype of the scales, which files store as bytes
  std::int64_t group_size = 0;   // 0: a group is a whole row
  bool has_zero_points = false;  // in the file
  bool is_symmetric = false;     // all zero points are the middle of the codes
  bool zeros_less_one = false;   // zero points are stored less one
  bool zeros_borrow = false;     // the one was subtracted from whole words, across the borders of zero points
  // Groups are columns of equal importance, wherever they are in the row: a tensor has the group of each column.
  bool is_reordered = false;
  bool has_quantized_scales = false;  // bitsandbytes: the scales have codes and scales themselves
};

// Modules of this name, or those whose name a pattern matches from its begin on ("re:" in the file). A name is that in
// the language model alone (io/text_config.h).
struct ModulePattern {
  std::string name;
  std::shared_ptr<const Regex> pattern = nullptr;  // null for a name
  // What the pattern is for: names in the language model, or names in the whole checkpoint, in which the head may be
  // outside the language model.
  enum class Names : std::uint8_t { own, outer, outer_or_head } names = Names::own;
};

struct QuantizationConfig;

// Modules that have another config than the rest; without one they are plain.
struct QuantizationRule {
  ModulePattern modules;
  std::shared_ptr<const QuantizationConfig> config;
};

struct QuantizationConfig {
  QuantizationScheme scheme = QuantizationScheme::scaled;
  DType codes = DType::f8e4m3;
  bool scale_per_row = false;                      // scaled: the config's value, but files may have either
  TernaryForm ternary = TernaryForm::none;         // scaled
  bool divides_by_scale = false;                   // ternary: scales divide codes
  bool static_input = false;                       // the checkpoint stores the input's scale
  bool weights_only = false;                       // inputs are not quantized
  bool powers_of_two = false;                      // block: the scales of the input are powers of two
  bool multiplies_globally = false;                // nvfp4: global scales are factors of numbers, and not of codes
  std::int64_t block_rows = 0, block_columns = 0;  // block
  GroupedCodes groups;                             // grouped
  std::string method;                              // "fp8", "compressed-tensors"
  std::vector<std::string> unknown_keys;           // that no table has (io/known_keys.h)
  std::vector<std::string> warnings;               // what the config states and Weft does not do

  // Modules that are not quantized, with what is in them.
  std::vector<ModulePattern> ignored;
  bool ignores_by_part = false;     // a name may be any parts of a module's: mlp.gate
  bool ignores_by_text = false;     // a name may also begin within a part, or end with a dot: layers.0.
  std::vector<ModulePattern> only;  // if any: no other modules are quantized. Names are parts of the modules'
  // Modules with a config of their own, whatever the other rules are; null for plain ones. Of stacks that mlx-lm writes
  // also the names of the parts (io/mlx_stacks.h).
  std::map<std::string, std::shared_ptr<const QuantizationConfig>, std::less<>> by_name;
  // Of several rules for a module the first decides, or they must agree.
  std::vector<QuantizationRule> rules;
  bool first_rule_decides = false;
  bool covers_rest = true;  // modules without a rule are quantized
  // Whether the head is quantized like any other linear layer. Few configs state it, but the files do.
  bool has_quantized_head = false;
  bool reaches_embeddings = false;  // and routers
  // The embedding's tensor, which is the head's, too, in models with a tied head: ArchitectureFacts::embedding.
  std::string embedding = "model.embed_tokens.weight";

  // The config of the linear layer whose weight has this name ("model.layers.0.mlp.up_proj.weight"): this one, or that
  // of a rule. Null if it is not quantized. The embedding, routers and the coefficients of residual streams never are,
  // as in vLLM, unless the config reaches them. UserError if rules disagree.
  const QuantizationConfig* of(std::string_view weight) const;
  bool quantizes(std::string_view weight) const { return of(weight) != nullptr; }
};

// Nullopt if config.json has no quantization_config and no `quantization`.
std::optional<QuantizationConfig> quantization_from_json(const JsonFields& config);

// Folders of ModelOpt have their quantization_config in a file of its own, hf_quant_config.json, whose text is given.
// Adds it to the text of config.json, and returns true, if that has none.
bool add_modelopt_config(std::string_view text, const std::string& where, const std::string& config_where,
                         std::string& config_text);

// Leaves out the modules that have no scales in the checkpoint, whose tensors have these names, where the files alone
// say which are quantized: the head, and all modules of mlx. Experts of mxfp4 are left out if there are plain weights.
void find_quantized_modules(const std::function<bool(const std::string& name)>& has_tensor,
                            const std::vector<std::string>& names, QuantizationConfig& config);

// The names of the tensors in the checkpoint that make up the quantized weight with this name ("X.weight").
struct QuantizedNames {
  std::string codes;         // X.weight, X.weight_packed, X.qweight
  std::string scale;         // X.weight_scale_inv, X.weight_scale, X.scales
  std::string global_scale;  // X.weight_global_scale; only nvfp4, else ""
  std::string input_scale;   // X.input_scale, X.input_global_scale; "" if input scales are computed at run time
  // Only grouped, else "", but compressed-tensors may have zero points next to scaled codes, too. They are 0 where
  // codes are symmetric, and groups are in plain order where columns are not reordered.
  std::string zero_points;       // X.weight_zero_point, X.qzeros
  std::string minimums;          // mlx: X.biases
  std::string groups;            // the group of each column: X.weight_g_idx, X.g_idx
  std::string shape;             // X.weight_shape; bitsandbytes: JSON with the shape and more, of 8 bits a number
  std::string other_shape;       // bitsandbytes: the name of that JSON where codes have the other type, nf4 or fp4
  std::string values;            // bitsandbytes: the numbers that codes are indices of
  std::string scales_of_scales;  // bitsandbytes, has_quantized_scales
  std::string values_of_scales;  // the same

  // The names that are not "". The checkpoint may lack some of them.
  std::vector<std::string> all() const;
};
QuantizedNames quantized_names(const QuantizationConfig& config, std::string_view weight);

}  // namespace weft
