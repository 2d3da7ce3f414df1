#include <cmath>
#include <limits>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tensor/reference_math.h"
#include "tests/kernels/cpu_rows_support.h"

namespace weft::cpu_row_wise_test {

constexpr std::int64_t kWidths[] = {1, 7, 63, 65, 576, 1000};
constexpr std::int64_t kRows = 9;

std::string case_text(DType dtype, std::int64_t columns) {
  return fmt::format("{}, {} columns", dtype_text(dtype), columns);
}

enum class WeightType { none, f32, same };
constexpr WeightType kWeightTypes[] = {WeightType::none, WeightType::f32, WeightType::same};

std::optional<Tensor> weight_of(WeightType type, DType dtype, std::int64_t columns) {
  if (type == WeightType::none) return std::nullopt;
  const std::vector<float> values = normal_values(static_cast<std::size_t>(columns), 5);
  return tensor_of(type == WeightType::same ? dtype : DType::f32, {columns}, values);
}

// The meaning of rms_norm on rows of wide values.
std::vector<float> normalized(const std::vector<float>& rows, std::int64_t columns, const std::optional<Tensor>& weight,
                              DType dtype, double epsilon, std::int64_t variance_size) {
  std::vector<float> result(rows.size()), squares(static_cast<std::size_t>(variance_size));
  const std::vector<float> factors = weight ? values_of(*weight) : std::vector<float>();
  for (std::size_t row = 0; row < rows.size(); row += static_cast<std::size_t>(columns)) {
    for (std::size_t i = 0; i < squares.size(); ++i) squares[i] = rows[row + i] * rows[row + i];
    const float mean = reference_row_sum(squares.data(), variance_size) / static_cast<float>(variance_size);
    const float scale = reference_rsqrt(mean + static_cast<float>(epsilon));
    for (std::size_t i = 0; i < static_cast<std::size_t>(columns); ++i) {
      float y = rows[row + i] * scale;
      if (weight) y = rounded(weight->meta.dtype, rounded(weight->meta.dtype, y) * factors[i]);
      result[row + i] = rounded(dtype, y);
    }
  }
  return result;
}

TEST(CpuRmsNorm, GivesTheBitsOfItsMeaning) {
  for_each_machine([](RowKernels& kernels) {
    for (DType dtype : kFloatTypes) {
      for (std::int64_t columns : kWidths) {
        for (WeightType type : kWeightTypes) {
          SCOPED_TRACE(case_text(dtype, columns));
          const Tensor x = tensor_of(dtype, {kRows, columns}, rows_with_specials(kRows, columns, 1));
          const std::optional<Tensor> weight = weight_of(type, dtype, columns);
          for (std::int64_t part : {columns, (columns + 1) / 2}) {
            const Attributes attributes{{"epsilon", 1e-5},
                                        {"variance_size", part == columns ? Attribute() : Attribute(part)}};
            const auto result = kernels.call("rms_norm", {x, weight}, attributes, {x.meta});
            expect_same_bits(normalized(values_of(x), columns, weight, dtype, 1e-5, part), values_of(result[0]), "y");
          }
        }
      }
    }
  });
}

TEST(CpuRmsNorm, ReadsStridedRowsOfAnyRankAndSharesManyRows) {
  for_each_machine([](RowKernels& kernels) {
    for (const Shape& shape : {Shape{300, 576}, Shape{3, 5, 40}, Shape{576}}) {
      const std::int64_t columns = shape.back().number();
      const auto count = static_cast<std::size_t>(element_count(shape).number());
      const Tensor x = with_row_padding(tensor_of(DType::f32, shape, normal_values(count, 3)), 24);
      const auto result =
          kernels.call("rms_norm", {x, std::nullopt}, {{"epsilon", 1e-6}, {"variance_size", Attribute()}},
                       {Meta::tensor(DType::f32, shape)});
      expect_same_bits(normalized(values_of(x), columns, std::nullopt, DType::f32, 1e-6, columns), values_of(result[0]),
                       shape_text(shape));
    }
  });
}

TEST(CpuFusedAddRmsNorm, GivesTheBitsOfItsMeaningOverItsArguments) {
  for_each_machine([](RowKernels& kernels) {
    for (DType dtype : kFloatTypes) {
      for (std::int64_t columns : kWidths) {
        for (WeightType type : kWeightTypes) {
          for (const char* intermediate : {"f32", "input_dtype"}) {
            SCOPED_TRACE(case_text(dtype, columns) + intermediate);
            const Tensor x = tensor_of(dtype, {kRows, columns}, rows_with_specials(kRows, columns, 1));
            const Tensor residual = tensor_of(dtype, {kRows, columns}, normal_values(kRows * columns, 2));
            const std::optional<Tensor> weight = weight_of(type, dtype, columns);
            std::vector<float> sum = values_of(x), stored(sum.size());
            const std::vector<float> second = values_of(residual);
            for (std::size_t i = 0; i < sum.size(); ++i) {
              sum[i] += second[i];
              stored[i] = rounded(dtype, sum[i]);
            }
            const bool wide = std::string(intermediate) == "f32";
            const Attributes attributes{
                {"epsilon", 1e-6}, {"variance_size", Attribute()}, {"intermediate", EnumWord{intermediate}}};
            const auto result = kernels.call("fused_add_rms_norm", {x, residual, weight}, attributes, {x.meta, x.meta});
            expect_same_bits(stored, values_of(result[1]), "residual");
            expect_same_bits(normalized(wide ? sum : stored, columns, weight, dtype, 1e-6, columns),
                             values_of(result[0]), "y");
          }
        }
      }
    }
  });
}

float silu(float x) { return reference_silu(x); }
float gelu(float x) { return (x * 0.5f) * (reference_erf(x * static_cast<float>(std::sqrt(0.5))) + 1.0f); }
float gelu_tanh(float x) {
  const double sum = x + static_cast<double>(x * x * x) * static_cast<double>(0.044715f);
  const float inner = static_cast<float>(sum) * static_cast<float>(std::sqrt(2 / M_PI));
  return (x * 0.5f) * (reference_tanh(inner) + 1.0f);
}

TEST(CpuActivation, GivesTheBitsOfItsMeaning) {
  struct Gate {
    const char* op;
    float (*function)(float);
  };
  for_each_machine([](RowKernels& kernels) {
    for (const Gate& gate : {Gate{"silu_and_mul", silu}, {"gelu_and_mul", gelu}, {"gelu_tanh_and_mul", gelu_tanh}}) {
      for (DType dtype : kFloatTypes) {
        for (std::int64_t columns : kWidths) {
          SCOPED_TRACE(gate.op + case_text(dtype, columns));
          const std::vector<float> x = rows_with_specials(kRows, 2 * columns, 4);
          const Tensor rows = with_row_padding(tensor_of(dtype, {kRows, 2 * columns}, x), columns % 3);
          const std::vector<float> wide = values_of(rows);
          std::vector<float> wanted;
          for (std::int64_t row = 0; row < kRows; ++row) {
            for (std::int64_t i = 0; i < columns; ++i) {
              const float* pair = wide.data() + row * 2 * columns + i;
              wanted.push_back(rounded(dtype, rounded(dtype, gate.function(pair[0])) * pair[columns]));
            }
          }
          const auto result = kernels.call(gate.op, {rows}, {}, {Meta::tensor(dtype, {kRows, columns})});
          expect_same_bits(wanted, values_of(result[0]), "y");
        }
      }
    }
  });
}

// The meaning of softmax along the last dim.
std::vector<float> softmax_of(const Tensor& x) {
  std::vector<float> values = values_of(x);
  const std::int64_t columns = x.meta.shape.back().number();
  for (auto row = values.begin(); row != values.end(); row += columns) {
    float largest = *row;
    for (std::int64_t i = 0; i < columns; ++i) largest = std::isnan(largest) || largest > row[i] ? largest : row[i];
    for (std::int64_t i = 0; i < columns; ++i) row[i] = reference_exp(row[i] - largest);
    const float sum = reference_row_sum(&*row, columns);
    for (std::int64_t i = 0; i < columns; ++i) row[i] = rounded(x.meta.dtype, row[i] / sum);
  }
  return values;
}

TEST(CpuSoftmax, GivesTheBitsOfItsMeaning) {
  for_each_machine([](RowKernels& kernels) {
    for (DType dtype : kFloatTypes) {
      for (std::int64_t columns : kWidths) {
        SCOPED_TRACE(case_text(dtype, columns));
        for (std::uint32_t seed : {1u, 2u}) {
          // All values are below 0, so that bytes after the row must not become its largest element or be added to the
          // sum.
          std::vector<float> values = rows_with_specials(kRows, columns, seed);
          if (seed == 2)
            for (float& value : values) value = -5 - std::fabs(value);
          const Tensor x = with_row_padding(tensor_of(dtype, {kRows, columns}, values), columns % 3);
          const Meta result = Meta::tensor(dtype, {kRows, columns});
          for (std::int64_t dim : {-1, 1})
            expect_same_bits(softmax_of(x), values_of(kernels.call("softmax", {x}, {{"dim", dim}}, {result})[0]), "y");
        }
      }
    }
  });
}

TEST(CpuSoftmax, SharesManyRowsOfAnyRank) {
  for_each_machine([](RowKernels& kernels) {
    for (const Shape& shape : {Shape{300, 576}, Shape{3, 5, 40}, Shape{576}, Shape{2, 30000}}) {
      const auto count = static_cast<std::size_t>(element_count(shape).number());
      const Tensor x = with_row_padding(tensor_of(DType::f32, shape, normal_values(count, 3)), 24);
      const auto result = kernels.call("softmax", {x}, {{"dim", -1}}, {Meta::tensor(DType::f32, shape)});
      expect_same_bits(softmax_of(x), values_of(result[0]), shape_text(shape));
    }
  });
}

struct Quantized {
  std::vector<int> codes;
  std::vector<float> scales;
};

Quantized quantized(const std::vector<float>& x, std::int64_t group, bool toward_zero) {
  Quantized result;
  for (std::size_t first = 0; first < x.size(); first += static_cast<std::size_t>(group)) {
    float largest = 0;
    for (std::int64_t i = 0; i < group; ++i) {
      const float magnitude = std::fabs(x[first + static_cast<std::size_t>(i)]);
      largest = std::isnan(largest) || std::isnan(magnitude) ? NAN : std::max(largest, magnitude);
    }
    const float scale = (1e-10f > largest ? 1e-10f : largest) / 127.0f;
    result.scales.push_back(scale);
    for (std::int64_t i = 0; i < group; ++i) {
      const float ratio = x[first + static_cast<std::size_t>(i)] / scale;
      if (std::isnan(ratio)) {
        result.codes.push_back(0);
        continue;
      }
      const float code = std::min(127.0f, std::max(-128.0f, ratio));
      result.codes.push_back(static_cast<int>(toward_zero ? std::trunc(code) : std::nearbyint(code)));
    }
  }
  return result;
}

TEST(CpuGroupQuant, GivesTheCodesAndScalesOfItsMeaning) {
  for_each_machine([](RowKernels& kernels) {
    for (DType dtype : kFloatTypes) {
      for (std::int64_t group : {1, 7, 32, 64, 100}) {
        for (const char* rounding : {"nearest", "toward_zero"}) {
          SCOPED_TRACE(case_text(dtype, group) + rounding);
          const std::int64_t columns = 6 * group;
          std::vector<float> x = rows_with_specials(kRows, columns, 6);
          for (std::int64_t i = 0; i < columns; ++i)
            x[static_cast<std::size_t>(i)] = static_cast<float>(i % 255) - 127.5f;
          const Tensor rows = tensor_of(dtype, {kRows, columns}, x);
          const Quantized wanted = quantized(values_of(rows), group, rounding[0] == 't');
          const Attributes attributes{{"group_size", group}, {"eps", 1e-10}, {"rounding", EnumWord{rounding}}};
          const auto result =
              kernels.call("per_token_group_quant_int8", {rows}, attributes,
                           {Meta::tensor(DType::i8, {kRows, columns}), Meta::tensor(DType::f32, {kRows, 6})});
          expect_same_bits(wanted.scales, values_of(result[1]), "scales");
          for (std::size_t i = 0; i < wanted.codes.size(); ++i)
            ASSERT_EQ(wanted.codes[i], result[0].as<std::int8_t>()[i]) << "code " << i << " of " << values_of(rows)[i];
        }
      }
    }
  });
}

// The meaning of rotary_embedding for one tensor.
std::vector<float> rotated(const Tensor& x, const std::vector<std::int64_t>& positions, const Tensor& cache,
                           std::int64_t head_size, std::int64_t rotary_dim, bool neox) {
  const DType dtype = x.meta.dtype;
  std::vector<float> values = values_of(x), angles = values_of(cache);
  const std::int64_t width = x.meta.shape[1].number(), half = rotary_dim / 2;
  for (std::size_t row = 0; row < positions.size(); ++row) {
    const float* angle = angles.data() + positions[row] * rotary_dim;
    for (std::int64_t head = 0; head < width; head += head_size) {
      float* h = values.data() + static_cast<std::int64_t>(row) * width + head;
      for (std::int64_t i = 0; i < half; ++i) {
        const float cosine = rounded(dtype, angle[i]), sine = rounded(dtype, angle[half + i]);
        float& a = h[neox ? i : 2 * i];
        float& b = h[neox ? half + i : 2 * i + 1];
        const float first = rounded(dtype, rounded(dtype, a * cosine) - rounded(dtype, b * sine));
        b = rounded(dtype, rounded(dtype, b * cosine) + rounded(dtype, a * sine));
        a = first;
      }
    }
  }
  return values;
}

TEST(CpuRotaryEmbedding, RotatesHalvesAndPairsOfStridedRows) {
  for_each_machine([](RowKernels& kernels) {
    for (DType dtype : kFloatTypes) {
      for (DType cache_dtype : {DType::f32, dtype}) {
        for (auto [head_size, rotary_dim] : {std::pair{64, 64}, {64, 32}, {20, 6}, {128, 128}}) {
          for (bool neox : {true, false}) {
            SCOPED_TRACE(case_text(dtype, rotary_dim) + (neox ? " neox" : " pairs"));
            const std::vector<std::int64_t> positions{3, 0, 19, 7, 7};
            const Tensor query = with_row_padding(
                tensor_of(dtype, {5, 3 * head_size}, normal_values(static_cast<std::size_t>(15 * head_size), 1)), 8);
            const Tensor key = with_row_padding(
                tensor_of(dtype, {5, head_size}, normal_values(static_cast<std::size_t>(5 * head_size), 2)), 2);
            const Tensor cache =
                tensor_of(cache_dtype, {20, rotary_dim}, normal_values(static_cast<std::size_t>(20 * rotary_dim), 3));
            const Attributes attributes{{"head_size", head_size}, {"rotary_dim", rotary_dim}, {"is_neox_style", neox}};
            const std::vector<Meta> metas{Meta::tensor(dtype, query.meta.shape), Meta::tensor(dtype, key.meta.shape)};
            const auto result =
                kernels.call("rotary_embedding", {indices_of(positions), query, key, cache}, attributes, metas);
            expect_same_bits(rotated(query, positions, cache, head_size, rotary_dim, neox), values_of(result[0]), "q");
            expect_same_bits(rotated(key, positions, cache, head_size, rotary_dim, neox), values_of(result[1]), "k");
          }
        }
      }
    }
  });
}

TEST(CpuRotaryEmbedding, NamesAPositionOutsideTheTable) {
  RowKernels kernels("baseline", 1);
  const Tensor rows = tensor_of(DType::f32, {2, 8}, normal_values(16, 1));
  const Tensor cache = tensor_of(DType::f32, {4, 8}, normal_values(32, 1));
  const Attributes attributes{{"head_size", 8}, {"rotary_dim", 8}, {"is_neox_style", true}};
  for (std::int64_t position : {std::int64_t{-1}, std::int64_t{4}, INT64_MAX}) {
    EXPECT_THROW(kernels.call("rotary_embedding", {indices_of({0, position}), rows, rows, cache}, attributes,
                              {rows.meta, rows.meta}),
                 UserError);
  }
}

TEST(CpuElementwise, AddsAndMultipliesRowsContiguousStridedAndBroadcast) {
  for_each_machine([](RowKernels& kernels) {
    for (DType dtype : kFloatTypes) {
      for (std::int64_t columns : {1, 7, 65, 5000}) {
        const Tensor x = tensor_of(dtype, {kRows, columns}, rows_with_specials(kRows, columns, 1));
        const Tensor y = tensor_of(dtype, {kRows, columns}, rows_with_specials(kRows, columns, 9));
        const Tensor one = tensor_of(dtype, {columns}, normal_values(static_cast<std::size_t>(columns), 3));
        for (const Tensor& second : {y, with_row_padding(y, 3), one}) {
          SCOPED_TRACE(case_text(dtype, columns) + second.meta.text());
          const std::vector<float> a = values_of(x), b = values_of(second);
          std::vector<float> sum, product;
          for (std::size_t i = 0; i < a.size(); ++i) {
            sum.push_back(rounded(dtype, a[i] + b[i % b.size()]));
            product.push_back(rounded(dtype, a[i] * b[i % b.size()]));
          }
          expect_same_bits(sum, values_of(kernels.call("add", {x, second}, {}, {x.meta})[0]), "sum");
          expect_same_bits(product, values_of(kernels.call("mul", {x, second}, {}, {x.meta})[0]), "product");
        }
      }
    }
  });
}

TEST(CpuElementwise, CastsEveryHalfAndRoundsToNearestEven) {
  std::vector<float> wide;
  std::mt19937 random(1);
  for (int i = 0; i < 60000; ++i) wide.push_back(float_of_bits(static_cast<std::uint32_t>(random())));
  // Ties and their neighbours at every f16 exponent, denormals and the border of infinity among them.
  for (std::uint32_t exponent = 90; exponent < 146; ++exponent)
    for (std::uint32_t mantissa :
         {0u, 0xfffu, 0x1000u, 0x1001u, 0x2fffu, 0x3000u, 0x3001u, 0x7fefffu, 0x7ff000u, 0x7fffffu})
      for (std::uint32_t sign : {0u, kFloatSign}) wide.push_back(float_of_bits(sign | exponent << 23 | mantissa));
  for_each_machine([&](RowKernels& kernels) {
    for (DType from : kFloatTypes) {
      Tensor x = tensor_of(from, {static_cast<std::int64_t>(wide.size())}, wide);
      if (from != DType::f32) {
        x = Tensor::empty(Meta::tensor(from, {65536}));
        for (int code = 0; code < 65536; ++code) x.as<std::uint16_t>()[code] = static_cast<std::uint16_t>(code);
      }
      for (DType to : kFloatTypes) {
        std::vector<float> wanted = values_of(x);
        for (float& value : wanted) value = rounded(to, value);
        const Meta result = Meta::tensor(to, x.meta.shape);
        const auto came = kernels.call("cast", {x}, {{"dtype", to}}, {result});
        expect_same_bits(wanted, values_of(came[0]),
                         std::string(dtype_text(from)) + " to " + std::string(dtype_text(to)));
      }
    }
  });
}

TEST(CpuRowWise, AcceptsNoRows) {
  RowKernels kernels(vector_features_to_try().back(), 2);
  const Tensor x = tensor_of(DType::f32, {0, 64}, {});
  kernels.call("rms_norm", {x, std::nullopt}, {{"epsilon", 1e-6}, {"variance_size", Attribute()}}, {x.meta});
  kernels.call("silu_and_mul", {x}, {}, {Meta::tensor(DType::f32, {0, 32})});
  kernels.call("add", {x, x}, {}, {x.meta});
  kernels.call("softmax", {x}, {{"dim", -1}}, {x.meta});
}

TEST(CpuRowWise, RefusesWithAReason) {
  const RowKernels kernels("baseline", 1);
  const Tensor wide = Tensor::empty(Meta::tensor(DType::f64, {2, 8}));
  const Tensor x = tensor_of(DType::f32, {2, 8}, normal_values(16, 1));
  Tensor columns = x;
  columns.meta = Meta::strided(DType::f32, {8, 2}, {1, 8});
  const Attributes attributes{{"epsilon", 1e-6}, {"variance_size", Attribute()}};
  EXPECT_EQ(kernels.supports("rms_norm", {wide, std::nullopt}, attributes, {wide.meta}).reason(),
            "x is f64; f32, f16 and bf16 are supported");
  EXPECT_EQ(kernels.supports("rms_norm", {columns, std::nullopt}, attributes, {columns.meta}).reason(),
            "rows of x are not contiguous");
  const Tensor brain = tensor_of(DType::bf16, {8}, normal_values(8, 1));
  EXPECT_EQ(kernels.supports("rms_norm", {x, brain}, attributes, {x.meta}).reason(),
            "weight is bf16 and x is f32; f32 and x's dtype are supported");
  const Tensor column = tensor_of(DType::f32, {2, 1}, {1, 2});
  EXPECT_EQ(kernels.supports("add", {x, column}, {}, {x.meta}).reason(), "the last dim is broadcast");
  EXPECT_EQ(kernels.supports("softmax", {x}, {{"dim", 0}}, {x.meta}).reason(), "dim is not the last one");
  EXPECT_EQ(kernels.supports("cast", {x}, {}, {Meta::tensor(DType::i8, {2, 8})}).reason(),
            "the result is i8; f32, f16 and bf16 are supported");
}

}  // namespace weft::cpu_row_wise_test
