#pragma once

// The known instructions, by the whole opcode, so that an unexpected modifier makes an unknown one.

#include <bit>
#include <cstring>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tests/cuda/ptx/program.h"
#include "tests/cuda/ptx/warp.h"

namespace weft::ptx {

// One form of an opcode. The signature lists its operands, targets before the colon:
//
//   p h w d   a predicate, 16, 32, 64 bits         B H W D   at least 8, 16, 32, 64 bits
//   {ww}      a tuple      w|p  a pair             a         an address     l    a label     v    a variable
//   0         the number 0
//
// e.g. "w:ww" of add.s32 and ":aW" of st.global.u32.
struct Operation {
  std::string signature;
  Execute execute = nullptr;
  LaneFunction function = nullptr;
  Access access;
};

using Operations = std::unordered_map<std::string, std::vector<Operation>>;
const Operations& operations();

void add_float_operations(Operations& table);
void add_packed_operations(Operations& table);
void add_integer_operations(Operations& table);
void add_logic_operations(Operations& table);
void add_conversions(Operations& table);
void add_memory_operations(Operations& table);
void add_control_operations(Operations& table);
void add_matrix_operations(Operations& table);

// Values of lanes: the low bits of a slot.
template <class T>
T value_of(std::uint64_t bits) {
  if constexpr (std::is_same_v<T, bool>) {
    return (bits & 1) != 0;
  } else if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<double>(bits);
  } else {
    return static_cast<T>(bits);
  }
}
template <class T>
std::uint64_t bits_of_value(T value) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<std::uint32_t>(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return std::bit_cast<std::uint64_t>(value);
  } else if constexpr (std::is_same_v<T, bool>) {
    return value ? 1 : 0;
  } else {
    return static_cast<std::make_unsigned_t<T>>(value);
  }
}

template <class T>
constexpr char letter_of() {
  if constexpr (std::is_same_v<T, bool>) {
    return 'p';
  } else {
    return sizeof(T) == 1 ? 'B' : sizeof(T) == 2 ? 'h' : sizeof(T) == 4 ? 'w' : 'd';
  }
}

template <class R, class... A, std::size_t... i>
void run_lanes_at(Warp& warp, const Instruction& one, std::uint32_t lanes, std::index_sequence<i...>) {
  const auto function = reinterpret_cast<R (*)(A...)>(one.function);
  std::uint64_t* to = warp.values(one.to[0]);
  const std::uint64_t* from[] = {warp.values(one.from[i])...};
  for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    to[lane] = bits_of_value<R>(function(value_of<A>(from[i][lane])...));
  }
}
template <class R, class... A>
void run_lanes(Warp& warp, const Instruction& one, std::uint32_t lanes) {
  run_lanes_at<R, A...>(warp, one, lanes, std::index_sequence_for<A...>());
}

// An opcode that is a function of each lane's own values, with operands of the function's types.
template <class R, class... A>
void add(Operations& table, const std::string& opcode, R (*function)(A...)) {
  std::string signature = {letter_of<R>(), ':', letter_of<A>()...};
  table[opcode].push_back(
      {std::move(signature), &run_lanes<R, A...>, reinterpret_cast<LaneFunction>(function), Access{}});
}

}  // namespace weft::ptx
