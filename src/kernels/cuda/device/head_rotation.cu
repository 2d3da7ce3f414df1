// Rotary embedding with what stands around it: heads of query and key are normalized, if so, and rotated; keys and
// values go into the KV pages if there are any. A warp a head, two neighbouring columns a lane: 64 columns, 128 bytes
// of 16-bit elements, at a time. A column's partner in the rotation comes from the first cache. Bytes an element
// (bf16): 4; K, whose pages have a token's elements `block` apart, is stored element by element.
//
// The mean square of a head is the sum that tensor/house_math.h defines, column by column as its 64 partial sums and
// tree have it, so that one kernel has the bits of every other device.

#include "kernels/cuda/device/element_kinds.cuh"
#include "kernels/cuda/device/pages.cuh"

namespace weft::cuda {

constexpr int kRotationThreads = 128;
constexpr std::uint32_t kColumnsOfWarp = 64;

// One head of one token: where it lies, and how its values come out of it.
struct Head {
  const void* x;
  std::uint64_t place;  // of its first element
  const void* weight;   // null for none
  bool weight_is_wide;
  float scale;  // of normalization
};

WEFT_DEVICE Head head_at(const HeadRows& rows, std::uint32_t token, std::uint32_t head, const void* weight,
                         bool weight_is_wide) {
  return {rows.x, product(token, rows.row_stride) + product(head, rows.head_stride), weight, weight_is_wide, 1.0f};
}

WEFT_DEVICE std::uint32_t first_column() { return thread_index() % 32 * 2; }

template <class T>
WEFT_DEVICE float normal_scale(const HeadRotationArguments& arguments, const Head& head) {
  float sums[2] = {0, 0};
  WEFT_UNROLL_BY(1)
  for (std::uint32_t column = first_column(); column < arguments.head_size; column += kColumnsOfWarp) {
    float values[2];
    load_pair(head.x, head.place + column, kKindOf<T>, values);
    sums[0] = sums[0] + values[0] * values[0];
    sums[1] = sums[1] + values[1] * values[1];
  }
  WEFT_UNROLL
  for (unsigned distance = 16; distance > 0; distance /= 2) {
    sums[0] = sums[0] + exchange(sums[0], distance);
    sums[1] = sums[1] + exchange(sums[1], distance);
  }
  const float mean = divide(sums[0] + sums[1], static_cast<float>(arguments.head_size));
  return divide(1.0f, square_root(mean + arguments.epsilon));
}

// The two values from `column` on, normalized if so.
template <class T>
WEFT_DEVICE void head_values(const HeadRotationArguments& arguments, const Head& head, std::uint32_t column,
                             float* values) {
  load_pair(head.x, head.place + column, kKindOf<T>, values);
  if (!arguments.normalizes) return;
  values[0] = values[0] * head.scale;
  values[1] = values[1] * head.scale;
  if (head.weight != nullptr) {
    float weight[2];
    if (head.weight_is_wide) {
      load_pair(head.weight, column, ElementKind::f32, weight);
    } else {
      load_pair(head.weight, column, kKindOf<T>, weight);
      round_pair<T>(values[0], values[1]);
    }
    values[0] = values[0] * weight[0];
    values[1] = values[1] * weight[1];
  }
  round_pair<T>(values[0], values[1]);
}

// x * cos + y * sin of two columns, each product and the sum rounded to T.
template <class T>
WEFT_DEVICE void turn_pair(const float* x, const float* y, const float* cosines, const float* sines, float* turned) {
  float along[2] = {x[0] * cosines[0], x[1] * cosines[1]}, across[2] = {y[0] * sines[0], y[1] * sines[1]};
  round_pair<T>(along[0], along[1]);
  round_pair<T>(across[0], across[1]);
  turned[0] = along[0] + across[0];
  turned[1] = along[1] + across[1];
  round_pair<T>(turned[0], turned[1]);
}

// The two columns from `column` on as the position's angles turn them.
template <class T>
WEFT_DEVICE void rotated_values(const HeadRotationArguments& arguments, const Head& head, std::uint64_t angles,
                                std::uint32_t column, float* turned) {
  float own[2], other[2], cosines[2], sines[2];
  head_values<T>(arguments, head, column, own);
  if (column >= arguments.rotary_dim) {
    turned[0] = own[0];
    turned[1] = own[1];
    return;
  }
  const std::uint32_t half = arguments.rotary_dim / 2;
  if (arguments.is_neox) {
    const bool is_first = column < half;
    const std::uint32_t pair = is_first ? column : column - half;
    head_values<T>(arguments, head, is_first ? column + half : pair, other);
    load_pair(arguments.table, angles + pair, arguments.table_kind, cosines);
    load_pair(arguments.table, angles + half + pair, arguments.table_kind, sines);
    if (is_first) {
      other[0] = -other[0];
      other[1] = -other[1];
    }
  } else {
    cosines[0] = cosines[1] = load_element(arguments.table, angles + column / 2, arguments.table_kind);
    sines[0] = sines[1] = load_element(arguments.table, angles + half + column / 2, arguments.table_kind);
    other[0] = -own[1];
    other[1] = own[0];
  }
  round_pair<T>(cosines[0], cosines[1]);
  round_pair<T>(sines[0], sines[1]);
  turn_pair<T>(own, other, cosines, sines, turned);
}

template <class T>
WEFT_DEVICE void rotate_heads(const HeadRotationArguments& arguments) {
  const std::uint32_t warp = block_index() * (kRotationThreads / 32) + thread_index() / 32;
  const std::uint32_t token = quotient(warp, arguments.heads);
  if (token >= arguments.tokens) return;
  const std::uint32_t unit = warp - token * arguments.heads.divisor, head_size = arguments.head_size;
  const std::uint32_t queries = arguments.query.heads, keys = arguments.key.heads;
  const bool is_query = unit < queries, is_value = unit >= queries + keys;
  Head head = is_query ? head_at(arguments.query, token, unit, arguments.query_weight, arguments.query_weight_is_wide)
              : is_value
                  ? head_at(arguments.value, token, unit - queries - keys, nullptr, false)
                  : head_at(arguments.key, token, unit - queries, arguments.key_weight, arguments.key_weight_is_wide);
  void* output = is_query ? arguments.query_output : is_value ? nullptr : arguments.key_output;
  const PagesPlace& pages = arguments.pages;
  std::uint64_t in_page = 0;
  if (output == nullptr) {
    const std::int64_t slot = load(arguments.slots + token);
    if (slot < 0) return;
    const PageToken at = token_of_slot(pages, static_cast<std::uint32_t>(slot));
    in_page = is_value ? value_place(pages, at, unit - queries - keys) : key_place(pages, at, unit - queries);
  }
  const std::uint32_t of_row = is_query ? queries : keys, number = is_query ? unit : unit - queries;
  const std::uint64_t to = product(token * of_row + number, head_size);
  if (arguments.normalizes && !is_value) head.scale = normal_scale<T>(arguments, head);
  const bool rotates = !is_value && arguments.rotary_dim != 0;
  std::uint64_t angles = 0;
  if (rotates) angles = static_cast<std::uint64_t>(load(arguments.positions + token)) * arguments.table_stride;
  WEFT_UNROLL_BY(1)
  for (std::uint32_t column = first_column(); column < head_size; column += kColumnsOfWarp) {
    float values[2];
    if (rotates) {
      rotated_values<T>(arguments, head, angles, column, values);
    } else {
      load_pair(head.x, head.place + column, kKindOf<T>, values);
    }
    if (output != nullptr) {
      store_pair(output, to + column, kKindOf<T>, values);
    } else if (is_value) {
      store_pair(pages.pages, in_page + column, pages.kind, values);
    } else {
      const std::uint32_t block = pages.block.divisor;
      scatter_pair(pages.pages, in_page + product(column, block), block, pages.kind, values);
    }
  }
}

}  // namespace weft::cuda

#define WEFT_LIST(KERNEL)                                          \
  KERNEL(head_rotation_bf16, 128, weft::cuda::rotate_heads<Brain>) \
  KERNEL(head_rotation_f16, 128, weft::cuda::rotate_heads<Half>)   \
  KERNEL(head_rotation_f32, 128, weft::cuda::rotate_heads<float>)
WEFT_CUDA_KERNELS(head_rotation, HeadRotationArguments, WEFT_LIST)
