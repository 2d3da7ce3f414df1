// Every kernel of the registry against the meaning of its op, on the op's samples: under every ceiling of instruction
// sets this host has, on contiguous and row-strided operands, with guards around all memory a kernel may see.

#include <algorithm>
#include <cstring>
#include <set>

#include <gtest/gtest.h>

#include "base/error.h"
#include "compiler/run/interpret.h"
#include "tests/kernels/guarded_memory.h"
#include "tests/test_context.h"

namespace weft::every_kernel_test {

// Ops, and kernels of a library, whose sums may be taken in another order; all others agree to the last bit.
const std::set<std::string> kFreeOrder = {"linear",
                                          "linear_bf16",
                                          "grouped_linear",
                                          "grouped_linear_bf16",
                                          "batched_linear",
                                          "linear_fp8_block",
                                          "linear_nvfp4",
                                          "linear_scaled",
                                          "attention",
                                          "causal_conv1d",
                                          "linear_attention",
                                          "selective_scan",
                                          "attention_static_scaled_fp8_quant",
                                          "attention_scaled_fp4_quant",
                                          "softmax@onednn"};

std::int64_t bytes_of_tensor(const Tensor& tensor) {
  if (tensor.meta.is_tensor() && tensor.meta.packed.empty() && tensor.meta.is_contiguous())
    return tensor.meta.bytes().number();
  return tensor.storage->bytes() - tensor.byte_offset;
}

// One run of one kernel on copies of the operands.
struct GuardedRun {
  std::vector<GuardedMemory> memory;
  std::vector<Tensor> operands;
  std::vector<Tensor> results;
  std::vector<std::vector<std::byte>> before;

  GuardedRun(const Op& op, const Kernel& kernel, const std::vector<Tensor>& given, const std::vector<Meta>& metas) {
    for (const Tensor& tensor : given) {
      if (!tensor.defined() || tensor.meta.kind == MetaKind::batch) {
        operands.push_back(tensor);
        before.emplace_back();
        continue;
      }
      const std::int64_t bytes = bytes_of_tensor(tensor);
      memory.emplace_back(bytes);
      std::memcpy(memory.back().data(), tensor.data(), static_cast<std::size_t>(bytes));
      operands.push_back(memory.back().tensor(tensor.meta));
      before.emplace_back(memory.back().data(), memory.back().data() + bytes);
    }
    results.resize(metas.size());
    for (const Donation& donation : op.donates)
      if (writes(kernel, static_cast<std::size_t>(donation.argument)))
        results[static_cast<std::size_t>(donation.result)] = operands[static_cast<std::size_t>(donation.argument)];
    for (std::size_t i = 0; i < metas.size(); ++i) {
      if (results[i].defined()) continue;
      memory.emplace_back(metas[i].bytes().number());
      results[i] = memory.back().tensor(metas[i]);
    }
  }

  static bool writes(const Kernel& kernel, std::size_t operand) {
    return std::find(kernel.writes.begin(), kernel.writes.end(), static_cast<int>(operand)) != kernel.writes.end();
  }

  void run(const Kernel& kernel, const Attributes& attributes, ThreadPool& threads) {
    std::vector<TensorView> inputs, outputs;
    std::vector<Meta> result_metas;
    for (const Tensor& tensor : operands) inputs.push_back(tensor.defined() ? tensor.view() : TensorView());
    for (const Tensor& tensor : results) {
      outputs.push_back(tensor.view());
      result_metas.push_back(tensor.meta);
    }
    std::int64_t scratch = 0;
    if (kernel.scratch_bytes)
      scratch = kernel.scratch_bytes({metas_of(operands), result_metas, attributes, {1, 1}}).number();
    memory.emplace_back(scratch);
    kernel.run(
        {inputs, outputs, attributes, std::span(memory.back().data(), static_cast<std::size_t>(scratch)), threads});
    for (const GuardedMemory& part : memory) EXPECT_TRUE(part.intact()) << "a byte outside the tensors was written";
    for (std::size_t i = 0; i < operands.size(); ++i)
      if (!before[i].empty() && !writes(kernel, i)) {
        EXPECT_EQ(std::memcmp(operands[i].data(), before[i].data(), before[i].size()), 0)
            << "operand " << i << " was written over";
      }
  }
};

// The same elements, rows 16 elements further apart; only for plain matrices and [rows, heads, dim] tensors.
std::optional<Tensor> with_strided_rows(const Tensor& tensor) {
  if (!tensor.defined() || !tensor.meta.is_tensor() || tensor.meta.rank() < 2 || is_block(tensor.meta.dtype))
    return std::nullopt;
  Shape strides = tensor.meta.full_strides();
  const std::int64_t width = strides[0].number(), rows = tensor.meta.shape[0].number();
  strides[0] = width + 16;
  if (rows == 1) return std::nullopt;
  Tensor wide = Tensor::empty(Meta::tensor(tensor.meta.dtype, {rows, width + 16}));
  const std::int64_t from = bytes_of(tensor.meta.dtype, width), to = bytes_of(tensor.meta.dtype, width + 16);
  for (std::int64_t row = 0; row < rows; ++row)
    std::memcpy(wide.data() + row * to, tensor.data() + row * from, static_cast<std::size_t>(from));
  wide.meta = Meta::strided(tensor.meta.dtype, tensor.meta.shape, strides);
  return wide;
}

class EveryKernel : public testing::TestWithParam<std::string> {
 protected:
  EveryKernel() : context_(test_context(GetParam())) {}

  // Body: op, call.
  template <class Body>
  void for_each_call(Body&& body) {
    for (const std::string& name : context_->kernels.ops()) {
      const Op& op = context_->ops.at(name);
      for (const SampleCall& call : sample_calls(op)) body(op, call);
    }
  }

  std::vector<Tensor> meaning(const Op& op, const std::vector<Tensor>& operands, const Attributes& attributes) {
    Interpreter interpreter(*context_);
    std::vector<Tensor> results;
    for (const Value& value :
         weft::call(op.name.c_str(), values_of(interpreter, operands), attributes.entries(), false, &interpreter))
      results.push_back(value.tensor());
    return results;
  }

  // Runs the kernel when it supports the call, and compares. Whether it did.
  bool check(const Op& op, const Kernel& kernel, const std::vector<Tensor>& operands, const Attributes& attributes,
             const std::vector<Tensor>& wanted) {
    std::vector<Meta> metas;
    for (const Tensor& tensor : wanted) metas.push_back(tensor.meta);
    // A kernel overwrites its argument in the argument's layout: its result has the argument's type.
    for (const Donation& donation : op.donates)
      if (GuardedRun::writes(kernel, static_cast<std::size_t>(donation.argument)))
        metas[static_cast<std::size_t>(donation.result)] = operands[static_cast<std::size_t>(donation.argument)].meta;
    const Verdict verdict = kernel.supports({metas_of(operands), metas, attributes, {1, 4096}});
    if (!verdict) {
      EXPECT_FALSE(verdict.reason().empty()) << op.name << "@" << kernel.provider << " refuses without a reason";
      return false;
    }
    GuardedRun run(op, kernel, operands, metas);
    run.run(kernel, attributes, *context_->threads);
    const bool exact = !kFreeOrder.contains(op.name) && !kFreeOrder.contains(op.name + "@" + kernel.provider);
    if (op.is_allocation) return true;  // undefined contents
    for (std::size_t i = 0; i < wanted.size(); ++i)
      EXPECT_EQ(difference(wanted[i], run.results[i], op.tolerance(run.results[i].view().dtype), exact), "")
          << "result " << i << " of " << op.name << "@" << kernel.provider;
    return true;
  }

  std::shared_ptr<Context> context_;
};

TEST_P(EveryKernel, AgreesWithTheMeaningOnEverySample) {
  std::map<std::string, int> ran;
  for_each_call([&](const Op& op, const SampleCall& call) {
    SCOPED_TRACE(call.text);
    const std::vector<Tensor> wanted = meaning(op, call.operands, call.attributes);
    for (const std::string& provider : context_->kernels.providers(op.name)) {
      const Kernel* kernel = context_->kernels.find(op.name, provider);
      if (kernel == nullptr) {
        EXPECT_FALSE(context_->kernels.refusal(op.name, provider).empty()) << op.name << "@" << provider;
        continue;
      }
      ran[op.name + "@" + provider] += check(op, *kernel, call.operands, call.attributes, wanted) ? 1 : 0;
    }
  });
  for (const auto& [kernel, count] : ran) EXPECT_GT(count, 0) << kernel << " supports none of the samples";
}

TEST_P(EveryKernel, AgreesWithTheMeaningOnStridedRowsWhereItTakesThem) {
  std::map<std::string, int> ran;
  for_each_call([&](const Op& op, const SampleCall& call) {
    SCOPED_TRACE(call.text);
    const std::vector<Tensor> wanted = meaning(op, call.operands, call.attributes);
    for (std::size_t i = 0; i < call.operands.size(); ++i) {
      const auto strided = with_strided_rows(call.operands[i]);
      if (!strided) continue;
      std::vector<Tensor> operands = call.operands;
      operands[i] = *strided;
      try {
        infer_results(op, context_->ops, metas_of(operands), call.attributes);
      } catch (const UserError&) {
        continue;  // the op itself requires contiguous rows here
      }
      for (const std::string& provider : context_->kernels.providers(op.name))
        if (const Kernel* kernel = context_->kernels.find(op.name, provider))
          ran[provider] += check(op, *kernel, operands, call.attributes, wanted) ? 1 : 0;
    }
  });
  EXPECT_GT(ran["reference"], 50);
  EXPECT_GT(ran["cpu"], 10);
}

// Zero rows reach no kernel, but one row and many must agree: a row's result does not depend on the others.
TEST_P(EveryKernel, GivesARowTheSameBitsAloneAsAmongOthers) {
  int tried = 0;
  for_each_call([&](const Op& op, const SampleCall& call) {
    // Rows from pages are not contiguous: tests/engine.
    const auto is_plain = [](const Tensor& operand) { return !operand.defined() || operand.meta.is_tensor(); };
    if (op.rows_of < 0 || op.is_allocation || !std::all_of(call.operands.begin(), call.operands.end(), is_plain))
      return;
    if (call.attributes.find("dim") != nullptr) return;
    const Tensor& rows_operand = call.operands[static_cast<std::size_t>(op.rows_of)];
    if (!rows_operand.defined() || rows_operand.meta.rank() < 1) return;
    const Dim rows = rows_operand.meta.shape[0];
    if (rows.number() < 2) return;
    std::vector<Tensor> first = call.operands;
    for (std::size_t i = 0; i < first.size(); ++i) {
      const bool has_rows = first[i].defined() && first[i].meta.is_tensor() && first[i].meta.rank() >= 1 &&
                            first[i].meta.shape[0] == rows && first[i].meta.is_contiguous();
      if (has_rows) first[i].meta.shape[0] = 1;
    }
    SCOPED_TRACE(call.text);
    for (const std::string& provider : context_->kernels.providers(op.name)) {
      const Kernel* kernel = context_->kernels.find(op.name, provider);
      if (kernel == nullptr || !kernel->batch_invariant) continue;
      auto run = [&](const std::vector<Tensor>& operands) -> std::vector<Tensor> {
        const auto metas = infer_results(op, context_->ops, metas_of(operands), call.attributes);
        if (!kernel->supports({metas_of(operands), metas, call.attributes, {1, 4096}})) return {};
        GuardedRun guarded(op, *kernel, operands, metas);
        guarded.run(*kernel, call.attributes, *context_->threads);
        return guarded.results;
      };
      const std::vector<Tensor> all = run(call.operands), alone = run(first);
      if (all.empty() || alone.empty()) continue;
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (!(all[i].meta.shape[0] == rows)) continue;
        Tensor row = all[i];
        row.meta.shape[0] = 1;
        EXPECT_EQ(difference(row, alone[i], {}, true), "") << op.name << "@" << provider << " result " << i;
        ++tried;
      }
    }
  });
  EXPECT_GT(tried, 50);
}

// The weight in the layout of the packing, in a tensor of the packed type.
Tensor packed(const Tensor& plain, const Packing& packing) {
  const std::int64_t row_bytes = bytes_of(plain.meta.dtype, plain.meta.shape.back().number());
  GuardedMemory memory(packing.bytes(plain.meta));
  auto row = [&](std::int64_t index) -> const std::byte* { return plain.data() + index * row_bytes; };
  for (std::int64_t unit = 0; unit < packing.units(plain.meta); ++unit)
    packing.pack(plain.meta, row, memory.data(), unit);
  EXPECT_TRUE(memory.intact()) << packing.name << " writes beyond its bytes";
  Meta meta = plain.meta;
  meta.packed = packing.name;
  return memory.tensor(meta);
}

TEST_P(EveryKernel, ReadsPackedWeightsToTheSameResult) {
  std::map<std::string, int> ran;
  for_each_call([&](const Op& op, const SampleCall& call) {
    const int index = op.schema.parameter_index("weight");
    if (index < 0) return;
    const auto at = static_cast<std::size_t>(index);
    if (!call.operands[at].defined() || call.operands[at].meta.rank() < 2) return;
    const std::vector<Tensor> wanted = meaning(op, call.operands, call.attributes);
    for (const auto& [name, packing] : context_->kernels.packings()) {
      SCOPED_TRACE(call.text + " packed=" + name);
      const Verdict accepted = packing.accepts(call.operands[at].meta, context_->device);
      if (!accepted) {
        EXPECT_FALSE(accepted.reason().empty());
        continue;
      }
      std::vector<Tensor> operands = call.operands;
      operands[at] = packed(call.operands[at], packing);
      EXPECT_EQ(packing.bytes(call.operands[at].meta) % 64, 0);
      for (const std::string& provider : context_->kernels.providers(op.name)) {
        const Kernel* kernel = context_->kernels.find(op.name, provider);
        if (kernel == nullptr) continue;
        const bool done = check(op, *kernel, operands, call.attributes, wanted);
        if (provider == "reference") {
          EXPECT_FALSE(done) << "the reference kernels read plain weights alone";
        }
        ran[name] += done ? 1 : 0;
      }
    }
  });
  for (const auto& [name, count] : ran) EXPECT_GT(count, 0) << name << " is read by no kernel";
}

INSTANTIATE_TEST_SUITE_P(Ceilings, EveryKernel, testing::ValuesIn(cpu_features_to_try()),
                         [](const auto& level) { return level.param; });

}  // namespace weft::every_kernel_test
