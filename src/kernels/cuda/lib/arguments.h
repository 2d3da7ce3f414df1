#pragma once

// The arguments of kernels: one plain struct each, made by the host and read by device code. Pointers are to the
// device's memory; strides and counts are in elements. Each side of a tensor is below 2^31; their product may be more.

#include <cstdint>

namespace weft::cuda {

// Divides by a number that is known on the host, without a division (Granlund and Montgomery, 1994).
struct Divisor {
  std::uint32_t divisor = 1;
  std::uint32_t multiplier = 0x80000000u;  // 2^(31 + shift) / divisor, rounded up
  std::uint32_t shift = 0;                 // log2 of the divisor, rounded up
};

// How the scale of a group is computed from its largest magnitude; limit is 448 for f8e4m3, 127 for int8:
//
//   m     = max(magnitude, least_magnitude)
//   m     = min(m, *bound) if there is a bound and bounds_magnitude
//   scale = m / limit, or m * (1 / limit) if by_reciprocal
//   scale = min(scale, *bound) if there is a bound and not bounds_magnitude
//   scale = the power of two at or above max(scale, least_power) if power_of_two
//   scale = max(scale, least_scale)
//
// The group of a token is its row, whose bound is always of the magnitude.
struct GroupRule {
  const float* bound = nullptr;
  float least_magnitude = 0;
  float least_power = 0;
  float least_scale = 0;
  bool bounds_magnitude = false;
  bool by_reciprocal = false;
  bool power_of_two = false;
  bool codes_by_reciprocal = false;  // for a token: codes of x * (1 / scale), not of x / scale
};

// The scale of group g of row r is scales[r * row_stride + g * group_stride].
struct ScaleLayout {
  float* scales = nullptr;
  std::uint32_t row_stride = 0;
  std::uint32_t group_stride = 0;
};

// Blocks go along the groups of a row first, or along the rows of a group index; `slices` blocks cover that direction.
struct GroupOrder {
  Divisor slices;
  bool along_rows = false;
};

// x [rows, 2 * columns], the gates first; codes [rows, columns].
struct SiluAndMulPerBlockQuantArguments {
  const void* x = nullptr;
  void* codes = nullptr;
  ScaleLayout places;
  GroupRule rule;
  GroupOrder order;
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
};

// x and codes [rows, columns].
struct PerTokenGroupQuantArguments {
  const void* x = nullptr;
  void* codes = nullptr;
  ScaleLayout places;
  GroupRule rule;
  GroupOrder order;
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
};

// x and codes [rows, columns], one scale a row.
struct DynamicPerTokenQuantArguments {
  const void* x = nullptr;
  void* output = nullptr;
  ScaleLayout places;
  GroupRule rule;
  std::uint32_t columns = 0;
};

// x [rows, 2 * columns], the gates first; output [rows, columns], of the type of x or codes.
struct SiluAndMulArguments {
  const void* x = nullptr;
  void* output = nullptr;
  const float* scale = nullptr;          // given: of static quantization, or the global scale of fp4 groups
  std::uint8_t* group_scales = nullptr;  // codes of the scales of fp4 groups
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
  // `slices` is the number of blocks of a row. `tiles` is for fp4 groups whose scales are in tiles of 128 rows and 4
  // groups: the number of tiles in a row of tiles, 0 if scales are stored row by row.
  Divisor slices;
  std::uint32_t tiles = 0;
};

// All tensors are [rows, columns], contiguous. The kernel normalizes x, or x + residual.
struct RmsNormArguments {
  const void* x = nullptr;
  const void* residual = nullptr;   // null for rms_norm
  void* residual_output = nullptr;  // x + residual as the type of x
  const void* weight = nullptr;     // [columns] or null
  void* output = nullptr;           // of the type of x, or codes
  ScaleLayout places;               // of dynamic scales
  GroupRule rule;
  const float* given_scale = nullptr;  // a single one, of static quantization
  float epsilon = 0;
  std::uint32_t columns = 0;
  std::uint32_t variance_columns = 0;  // number of first columns whose mean square is computed
  std::uint32_t group = 0;             // 32, 64 or 128 columns
  bool weight_is_wide = false;         // f32, not the type of x
  bool normalizes_rounded = false;     // normalizes residual_output, not the unrounded sum
};

// The type of elements that a kernel distinguishes at run time.
enum class ElementKind : std::uint8_t { f32, f16, bf16 };

// KV pages in the layout of tensor_view.h.
struct PagesPlace {
  void* pages = nullptr;
  ElementKind kind = ElementKind::f16;
  Divisor block;  // tokens a page
  std::uint32_t heads = 0;
  std::uint32_t head_dim = 0;
};

// Rows of heads, [tokens, heads, head_size]; strides are in elements, and the stride within a head is 1.
struct HeadRows {
  const void* x = nullptr;
  std::uint32_t heads = 0;
  std::uint32_t row_stride = 0;
  std::uint32_t head_stride = 0;
};

// Heads of query and key are optionally normalized, then rotated; keys and values are stored in the pages if there are
// any.
struct HeadRotationArguments {
  HeadRows query, key, value;               // of one type; value has no heads if there are no pages
  void* query_output = nullptr;             // [tokens, query.heads * head_size]
  void* key_output = nullptr;               // the same for keys; null if they are stored in the pages
  const std::int64_t* positions = nullptr;  // [tokens]
  const void* table = nullptr;              // [positions, rotary_dim]: cosines, then sines
  const void* query_weight = nullptr;       // [head_size] or null
  const void* key_weight = nullptr;
  const std::int64_t* slots = nullptr;  // [tokens]; tokens of a negative slot are not stored
  PagesPlace pages;
  float epsilon = 0;
  std::uint32_t tokens = 0;
  std::uint32_t head_size = 0;
  std::uint32_t rotary_dim = 0;  // even; 0 to rotate nothing
  std::uint32_t table_stride = 0;
  ElementKind table_kind = ElementKind::f32;
  bool normalizes = false;
  bool query_weight_is_wide = false;  // f32, not the type of query
  bool key_weight_is_wide = false;
  bool is_neox = false;
  Divisor heads;  // heads of query, key and value together
};

// Attention over KV pages. Rows are query heads at tokens. The rows of a KV head in a sequence are numbered token by
// token, `group` rows to a token.
struct AttentionArguments {
  const void* query = nullptr;          // [tokens, heads, head_dim]
  void* output = nullptr;               // the same, contiguous
  ElementKind kind = ElementKind::f32;  // of query and output
  std::uint32_t tokens = 0;
  std::uint32_t token_stride = 0;  // of query; the stride of heads is head_dim
  std::uint32_t heads = 0;
  float scale = 1;  // of scores, times log2(e)
  Divisor group;    // query heads of a KV head
  // The largest number of tokens that a row sees, its own token being the last. It is below 2^31: the distance from a
  // row to a later token is negative, and as an unsigned number greater than this (`sees` in attention_tiles.cuh).
  std::uint32_t window = 0x7fffffff;
  PagesPlace pages;
  bool has_chunks = false;  // a page has whole chunks of 16 bytes of K
  // A batch (tensor_view.h).
  const std::int32_t* query_starts = nullptr;
  const std::int32_t* lengths = nullptr;
  const std::int32_t* block_table = nullptr;
  std::uint32_t sequences = 0;
  std::uint32_t max_blocks = 0;
  // The number of tiles of rows for each token of the step, numbered token by token. If 0, the tiles of sequence i
  // begin at index starts[i] * group / rows of a tile + i.
  std::uint32_t token_tiles = 0;
  // The number of blocks that share the tokens of a tile of rows, segment by segment. They store a row's partial result
  // for a segment as head_dim sums, a maximum and a total. There is room for `room` segments for each row; sequences
  // whose rows see more are not shared.
  Divisor sharers;
  float* partials = nullptr;
  std::uint32_t room = 0;
};

// Rows of a matrix by index. A unit is 1 to 16 bytes that are copied, or 8 elements that are converted.
struct GatherRowsArguments {
  const void* from = nullptr;  // [rows of it, units_of_row units]
  const void* ids = nullptr;   // [rows]
  void* to = nullptr;          // [rows, units_of_row units]
  std::uint32_t rows = 0;
  Divisor units_of_row;
  bool ids_are_wide = false;  // 64 bits, not 32
};

}  // namespace weft::cuda
