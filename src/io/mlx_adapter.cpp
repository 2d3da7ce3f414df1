#include "io/mlx_adapter.h"

#include <cstring>

#include "base/error.h"
#include "base/text.h"
#include "io/config_fields.h"

namespace weft {

MlxAdapterConfig read_mlx_adapter_config(std::string_view text, const std::string& where) {
  constexpr Range<double> kScales{-1e6, 1e6};
  constexpr Range<std::int64_t> kRanks{1, 65536};
  const Json json = parse_config_json(text, where);
  const JsonFields fields(json, where);
  const std::string type = fields.find_text("fine_tune_type").value_or("lora");
  USER_CHECK(type == "lora", "[{}] fine_tune_type must be lora, but is {}: {}", where, quote(type),
             type == "dora" ? "DoRA is not implemented" : "whole weights are a model, and not an adapter");
  const auto parameters = fields.find_object("lora_parameters");
  USER_CHECK(parameters, "[{}] wanted lora_parameters with rank and scale, but there are none", where);
  return {needed_integer_in(*parameters, "rank", kRanks), needed_real_in(*parameters, "scale", kScales)};
}

Tensor transposed_matrix(const Tensor& stored) {
  const Meta& meta = stored.meta;
  if (meta.rank() != 2 || dtype_info(meta.dtype).block_elements != 1) return stored;
  const std::int64_t rows = meta.shape[0].number(), columns = meta.shape[1].number();
  Tensor turned = Tensor::empty(Meta::tensor(meta.dtype, {columns, rows}));
  const std::int64_t bytes = bytes_of(meta.dtype, 1);
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column)
      std::memcpy(turned.data() + (column * rows + row) * bytes, stored.data() + (row * columns + column) * bytes,
                  static_cast<std::size_t>(bytes));
  return turned;
}

}  // namespace weft
