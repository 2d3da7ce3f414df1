#include "kernels/cpu/lib/rows.h"

#include <algorithm>

#include <fmt/core.h>

#include "base/error.h"
#include "kernels/cpu/lib/row_wise_kernels.h"

namespace weft::cpu {
namespace {

bool is_float_element(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

}  // namespace

Element element_of(DType dtype) {
  CHECK(is_float_element(dtype), "[cpu] wanted f32, f16 or bf16, but is {}", dtype_text(dtype));
  return dtype == DType::f32 ? Element::f32 : dtype == DType::f16 ? Element::f16 : Element::bf16;
}

Verdict float_rows(const std::optional<Meta>& meta, std::string_view name) {
  if (!meta || !meta->is_tensor()) return Verdict::no(fmt::format("{} is not a tensor", name));
  if (!meta->packed.empty()) return Verdict::no(fmt::format("{} is packed", name));
  if (!is_float_element(meta->dtype)) {
    return Verdict::no(fmt::format("{} is {}; f32, f16 and bf16 are supported", name, dtype_text(meta->dtype)));
  }
  if (meta->rank() == 0 || meta->rank() > kMaxRank) {
    return Verdict::no(fmt::format("{} has rank {}; 1 to {} are supported", name, meta->rank(), kMaxRank));
  }
  if (!meta->is_contiguous() && meta->strides.back() != Dim(1) && meta->shape.back() != Dim(1)) {
    return Verdict::no(fmt::format("rows of {} are not contiguous", name));
  }
  return Verdict::yes();
}

std::function<bool(const KernelRequest&)> yields(std::size_t operand, std::vector<DType> dtypes) {
  return [operand, dtypes = std::move(dtypes)](const KernelRequest& request) {
    return std::find(dtypes.begin(), dtypes.end(), request.operands[operand]->dtype) != dtypes.end();
  };
}

bool same_leading_dims(const Meta& a, const Meta& b) {
  return a.rank() == b.rank() && std::equal(a.shape.begin(), a.shape.end() - 1, b.shape.begin());
}

Verdict norm_weight(const std::optional<Meta>& weight, DType x) {
  if (!weight) return Verdict::yes();
  if (!weight->is_contiguous() || !weight->packed.empty()) return Verdict::no("weight is not contiguous");
  if (weight->dtype == DType::f32 || weight->dtype == x) return Verdict::yes();
  return Verdict::no(fmt::format("weight is {} and x is {}; f32 and x's dtype are supported", dtype_text(weight->dtype),
                                 dtype_text(x)));
}

std::size_t weighting_of(const TensorView& weight, DType x) {
  if (!weight.present()) return static_cast<std::size_t>(Weighting::none);
  return static_cast<std::size_t>(weight.dtype == x ? Weighting::same : Weighting::f32);
}

RowSpace::RowSpace(std::initializer_list<const TensorView*> views) {
  CHECK(views.size() <= kMaxRowOperands, "[cpu] {} operands of rows", views.size());
  const TensorView& shape = **views.begin();
  for (int dim = 0; dim + 1 < shape.rank; ++dim) rows_ *= shape.size[dim];
  for (const TensorView* view : views) {
    Operand& operand = operands_[operand_count_++];
    operand.data = view->data;
    const DTypeInfo& info = dtype_info(view->dtype);
    operand.stored_bytes = info.block_bytes;
    for (int dim = 0; dim + 1 < shape.rank; ++dim) {
      const int own = dim + view->rank - shape.rank;
      operand.stride[static_cast<std::size_t>(dim)] =
          own < 0 || view->size[own] == 1 ? 0 : view->stride[own] / info.block_elements;
    }
  }
  // Dims of extent 1 are removed. A dim is joined with the one before it if it continues that dim in every operand.
  for (int dim = 0; dim + 1 < shape.rank; ++dim) {
    const auto at = static_cast<std::size_t>(dim);
    if (shape.size[dim] == 1) continue;
    const auto begin = operands_.begin(), end = begin + static_cast<std::ptrdiff_t>(operand_count_);
    const bool joins =
        dims_ > 0 && std::all_of(begin, end, [&](const Operand& operand) {
          return operand.stride[static_cast<std::size_t>(dims_ - 1)] == operand.stride[at] * shape.size[dim];
        });
    const auto to = static_cast<std::size_t>(joins ? dims_ - 1 : dims_);
    size_[to] = joins ? size_[to] * shape.size[dim] : shape.size[dim];
    std::for_each(operands_.begin(), end, [&](Operand& operand) { operand.stride[to] = operand.stride[at]; });
    if (!joins) ++dims_;
  }
}

RowRun RowSpace::run_at(std::int64_t first, std::int64_t last) const {
  RowRun run{{}, {}, first, last - first};
  for (std::size_t i = 0; i < operand_count_; ++i) run.data[i] = operands_[i].data;
  std::int64_t rest = first;
  for (int dim = dims_ - 1; dim >= 0; --dim) {
    const auto at = static_cast<std::size_t>(dim);
    const std::int64_t index = dim == 0 ? rest : rest % size_[at];
    rest = dim == 0 ? 0 : rest / size_[at];
    for (std::size_t i = 0; i < operand_count_; ++i) {
      run.data[i] += index * operands_[i].stride[at] * operands_[i].stored_bytes;
      if (dim == dims_ - 1) run.stride[i] = operands_[i].stride[at];
    }
    if (dim == dims_ - 1) run.count = std::min(run.count, size_[at] - index);
  }
  return run;
}

}  // namespace weft::cpu
