// Rotary embedding with the ops around it: heads of query and key are optionally normalized, then rotated, and keys and
// values are stored in the KV pages if there are any. A lane has `count` neighbouring columns of a head at a time: 16
// bytes, or two columns if sizes or offsets are no multiples of that. So 64 columns are one iteration of 64 / count
// lanes for a head of any size: 8 lanes of 16-bit vectors, four heads a warp. Columns that rotate together are in one
// lane, as two loads in flight at once. Bytes an element (bf16): 4. K is stored element by element, because in its
// pages a token's elements are `block` apart.
//
// The mean square of a head is the sum that tensor/reference_math.h defines, with the same 64 partial sums and tree, so
// that one kernel has the bits of every other device.

#include "kernels/cuda/device/element_kinds.cuh"
#include "kernels/cuda/device/pages.cuh"

namespace weft::cuda {

template <int count>
constexpr std::uint32_t kLanesOfHead = kColumnsOfTurn / count;

// One head of one token: its source, the operations on it, and its destination.
struct Head {
  const void* x;
  std::uint64_t place;  // index of its first element
  const void* weight;   // for normalization; null for none
  bool weight_is_wide;
  bool is_value;  // a value is neither normalized nor rotated
  bool is_stored;
  std::uint64_t angles;  // the row of its token in the table
  void* to;
  std::uint64_t to_place;
  std::uint32_t stride;  // of columns in `to`
  ElementKind kind;
};

WEFT_DEVICE std::uint64_t place_of_head(const HeadRows& rows, std::uint32_t token, std::uint32_t number) {
  return product(token, rows.row_stride) + product(number, rows.head_stride);
}

// Sets the destination of keys and values in the pages.
WEFT_DEVICE void put_into_pages(const HeadRotationArguments& arguments, std::uint32_t token, std::uint32_t number,
                                Head& head) {
  const PagesPlace& pages = arguments.pages;
  const std::int64_t slot = load(arguments.slots + token);
  const PageToken at = token_of_slot(pages, static_cast<std::uint32_t>(slot));
  head.is_stored = head.is_stored && slot >= 0;
  head.to = pages.pages;
  head.to_place = head.is_value ? value_place(pages, at, number) : key_place(pages, at, number);
  head.stride = head.is_value ? 1 : pages.block.divisor;
  head.kind = pages.kind;
}

// The head of this lane. Lanes after the last head compute the last one again, because shuffles need whole warps.
template <class T, int count>
WEFT_DEVICE Head head_of_lane(const HeadRotationArguments& arguments) {
  constexpr std::uint32_t kLanes = kLanesOfHead<count>, kOfBlock = kRotationThreads / kLanes;
  const std::uint32_t wanted = block_index() * kOfBlock + thread_index() / kLanes;
  const std::uint32_t last = arguments.tokens * arguments.heads.divisor - 1, of_all = wanted < last ? wanted : last;
  const std::uint32_t token = quotient(of_all, arguments.heads), unit = of_all - token * arguments.heads.divisor;
  const std::uint32_t queries = arguments.query.heads, keys = arguments.key.heads;
  const bool is_query = unit < queries, is_value = unit >= queries + keys;
  const std::uint32_t number = is_query ? unit : is_value ? unit - queries - keys : unit - queries;
  Head head;
  head.x = is_query ? arguments.query.x : is_value ? arguments.value.x : arguments.key.x;
  head.place = is_query   ? place_of_head(arguments.query, token, number)
               : is_value ? place_of_head(arguments.value, token, number)
                          : place_of_head(arguments.key, token, number);
  head.weight = is_query ? arguments.query_weight : arguments.key_weight;
  head.weight_is_wide = is_query ? arguments.query_weight_is_wide : arguments.key_weight_is_wide;
  head.is_value = is_value;
  head.is_stored = wanted <= last;
  head.angles = 0;
  if (arguments.rotary_dim != 0)
    head.angles = static_cast<std::uint64_t>(load(arguments.positions + token)) * arguments.table_stride;
  head.to = is_query ? arguments.query_output : arguments.key_output;
  head.to_place = product(token * (is_query ? queries : keys) + number, arguments.head_size);
  head.stride = 1;
  head.kind = kKindOf<T>;
  if (!is_query && arguments.key_output == nullptr) put_into_pages(arguments, token, number, head);
  return head;
}

// The first of a lane's columns; the others are whole iterations of kColumnsOfTurn later.
template <int count>
WEFT_DEVICE std::uint32_t first_column() {
  return thread_index() % kLanesOfHead<count> * count;
}

// The tree over a head's 64 partial sums, of which a lane has `count`. In each exchange a lane keeps one half of its
// sums and sends the other half: 10 exchanges instead of 24 if a lane has 8. The last steps, over partial sums that
// began in one lane, are exchanges, too. Every lane gets the sum.
template <int count>
WEFT_DEVICE float tree_of_partial_sums(float* sums) {
  constexpr unsigned kLanes = kLanesOfHead<count>;
  int left = count;
  WEFT_UNROLL
  for (unsigned distance = kLanes / 2; distance > 0; distance /= 2) {
    if (left == 1) {
      sums[0] = sums[0] + exchange(sums[0], distance);
      continue;
    }
    left /= 2;
    const bool keeps_upper = (thread_index() & distance) != 0;
    WEFT_UNROLL
    for (int i = 0; i < left; ++i) {
      const float given = keeps_upper ? sums[i] : sums[left + i], kept = keeps_upper ? sums[left + i] : sums[i];
      sums[i] = kept + exchange(given, distance);
    }
  }
  unsigned distance = kLanes / 2;
  WEFT_UNROLL
  for (left = count; left > 1; left /= 2, distance /= 2) sums[0] = sums[0] + exchange(sums[0], distance);
  return sums[0];
}

template <class T, int count>
WEFT_DEVICE float normal_scale(const HeadRotationArguments& arguments, const Head& head) {
  float sums[count] = {};
  WEFT_UNROLL_BY(2)
  for (std::uint32_t column = first_column<count>(); column < arguments.head_size; column += kColumnsOfTurn) {
    float values[count];
    load_elements<count>(head.x, head.place + column, kKindOf<T>, values);
    WEFT_UNROLL
    for (int i = 0; i < count; ++i) sums[i] = sums[i] + values[i] * values[i];
  }
  const float mean = divide(tree_of_partial_sums<count>(sums), static_cast<float>(arguments.head_size));
  return divide(1.0f, square_root(mean + arguments.epsilon));
}

template <class T, int count>
WEFT_DEVICE void round_all(float* values) {
  WEFT_UNROLL
  for (int i = 0; i < count; i += 2) round_pair<T>(values[i], values[i + 1]);
}

// Loads a lane's columns from `column` on, and normalizes them if required.
template <class T, int count>
WEFT_DEVICE void head_values(const HeadRotationArguments& arguments, const Head& head, float scale,
                             std::uint32_t column, float* values) {
  load_elements<count>(head.x, head.place + column, kKindOf<T>, values);
  if (!arguments.normalizes || head.is_value) return;
  WEFT_UNROLL
  for (int i = 0; i < count; ++i) values[i] = values[i] * scale;
  if (head.weight != nullptr) {
    float weight[count];
    if (head.weight_is_wide) {
      load_elements<count>(head.weight, column, ElementKind::f32, weight);
    } else {
      load_elements<count>(head.weight, column, kKindOf<T>, weight);
      round_all<T, count>(values);
    }
    WEFT_UNROLL
    for (int i = 0; i < count; ++i) values[i] = values[i] * weight[i];
  }
  round_all<T, count>(values);
}

// Stores values rounded to T, whatever the type of the destination.
template <class T, int count>
WEFT_DEVICE void store_values(const Head& head, std::uint32_t column, float* values) {
  if (head.kind != kKindOf<T>) round_all<T, count>(values);
  const std::uint64_t place = head.to_place + product(column, head.stride);
  if (head.stride == 1) {
    store_elements<count>(head.to, place, head.kind, values);
  } else {
    scatter_elements<count>(head.to, place, head.stride, head.kind, values);
  }
}

// Cosines and sines of `count` angles, rounded to T.
template <class T, int count>
WEFT_DEVICE void load_angles(const HeadRotationArguments& arguments, std::uint64_t place, float* cosines,
                             float* sines) {
  load_elements<count>(arguments.table, place, arguments.table_kind, cosines);
  load_elements<count>(arguments.table, place + arguments.rotary_dim / 2, arguments.table_kind, sines);
  if (arguments.table_kind == kKindOf<T>) return;
  WEFT_UNROLL
  for (int i = 0; i < count; ++i) round_pair<T>(cosines[i], sines[i]);
}

// x * cos - y * sin and y * cos + x * sin, each product rounded to T.
template <class T>
WEFT_DEVICE void turn(float& x, float& y, float cosine, float sine) {
  float along[2] = {x * cosine, y * cosine}, across[2] = {y * sine, x * sine};
  round_pair<T>(along[0], along[1]);
  round_pair<T>(across[0], across[1]);
  x = along[0] - across[0];
  y = along[1] + across[1];
}

// Columns of a head with the same rotation: each with the column half of `end` later, or with its neighbour.
enum class Turning : std::uint8_t { nothing, halves, neighbours };
struct Columns {
  std::uint32_t begin, end;
  Turning turning;
};

template <class T, int count>
WEFT_DEVICE void turn_neighbours(const HeadRotationArguments& arguments, std::uint64_t angles, float* values) {
  float cosines[count / 2], sines[count / 2];
  load_angles<T, count / 2>(arguments, angles, cosines, sines);
  WEFT_UNROLL
  for (int i = 0; i < count / 2; ++i) turn<T>(values[2 * i], values[2 * i + 1], cosines[i], sines[i]);
}

// Two vectors at a time, so that the loads of both are in flight: vectors that rotate together, or those of two
// iterations.
template <class T, int count>
WEFT_DEVICE void rotate_columns(const HeadRotationArguments& arguments, const Head& head, float scale,
                                const Columns& columns) {
  const bool by_halves = columns.turning == Turning::halves;
  const std::uint32_t span = by_halves ? columns.end / 2 : kColumnsOfTurn;
  const std::uint32_t end = by_halves ? span : columns.end, step = by_halves ? kColumnsOfTurn : 2 * kColumnsOfTurn;
  WEFT_UNROLL_BY(1)
  for (std::uint32_t column = columns.begin + first_column<count>(); column < end; column += step) {
    const std::uint32_t next = column + span;
    const bool has_next = next < columns.end;
    float x[count], y[count];
    head_values<T, count>(arguments, head, scale, column, x);
    if (has_next) head_values<T, count>(arguments, head, scale, next, y);
    if (by_halves) {
      float cosines[count], sines[count];
      load_angles<T, count>(arguments, head.angles + column, cosines, sines);
      WEFT_UNROLL
      for (int i = 0; i < count; ++i) turn<T>(x[i], y[i], cosines[i], sines[i]);
    } else if (columns.turning == Turning::neighbours) {
      turn_neighbours<T, count>(arguments, head.angles + column / 2, x);
      if (has_next) turn_neighbours<T, count>(arguments, head.angles + next / 2, y);
    }
    store_values<T, count>(head, column, x);
    if (has_next) store_values<T, count>(head, next, y);
  }
}

template <class T, int count>
WEFT_DEVICE void rotate_heads(const HeadRotationArguments& arguments) {
  const Head head = head_of_lane<T, count>(arguments);
  float scale = 1;
  if (arguments.normalizes) scale = normal_scale<T, count>(arguments, head);
  if (!head.is_stored) return;
  const std::uint32_t rotated = head.is_value ? 0 : arguments.rotary_dim;
  Columns columns{0, rotated, arguments.is_neox ? Turning::halves : Turning::neighbours};
  WEFT_UNROLL_BY(1)
  for (int part = 0; part < 2; ++part) {
    rotate_columns<T, count>(arguments, head, scale, columns);
    columns = {rotated, arguments.head_size, Turning::nothing};
  }
}

}  // namespace weft::cuda

#define WEFT_FORMS(KERNEL, name, T)                                   \
  KERNEL(head_rotation_##name, WEFT_THREADS(kRotationThreads, 8),     \
         weft::cuda::rotate_heads<T, weft::cuda::kElementsOfLoad<T>>) \
  KERNEL(head_rotation_##name##_pairs, kRotationThreads, weft::cuda::rotate_heads<T, kColumnsOfPair>)
#define WEFT_LIST(KERNEL) WEFT_FORMS(KERNEL, bf16, Brain) WEFT_FORMS(KERNEL, f16, Half) WEFT_FORMS(KERNEL, f32, float)
WEFT_CUDA_KERNELS(head_rotation, HeadRotationArguments, WEFT_LIST)
