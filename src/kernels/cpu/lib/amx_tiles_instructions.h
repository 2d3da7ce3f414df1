#pragma once

// The operations of amx_tiles.h as instructions. The intrinsics of g++ 12 do not declare all memory that they read, so
// stores before them may be dropped or moved after them.

#include "kernels/cpu/lib/amx_tiles.h"

namespace weft::cpu {
namespace {

constexpr bool kEmulatesTiles = false;

class TileScope {
 public:
  explicit TileScope(const TileShapes& shapes) { asm volatile("ldtilecfg %0" : : "m"(shapes) : "memory"); }
  ~TileScope() { asm volatile("tilerelease" : : : "memory"); }
  TileScope(const TileScope&) = delete;
  TileScope& operator=(const TileScope&) = delete;
};

template <int tile>
WEFT_VECTOR void tile_zero() {
  asm volatile("tilezero %%tmm%c0" : : "i"(tile));
}
template <int tile>
WEFT_VECTOR void tile_load(const void* from, std::int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(tile) : "memory");
}
template <int tile>
WEFT_VECTOR void tile_stream(const void* from, std::int64_t stride) {
  asm volatile("tileloaddt1 (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(tile) : "memory");
}
template <int tile>
WEFT_VECTOR void tile_store(void* to, std::int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(tile) : "memory");
}
template <int sum, int a, int b>
WEFT_VECTOR void tile_dot_bf16() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sum), "i"(a), "i"(b));
}
template <int sum, int a, int b>
WEFT_VECTOR void tile_dot_i8() {
  asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sum), "i"(a), "i"(b));
}

}  // namespace
}  // namespace weft::cpu
