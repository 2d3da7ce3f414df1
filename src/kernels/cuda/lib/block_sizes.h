#pragma once

// How a call is cut into blocks and threads, for device code and for the code that plans its launch. Plain constants,
// also for nvcc and NVRTC.

#include <cstdint>

namespace weft::cuda {

// A group in neighbouring lanes (per_token_group_quant, silu_and_mul_per_block_quant).
inline constexpr std::uint32_t kGroupThreads = 128, kElementsOfLane = 16;

// A block for each row (rms_norm, dynamic_per_token_quant), 16 bytes for each thread at a time.
inline constexpr std::uint32_t kRowThreads = 256;

// silu_and_mul: 16 bytes of gates for each thread; groups of fp4 codes, whose scales may be in tiles of this number of
// rows and groups.
inline constexpr std::uint32_t kSiluThreads = 256, kFp4Group = 16, kScaleTileRows = 128, kScaleTileGroups = 4;

// gather_rows: a unit for each thread, 1 to 16 bytes that are copied or this number of elements that are converted.
inline constexpr std::uint32_t kGatherThreads = 256, kConvertedElements = 8;

// head_rotation: columns of a head in one iteration, as many as reference math has partial sums; two for each lane if
// there are no whole vectors.
inline constexpr std::uint32_t kRotationThreads = 128, kColumnsOfTurn = 64, kColumnsOfPair = 2;

// attention: tokens of a segment; warps of a block and rows of a warp, for decoded tokens, for prompts and for prompts
// by the matrix units. finish_attention has one warp for each row.
inline constexpr std::uint32_t kSegmentTokens = 256;
inline constexpr int kDecodeWarps = 4, kMatrixWarps = 4, kFinishWarps = 4;
inline constexpr int kRowsOfWarp = 4, kMatrixRowsOfWarp = 16;
// Fewer warps if wide heads need more registers for sums and more shared memory for tiles.
inline constexpr int kPrefillWarps = 8, kPrefillWarpsOf256 = 2, kPrefillWarpsOf128F32 = 4, kDecodeWarpsOf256 = 2;
// Loads of K and V that a thread has in flight.
inline constexpr int kDecodeLoads = 2, kPrefillLoads = 1;
// Blocks that a multiprocessor holds at once, by the launch bounds.
inline constexpr int kDecodeBlocks = 3, kPrefillBlocks = 2;

}  // namespace weft::cuda
