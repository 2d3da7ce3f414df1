#include "plugin/flat_types.h"

#include <algorithm>

#include "base/error.h"

namespace weft {
namespace {

struct DTypeRow {
  DType dtype;
  std::int32_t flat;
};

// The numbers of the flat interface never change, even if dtype.def does.
constexpr DTypeRow kDTypes[] = {
    {DType::f64, WEFT_F64},         {DType::f32, WEFT_F32},         {DType::f16, WEFT_F16},
    {DType::bf16, WEFT_BF16},       {DType::i64, WEFT_I64},         {DType::i32, WEFT_I32},
    {DType::i16, WEFT_I16},         {DType::i8, WEFT_I8},           {DType::u8, WEFT_U8},
    {DType::u16, WEFT_U16},         {DType::u32, WEFT_U32},         {DType::boolean, WEFT_BOOL},
    {DType::i4, WEFT_I4},           {DType::f8e4m3, WEFT_F8E4M3},   {DType::f8e4m3fnuz, WEFT_F8E4M3FNUZ},
    {DType::f8e5m2, WEFT_F8E5M2},   {DType::f8e8m0, WEFT_F8E8M0},   {DType::f4e2m1, WEFT_F4E2M1},
    {DType::q4_0, WEFT_Q4_0},       {DType::q4_1, WEFT_Q4_1},       {DType::q8_0, WEFT_Q8_0},
    {DType::q5_0, WEFT_Q5_0},       {DType::q5_1, WEFT_Q5_1},       {DType::iq4_nl, WEFT_IQ4_NL},
    {DType::mxfp4, WEFT_MXFP4},     {DType::nvfp4, WEFT_NVFP4},     {DType::q2_k, WEFT_Q2_K},
    {DType::q3_k, WEFT_Q3_K},       {DType::q4_k, WEFT_Q4_K},       {DType::q5_k, WEFT_Q5_K},
    {DType::q6_k, WEFT_Q6_K},       {DType::iq4_xs, WEFT_IQ4_XS},   {DType::iq3_s, WEFT_IQ3_S},
    {DType::iq3_xxs, WEFT_IQ3_XXS}, {DType::iq2_s, WEFT_IQ2_S},     {DType::iq2_xs, WEFT_IQ2_XS},
    {DType::iq2_xxs, WEFT_IQ2_XXS}, {DType::iq1_m, WEFT_IQ1_M},     {DType::iq1_s, WEFT_IQ1_S},
    {DType::tq1_0, WEFT_TQ1_0},     {DType::tq2_0, WEFT_TQ2_0},     {DType::i4g32, WEFT_I4G32},
    {DType::i4g64, WEFT_I4G64},     {DType::i4g128, WEFT_I4G128},   {DType::nf4g32, WEFT_NF4G32},
    {DType::nf4g64, WEFT_NF4G64},   {DType::i8g32, WEFT_I8G32},     {DType::e4m3g128, WEFT_E4M3G128},
    {DType::e4m3g32, WEFT_E4M3G32}, {DType::e2m1g16, WEFT_E2M1G16},
};

std::int32_t flat_kind(MetaKind kind) {
  switch (kind) {
    case MetaKind::tensor:
      return WEFT_TENSOR;
    case MetaKind::kv:
      return WEFT_KV;
    case MetaKind::batch:
      return WEFT_BATCH;
    case MetaKind::integer:
      return WEFT_INTEGER;
    case MetaKind::real:
      return WEFT_REAL;
  }
  return WEFT_ABSENT;
}

weft_kv_layout flat_layout(const KvLayout& kv) {
  return {.dtype = flat_dtype(kv.dtype),
          .keys_are_values = kv.keys_are_values ? 1 : 0,
          .block = kv.block,
          .heads = kv.heads,
          .head_dim = kv.head_dim,
          .state_rows = kv.state_rows};
}

std::int64_t number_or_unknown(const Dim& dim) { return dim.is_number() ? dim.number() : WEFT_UNKNOWN; }

}  // namespace

std::int32_t flat_dtype(DType dtype) {
  const auto row =
      std::find_if(std::begin(kDTypes), std::end(kDTypes), [&](const auto& r) { return r.dtype == dtype; });
  CHECK(row != std::end(kDTypes), "{} has no number in weft_plugin.h", dtype_text(dtype));
  return row->flat;
}

std::optional<DType> dtype_of_flat(std::int32_t dtype) {
  const auto row = std::find_if(std::begin(kDTypes), std::end(kDTypes), [&](const auto& r) { return r.flat == dtype; });
  return row == std::end(kDTypes) ? std::nullopt : std::optional(row->dtype);
}

const char* FlatTypes::keep(std::string text) {
  texts_.push_back(std::move(text));
  return texts_.back().c_str();
}

void FlatTypes::add(const Meta* meta) {
  weft_type type{};
  type.packed = "";
  type.text = "none";
  std::fill(std::begin(type.dim), std::end(type.dim), "");
  if (meta != nullptr) {
    type.kind = flat_kind(meta->kind);
    type.text = keep(meta->text());
    type.packed = keep(meta->packed);
    if (meta->kind == MetaKind::kv) {
      type.kv = flat_layout(meta->kv);
      type.dtype = type.kv.dtype;
    }
    if (meta->is_tensor()) {
      type.dtype = flat_dtype(meta->dtype);
      type.rank = static_cast<std::int32_t>(meta->rank());
      type.contiguous = meta->is_contiguous() ? 1 : 0;
      const Shape strides = meta->full_strides();
      for (std::size_t i = 0; i < meta->rank(); ++i) {
        type.size[i] = number_or_unknown(meta->shape[i]);
        type.stride[i] = number_or_unknown(strides[i]);
        type.dim[i] = keep(meta->shape[i].text());
      }
    }
  }
  types_.push_back(type);
}

FlatTensors::FlatTensors(std::span<const TensorView> views) {
  static_assert(kMaxRank <= WEFT_MAX_RANK);
  tensors_.reserve(views.size());
  for (const TensorView& view : views) {
    weft_tensor tensor{};
    tensor.packed = view.meta == nullptr ? "" : view.meta->packed.c_str();
    if (view.present()) {
      tensor.kind = flat_kind(view.kind);
      tensor.data = view.data;
      tensor.dtype = flat_dtype(view.dtype);
      tensor.rank = view.rank;
      std::copy_n(view.size, view.rank, tensor.size);
      std::copy_n(view.stride, view.rank, tensor.stride);
      if (view.kind == MetaKind::kv && view.meta != nullptr) tensor.kv = flat_layout(view.meta->kv);
      if (view.kind == MetaKind::batch) {
        const Batch& batch = *view.as<Batch>();
        batches_.push_back({batch.sequences, batch.query_starts, batch.lengths, batch.block_table, batch.max_blocks});
        tensor.data = &batches_.back();
      }
    }
    tensors_.push_back(tensor);
  }
}

}  // namespace weft
