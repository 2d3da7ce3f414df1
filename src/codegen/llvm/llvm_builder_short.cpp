// What LlvmBuilder does of 8 lanes that come in pairs, in the steps that AVX2 has for them: codes of a byte, and the
// short ways of codegen/short_ways.h.

#include <algorithm>

#include "codegen/llvm/llvm_builder.h"

namespace weft {
namespace {

constexpr unsigned kHalves = 16;  // of the words of a vector

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
LLVMValueRef LlvmBuilder::bytes_of(LLVMValueRef first, LLVMValueRef second, unsigned bits) {
  const LLVMTypeRef half = LLVMInt16TypeInContext(context_);
  const std::vector<LLVMValueRef> each(kHalves, LLVMConstInt(half, bits, false));
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
  store_bytes(store, index, offset, bytes_of(low_halves(words(0), words(1)), low_halves(words(2), words(3)), 0xff));
}

LLVMValueRef LlvmBuilder::short_bf16(ShortRounding rounding, LLVMValueRef floats) {
  constexpr const char* kNames[] = {"weft_split_bf16_v", "weft_fused_bf16_v", "weft_half_up_bf16_v"};
  return call(kNames[static_cast<std::size_t>(rounding)], floats_, {floats});
}

// Something tiny may have bits below those of a bf16, which would count as the largest of halves.
LLVMValueRef LlvmBuilder::bf16_magnitude(LLVMValueRef floats) {
  const LLVMValueRef bits = LLVMBuildBitCast(builder_, floats, words_, "");
  return LLVMBuildBitCast(builder_, LLVMBuildAnd(builder_, bits, word_vector(0x7fff0000), ""), floats_, "");
}

// Halves have a minimum across a vector, in one step.
LLVMValueRef LlvmBuilder::largest_bf16(LLVMValueRef floats) {
  const LLVMTypeRef halves = LLVMVectorType(LLVMInt16TypeInContext(context_), kHalves);
  const LLVMValueRef largest =
      call_intrinsic("llvm.vector.reduce.umax", {halves}, {LLVMBuildBitCast(builder_, floats, halves, "")});
  const LLVMValueRef bits =
      LLVMBuildShl(builder_, LLVMBuildZExt(builder_, largest, word_, ""), LLVMConstInt(word_, 16, false), "");
  return LLVMBuildBitCast(builder_, bits, float_, "");
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

void LlvmBuilder::store_ordinary_f8e4m3(const RowStore& store, Index index, std::int64_t offset,
                                        const std::array<Value, 4>& floats, const std::vector<int>& sign_buffers) {
  const LLVMTypeRef halves = LLVMVectorType(LLVMInt16TypeInContext(context_), kHalves);
  std::array<LLVMValueRef, 4> bits{}, codes{};
  for (std::size_t i = 0; i < floats.size(); ++i) {
    bits[i] = LLVMBuildBitCast(builder_, floats[i], words_, "");
    codes[i] = call("weft_ordinary_f8e4m3_v", words_, {unary(RowOp::abs, floats[i])});
  }
  const LLVMValueRef magnitudes = bytes_of(low_halves(codes[0], codes[1]), low_halves(codes[2], codes[3]), 0x7f);
  std::array<LLVMValueRef, 2> signed_halves{};
  for (std::size_t i = 0; i < signed_halves.size(); ++i) {
    LLVMValueRef words = nullptr;
    for (const int buffer : sign_buffers) {
      const LLVMValueRef read = load_words(buffer, index, offset + static_cast<std::int64_t>(i * kHalves));
      words = words == nullptr ? read : LLVMBuildXor(builder_, words, read, "");
    }
    signed_halves[i] =
        words == nullptr ? high_halves(bits[2 * i], bits[2 * i + 1]) : LLVMBuildBitCast(builder_, words, halves, "");
  }
  // Narrowed with saturation, a half keeps its sign.
  const LLVMTypeRef byte = LLVMInt8TypeInContext(context_);
  const std::vector<LLVMValueRef> each(2 * kHalves, LLVMConstInt(byte, 0x80, false));
  const LLVMValueRef signs =
      LLVMBuildAnd(builder_, call_intrinsic("llvm.x86.avx2.packsswb", {}, {signed_halves[0], signed_halves[1]}),
                   LLVMConstVector(const_cast<LLVMValueRef*>(each.data()), 2 * kHalves), "");
  store_bytes(store, index, offset, LLVMBuildOr(builder_, magnitudes, signs, ""));
}

LLVMValueRef LlvmBuilder::pairs_variable() {
  return variable(LLVMConstNull(LLVMVectorType(LLVMInt16TypeInContext(context_), kHalves)));
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
