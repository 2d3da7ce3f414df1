// Every provider of softmax compared with the formula in doubles, beyond the samples: rows with NaN and infinities,
// several blocks of rows and a partial one, rows that are apart.

#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "compiler/run/run_kernel.h"
#include "ir/meta_evaluator.h"
#include "kernels/provider.h"
#include "tests/kernels/cpu_rows_support.h"
#include "tests/test_context.h"

namespace weft::every_softmax_test {

const Attributes kLast{{"dim", -1}};

Tensor formula(const Tensor& x) {
  const std::vector<float> values = values_of(x);
  std::vector<float> result;
  const std::int64_t columns = x.meta.shape.back().number();
  for (auto row = values.begin(); row != values.end(); row += columns) {
    double largest = -INFINITY, sum = 0;
    for (std::int64_t i = 0; i < columns; ++i) largest = std::fmax(largest, row[i]);
    for (std::int64_t i = 0; i < columns; ++i) sum += std::exp(row[i] - largest);
    for (std::int64_t i = 0; i < columns; ++i) result.push_back(static_cast<float>(std::exp(row[i] - largest) / sum));
  }
  return tensor_of(x.meta.dtype, x.meta.shape, result);
}

// The result, or an undefined one if the kernel refuses.
Tensor run(const Context& context, const Kernel& kernel, const Tensor& x) {
  const std::vector<Meta> results = {Meta::tensor(x.meta.dtype, x.meta.shape)};
  if (!kernel.supports({metas_of({x}), results, kLast, {1, 4096}})) return {};
  MetaEvaluator home(context.ops);
  const Op& op = context.ops.at("softmax");
  return run_kernel(op, kernel, values_of(home, {x}), kLast, results, false, *context.threads)[0];
}

std::vector<const Kernel*> kernels_of(const Context& context) {
  std::vector<const Kernel*> kernels;
  for (const std::string& provider : context.kernels.providers("softmax"))
    if (const Kernel* kernel = context.kernels.find("softmax", provider)) kernels.push_back(kernel);
  return kernels;
}

std::vector<Tensor> inputs() {
  std::vector<Tensor> all;
  for (const DType dtype : kFloatTypes)
    for (const auto& [rows, columns] :
         {std::pair{1, 1}, {9, 7}, {64, 64}, {129, 65}, {63, 576}, {30, 1000}, {3, 30000}}) {
      const Tensor x = tensor_of(dtype, {rows, columns}, rows_with_specials(rows, columns, 7));
      all.push_back(x);
      all.push_back(with_row_padding(x, 3));
    }
  return all;
}

TEST(EverySoftmax, AgreesWithTheFormulaOnAllKindsOfRows) {
  const auto context = test_context();
  const Op& op = context->ops.at("softmax");
  std::map<std::string, int> ran;
  for (const Tensor& x : inputs()) {
    const Tensor wanted = formula(x);
    for (const Kernel* kernel : kernels_of(*context)) {
      SCOPED_TRACE(kernel->provider + " " + x.meta.text());
      const Tensor came = run(*context, *kernel, x);
      if (!came.defined()) continue;
      ++ran[kernel->provider];
      EXPECT_EQ(difference(wanted, came, op.tolerance(x.meta.dtype), false), "");
    }
  }
  for (const Kernel* kernel : kernels_of(*context)) EXPECT_GE(ran[kernel->provider], 21) << kernel->provider;
}

// ThreadSanitizer does not see the locks of a library that was built without it, and reports the accesses that they
// guard as races.
bool is_hidden_from_the_sanitizer([[maybe_unused]] const Kernel& kernel) {
#ifdef __SANITIZE_THREAD__
  for (const ProviderEntry& entry : provider_table())
    if (entry.name == kernel.provider) return entry.version != nullptr;
#endif
  return false;
}

TEST(EverySoftmax, GivesTheSameBitsOnAnyNumberOfThreads) {
  const auto one = test_context("host", 1), three = test_context("host", 3);
  for (const Tensor& x : inputs())
    for (const Kernel* kernel : kernels_of(*one)) {
      if (is_hidden_from_the_sanitizer(*kernel)) continue;
      const Tensor alone = run(*one, *kernel, x);
      if (!alone.defined()) continue;
      for (int i = 0; i < 5; ++i) {
        const Tensor shared = run(*three, *three->kernels.find("softmax", kernel->provider), x);
        ASSERT_EQ(difference(alone, shared, {}, true), "") << kernel->provider << " " << x.meta.text();
      }
    }
}

TEST(EverySoftmax, SaysWhatItDoesNotTake) {
  const auto context = test_context();
  const Tensor x = tensor_of(DType::f32, {4, 8}, normal_values(32, 1));
  Tensor turned = x, packed = x, wide = x;
  turned.meta = Meta::strided(DType::f32, {8, 4}, {1, 8});
  packed.meta.packed = "nobody";
  wide.meta.dtype = DType::f64;
  for (const Kernel* kernel : kernels_of(*context))
    for (const Tensor& strange : {turned, packed, wide}) {
      const std::vector<Meta> results = {Meta::tensor(strange.meta.dtype, strange.meta.shape)};
      const Verdict verdict = kernel->supports({metas_of({strange}), results, kLast, {1, 4}});
      ASSERT_FALSE(verdict) << kernel->provider << " " << strange.meta.text();
      EXPECT_NE(verdict.reason(), "");
    }
}

}  // namespace weft::every_softmax_test
