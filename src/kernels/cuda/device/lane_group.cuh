#pragma once

// A group of columns in neighbouring lanes of 16 elements each, in blocks of kGroupThreads: the elements of a lane, and
// the codes and scale of the group. There is no barrier: lanes find the largest magnitude by shuffles.

#include "kernels/cuda/device/elements.cuh"
#include "kernels/cuda/device/group_place.cuh"
#include "kernels/cuda/device/group_quantization.cuh"

namespace weft::cuda {

template <class T, int group>
struct LaneOfGroup {
  static constexpr int kElements = kElementsOfLane, kOfLoad = kElementsOfLoad<T>, kLoads = kElements / kOfLoad;
  static constexpr int kLanes = group / kElements;
  // Loads of neighbouring lanes lie side by side; a lane's next load is one such row of them further on.
  static constexpr int kStep = kLanes * kOfLoad;

  GroupPlace at;
  std::uint32_t column;  // of the row: the first of its elements
  std::uint64_t place;   // the same in all codes
};

// Arguments have order, rows, columns, rule, codes and places.
template <class T, int group, class Arguments>
WEFT_DEVICE LaneOfGroup<T, group> lane_of_group(const Arguments& arguments) {
  using Lane = LaneOfGroup<T, group>;
  const GroupPlace at =
      group_place<kGroupThreads, Lane::kLanes>(arguments.order, arguments.rows, arguments.columns / group);
  const std::uint32_t column = at.group * group + at.lane * Lane::kOfLoad;
  return {at, column, product(at.row, arguments.columns) + column};
}

// `bound`: bound_of the rule, which is to be loaded before the values are needed.
template <class Code, class T, int group, class Arguments>
WEFT_DEVICE void store_group(const Arguments& arguments, const LaneOfGroup<T, group>& lane, float bound,
                             float* values) {
  using Lane = LaneOfGroup<T, group>;
  const float largest = largest_of_lanes<Lane::kLanes, Lane::kElements>(values);
  const float scale = scale_of<Code>(largest, arguments.rule, bound);
  std::uint32_t words[Lane::kElements / 4];
  quantize<Code, Lane::kElements>(values, largest, scale, words);

  if (!lane.at.is_live) return;
  constexpr int kWords = Lane::kOfLoad / 4;
  auto* codes = static_cast<std::uint8_t*>(arguments.codes) + lane.place;
  WEFT_UNROLL
  for (int i = 0; i < Lane::kLoads; ++i) store_words<kWords>(codes + i * Lane::kStep, words + i * kWords);
  if (lane.at.lane == 0) store(scale_at(arguments.places, lane.at), scale);
}

}  // namespace weft::cuda
