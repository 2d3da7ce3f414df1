#pragma once

// The Builder (codegen/emit.h) that generates LLVM's intermediate code through LLVM's C interface. Arithmetic has no
// fast-math flag: each operation rounds where the row program says.

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <llvm-c/Core.h>

#include "codegen/emit_short_ways.h"
#include "codegen/row_program.h"
#include "codegen/short_ways.h"

namespace weft {

class LlvmBuilder {
 public:
  using Value = LLVMValueRef;
  using Variable = LLVMValueRef;
  struct Index {
    LLVMValueRef base = nullptr;  // null: `number` alone
    std::int64_t number = 0;
  };

  // Functions are added to `module`, which contains the prelude for `lanes`. `converts_halves`: the machine has
  // instructions between f16 and f32; they compute the bits of the prelude.
  LlvmBuilder(LLVMModuleRef module, int lanes, bool converts_halves);
  ~LlvmBuilder();
  LlvmBuilder(const LlvmBuilder&) = delete;
  LlvmBuilder& operator=(const LlvmBuilder&) = delete;

  int lanes() const { return lanes_; }
  void begin(const RowProgram& program);
  void end();
  Index begin_columns(std::int64_t first, std::int64_t last, std::int64_t step);
  void end_columns();
  Index at(std::int64_t column) const { return {nullptr, column}; }

  Value constant(double number, bool is_wide);
  Value splat(Value one);
  Value splat_halves(Value first, Value second);
  Value unary(RowOp op, Value a);
  Value binary(RowOp op, Value a, Value b);
  Value ternary(RowOp op, Value a, Value b, Value c);
  Value replace_zero(Value a, float number, Value b);
  Value select_at_most(Value a, float number, Value b, Value c);
  Value encode(DType dtype, Value floats);
  Value encode_plain(DType dtype, Value floats);
  Value rounded_f8e4m3(Value floats);
  Value decode(DType dtype, Value codes);

  Value load(int buffer, Index index, std::int64_t offset, int count);
  void store(const RowStore& store, Index index, std::int64_t offset, Value codes, int count);
  void store_four(const RowStore& store, Index index, std::int64_t offset, const std::array<Value, 4>& codes);
  void store_pairs(const RowStore& store, Index index, std::int64_t offset, Value first, Value second, int count);
  void store_two_pairs(const RowStore& store, Index index, std::int64_t offset, const std::array<Value, 4>& codes);
  std::pair<Value, Value> load_pairs(int buffer, Index index, std::int64_t offset);
  std::pair<Value, Value> joined_pairs(Value even, Value odd);
  void prefetch_ahead(int buffer, Index index, std::int64_t ahead, std::int64_t offset);
  void prefetch_next(int buffer, Index index, std::int64_t divisor, std::int64_t offset);
  void prefetch_store(const RowStore& store, Index index, std::int64_t offset);
  Value load_one(int buffer, Index index, std::int64_t offset, std::int64_t divisor);
  void store_one(int buffer, Value code);
  Value load_slot(int slot, Index index, std::int64_t offset);
  void store_slot(int slot, Index index, std::int64_t offset, Value vector);

  Value load_one_of_slot(int slot, Index index, std::int64_t offset, std::int64_t divisor);
  void store_one_of_slot(int slot, Index index, std::int64_t offset, std::int64_t divisor, Value one);

  Variable variable(Value start);
  Value get(Variable variable);
  void set(Variable variable, Value value);
  Value first_lanes(Value vector, int count, float rest);
  Value sum(const std::vector<Value>& vectors);
  Value larger(Value a, Value b);
  Value signed_larger(Value a, Value b);
  Value largest(const std::vector<Value>& vectors);
  Value signed_largest(const std::vector<Value>& vectors);

  static constexpr bool kTakesShortWays = true;
  static constexpr int kLeastLanesOfMaxima = 8;
  bool has_few_registers() const { return lanes_ < 16; }
  // Whether a block of columns is whole groups, or each group is whole blocks of four vectors; and four vectors are
  // stored together.
  bool takes_short_ways(const RowProgram& program) const {
    const std::int64_t four = 4 * lanes_;
    for (const RowStore& store : program.stores)
      if (store.placement.run % four != 0) return false;
    return program.in_pairs && program.columns % four == 0 && (program.group % four == 0 || four % program.group == 0);
  }
  Value short_bf16(ShortRounding rounding, Value floats);
  Value inverse_rest(Value b, Value c);
  Value shorter_quotient(Value a, Value rest, Value c);
  void store_ordinary_f8e4m3(const RowStore& store, Index index, std::int64_t offset,
                             const std::array<Value, 4>& floats, const SignsOfCodes& signs);
  void store_signs(const RowStore& store, Index index, std::int64_t offset, const std::array<Value, 4>& floats);
  Variable pairs_variable(bool is_of_call);
  void watch_pairs(Variable variable, int buffer, Index index, std::int64_t offset);
  Value are_ordinary(Variable largest, Variable watched, const std::vector<Value>& numbers);
  void begin_if(Value truth);
  void begin_else();
  void end_if();
  Value is_first_row();
  Variable maxima_variable(std::int64_t columns, std::int64_t group, std::int64_t block);
  void keep_maxima(Variable variable, Index index, std::int64_t offset, std::int64_t block,
                   const std::vector<Value>& maxima);
  Value largest_of_each(Variable variable, Index index, std::int64_t group, std::int64_t block);

 private:
  struct Loop {
    LLVMBasicBlockRef head, exit;
    LLVMValueRef index;
    std::int64_t step;
  };

  struct Branch {
    LLVMBasicBlockRef otherwise, after;
  };

  Value limited(RowOp op, Value a, Value limit);
  Value held_magnitudes(DType dtype, Value floats);
  Value encode_magnitudes(DType dtype, Value floats);
  Value encode_plain_bf16(Value floats);
  Value encode_plain_i8(Value floats);
  LLVMValueRef number(std::int64_t value) const;
  LLVMTypeRef element_type(DType dtype) const;
  bool is_vector(LLVMValueRef value) const;
  // The type itself, or a vector of it if the value is a vector.
  LLVMTypeRef as_wide_as(LLVMValueRef value, LLVMTypeRef type) const;
  LLVMValueRef like(LLVMValueRef other, float value);
  LLVMValueRef call(const std::string& name, LLVMTypeRef result, const std::vector<LLVMValueRef>& arguments);
  // Calls the prelude's op on vectors or on one float, according to `arguments`.
  LLVMValueRef call_row_op(const std::string& op, LLVMTypeRef result, const std::vector<LLVMValueRef>& arguments);
  LLVMValueRef call_intrinsic(const char* name, const std::vector<LLVMTypeRef>& types,
                              const std::vector<LLVMValueRef>& arguments);
  // The row of the buffer that this row of the program reads. `bases` are the addresses where buffers begin.
  LLVMValueRef row_of(const RowBuffer& buffer, LLVMValueRef row, const std::vector<LLVMValueRef>& bases);
  // Selects the first `count` of `width` lanes.
  LLVMValueRef lane_mask(int count, int width);
  LLVMValueRef index_value(Index index, std::int64_t offset);
  // place_of: the offset of a column in its row. places_of: the offsets of the columns from it on, one in each lane,
  // for columns that are not adjacent.
  LLVMValueRef place_of(const RowPlacement& placement, Index index, std::int64_t offset, std::int64_t begin);
  LLVMValueRef places_of(const RowPlacement& placement, Index index, std::int64_t offset, std::int64_t begin);
  LLVMValueRef address(int buffer, LLVMValueRef place);
  enum class Cache : std::uint8_t { first, second };
  void prefetch(LLVMValueRef from, Cache into);
  // Joins each two 4-bit codes into a byte.
  LLVMValueRef joined_nibbles(LLVMValueRef codes);
  // Joins each code of `even` with the code of `odd` at the same index into a byte.
  LLVMValueRef nibbles_of_pairs(LLVMValueRef even, LLVMValueRef odd);
  // Stores the first `count` lanes.
  void store_vector(LLVMValueRef codes, LLVMValueRef to, unsigned alignment, int count);
  LLVMValueRef one_address(int buffer, Index index, std::int64_t offset, std::int64_t divisor);
  // The address of element (index + offset) / divisor.
  LLVMValueRef slot_address(int slot, Index index, std::int64_t offset, std::int64_t divisor = 1);
  // Codes of `even` and `odd`, alternating, as halves of integers of twice their width.
  LLVMValueRef words_of_pairs(LLVMValueRef even, LLVMValueRef odd, unsigned bits);
  // Twice as many 16-bit elements: the low (or high) halves of the words of `even` and `odd`, alternating.
  LLVMValueRef low_halves(LLVMValueRef even, LLVMValueRef odd);
  LLVMValueRef high_halves(LLVMValueRef even, LLVMValueRef odd);
  // Loads 2 * lanes() 16-bit elements of a buffer as words; `begin` is added to the column's offset.
  LLVMValueRef load_words(int buffer, Index index, std::int64_t offset, std::int64_t begin = 0);
  // Narrows 16-bit elements to bytes, with saturation, in the order that store_bytes expects.
  LLVMValueRef packed(bool has_signs, LLVMValueRef first, LLVMValueRef second);
  // The codes in the low bytes of two vectors of 16-bit elements.
  LLVMValueRef bytes_of(LLVMValueRef first, LLVMValueRef second);
  // The signs, in the order of bytes_of.
  LLVMValueRef sign_bytes(Index index, std::int64_t offset, const std::array<Value, 4>& floats,
                          const std::vector<int>& buffers);
  LLVMValueRef word_vector(unsigned number);
  unsigned vector_bytes() const { return 4 * static_cast<unsigned>(lanes_); }
  LLVMValueRef maxima_address(LLVMValueRef variable, LLVMValueRef number);
  // Joins vectors (a power of two of them, already joined `steps` times) into one.
  LLVMValueRef joined_maxima(std::vector<LLVMValueRef> vectors, int steps);
  // Whether the codes were made from words.
  bool is_of_words(LLVMValueRef codes) const;
  void store_bytes(const RowStore& store, Index index, std::int64_t offset, LLVMValueRef bytes);
  LLVMValueRef half(LLVMValueRef vector, unsigned from, unsigned width);
  // Selects lanes of a and b. Lanes of b are numbered after those of a.
  LLVMValueRef shuffle(LLVMValueRef a, LLVMValueRef b, const std::vector<int>& lanes);
  // Whether each column of an input is half of a word whose other half is a column of another input
  // (RowBuffer::interleaved_with).
  bool has_neighbour(int buffer) const;
  // Loads every other of 2 * lanes() - 1 elements.
  LLVMValueRef load_every_other(LLVMTypeRef type, LLVMValueRef from, unsigned alignment);
  LLVMValueRef begin_loop(LLVMValueRef first, LLVMValueRef last, std::int64_t step, const char* name);
  void end_loop();

  LLVMModuleRef module_;
  LLVMContextRef context_;
  LLVMBuilderRef builder_;
  int lanes_;
  bool converts_halves_;
  LLVMTypeRef float_, word_, long_, pointer_, floats_, words_, halves_;
  const RowProgram* program_ = nullptr;
  LLVMValueRef function_ = nullptr;
  LLVMBasicBlockRef entry_ = nullptr;
  std::vector<LLVMValueRef> rows_;  // by buffer: the address of this row
  LLVMValueRef scratch_ = nullptr;
  std::vector<Loop> loops_;
  std::vector<Branch> branches_;
};

}  // namespace weft
