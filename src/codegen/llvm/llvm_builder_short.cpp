// What LlvmBuilder does of 8 lanes that come in pairs, in the steps that AVX2 has for them: codes of a byte, and the
// short ways of codegen/short_ways.h.

#include <algorithm>

#include "codegen/llvm/llvm_builder.h"

namespace weft {
namespace {

constexpr unsigned kHalves = 16;  // of the words of a vector
constexpr unsigned kScratchAlignment = 16;

}  // namespace

LLVMValueRef LlvmBuilder::word_vector(unsigned number) { return splat(LLVMConstInt(word_, number, false)); }

// Codes that were loaded are of shorter words.
bool LlvmBuilder::is_of_words(LLVMValueRef codes) const {
  return LLVMIsATruncInst(codes) != nullptr && LLVMTypeOf(LLVMGetOperand(codes, 0)) == words_;
}

LLVMValueRef LlvmBuilder::low_halves(LLVMValueRef even, LLVMValueRef odd) {
  return high_halves(LLVMBuildShl(builder_, even, word_vector(16), ""),
                     LLVMBuildShl(builder_, odd, word_vector(16), ""));
}

LLVMValueRef LlvmBuilder::high_halves(LLVMValueRef even, LLVMValueRef odd) {
  const LLVMTypeRef halves = LLVMVectorType(LLVMInt16TypeInContext(context_), kHalves);
  std::vector<int> lanes;
  for (int i = 0; i < static_cast<int>(kHalves); ++i) lanes.push_back(i + i % 2 * static_cast<int>(kHalves));
  return shuffle(LLVMBuildBitCast(builder_, LLVMBuildLShr(builder_, even, word_vector(16), ""), halves, ""),
                 LLVMBuildBitCast(builder_, odd, halves, ""), lanes);
}

// The instructions that make elements narrower work on the halves of a register.
LLVMValueRef LlvmBuilder::bytes_of(LLVMValueRef first, LLVMValueRef second) {
  const LLVMTypeRef half = LLVMInt16TypeInContext(context_);
  const std::vector<LLVMValueRef> each(kHalves, LLVMConstInt(half, 0xff, false));
  const LLVMValueRef mask = LLVMConstVector(const_cast<LLVMValueRef*>(each.data()), kHalves);
  const LLVMValueRef packed =
      call_intrinsic("llvm.x86.avx2.packuswb", {},
                     {LLVMBuildAnd(builder_, first, mask, ""), LLVMBuildAnd(builder_, second, mask, "")});
  return packed;
}

void LlvmBuilder::store_bytes(const RowStore& store, Index index, std::int64_t offset, LLVMValueRef bytes) {
  const LLVMTypeRef quarters = LLVMVectorType(long_, 4);
  const LLVMValueRef packed = LLVMBuildBitCast(builder_, bytes, quarters, "");
  const LLVMValueRef in_order = shuffle(packed, LLVMGetPoison(quarters), {0, 2, 1, 3});
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

LLVMValueRef LlvmBuilder::load_words(int buffer, Index index, std::int64_t offset) {
  const RowBuffer& at = program_->buffers[static_cast<std::size_t>(buffer)];
  const LLVMValueRef words =
      LLVMBuildLoad2(builder_, words_, address(buffer, place_of(at.placement, index, offset, 0)), "");
  LLVMSetAlignment(words, 2);
  return words;
}

// Narrowed with saturation, a half keeps its sign.
LLVMValueRef LlvmBuilder::sign_bytes(Index index, std::int64_t offset, const std::array<Value, 4>& floats,
                                     const std::vector<int>& buffers) {
  const LLVMTypeRef halves = LLVMVectorType(LLVMInt16TypeInContext(context_), kHalves);
  std::array<LLVMValueRef, 2> signed_halves{};
  for (std::size_t i = 0; i < signed_halves.size(); ++i) {
    LLVMValueRef words = nullptr;
    for (const int buffer : buffers) {
      const LLVMValueRef read = load_words(buffer, index, offset + static_cast<std::int64_t>(i * kHalves));
      words = words == nullptr ? read : LLVMBuildXor(builder_, words, read, "");
    }
    const auto bits = [&](std::size_t k) { return LLVMBuildBitCast(builder_, floats[2 * i + k], words_, ""); };
    signed_halves[i] = words == nullptr ? high_halves(bits(0), bits(1)) : LLVMBuildBitCast(builder_, words, halves, "");
  }
  const LLVMTypeRef byte = LLVMInt8TypeInContext(context_);
  const std::vector<LLVMValueRef> each(2 * kHalves, LLVMConstInt(byte, 0x80, false));
  return LLVMBuildAnd(builder_, call_intrinsic("llvm.x86.avx2.packsswb", {}, {signed_halves[0], signed_halves[1]}),
                      LLVMConstVector(const_cast<LLVMValueRef*>(each.data()), 2 * kHalves), "");
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
  // Nothing is in the upper bytes of their low halves.
  const LLVMValueRef magnitudes =
      call_intrinsic("llvm.x86.avx2.packuswb", {}, {low_halves(codes[0], codes[1]), low_halves(codes[2], codes[3])});
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
  const LLVMValueRef none = LLVMConstNull(LLVMVectorType(LLVMInt16TypeInContext(context_), kHalves));
  if (!is_of_call) return variable(none);
  LLVMPositionBuilderBefore(builder_, LLVMGetBasicBlockTerminator(entry_));
  const LLVMValueRef made = LLVMBuildAlloca(builder_, LLVMTypeOf(none), "");
  set(made, none);
  LLVMPositionBuilderAtEnd(builder_, here);
  return made;
}

void LlvmBuilder::watch_pairs(LLVMValueRef variable, int buffer, Index index, std::int64_t offset) {
  const LLVMTypeRef halves = LLVMGetAllocatedType(variable);
  const LLVMValueRef words = load_words(buffer, index, offset);
  const LLVMValueRef magnitudes =
      LLVMBuildBitCast(builder_, LLVMBuildAnd(builder_, words, word_vector(0x7fff7fff), ""), halves, "");
  set(variable, call_intrinsic("llvm.umax", {halves}, {get(variable), magnitudes}));
}

LLVMValueRef LlvmBuilder::are_ordinary(LLVMValueRef largest_floats, LLVMValueRef watched,
                                       const std::vector<LLVMValueRef>& numbers) {
  constexpr unsigned kMost = 0x5f800000, kLargeFactor = 0x6000;  // 2^64 as f32, 2^65 as bf16
  const LLVMValueRef most = LLVMBuildBitCast(builder_, largest({get(largest_floats)}), word_, "");
  const LLVMTypeRef halves = LLVMGetAllocatedType(watched);
  const LLVMValueRef factor = call_intrinsic("llvm.vector.reduce.umax", {halves}, {get(watched)});
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
  // Parts of a row are numbered like rows, and read what others do not.
  if (program_->tuning.parts > 1) return LLVMConstInt(LLVMInt1TypeInContext(context_), 1, false);
  return LLVMBuildICmp(builder_, LLVMIntEQ, loops_[0].index, LLVMGetParam(function_, 1), "");
}

// For whole vectors of groups, of which those beyond the row have nothing in them.
LLVMValueRef LlvmBuilder::maxima_variable(std::int64_t blocks, std::int64_t of_group) {
  const LLVMBasicBlockRef here = LLVMGetInsertBlock(builder_);
  LLVMPositionBuilderBefore(builder_, LLVMGetBasicBlockTerminator(entry_));
  const std::int64_t step = lanes_ * of_group, whole = (blocks + step - 1) / step * step;
  const LLVMValueRef made = LLVMBuildArrayAlloca(builder_, floats_, number(whole), "");
  LLVMSetAlignment(made, kScratchAlignment);
  for (std::int64_t i = blocks; i < whole; ++i)
    LLVMSetAlignment(LLVMBuildStore(builder_, LLVMConstNull(floats_), maxima_address(made, number(i))),
                     kScratchAlignment);
  LLVMPositionBuilderAtEnd(builder_, here);
  return made;
}

LLVMValueRef LlvmBuilder::maxima_address(LLVMValueRef variable, LLVMValueRef number) {
  return LLVMBuildGEP2(builder_, floats_, variable, &number, 1, "");
}

void LlvmBuilder::keep_maxima(LLVMValueRef variable, Index index, std::int64_t offset, std::int64_t block,
                              LLVMValueRef vector) {
  const LLVMValueRef at = LLVMBuildUDiv(builder_, index_value(index, offset), number(block), "");
  LLVMSetAlignment(LLVMBuildStore(builder_, vector, maxima_address(variable, at)), kScratchAlignment);
}

// Halves of vectors beside one another, and the larger of them, until what is left of each is one lane.
LLVMValueRef LlvmBuilder::largest_of_each(LLVMValueRef variable, Index index, std::int64_t of_group) {
  const LLVMValueRef first = LLVMBuildMul(builder_, index_value(index, 0), number(of_group), "");
  std::vector<LLVMValueRef> rest;
  for (std::int64_t i = 0; i < lanes_ * of_group; ++i) {
    const LLVMValueRef at = LLVMBuildNSWAdd(builder_, first, number(i), "");
    const LLVMValueRef read = LLVMBuildLoad2(builder_, floats_, maxima_address(variable, at), "");
    LLVMSetAlignment(read, kScratchAlignment);
    if (i % of_group == 0) {
      rest.push_back(read);
    } else {
      rest.back() = larger(rest.back(), read);
    }
  }
  const std::vector<int> halves[][2] = {{{0, 8, 1, 9, 4, 12, 5, 13}, {2, 10, 3, 11, 6, 14, 7, 15}},
                                        {{0, 1, 8, 9, 4, 5, 12, 13}, {2, 3, 10, 11, 6, 7, 14, 15}},
                                        {{0, 1, 2, 3, 8, 9, 10, 11}, {4, 5, 6, 7, 12, 13, 14, 15}}};
  for (const auto& [first, second] : halves) {
    std::vector<LLVMValueRef> next;
    for (std::size_t i = 0; i < rest.size(); i += 2)
      next.push_back(larger(shuffle(rest[i], rest[i + 1], first), shuffle(rest[i], rest[i + 1], second)));
    rest = std::move(next);
  }
  return rest[0];
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
