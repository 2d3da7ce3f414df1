#pragma once

// What kernels take: one plain struct each, made by the host and read by device code. Pointers are of the device's
// memory; strides and counts are in elements. No side of a tensor reaches 2^31; their product may.

#include <cstdint>

namespace weft::cuda {

// Divides by a number that the host knows without a division (Granlund and Montgomery, 1994).
struct Divisor {
  std::uint32_t divisor = 1;
  std::uint32_t multiplier = 0x80000000u;  // 2^(31 + shift) / divisor, rounded up
  std::uint32_t shift = 0;                 // log2 of the divisor, rounded up
};

// How the scale of a group is made of its largest magnitude; limit is 448 for f8e4m3, 127 for int8:
//
//   m     = max(magnitude, least_magnitude)
//   m     = min(m, *bound) where there is one and bounds_magnitude says
//   scale = m / limit, or m * (1 / limit) by_reciprocal
//   scale = min(scale, *bound) where there is one and bounds_magnitude does not say
//   scale = the power of two from max(scale, least_power) upwards where power_of_two says
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
  bool codes_by_reciprocal = false;  // of a token: codes of x * (1 / scale), not of x / scale
};

// The scale of group g of row r lies at scales[r * row_stride + g * group_stride].
struct ScalePlaces {
  float* scales = nullptr;
  std::uint32_t row_stride = 0;
  std::uint32_t group_stride = 0;
};

// Blocks stand along the groups of a row first, or along the rows of a group number; `slices` blocks reach that far.
struct GroupOrder {
  Divisor slices;
  bool along_rows = false;
};

// x [rows, 2 * columns], the gates first; codes [rows, columns].
struct SiluAndMulPerBlockQuantArguments {
  const void* x = nullptr;
  void* codes = nullptr;
  ScalePlaces places;
  GroupRule rule;
  GroupOrder order;
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
};

// x and codes [rows, columns].
struct PerTokenGroupQuantArguments {
  const void* x = nullptr;
  void* codes = nullptr;
  ScalePlaces places;
  GroupRule rule;
  GroupOrder order;
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
};

// x and codes [rows, columns], one scale a row.
struct DynamicPerTokenQuantArguments {
  const void* x = nullptr;
  void* output = nullptr;
  ScalePlaces places;
  GroupRule rule;
  std::uint32_t columns = 0;
};

// x [rows, 2 * columns], the gates first; output [rows, columns], of the type of x or codes.
struct SiluAndMulArguments {
  const void* x = nullptr;
  void* output = nullptr;
  const float* scale = nullptr;          // given, of static quantization, or the global one of fp4 groups
  std::uint8_t* group_scales = nullptr;  // codes, of fp4 groups
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
  // Blocks of a row; and of fp4 groups where scales lie in tiles of 128 rows and 4 groups how many tiles stand beside
  // each other, 0 where they lie row by row.
  Divisor slices;
  std::uint32_t tiles = 0;
};

// All tensors [rows, columns], contiguous. What is normalized is x, or x + residual.
struct RmsNormArguments {
  const void* x = nullptr;
  const void* residual = nullptr;   // null for rms_norm
  void* residual_output = nullptr;  // x + residual as the type of x
  const void* weight = nullptr;     // [columns] or null
  void* output = nullptr;           // of the type of x, or codes
  ScalePlaces places;               // of dynamic scales
  GroupRule rule;
  const float* given_scale = nullptr;  // one, of static quantization
  float epsilon = 0;
  std::uint32_t columns = 0;
  std::uint32_t variance_columns = 0;  // the first ones of a row, of which the mean square is taken
  std::uint32_t group = 0;             // 32, 64 or 128 columns
  bool weight_is_wide = false;         // f32, not the type of x
  bool normalizes_rounded = false;     // what residual_output holds, not the sum before it was rounded
};

// The type of elements that a kernel tells at run time.
enum class ElementKind : std::uint8_t { f32, f16, bf16 };

// KV pages as tensor_view.h lays them out.
struct PagesPlace {
  void* pages = nullptr;
  ElementKind kind = ElementKind::f16;
  Divisor block;  // tokens a page
  std::uint32_t heads = 0;
  std::uint32_t head_dim = 0;
};

// Rows of heads, [tokens, heads, head_size]; strides are in elements, those of a head are 1.
struct HeadRows {
  const void* x = nullptr;
  std::uint32_t heads = 0;
  std::uint32_t row_stride = 0;
  std::uint32_t head_stride = 0;
};

// Heads of query and key are normalized, if so, then rotated; keys and values go into the pages if there are any.
struct HeadRotationArguments {
  HeadRows query, key, value;               // of one type; value without heads where there are no pages
  void* query_output = nullptr;             // [tokens, query.heads * head_size]
  void* key_output = nullptr;               // the same of keys; null where they go into the pages
  const std::int64_t* positions = nullptr;  // [tokens]
  const void* table = nullptr;              // [positions, rotary_dim]: cosines, then sines
  const void* query_weight = nullptr;       // [head_size] or null
  const void* key_weight = nullptr;
  const std::int64_t* slots = nullptr;  // [tokens]; of a negative one nothing is stored
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
  Divisor heads;  // those of query, key and value together
};

// Attention over KV pages. Rows are query heads at tokens; those of a KV head in a sequence are numbered token by
// token, `group` to a token.
struct AttentionArguments {
  const void* query = nullptr;          // [tokens, heads, head_dim]
  void* output = nullptr;               // the same, contiguous
  ElementKind kind = ElementKind::f32;  // of query and output
  std::uint32_t tokens = 0;
  std::uint32_t token_stride = 0;  // of query; heads lie head_dim apart
  std::uint32_t heads = 0;
  float scale = 1;  // of scores, times log2(e)
  Divisor group;    // query heads of a KV head
  // Tokens that a row sees at most, its own the last of them; below 2^31, so that a row's distance to a token behind
  // it, below 0, is more (`sees` in attention_tiles.cuh).
  std::uint32_t window = 0x7fffffff;
  PagesPlace pages;
  bool has_chunks = false;  // a page holds whole chunks of 16 bytes of K
  // A batch (tensor_view.h).
  const std::int32_t* query_starts = nullptr;
  const std::int32_t* lengths = nullptr;
  const std::int32_t* block_table = nullptr;
  std::uint32_t sequences = 0;
  std::uint32_t max_blocks = 0;
  // Tiles of rows that each token of the step has, numbered token by token; 0: those of sequence i begin behind
  // starts[i] * group / rows of a tile + i others.
  std::uint32_t token_tiles = 0;
  // Blocks that share the tokens of a tile of rows, segment by segment. What a row makes of a segment then waits as
  // head_dim sums, a maximum and a total, `room` segments a row; sequences whose rows see more are not shared.
  Divisor sharers;
  float* partials = nullptr;
  std::uint32_t room = 0;
};

// Rows of a matrix by their numbers. A unit is 1 to 16 bytes that are copied, or 8 elements that are converted.
struct GatherRowsArguments {
  const void* from = nullptr;  // [rows of it, units_of_row units]
  const void* ids = nullptr;   // [rows]
  void* to = nullptr;          // [rows, units_of_row units]
  std::uint32_t rows = 0;
  Divisor units_of_row;
  bool ids_are_wide = false;  // 64 bits, not 32
};

}  // namespace weft::cuda
