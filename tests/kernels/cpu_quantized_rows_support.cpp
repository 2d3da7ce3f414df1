#include "tests/kernels/cpu_quantized_rows_support.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

int code_at(const Tensor& codes, std::int64_t i) {
  const int code = codes.as<std::uint8_t>()[i];
  return codes.meta.dtype == DType::f8e4m3 && code == 0xff ? 0x7f : code;
}

void expect_same_codes(const Tensor& wanted, const Tensor& came) {
  const std::int64_t bytes = wanted.meta.bytes().number();
  for (std::int64_t i = 0; i < bytes; ++i)
    ASSERT_EQ(code_at(wanted, i), code_at(came, i)) << "byte " << i << " of codes";
}

}  // namespace

void set_all(Attributes& attributes, const Attributes& more) {
  for (const auto& [name, value] : more.entries()) attributes.set(name, value);
}

Attributes fp8_groups(std::int64_t group) {
  return {{"group_size", group},
          {"eps", 1e-10},
          {"use_ue8m0", false},
          {"column_major_scales", false},
          {"tma_aligned_scales", false},
          {"minimum_scale", 0.0},
          {"ue8m0_minimum", 1e-10},
          {"scale_by", EnumWord{"division"}},
          {"scale_ub_of", EnumWord{"magnitude"}},
          {"short_last_group", true},
          {"dtype", DType::f8e4m3}};
}

std::vector<Tensor> quantized(RowKernels& kernels, const Epilogue& epilogue, const Tensor& x) {
  return kernels.call(epilogue.op, {x, epilogue.tensor}, epilogue.attributes, epilogue.results);
}

std::vector<Tensor> fused(RowKernels& kernels, const std::string& front, const Epilogue& epilogue,
                          std::vector<std::optional<Tensor>> operands, Attributes attributes,
                          const std::vector<Meta>& more_results) {
  operands.push_back(epilogue.tensor);
  set_all(attributes, epilogue.attributes);
  std::vector<Meta> results = epilogue.results;
  results.insert(results.end(), more_results.begin(), more_results.end());
  return kernels.call(front + "_" + epilogue.op, operands, attributes, results);
}

void expect_same_results(const std::vector<Tensor>& wanted, const std::vector<Tensor>& came) {
  expect_same_codes(wanted[0], came[0]);
  if (wanted.size() < 2) return;
  if (wanted[1].meta.dtype != DType::f32) return expect_same_codes(wanted[1], came[1]);
  expect_same_bits(values_of(wanted[1]), values_of(came[1]), "scales");
}

}  // namespace weft
