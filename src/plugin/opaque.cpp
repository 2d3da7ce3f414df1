#include "plugin/opaque.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "kernels/strided.h"

namespace weft {
namespace {

std::optional<Meta> meta_of(const TensorView& view) {
  if (!view.present()) return std::nullopt;
  if (view.kind != MetaKind::tensor) return view.meta == nullptr ? Meta::batch() : *view.meta;
  const Shape shape(view.size, view.size + view.rank);
  Meta meta = is_block(view.dtype) ? Meta::tensor(view.dtype, shape)
                                   : Meta::strided(view.dtype, shape, Shape(view.stride, view.stride + view.rank));
  if (view.meta != nullptr) meta.packed = view.meta->packed;
  return meta;
}

// UserError if the op's kernel does not support the call.
void demand_support(const Kernel& kernel, const KernelCall& call) {
  std::vector<std::optional<Meta>> operands;
  for (const TensorView& operand : call.operands) operands.push_back(meta_of(operand));
  std::vector<Meta> results;
  for (const TensorView& result : call.results) results.push_back(*meta_of(result));
  const Verdict verdict = kernel.supports({operands, results, call.attributes, kernel.rows});
  USER_CHECK(verdict, "[{}@{}] refuses the call, and the op has no meaning: {} ({})", kernel.op, kernel.provider,
             verdict.reason(), kernel.origin);
}

// Copies an argument into the result: a kernel that overwrites an argument expects it in the memory of the result.
void copy_into(const TensorView& from, const TensorView& into) {
  CHECK(from.kind == MetaKind::tensor && has_addresses(from.dtype), "an opaque op donates a tensor of {}",
        dtype_text(from.dtype));
  const std::int64_t bytes = dtype_info(from.dtype).block_bytes;
  for_each_index(from.size, from.rank, [&](const std::int64_t* index) {
    std::memcpy(into.data + bytes * element_at(into, index, from.rank),
                from.data + bytes * element_at(from, index, from.rank), static_cast<std::size_t>(bytes));
  });
}

}  // namespace

Kernel opaque_reference(const Op& op, const Kernel& kernel, bool batch_invariant) {
  Kernel reference = kernel;
  reference.provider = "reference";
  reference.rows = Kernel().rows;
  reference.writes.clear();
  reference.supports = [](const KernelRequest&) { return Verdict::yes(); };
  reference.supported = [](const DeviceDescription&) { return Verdict::yes(); };
  reference.note = "the op's own kernel, " + kernel.provider;
  // prepare() runs when the device is known. The op's kernel may not support that device.
  reference.prepare = [own = kernel, donates = op.donates, batch_invariant](Kernel& prepared,
                                                                            const DeviceDescription& device) mutable {
    const Verdict supported = own.supported(device);
    if (supported && own.prepare) own.prepare(own, device);
    prepared.run = [own, donates, batch_invariant, supported](const KernelCall& call) {
      USER_CHECK(supported, "[{}@{}] {}, and the op has no meaning ({})", own.op, own.provider, supported.reason(),
                 own.origin);
      USER_CHECK(own.batch_invariant || !batch_invariant,
                 "[{}@{}] depends on the other rows of the batch, and the op has no meaning: --batch-invariant cannot "
                 "hold ({})",
                 own.op, own.provider, own.origin);
      demand_support(own, call);
      std::vector<TensorView> operands(call.operands.begin(), call.operands.end());
      for (const Donation& donation : donates) {
        if (std::find(own.writes.begin(), own.writes.end(), donation.argument) == own.writes.end()) continue;
        const TensorView& result = call.results[static_cast<std::size_t>(donation.result)];
        copy_into(operands[static_cast<std::size_t>(donation.argument)], result);
        operands[static_cast<std::size_t>(donation.argument)] = result;
      }
      own.run({operands, call.results, call.attributes, call.scratch, call.threads, call.groups});
    };
  };
  reference.run = kernel.run;
  return reference;
}

}  // namespace weft
