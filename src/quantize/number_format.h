#pragma once

// The number formats in which `weft quantize` writes linear layers, and their entry in config.json. The columns for
// weight and input say how many scales there are.
//
//   word           weight                    input                        quantization_config
//   bf16           bf16                      as it is                     none
//   fp8            one scale                 one from a calibration       fp8, activation_scheme static
//                                            without one: one a token     fp8, activation_scheme dynamic
//   fp8-per-token  one for each row          one a token                  compressed-tensors, float-quantized
//   fp8-block      one for each block        groups of a block's columns  fp8, weight_block_size
//   int8           one for each row          one a token                  compressed-tensors, int-quantized
//   nvfp4          groups of 16, one of all  groups of 16, and one from   compressed-tensors, nvfp4-pack-quantized
//                                            a calibration
//   w4a16          groups of columns         as it is                     compressed-tensors, pack-quantized

#include <string>
#include <vector>

#include "base/json.h"

namespace weft {

enum class NumberFormat : std::uint8_t { bf16, fp8, fp8_per_token, fp8_block, int8, nvfp4, w4a16 };

// UserError that lists the words if the text is none of them.
NumberFormat number_format_from_text(const std::string& text);
std::string_view number_format_text(NumberFormat format);

// The rows and columns of a block in fp8-block. Of w4a16, a block is a group: one row, 32, 64 or 128 columns.
struct BlockShape {
  std::int64_t rows = 64;
  std::int64_t columns = 64;
};

// Parses "64x64". UserError for anything else.
BlockShape block_shape_from_text(const std::string& text);
// Parses the columns of a group, "128". UserError unless they are 32, 64 or 128.
BlockShape group_from_text(const std::string& text);

// The quantization_config; null for bf16. `ignored` are the modules that are not quantized. `static_input` says whether
// fp8 has input scales from a calibration.
Json quantization_json(NumberFormat format, const BlockShape& block, bool static_input,
                       const std::vector<std::string>& ignored);

}  // namespace weft
