#pragma once

// The operations with which the linear kernels are written once for all instruction sets. vector_<name>.h has them for
// one instruction set. A variant's source names that header in WEFT_VECTORS and includes a skeleton.
//
//   kLanes                        32-bit lanes of a vector; a panel's 32 columns are 32 / kLanes vectors
//   kWideDot                      whether dot() sums in 32 bits; otherwise in pairs of 16 bits
//   WEFT_FUSED_MULTIPLY_ADD       defined if fused_multiply_add is one instruction; then SubnormalsAsZeros exists
//   kFloatTileRows                rows of the f32 register tile
//   Floats, Codes                 kLanes f32; 4 * kLanes bytes (or kLanes i32)
//
//   spread(x)                     x in all lanes
//   multiply_add(a, b, c)         a * b + c, one rounding or two, whichever is faster
//   fused_multiply_add(a, b, c)   a * b + c with one rounding
//   SubnormalsAsZeros             a scope in which subnormal operands and results of f32 operations are zeros
//   load_/store_halves, _bfloats  kLanes 16-bit floats; rounded to nearest even
//   bfloat_bits                   the same roundings as the low 16 bits of lanes
//   store_normal_bfloats          the same of numbers that are not subnormal; exists with bfloat_dot
//
//   spread_four(p)                the 4 bytes at p in all lanes
//   low_nibbles, high_nibbles     of each byte
//   move_bits(x, from, to, n)     bits [from, from + n) of each byte, at [to, to + n); the others are 0
//   store_codes, subtract_bytes   exist with 16 lanes only; bytes wrap
//   either(a, b)                  bits that are set in one of both
//   flip_bits(a, b)               a with the bits flipped that are set in b
//   add_bytes(a, b)               bytes wrap
//   load_table(p)                 16 bytes
//   look_up(table, x)             for each byte of x the byte of the table if it is below 16, and 0 if it is above
//                                 127
//   load_signed, load_unsigned    kLanes bytes as i32 lanes
//   load_shorts                   kLanes unsigned 16-bit integers as i32 lanes
//   dot(sum, weight, x)           sum += unsigned weight bytes times signed x bytes, over the 4 bytes of a lane. In 16
//                                 bits sums wrap, so only the last must fit; weights are below 16 there
//   whole_dot(sum)                the 32-bit sum of a lane
//   whole_dot(low, high)          of low + 16 * high
//   add(a, b)                     of i32 lanes, too
//   nibble<i>, byte<i>            nibble or byte i of each lane, counted from the lowest bits
//   shift_left<n>, shift_right<n> each lane shifted, with zeros
//   lane_bits                     the bits of a lane that are set in the second argument
//   as_floats                     the lanes as bit patterns of f32
//   even_bfloats, odd_bfloats     of lanes that hold two bf16
//   bfloat_dot(sum, a, b)         sum += products of the two bf16 of a lane; not on every instruction set
//
// Everything has internal linkage and is inlined: a weak symbol in an object built for a newer instruction set could be
// picked by the linker for all.

#include <cstdint>

#define WEFT_VECTOR static inline __attribute__((always_inline))
#define WEFT_UNROLL _Pragma("GCC unroll 32")

// Keeps the compiler from re-associating a chain of integer additions, which would need more registers than there are.
#define WEFT_KEEP_ORDER(constraint, x) asm("" : "+" constraint(x))

namespace weft::cpu {

typedef std::int32_t FourBytes __attribute__((aligned(1), may_alias));
typedef float FourBytesFloat __attribute__((aligned(1), may_alias));

}  // namespace weft::cpu
