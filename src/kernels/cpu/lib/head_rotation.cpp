#include "kernels/cpu/lib/head_rotation.h"

#include <fmt/core.h>

#include "base/error.h"

namespace weft::cpu {

bool yields_rotation(const KernelRequest& request) {
  const DType dtype = request.operands[kRotationKey]->dtype;
  const bool is_whole = request.attributes.at("rotary_dim").integer() == request.attributes.at("head_size").integer();
  return is_whole && (dtype == DType::f32 || dtype == DType::bf16);
}

Verdict supports_rotation(const KernelRequest& request, const RotationOperands& operands) {
  const std::optional<Meta>& positions = request.operands[kRotationPositions];
  const std::optional<Meta>& query = request.operands[kRotationQuery];
  const std::optional<Meta>& key = request.operands[kRotationKey];
  const std::optional<Meta>& table = request.operands[operands.cos_sin_cache];
  if (positions->dtype != DType::i64 || !positions->is_contiguous() || positions->rank() != 1) {
    return Verdict::no("positions are not contiguous i64");
  }
  if (Verdict verdict = float_rows(query, "query"); !verdict) return verdict;
  if (Verdict verdict = float_rows(key, "key"); !verdict) return verdict;
  if (Verdict verdict = float_rows(table, "cos_sin_cache"); !verdict) return verdict;
  if (query->rank() != 2 || key->rank() != 2 || table->rank() != 2) {
    return Verdict::no("query, key and cos_sin_cache are not all of rank 2");
  }
  if (key->dtype != query->dtype) return Verdict::no("key has another dtype than query");
  const std::int64_t rotary_dim = request.attributes.at("rotary_dim").integer();
  if (rotary_dim > kMaxRotaryDim) {
    return Verdict::no(fmt::format("rotary_dim is {}; at most {} is supported", rotary_dim, kMaxRotaryDim));
  }
  for (const std::size_t weight : {operands.query_weight, operands.key_weight}) {
    if (weight == 0) continue;
    if (Verdict verdict = norm_weight(request.operands[weight], query->dtype); !verdict) return verdict;
  }
  return Verdict::yes();
}

namespace {

void check_positions(const TensorView& positions, std::int64_t rows) {
  const std::int64_t* position = positions.as<std::int64_t>();
  for (std::int64_t i = 0; i < positions.size[0]; ++i) {
    USER_CHECK(position[i] >= 0 && position[i] < rows,
               "[rotary_embedding] positions must be in [0, {}), the rows of cos_sin_cache, but position {} is {}",
               rows, i, position[i]);
  }
}

void give(RotatedHeads& heads, const RotatedRows& rows) {
  heads.x = rows.x;
  heads.x_stride = rows.x_stride;
  heads.output = rows.output;
  heads.output_stride = rows.output_stride;
}

}  // namespace

HeadRotation::HeadRotation(const RowWiseKernels& kernels, const KernelCall& call, const RotationOperands& operands) {
  const TensorView& positions = call.operands[kRotationPositions];
  const TensorView& query = call.operands[kRotationQuery];
  const TensorView& cache = call.operands[operands.cos_sin_cache];
  check_positions(positions, cache.size[0]);
  rotary_.head_size = call.attributes.at("head_size").integer();
  rotary_.rotary_dim = call.attributes.at("rotary_dim").integer();
  rotary_.neox = call.attributes.at("is_neox_style").boolean();
  rotary_.positions = positions.as<std::int64_t>();
  rotary_.cos_sin_cache = cache.data;
  rotary_.cache_element = element_of(cache.dtype);
  rotary_.cache_stride = cache.stride[0];
  CHECK(rotary_.head_size > 0 && rotary_.rotary_dim % 2 == 0 && rotary_.rotary_dim <= rotary_.head_size &&
            rotary_.rotary_dim <= cache.size[1],
        "[rotary_embedding] rotary_dim {} of head_size {} with {} columns of cos_sin_cache", rotary_.rotary_dim,
        rotary_.head_size, cache.size[1]);
  rotary_.query.heads = query.size[1] / rotary_.head_size;
  rotary_.key.heads = call.operands[kRotationKey].size[1] / rotary_.head_size;
  rotate_ = kernels.rotary[static_cast<std::size_t>(element_of(query.dtype))];
  element_bytes_ = dtype_info(query.dtype).block_bytes;
  query_norm_ = norm_of(kernels, call, operands.query_weight, rotary_.query.heads);
  key_norm_ = norm_of(kernels, call, operands.key_weight, rotary_.key.heads);
}

HeadRotation::Norm HeadRotation::norm_of(const RowWiseKernels& kernels, const KernelCall& call, std::size_t weight,
                                         std::int64_t heads) const {
  if (weight == 0) return {};
  const DType dtype = call.operands[kRotationQuery].dtype;
  Norm norm;
  norm.run = kernels.rms_norm[static_cast<std::size_t>(element_of(dtype))][weighting_of(call.operands[weight], dtype)];
  norm.task.weight = call.operands[weight].data;
  norm.task.rows = heads;
  norm.task.columns = norm.task.variance_columns = rotary_.head_size;
  norm.task.x_stride = norm.task.output_stride = rotary_.head_size;
  norm.task.epsilon = static_cast<float>(call.attributes.at("epsilon").real());
  return norm;
}

void HeadRotation::run(std::int64_t first, std::int64_t count, const RotatedRows& query, const RotatedRows& key) const {
  RotaryTask rotary = rotary_;
  rotary.positions += first;
  if (query_norm_.run == nullptr) {
    give(rotary.query, query);
    give(rotary.key, key);
    rotary.rows = count;
    return rotate_(rotary);
  }
  // The heads are normalized into the output and rotated there. The heads of one row stay in L1 in between.
  rotary.rows = 1;
  for (std::int64_t row = 0; row < count; ++row, ++rotary.positions) {
    normalize(query_norm_, query.x + row * query.x_stride * element_bytes_,
              query.output + row * query.output_stride * element_bytes_, rotary.query);
    normalize(key_norm_, key.x + row * key.x_stride * element_bytes_,
              key.output + row * key.output_stride * element_bytes_, rotary.key);
    rotate_(rotary);
  }
}

void HeadRotation::normalize(const Norm& norm, const std::byte* x, std::byte* output, RotatedHeads& heads) const {
  NormTask task = norm.task;
  task.x = x;
  task.output = output;
  norm.run(task);
  heads.x = heads.output = output;
}

}  // namespace weft::cpu
