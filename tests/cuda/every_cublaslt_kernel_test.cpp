// Kernels of provider cublaslt compared with the meanings of their ops, on the samples: without a queue the host
// computes them, as it does in place of the library on a fake device.

#include <functional>
#include <set>
#include <span>

#include <gtest/gtest.h>

#include "compiler/run/sample_call.h"
#include "kernels/library_product.h"
#include "kernels/select.h"
#include "tests/cuda/cuda_context.h"

namespace weft::every_cublaslt_kernel_test {

// The same elements in a matrix with another layout, with room for `elements` from its first one on.
Tensor laid_out(const Tensor& matrix, std::int64_t row_stride, std::int64_t column_stride, std::int64_t elements) {
  const Shape& shape = matrix.meta.shape;
  Tensor laid{.meta = Meta::strided(DType::f32, shape, {row_stride, column_stride}),
              .storage = Storage::allocate(elements * static_cast<std::int64_t>(sizeof(float)))};
  for (std::int64_t row = 0; row < shape[0].number(); ++row)
    for (std::int64_t column = 0; column < shape[1].number(); ++column)
      laid.as<float>()[row * row_stride + column * column_stride] =
          matrix.as<float>()[row * shape[1].number() + column];
  return laid;
}

// Scales of blocks as the library reads them; everything else is unchanged.
std::vector<Tensor> as_read(const std::string& op, const std::vector<Tensor>& operands) {
  if (op != "linear_fp8_block") return operands;
  std::vector<Tensor> laid = operands;
  const auto whole = [](const Dim& count) { return align(count, 4).number(); };
  const Shape &x = operands[1].meta.shape, &weight = operands[3].meta.shape;
  laid[1] = laid_out(operands[1], 1, whole(x[0]), whole(x[0]) * x[1].number());
  laid[3] = laid_out(operands[3], whole(weight[1]), 1, whole(weight[1]) * weight[0].number());
  return laid;
}

// The kind of the scales of a call.
ProductScales scales_of(const std::string& op, const std::vector<Tensor>& operands) {
  if (op == "linear") return ProductScales::none;
  if (op == "linear_fp8_block") return ProductScales::blocks;
  const bool is_whole =
      element_count(operands[1].meta.shape) == Dim(1) && element_count(operands[3].meta.shape) == Dim(1);
  return is_whole ? ProductScales::whole : ProductScales::rows;
}

TEST(EveryCublasltKernel, AgreesWithTheMeaningOnEverySampleItTakes) {
  const auto context = cuda_context();
  std::set<std::pair<std::string, ProductScales>> taken;
  for (const std::string& op : ops_of_provider(*context, "cublaslt")) {
    for (const SampleCall& call : sample_calls(context->ops.at(op))) {
      SCOPED_TRACE(call.text);
      const std::vector<Tensor> operands = as_read(op, call.operands);
      if (!supports_of_cuda(*context, op, operands, call.attributes, "cublaslt")) continue;
      const std::vector<Tensor> came = by_cuda(*context, op, operands, call.attributes, "cublaslt");
      const std::vector<Tensor> wanted = meaning_of(*context, op, call.operands, call.attributes);
      EXPECT_EQ(difference(wanted[0], came[0], context->ops.at(op).tolerance(came[0].meta.dtype)), "") << op;
      taken.insert({op, scales_of(op, operands)});
    }
  }
  // An op whose samples are all refused is visible in the forms, a new one of the provider in the count.
  const std::set<std::pair<std::string, ProductScales>> wanted = {{"linear", ProductScales::none},
                                                                  {"linear_fp8_block", ProductScales::blocks},
                                                                  {"linear_scaled", ProductScales::rows},
                                                                  {"linear_scaled", ProductScales::whole}};
  EXPECT_EQ(taken, wanted) << "forms of scales that the samples reach";
  EXPECT_EQ(ops_of_provider(*context, "cublaslt").size(), 3u);
}

std::string refusal(const Context& context, Meta x, Meta weight, std::optional<Meta> bias = std::nullopt) {
  const std::vector<std::optional<Meta>> operands = {x, weight, bias};
  Shape shape = x.shape;
  shape.back() = weight.shape[0];
  const Meta result = Meta::tensor(x.dtype, shape);
  const Attributes none;
  const Verdict verdict = context.kernel_for("linear", "cublaslt").supports({operands, {&result, 1}, none, {1, 4096}});
  return verdict ? "" : verdict.reason();
}

TEST(EveryCublasltKernel, SaysWhyItRefuses) {
  const auto context = cuda_context();
  const auto bf16 = [](Shape shape) { return Meta::tensor(DType::bf16, std::move(shape)); };
  EXPECT_EQ(refusal(*context, bf16({4, 64}), bf16({48, 64})), "");
  EXPECT_EQ(refusal(*context, Meta::strided(DType::bf16, {4, 64}, {96, 1}), bf16({48, 64}), bf16({48})), "");
  EXPECT_EQ(refusal(*context, bf16({4, 64}), Meta::tensor(DType::q4_1, {48, 64})),
            "takes a weight of the dtype of x: bf16[4, 64], not q4_1[48, 64]");
  EXPECT_NE(refusal(*context, Meta::tensor(DType::f64, {4, 64}), bf16({48, 64})).find("bf16, f16 and f32"),
            std::string::npos);
  EXPECT_NE(refusal(*context, Meta::strided(DType::bf16, {4, 64}, {1, 4}), bf16({48, 64})).find("contiguous rows"),
            std::string::npos);
  EXPECT_NE(refusal(*context, bf16({4, 64}), bf16({48, 64}), Meta::tensor(DType::f32, {48})).find("bias"),
            std::string::npos);
  Meta packed = bf16({48, 64});
  packed.packed = "somebody's";
  EXPECT_NE(refusal(*context, bf16({4, 64}), packed).find("plain weights"), std::string::npos);
}

// A product of codes that is taken, with one scale for each row.
struct CodeProduct {
  std::string op = "linear_scaled";
  Meta x = Meta::tensor(DType::f8e4m3, {4, 256});
  Meta x_scale = Meta::tensor(DType::f32, {4, 1});
  Meta weight = Meta::tensor(DType::f8e4m3, {160, 256});
  Meta weight_scale = Meta::tensor(DType::f32, {160, 1});
  std::optional<Meta> bias;
  DType dtype = DType::bf16;
  Shape block = {128, 128};
};

// The same rows with scales of blocks.
CodeProduct of_blocks() {
  return {.op = "linear_fp8_block",
          .x = Meta::tensor(DType::f8e4m3, {6, 256}),
          .x_scale = Meta::strided(DType::f32, {6, 2}, {1, 8}),
          .weight_scale = Meta::strided(DType::f32, {2, 2}, {4, 1})};
}

std::string refusal(const Context& context, const CodeProduct& product) {
  const std::vector<std::optional<Meta>> operands = {product.x, product.x_scale, product.weight, product.weight_scale,
                                                     product.bias};
  const Meta result = Meta::tensor(product.dtype, {product.x.shape[0], product.weight.shape[0]});
  const Attributes attributes = {{"block", Attribute::shape(product.block)}, {"dtype", product.dtype}};
  const Kernel& kernel = context.kernel_for(product.op, "cublaslt");
  const Verdict verdict = kernel.supports({operands, {&result, 1}, attributes, {1, 4096}});
  return verdict ? "" : verdict.reason();
}

// One property differs from a product that is accepted.
struct OtherProduct {
  const char* reason;  // "" if it is accepted nevertheless
  std::function<void(CodeProduct&)> change;
};

void expect_reasons(const CodeProduct& taken, std::span<const OtherProduct> others) {
  const auto context = cuda_context();
  EXPECT_EQ(refusal(*context, taken), "");
  for (const OtherProduct& other : others) {
    CodeProduct product = taken;
    other.change(product);
    EXPECT_EQ(refusal(*context, product), other.reason);
  }
}

Meta codes(Shape shape, Shape strides) { return Meta::strided(DType::f8e4m3, std::move(shape), std::move(strides)); }
Meta scales(Shape shape, Shape strides) { return Meta::strided(DType::f32, std::move(shape), std::move(strides)); }
Meta plain(DType dtype, Shape shape) { return Meta::tensor(dtype, std::move(shape)); }

TEST(EveryCublasltKernel, SaysWhyItRefusesCodes) {
  const OtherProduct others[] = {
      {"takes f8e4m3, not f8e4m3fnuz[4, 256]",
       [](CodeProduct& p) {
         p.x = p.weight = plain(DType::f8e4m3fnuz, {4, 256});
       }},
      {"takes a bias of bf16 or f16, not f32[160]",
       [](CodeProduct& p) { p.bias = plain(p.dtype = DType::f32, {160}); }},
      {"", [](CodeProduct& p) { p.dtype = DType::f32; }},
      {"takes a weight in whole tiles of 16, not f8e4m3[168, 256]",
       [](CodeProduct& p) {
         p.weight = plain(DType::f8e4m3, {168, 256});
       }},
      {"takes a weight in whole tiles of 16, not f8e4m3[160, 264]",
       [](CodeProduct& p) {
         p.weight = plain(DType::f8e4m3, {160, 264}), p.x = plain(DType::f8e4m3, {4, 264});
       }},
      {"",
       [](CodeProduct& p) {
         p.x = codes({4, 256}, {272, 1}), p.weight = codes({160, 256}, {288, 1});
       }},
      {"rows of x are not multiples of 16 bytes: f8e4m3[4, 256]{264, 1}",
       [](CodeProduct& p) {
         p.x = codes({4, 256}, {264, 1});
       }},
      {"rows of the weight are not multiples of 16 bytes: f8e4m3[160, 256]{264, 1}",
       [](CodeProduct& p) {
         p.weight = codes({160, 256}, {264, 1});
       }},
  };
  expect_reasons({}, others);
}

TEST(EveryCublasltKernel, SaysWhyItRefusesScalesOfRows) {
  const OtherProduct others[] = {
      {"", [](CodeProduct& p) { p.x_scale = p.weight_scale = plain(DType::f32, {1}); }},
      {"takes one scale on each side, or one for each row, not f32[1] and f32[160, 1]",
       [](CodeProduct& p) { p.x_scale = plain(DType::f32, {1}); }},
      {"takes one scale on each side, or one for each row, not f32[4, 1] and f32[]",
       [](CodeProduct& p) { p.weight_scale = plain(DType::f32, {}); }},
      // The single scale of a single row is that row's.
      {"",
       [](CodeProduct& p) {
         p.x = plain(DType::f8e4m3, {1, 256}), p.x_scale = plain(DType::f32, {1});
       }},
      {"wants contiguous scales, not f32[4, 1]{2, 1}",
       [](CodeProduct& p) {
         p.x_scale = scales({4, 1}, {2, 1});
       }},
      {"wants contiguous scales, not f32[160]{3}", [](CodeProduct& p) { p.weight_scale = scales({160}, {3}); }},
      {"takes no bias with scales of rows", [](CodeProduct& p) { p.bias = plain(DType::bf16, {160}); }},
      {"",
       [](CodeProduct& p) {
         p.x_scale = p.weight_scale = plain(DType::f32, {1});
         p.bias = plain(DType::bf16, {160});
       }},
  };
  expect_reasons({}, others);
}

TEST(EveryCublasltKernel, SaysWhyItRefusesScalesOfBlocks) {
  const OtherProduct others[] = {
      {"takes blocks of 128 x 128, not 64 x 128",
       [](CodeProduct& p) {
         p.block = {64, 128};
       }},
      {"takes blocks of 128 x 128, not 128 x 64",
       [](CodeProduct& p) {
         p.block = {128, 64};
       }},
      {"wants rows one after another, not f8e4m3[6, 256]{272, 1}",
       [](CodeProduct& p) {
         p.x = codes({6, 256}, {272, 1});
       }},
      {"takes no bias with scales of blocks", [](CodeProduct& p) { p.bias = plain(DType::bf16, {160}); }},
      {"wants scales of x group by group, 8 apart, not f32[6, 2]",
       [](CodeProduct& p) {
         p.x_scale = plain(DType::f32, {6, 2});
       }},
      {"wants scales of x group by group, 8 apart, not f32[6, 2]{1, 6}",
       [](CodeProduct& p) {
         p.x_scale = scales({6, 2}, {1, 6});
       }},
      {"wants scales of the weight in rows 4 apart, not f32[2, 2]",
       [](CodeProduct& p) {
         p.weight_scale = plain(DType::f32, {2, 2});
       }},
      {"wants scales of the weight in rows 4 apart, not f32[2, 2]{1, 4}",
       [](CodeProduct& p) {
         p.weight_scale = scales({2, 2}, {1, 4});
       }},
  };
  expect_reasons(of_blocks(), others);
}

// Before the host's own products, which cannot read a GPU's memory.
TEST(EveryCublasltKernel, IsTheFirstThatIsAsked) {
  const auto context = cuda_context();
  const std::vector<std::optional<Meta>> operands = {Meta::tensor(DType::bf16, {Dim::symbol("s0"), 64}),
                                                     Meta::tensor(DType::bf16, {48, 64}), std::nullopt};
  const Meta result = Meta::tensor(DType::bf16, {Dim::symbol("s0"), 48});
  const Attributes none;
  const KernelRequest request{operands, {&result, 1}, none, {1, 4096}};
  EXPECT_EQ(select_kernel(context->kernels, context->priorities, "linear", request, false).provider, "cublaslt");
  // Its sums depend on the count of rows.
  EXPECT_EQ(select_kernel(context->kernels, context->priorities, "linear", request, true).provider, "cpu");
}

}  // namespace weft::every_cublaslt_kernel_test
