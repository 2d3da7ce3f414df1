#pragma once

// The number formats that `weft quantize` writes linear layers in, and how config.json says so.
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

#include <string>
#include <vector>

#include "base/json.h"

namespace weft {

enum class NumberFormat : std::uint8_t { bf16, fp8, fp8_per_token, fp8_block, int8, nvfp4 };

// UserError that lists the words for any other text.
NumberFormat number_format_from_text(const std::string& text);
std::string_view number_format_text(NumberFormat format);

// Rows and columns of fp8-block's blocks.
struct BlockShape {
  std::int64_t rows = 64;
  std::int64_t columns = 64;
};

// "64x64". UserError for anything else.
BlockShape block_shape_from_text(const std::string& text);

// The quantization_config; null for bf16. `ignored` are the modules left as they are, `static_input` says whether fp8
// has its inputs' scales from a calibration.
Json quantization_json(NumberFormat format, const BlockShape& block, bool static_input,
                       const std::vector<std::string>& ignored);

}  // namespace weft
