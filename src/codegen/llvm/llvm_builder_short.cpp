// LlvmBuilder's operations on pairs of lanes, with instructions of AVX2 and AVX-512: codes of one byte, and the fast
// paths of codegen/short_ways.h.

#include <algorithm>

#include "codegen/llvm/llvm_builder.h"

namespace weft {
LLVMValueRef LlvmBuilder::word_vector(unsigned number) { return splat(LLVMConstInt(word_, number, false)); }

// Loaded codes are narrower than words.
bool LlvmBuilder::is_of_words(LLVMValueRef codes) const {
  return LLVMIsATruncInst(codes) != nullptr && LLVMTypeOf(LLVMGetOperand(codes, 0)) == words_;
}

LLVMValueRef LlvmBuilder::low_halves(LLVMValueRef even, LLVMValueRef odd) {
  return high_halves(LLVMBuildShl(builder_, even, word_vector(16), ""),
                     LLVMBuildShl(builder_, odd, word_vector(16), ""));
}

LLVMValueRef LlvmBuilder::high_halves(LLVMValueRef even, LLVMValueRef odd) {
  std::vector<int> lanes;
  for (int i = 0; i < 2 * lanes_; ++i) lanes.push_back(i + i % 2 * 2 * lanes_);
  return shuffle(LLVMBuildBitCast(builder_, LLVMBuildLShr(builder_, even, word_vector(16), ""), halves_, ""),
                 LLVMBuildBitCast(builder_, odd, halves_, ""), lanes);
}

LLVMValueRef LlvmBuilder::packed(bool has_signs, LLVMValueRef first, LLVMValueRef second) {
  const std::string name = has_signs ? "packsswb" : "packuswb";
  return call_intrinsic(("llvm.x86." + (lanes_ == 16 ? "avx512." + name + ".512" : "avx2." + name)).c_str(), {},
                        {first, second});
}

LLVMValueRef LlvmBuilder::bytes_of(LLVMValueRef first, LLVMValueRef second) {
  const std::vector<LLVMValueRef> each(2 * static_cast<std::size_t>(lanes_),
                                       LLVMConstInt(LLVMInt16TypeInContext(context_), 0xff, false));
  const LLVMValueRef mask = LLVMConstVector(const_cast<LLVMValueRef*>(each.data()), 2 * static_cast<unsigned>(lanes_));
  return packed(false, LLVMBuildAnd(builder_, first, mask, ""), LLVMBuildAnd(builder_, second, mask, ""));
}

// The packed bytes alternate between the two vectors, 8 bytes each. The shuffle restores their order.
void LlvmBuilder::store_bytes(const RowStore& store, Index index, std::int64_t offset, LLVMValueRef bytes) {
  const int turns = lanes_ / 2;
  const LLVMTypeRef eights = LLVMVectorType(long_, static_cast<unsigned>(turns));
  std::vector<int> order;
  for (int i = 0; i < turns; ++i) order.push_back(2 * i % turns + 2 * i / turns);
  const LLVMValueRef in_order = shuffle(LLVMBuildBitCast(builder_, bytes, eights, ""), LLVMGetPoison(eights), order);
  const LLVMValueRef to = address(store.buffer, place_of(store.placement, index, offset, store.offset));
  LLVMSetAlignment(LLVMBuildStore(builder_, in_order, to), 1);
}

void LlvmBuilder::store_two_pairs(const RowStore& store, Index index, std::int64_t offset,
                                  const std::array<Value, 4>& codes) {
  if (lanes_ != 8 || !std::all_of(codes.begin(), codes.end(), [&](Value code) { return is_of_words(code); })) {
    store_pairs(store, index, offset, codes[0], codes[1], lanes_);
    return store_pairs(store, index, offset + 2 * lanes_, codes[2], codes[3], lanes_);
  }
  const auto words = [&](std::size_t i) { return LLVMGetOperand(codes[i], 0); };
  store_bytes(store, index, offset, bytes_of(low_halves(words(0), words(1)), low_halves(words(2), words(3))));
}

// The bits of a word above the low byte of its code are arbitrary. Where they must be cleared, narrowing wide vectors
// one by one is as fast.
void LlvmBuilder::store_four(const RowStore& store, Index index, std::int64_t offset,
                             const std::array<Value, 4>& codes) {
  const bool is_signed = program_->buffers[static_cast<std::size_t>(store.buffer)].dtype == DType::i8;
  if (lanes_ < 8 || (lanes_ == 16 && is_signed) ||
      !std::all_of(codes.begin(), codes.end(), [&](Value code) { return is_of_words(code); })) {
    for (std::size_t i = 0; i < codes.size(); ++i)
      this->store(store, index, offset + static_cast<std::int64_t>(i) * lanes_, codes[i], lanes_);
    return;
  }
  std::array<LLVMValueRef, 4> words{};
  for (std::size_t i = 0; i < words.size(); ++i)
    words[i] = LLVMBuildAnd(builder_, LLVMGetOperand(codes[i], 0), word_vector(0xff), "");
  const std::string name = lanes_ == 16 ? "llvm.x86.avx512.packssdw.512" : "llvm.x86.avx2.packssdw";
  const auto halves = [&](std::size_t i) { return call_intrinsic(name.c_str(), {}, {words[i], words[i + 1]}); };
  const LLVMValueRef bytes = packed(false, halves(0), halves(2));
  // The packed bytes alternate between the four vectors, 4 bytes each. The shuffle restores their order.
  const int turns = lanes_ / 4;
  std::vector<int> order;
  for (int i = 0; i < lanes_; ++i) order.push_back(i % turns * 4 + i / turns);
  const LLVMValueRef in_order = shuffle(LLVMBuildBitCast(builder_, bytes, words_, ""), LLVMGetPoison(words_), order);
  const LLVMValueRef to = address(store.buffer, place_of(store.placement, index, offset, store.offset));
  LLVMSetAlignment(LLVMBuildStore(builder_, in_order, to), 1);
}

LLVMValueRef LlvmBuilder::short_bf16(ShortRounding rounding, LLVMValueRef floats) {
  constexpr const char* kNames[] = {"weft_split_bf16_v", "weft_fused_bf16_v", "weft_half_up_bf16_v"};
  return call(kNames[static_cast<std::size_t>(rounding)], floats_, {floats});
}

LLVMValueRef LlvmBuilder::inverse_rest(LLVMValueRef b, LLVMValueRef c) {
  return call("weft_inverse_rest_v", floats_, {b, c});
}

LLVMValueRef LlvmBuilder::shorter_quotient(LLVMValueRef a, LLVMValueRef rest, LLVMValueRef c) {
  return call("weft_shorter_quotient_v", floats_, {a, rest, c});
}

LLVMValueRef LlvmBuilder::load_words(int buffer, Index index, std::int64_t offset, std::int64_t begin) {
  const RowBuffer& at = program_->buffers[static_cast<std::size_t>(buffer)];
  const LLVMValueRef words =
      LLVMBuildLoad2(builder_, words_, address(buffer, place_of(at.placement, index, offset, begin)), "");
  LLVMSetAlignment(words, 2);
  return words;
}

// Narrowing with saturation keeps the sign of a half.
LLVMValueRef LlvmBuilder::sign_bytes(Index index, std::int64_t offset, const std::array<Value, 4>& floats,
                                     const std::vector<int>& buffers) {
  std::array<LLVMValueRef, 2> signed_halves{};
  for (std::size_t i = 0; i < signed_halves.size(); ++i) {
    LLVMValueRef words = nullptr;
    for (const int buffer : buffers) {
      const LLVMValueRef read = load_words(buffer, index, offset + static_cast<std::int64_t>(i) * 2 * lanes_);
      words = words == nullptr ? read : LLVMBuildXor(builder_, words, read, "");
    }
    const auto bits = [&](std::size_t k) { return LLVMBuildBitCast(builder_, floats[2 * i + k], words_, ""); };
    signed_halves[i] =
        words == nullptr ? high_halves(bits(0), bits(1)) : LLVMBuildBitCast(builder_, words, halves_, "");
  }
  const LLVMTypeRef byte = LLVMInt8TypeInContext(context_);
  const std::vector<LLVMValueRef> each(4 * static_cast<std::size_t>(lanes_), LLVMConstInt(byte, 0x80, false));
  return LLVMBuildAnd(builder_, packed(true, signed_halves[0], signed_halves[1]),
                      LLVMConstVector(const_cast<LLVMValueRef*>(each.data()), 4 * static_cast<unsigned>(lanes_)), "");
}

void LlvmBuilder::store_signs(const RowStore& store, Index index, std::int64_t offset,
                              const std::array<Value, 4>& floats) {
  const LLVMValueRef to = address(store.buffer, place_of(store.placement, index, offset, store.offset));
  LLVMSetAlignment(LLVMBuildStore(builder_, sign_bytes(index, offset, floats, {}), to), 1);
}

void LlvmBuilder::store_ordinary_f8e4m3(const RowStore& store, Index index, std::int64_t offset,
                                        const std::array<Value, 4>& floats, const SignsOfCodes& signs) {
  std::array<LLVMValueRef, 4> codes{};
  for (std::size_t i = 0; i < floats.size(); ++i)
    codes[i] = call("weft_ordinary_f8e4m3_v", words_, {signs.are_in_floats ? unary(RowOp::abs, floats[i]) : floats[i]});
  // The upper bytes of the low halves are 0.
  const LLVMValueRef magnitudes = packed(false, low_halves(codes[0], codes[1]), low_halves(codes[2], codes[3]));
  LLVMValueRef bytes = nullptr;
  if (signs.do_wait) {
    const LLVMValueRef from = address(store.buffer, place_of(store.placement, index, offset, store.offset));
    bytes = LLVMBuildLoad2(builder_, LLVMTypeOf(magnitudes), from, "");
    LLVMSetAlignment(bytes, 1);
  } else {
    bytes = sign_bytes(index, offset, floats, signs.buffers);
  }
  store_bytes(store, index, offset, LLVMBuildOr(builder_, magnitudes, bytes, ""));
}

LLVMValueRef LlvmBuilder::pairs_variable(bool is_of_call) {
  const LLVMBasicBlockRef here = LLVMGetInsertBlock(builder_);
  const LLVMValueRef none = LLVMConstNull(halves_);
  if (!is_of_call) return variable(none);
  LLVMPositionBuilderBefore(builder_, LLVMGetBasicBlockTerminator(entry_));
  const LLVMValueRef made = LLVMBuildAlloca(builder_, LLVMTypeOf(none), "");
  set(made, none);
  LLVMPositionBuilderAtEnd(builder_, here);
  return made;
}

void LlvmBuilder::watch_pairs(LLVMValueRef variable, int buffer, Index index, std::int64_t offset) {
  const LLVMValueRef words = load_words(buffer, index, offset);
  const LLVMValueRef magnitudes =
      LLVMBuildBitCast(builder_, LLVMBuildAnd(builder_, words, word_vector(0x7fff7fff), ""), halves_, "");
  set(variable, call_intrinsic("llvm.umax", {halves_}, {get(variable), magnitudes}));
}

LLVMValueRef LlvmBuilder::are_ordinary(LLVMValueRef largest_floats, LLVMValueRef watched,
                                       const std::vector<LLVMValueRef>& numbers) {
  constexpr unsigned kMost = 0x5f800000, kLargeFactor = 0x6000;  // 2^64 as f32, 2^65 as bf16
  const LLVMValueRef most = LLVMBuildBitCast(builder_, largest({get(largest_floats)}), word_, "");
  const LLVMValueRef factor = call_intrinsic("llvm.vector.reduce.umax", {halves_}, {get(watched)});
  LLVMValueRef are =
      LLVMBuildAnd(builder_, LLVMBuildICmp(builder_, LLVMIntULE, most, LLVMConstInt(word_, kMost, false), ""),
                   LLVMBuildICmp(builder_, LLVMIntULT, factor,
                                 LLVMConstInt(LLVMInt16TypeInContext(context_), kLargeFactor, false), ""),
                   "");
  for (const LLVMValueRef one : numbers) {
    const LLVMValueRef bits = LLVMBuildBitCast(builder_, one, word_, "");
    are = LLVMBuildAnd(builder_, are, LLVMBuildICmp(builder_, LLVMIntSGE, bits, LLVMConstInt(word_, 0, false), ""), "");
  }
  return are;
}

LLVMValueRef LlvmBuilder::is_first_row() {
  // With parts, a row index counts parts, and each part reads other columns. So each part counts as a first row.
  if (program_->tuning.parts > 1) return LLVMConstInt(LLVMInt1TypeInContext(context_), 1, false);
  return LLVMBuildICmp(builder_, LLVMIntEQ, loops_[0].index, LLVMGetParam(function_, 1), "");
}

void LlvmBuilder::begin_if(LLVMValueRef truth) {
  const LLVMBasicBlockRef then = LLVMAppendBasicBlockInContext(context_, function_, "then");
  branches_.push_back({LLVMAppendBasicBlockInContext(context_, function_, "otherwise"),
                       LLVMAppendBasicBlockInContext(context_, function_, "after")});
  LLVMBuildCondBr(builder_, truth, then, branches_.back().otherwise);
  LLVMPositionBuilderAtEnd(builder_, then);
}

void LlvmBuilder::begin_else() {
  LLVMBuildBr(builder_, branches_.back().after);
  LLVMPositionBuilderAtEnd(builder_, branches_.back().otherwise);
}

void LlvmBuilder::end_if() {
  LLVMBuildBr(builder_, branches_.back().after);
  LLVMPositionBuilderAtEnd(builder_, branches_.back().after);
  branches_.pop_back();
}

}  // namespace weft
