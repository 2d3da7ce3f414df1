#pragma once

// The kernels of each design of silu_and_mul_per_block_quant. KERNEL(name, threads, function...) for every dtype of x,
// dtype of codes, group size, rounding and kind of mathematics; a block has THREADS(group) threads.

// clang-format off
#define WEFT_SILU_KERNEL(KERNEL, design, THREADS, x, T, codes, Code, group, way, rounds, mathematics, Mathematics) \
  KERNEL(design##_##x##_##codes##_##group##_##way##_##mathematics, THREADS(group), design<T, Code, group, rounds, Mathematics>)
#if !defined(WEFT_REFERENCE_KERNELS)
#define WEFT_SILU_MATHEMATICS(KERNEL, design, THREADS, x, T, codes, Code, group, way, rounds) \
  WEFT_SILU_KERNEL(KERNEL, design, THREADS, x, T, codes, Code, group, way, rounds, device, DeviceMathematics)
#else
#define WEFT_SILU_MATHEMATICS(KERNEL, design, THREADS, x, T, codes, Code, group, way, rounds) \
  WEFT_SILU_KERNEL(KERNEL, design, THREADS, x, T, codes, Code, group, way, rounds, device, DeviceMathematics) \
  WEFT_SILU_KERNEL(KERNEL, design, THREADS, x, T, codes, Code, group, way, rounds, reference, ReferenceMath)
#endif
#define WEFT_SILU_GROUPS(KERNEL, design, THREADS, x, T, codes, Code, way, rounds) \
  WEFT_SILU_MATHEMATICS(KERNEL, design, THREADS, x, T, codes, Code, 64, way, rounds) \
  WEFT_SILU_MATHEMATICS(KERNEL, design, THREADS, x, T, codes, Code, 128, way, rounds)
#define WEFT_SILU_CODES(KERNEL, design, THREADS, x, T, way, rounds) \
  WEFT_SILU_GROUPS(KERNEL, design, THREADS, x, T, f8e4m3, Fp8, way, rounds) \
  WEFT_SILU_GROUPS(KERNEL, design, THREADS, x, T, i8, Int8, way, rounds) \
  WEFT_SILU_MATHEMATICS(KERNEL, design, THREADS, x, T, i8, Int8, 32, way, rounds)
#define WEFT_SILU_TRUNCATED(KERNEL, design, THREADS, x, T, way, rounds) \
  WEFT_SILU_GROUPS(KERNEL, design, THREADS, x, T, i8_truncated, TruncatedInt8, way, rounds) \
  WEFT_SILU_MATHEMATICS(KERNEL, design, THREADS, x, T, i8_truncated, TruncatedInt8, 32, way, rounds)
#define WEFT_SILU_AND_MUL_PER_BLOCK_QUANT_TRUNCATED(KERNEL, design, THREADS) \
  WEFT_SILU_TRUNCATED(KERNEL, design, THREADS, bf16, Brain, rounded, true) \
  WEFT_SILU_TRUNCATED(KERNEL, design, THREADS, bf16, Brain, wide, false) \
  WEFT_SILU_TRUNCATED(KERNEL, design, THREADS, f16, Half, rounded, true) \
  WEFT_SILU_TRUNCATED(KERNEL, design, THREADS, f16, Half, wide, false) \
  WEFT_SILU_TRUNCATED(KERNEL, design, THREADS, f32, float, wide, false)
#define WEFT_SILU_AND_MUL_PER_BLOCK_QUANT(KERNEL, design, THREADS) \
  WEFT_SILU_CODES(KERNEL, design, THREADS, bf16, Brain, rounded, true) \
  WEFT_SILU_CODES(KERNEL, design, THREADS, bf16, Brain, wide, false) \
  WEFT_SILU_CODES(KERNEL, design, THREADS, f16, Half, rounded, true) \
  WEFT_SILU_CODES(KERNEL, design, THREADS, f16, Half, wide, false) \
  WEFT_SILU_CODES(KERNEL, design, THREADS, f32, float, wide, false)
// clang-format on
