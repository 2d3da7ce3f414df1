#pragma once

// Reads a pickle of Python as data. Nothing is called and no object is made: a call is a value that names the function.
//
// Protocols 2 to 5, with the opcodes that files of tensors use. Others are refused by their number.
// Opcodes: https://github.com/python/cpython/blob/main/Lib/pickletools.py

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace weft {

// The place of a value in Pickle::values.
using PickleIndex = std::uint32_t;

struct PickleValue {
  enum class Kind : std::uint8_t { none, boolean, integer, real, text, global, list, tuple, dict, call, stored };
  Kind kind = Kind::none;
  std::int64_t integer = 0;  // of a boolean 0 or 1
  std::string text;          // of a global "module.name"
  // list, tuple: the elements; dict: keys and values by turns; call: the function and its arguments, which are a tuple;
  // stored: what names an object that the program which reads the pickle has
  std::vector<PickleIndex> items;
};

struct Pickle {
  std::vector<PickleValue> values;
  PickleIndex root = 0;

  const PickleValue& operator[](PickleIndex index) const { return values[index]; }

  // UserError that begins with [where] for anything else than a whole pickle.
  static Pickle parse(std::span<const std::byte> bytes, const std::string& where);
};

}  // namespace weft
