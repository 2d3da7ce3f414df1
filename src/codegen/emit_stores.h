#pragma once

// The stores of a row program's loops, through the Builder of emit.h.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "codegen/emit_block.h"
#include "codegen/level_work.h"
#include "codegen/row_program.h"
#include "codegen/short_ways.h"

namespace weft {

template <class Builder>
class StoreEmitter : protected BlockEmitter<Builder> {
 protected:
  using Base = BlockEmitter<Builder>;
  using Base::comes_in_pairs, Base::at_once_, Base::lanes_of, Base::value_at, Base::vector, Base::vector_code_for;
  using Base::program_, Base::builder_, Base::ways_, Base::is_short_, Base::column_, Base::offset_;
  using typename Base::Value;

  StoreEmitter(const RowProgram& program, Builder& builder) : Base(program, builder) {}

  // Emits the stores of the current block.
  void emit_stores(const LevelWork& work, int vectors) {
    for (const RowStore& store : work.stores) read_overwritten(store, vectors);
    for (const RowStore& store : work.stores) {
      if (work.is_second_of_pair(store)) continue;
      if (comes_in_pairs()) {
        emit_store_of_pairs(store, vectors);
        continue;
      }
      emit_store_of_vectors(store, work.second_of_pair(store), vectors);
    }
  }

  // The number of vectors whose one-byte codes fill one vector.
  static constexpr int kVectorsOfBytes = 4;

 private:
  // Vectors that are computed together are stored together, so that no computation has to follow a store.
  void emit_store_of_vectors(const RowStore& store, const RowStore* second, int vectors) {
    for (int begin = 0; begin < vectors; begin += at_once_) {
      std::vector<Value> codes, second_codes;
      for (int i = begin; i < std::min(begin + at_once_, vectors); ++i) {
        codes.push_back(vector_code_for(store, i));
        if (second != nullptr) second_codes.push_back(vector_code_for(*second, i));
      }
      const bool is_four = codes.size() == kVectorsOfBytes && lanes_of(begin + kVectorsOfBytes - 1) == builder_.lanes();
      if (is_four && second == nullptr && has_plain_bytes(store)) {
        builder_.store_four(store, column_, offset_ + begin * builder_.lanes(),
                            {codes[0], codes[1], codes[2], codes[3]});
        continue;
      }
      for (std::size_t k = 0; k < codes.size(); ++k) {
        const int i = begin + static_cast<int>(k);
        const std::int64_t offset = offset_ + i * builder_.lanes();
        if (second == nullptr) {
          builder_.store(store, column_, offset, codes[k], lanes_of(i));
        } else {
          builder_.store_pairs(store, column_, offset, codes[k], second_codes[k], lanes_of(i));
        }
      }
    }
  }

  void emit_store_of_pairs(const RowStore& store, int vectors) {
    const bool in_twos = is_of_bytes(store) && !is_of_nibbles(store) && vectors % kVectorsOfBytes == 0;
    for (int i = 0; i < vectors; i += in_twos ? kVectorsOfBytes : 2) {
      const std::int64_t offset = offset_ + i * builder_.lanes();
      if constexpr (Builder::kTakesShortWays) {
        if (const int id = value_at(store.value).a; is_ordinary_f8(store)) {
          builder_.store_ordinary_f8e4m3(store, column_, offset,
                                         {vector(id, i), vector(id, i + 1), vector(id, i + 2), vector(id, i + 3)},
                                         signs_of_codes(program_, *ways_));
          continue;
        }
      }
      const Value even = vector_code_for(store, i), odd = vector_code_for(store, i + 1);
      if (in_twos) {
        builder_.store_two_pairs(store, column_, offset,
                                 {even, odd, vector_code_for(store, i + 2), vector_code_for(store, i + 3)});
      } else {
        builder_.store_pairs(store, column_, offset, even, odd, builder_.lanes());
      }
    }
  }
  bool has_plain_bytes(const RowStore& store) const {
    return is_of_bytes(store) && !is_of_nibbles(store) && store.placement.stride == 1 &&
           store.placement.run % (kVectorsOfBytes * builder_.lanes()) == 0;
  }
  bool is_of_bytes(const RowStore& store) const {
    return dtype_info(program_.buffers[static_cast<std::size_t>(store.buffer)].dtype).block_bytes == 1;
  }
  bool is_of_nibbles(const RowStore& store) const {
    return program_.buffers[static_cast<std::size_t>(store.buffer)].elements_of_unit() > 1;
  }
  // Whether a fast path stores these codes with store_ordinary_f8e4m3.
  bool is_ordinary_f8(const RowStore& store) const {
    const RowValue& value = value_at(store.value);
    return is_short_ && value.op == RowOp::convert && value.is_plain && value.dtype == DType::f8e4m3 &&
           value_at(value.a).op == RowOp::short_quotient &&
           program_.buffers[static_cast<std::size_t>(store.buffer)].dtype == value.dtype;
  }

  // Loads the data that a store may overwrite before anything is written.
  void read_overwritten(const RowStore& store, int vectors) {
    const int over = program_.buffers[static_cast<std::size_t>(store.buffer)].over;
    if (over < 0) return;
    for (int id = 0; id < static_cast<int>(program_.values.size()); ++id)
      for (int i = 0; i < vectors && value_at(id).op == RowOp::load && value_at(id).buffer == over; ++i) vector(id, i);
  }
};

}  // namespace weft
