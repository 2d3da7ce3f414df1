// The part of LlvmBuilder that converts between floats and codes.

#include <fmt/core.h>

#include "codegen/llvm/llvm_builder.h"

namespace weft {

LLVMValueRef LlvmBuilder::encode(DType dtype, LLVMValueRef floats) {
  const LLVMTypeRef codes = as_wide_as(floats, element_type(dtype));
  if (dtype == DType::f16 && converts_halves_) {
    const LLVMTypeRef halves = as_wide_as(floats, LLVMHalfTypeInContext(context_));
    return LLVMBuildBitCast(builder_, LLVMBuildFPTrunc(builder_, floats, halves, ""), codes, "");
  }
  const bool is_in_low_bytes = dtype == DType::f4e2m1 && is_vector(floats);
  const std::string name = fmt::format("{}{}", is_in_low_bytes ? "to_words_of_" : "to_", dtype_text(dtype));
  const LLVMValueRef words = call_row_op(name, as_wide_as(floats, word_), {floats});
  return LLVMBuildTrunc(builder_, words, codes, "");
}

LLVMValueRef LlvmBuilder::encode_plain(DType dtype, LLVMValueRef floats) {
  if (dtype == DType::bf16) return encode_plain_bf16(floats);
  if (dtype == DType::i8) return encode_plain_i8(floats);
  if (!is_vector(floats)) return encode(dtype, floats);
  if (lanes_ == 16) return encode_magnitudes(dtype, floats);
  const LLVMValueRef words = call(fmt::format("weft_to_plain_{}_v", dtype_text(dtype)), words_, {floats});
  return LLVMBuildTrunc(builder_, words, as_wide_as(floats, element_type(dtype)), "");
}

// One instruction computes a magnitude and limits it to a number. A NaN becomes that number.
LLVMValueRef LlvmBuilder::held_magnitudes(DType dtype, LLVMValueRef floats) {
  constexpr unsigned kLessMagnitude = 0b1010;  // without a sign
  const LLVMValueRef most = splat(constant(dtype == DType::f4e2m1 ? 6 : 480, false));
  const LLVMValueRef every_lane = LLVMConstAllOnes(LLVMInt16TypeInContext(context_));
  const LLVMValueRef rounding_of_the_thread = LLVMConstInt(word_, 4, false);
  return call_intrinsic("llvm.x86.avx512.mask.range.ps.512", {},
                        {floats, most, LLVMConstInt(word_, kLessMagnitude, false), LLVMConstNull(floats_), every_lane,
                         rounding_of_the_thread});
}

LLVMValueRef LlvmBuilder::rounded_f8e4m3(LLVMValueRef floats) {
  if (lanes_ < 16) return call("weft_rounded_f8e4m3_v", floats_, {floats});
  return call("weft_rounded_f8e4m3_of_held_v", floats_, {floats, held_magnitudes(DType::f8e4m3, floats)});
}

LLVMValueRef LlvmBuilder::encode_magnitudes(DType dtype, LLVMValueRef floats) {
  const LLVMValueRef held = held_magnitudes(dtype, floats);
  const LLVMValueRef magnitudes = call(fmt::format("weft_ordinary_{}_v", dtype_text(dtype)), words_, {held});
  LLVMValueRef sign = nullptr;
  if (dtype == DType::f4e2m1) {
    const LLVMValueRef is_less = LLVMBuildFCmp(builder_, LLVMRealOLT, floats, LLVMConstNull(floats_), "");
    sign = LLVMBuildSelect(builder_, is_less, word_vector(0x8), word_vector(0), "");
  } else {
    const LLVMValueRef bits = LLVMBuildBitCast(builder_, floats, words_, "");
    sign = LLVMBuildAnd(builder_, LLVMBuildLShr(builder_, bits, word_vector(24), ""), word_vector(0x80), "");
  }
  return LLVMBuildTrunc(builder_, LLVMBuildOr(builder_, magnitudes, sign, ""), as_wide_as(floats, element_type(dtype)),
                        "");
}

LLVMValueRef LlvmBuilder::encode_plain_bf16(LLVMValueRef floats) {
  const auto word = [&](unsigned number) {
    const LLVMValueRef one = LLVMConstInt(word_, number, false);
    return is_vector(floats) ? splat(one) : one;
  };
  const LLVMValueRef bits = LLVMBuildBitCast(builder_, floats, as_wide_as(floats, word_), "");
  if (lanes_ == 16 && is_vector(floats)) {
    // Rounds half up, and then to the even number if the value was halfway. With masks this takes one operation less.
    const LLVMValueRef up = LLVMBuildAdd(builder_, bits, word(0x8000), "");
    const LLVMValueRef low = LLVMBuildAnd(builder_, up, word(0xffff), "");
    const LLVMValueRef is_middle = LLVMBuildICmp(builder_, LLVMIntEQ, low, word(0), "");
    const LLVMValueRef even = LLVMBuildAnd(builder_, up, word(0xfffeffff), "");
    const LLVMValueRef rounded = LLVMBuildSelect(builder_, is_middle, even, up, "");
    return LLVMBuildTrunc(builder_, LLVMBuildLShr(builder_, rounded, word(16), ""),
                          as_wide_as(floats, element_type(DType::bf16)), "");
  }
  const LLVMValueRef upper = LLVMBuildLShr(builder_, bits, word(16), "");
  const LLVMValueRef half = LLVMBuildAdd(builder_, LLVMBuildAnd(builder_, upper, word(1), ""), word(0x7fff), "");
  const LLVMValueRef rounded = LLVMBuildLShr(builder_, LLVMBuildAdd(builder_, bits, half, ""), word(16), "");
  return LLVMBuildTrunc(builder_, rounded, as_wide_as(floats, element_type(DType::bf16)), "");
}

// The processor's conversion rounds to nearest, as all arithmetic here does. For a NaN it returns the smallest integer,
// whose lowest byte is 0.
LLVMValueRef LlvmBuilder::encode_plain_i8(LLVMValueRef floats) {
  LLVMValueRef words = nullptr;
  if (lanes_ == 16) {
    const LLVMValueRef every_lane = LLVMConstAllOnes(LLVMInt16TypeInContext(context_));
    const LLVMValueRef rounding_of_the_thread = LLVMConstInt(word_, 4, false);
    words = call_intrinsic("llvm.x86.avx512.mask.cvtps2dq.512", {},
                           {floats, LLVMConstNull(words_), every_lane, rounding_of_the_thread});
  } else {
    words = call_intrinsic(lanes_ == 8 ? "llvm.x86.avx.cvt.ps2dq.256" : "llvm.x86.sse2.cvtps2dq", {}, {floats});
  }
  return LLVMBuildTrunc(builder_, words, as_wide_as(floats, element_type(DType::i8)), "");
}

LLVMValueRef LlvmBuilder::decode(DType dtype, LLVMValueRef codes) {
  const LLVMTypeRef floats = as_wide_as(codes, float_);
  if (dtype == DType::f16 && converts_halves_) {
    const LLVMTypeRef halves = as_wide_as(codes, LLVMHalfTypeInContext(context_));
    return LLVMBuildFPExt(builder_, LLVMBuildBitCast(builder_, codes, halves, ""), floats, "");
  }
  const LLVMValueRef words = LLVMBuildZExt(builder_, codes, as_wide_as(codes, word_), "");
  return call_row_op(fmt::format("from_{}", dtype_text(dtype)), floats, {words});
}

}  // namespace weft
