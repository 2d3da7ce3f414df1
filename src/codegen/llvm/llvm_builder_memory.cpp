// LlvmBuilder's memory accesses: the addresses of columns, and loads and stores of whole vectors or their first lanes.

#include <algorithm>

#include "codegen/llvm/llvm_builder.h"

namespace weft {
namespace {

constexpr unsigned kScratchAlignment = 16;

unsigned element_bytes(DType dtype) { return static_cast<unsigned>(dtype_info(dtype).block_bytes); }

}  // namespace

LLVMValueRef LlvmBuilder::lane_mask(int count, int width) {
  std::vector<LLVMValueRef> lanes;
  for (int i = 0; i < width; ++i)
    lanes.push_back(LLVMConstInt(LLVMInt1TypeInContext(context_), i < count ? 1 : 0, false));
  return LLVMConstVector(lanes.data(), static_cast<unsigned>(width));
}

LLVMValueRef LlvmBuilder::index_value(Index index, std::int64_t offset) {
  if (index.base == nullptr) return number(index.number + offset);
  return LLVMBuildNSWAdd(builder_, index.base, number(index.number + offset), "");
}

LLVMValueRef LlvmBuilder::place_of(const RowPlacement& placement, Index index, std::int64_t offset,
                                   std::int64_t begin) {
  LLVMValueRef column = index_value(index, offset);
  LLVMValueRef inside = column, run = nullptr;
  if (placement.run > 0) {
    run = LLVMBuildUDiv(builder_, column, number(placement.run), "");
    inside = LLVMBuildURem(builder_, column, number(placement.run), "");
  }
  LLVMValueRef place = LLVMBuildMul(builder_, inside, number(placement.stride), "");
  if (run != nullptr)
    place = LLVMBuildAdd(builder_, place, LLVMBuildMul(builder_, run, number(placement.run_stride), ""), "");
  return LLVMBuildAdd(builder_, place, number(begin), "");
}

// Vectors never straddle runs.
LLVMValueRef LlvmBuilder::places_of(const RowPlacement& placement, Index index, std::int64_t offset,
                                    std::int64_t begin) {
  std::vector<LLVMValueRef> steps;
  for (int i = 0; i < lanes_; ++i) steps.push_back(number(i * placement.stride));
  return LLVMBuildAdd(builder_, splat(place_of(placement, index, offset, begin)),
                      LLVMConstVector(steps.data(), static_cast<unsigned>(lanes_)), "");
}

LLVMValueRef LlvmBuilder::address(int buffer, LLVMValueRef place) {
  const RowBuffer& at = program_->buffers[static_cast<std::size_t>(buffer)];
  if (at.elements_of_unit() > 1) place = LLVMBuildUDiv(builder_, place, number(at.elements_of_unit()), "");
  return LLVMBuildGEP2(builder_, element_type(at.dtype), rows_[static_cast<std::size_t>(buffer)], &place, 1, "");
}

LLVMValueRef LlvmBuilder::load(int buffer, Index index, std::int64_t offset, int count) {
  const RowBuffer& at = program_->buffers[static_cast<std::size_t>(buffer)];
  const LLVMTypeRef type = LLVMVectorType(element_type(at.dtype), static_cast<unsigned>(lanes_));
  const LLVMValueRef alignment = LLVMConstInt(word_, element_bytes(at.dtype), false);
  if (has_neighbour(buffer) && count == lanes_) {
    const LLVMValueRef words = load_words(buffer, index, offset, at.interleaved_with >= 0 ? -1 : 0);
    const LLVMValueRef code = at.interleaved_with >= 0 ? LLVMBuildLShr(builder_, words, word_vector(16), "") : words;
    return LLVMBuildTrunc(builder_, code, type, "");
  }
  if (at.placement.stride == 2 && count == lanes_)
    return load_every_other(type, address(buffer, place_of(at.placement, index, offset, 0)), element_bytes(at.dtype));
  if (at.placement.stride != 1) {
    const LLVMValueRef from = address(buffer, places_of(at.placement, index, offset, 0));
    return call_intrinsic("llvm.masked.gather", {type, LLVMTypeOf(from)},
                          {from, alignment, lane_mask(count, lanes_), LLVMConstNull(type)});
  }
  const LLVMValueRef from = address(buffer, place_of(at.placement, index, offset, 0));
  if (count < lanes_)
    return call_intrinsic("llvm.masked.load", {type, pointer_},
                          {from, alignment, lane_mask(count, lanes_), LLVMConstNull(type)});
  const LLVMValueRef value = LLVMBuildLoad2(builder_, type, from, "");
  LLVMSetAlignment(value, element_bytes(at.dtype));
  return value;
}

bool LlvmBuilder::has_neighbour(int buffer) const {
  const std::vector<RowBuffer>& buffers = program_->buffers;
  return buffers[static_cast<std::size_t>(buffer)].interleaved_with >= 0 ||
         std::any_of(buffers.begin(), buffers.end(),
                     [&](const RowBuffer& other) { return other.interleaved_with == buffer; });
}

void LlvmBuilder::store(const RowStore& store, Index index, std::int64_t offset, LLVMValueRef codes, int count) {
  const DType dtype = program_->buffers[static_cast<std::size_t>(store.buffer)].dtype;
  const LLVMValueRef alignment = LLVMConstInt(word_, element_bytes(dtype), false);
  if (store.placement.stride != 1) {
    const LLVMValueRef to = address(store.buffer, places_of(store.placement, index, offset, store.offset));
    call_intrinsic("llvm.masked.scatter", {LLVMTypeOf(codes), LLVMTypeOf(to)},
                   {codes, to, alignment, lane_mask(count, lanes_)});
    return;
  }
  const LLVMValueRef to = address(store.buffer, place_of(store.placement, index, offset, store.offset));
  if (dtype == DType::f4e2m1) return store_vector(joined_nibbles(codes), to, 1, count / 2);
  store_vector(codes, to, element_bytes(dtype), count);
}

// Packs each two adjacent codes, which are bytes or the low bytes of words, into one byte.
LLVMValueRef LlvmBuilder::joined_nibbles(LLVMValueRef codes) {
  const unsigned bits = is_of_words(codes) ? 32 : 8;
  const LLVMValueRef each = is_of_words(codes) ? LLVMGetOperand(codes, 0) : codes;
  const auto count = static_cast<unsigned>(lanes_ / 2);
  const LLVMTypeRef pair = LLVMIntTypeInContext(context_, 2 * bits), pairs = LLVMVectorType(pair, count);
  const std::vector<LLVMValueRef> shift(count, LLVMConstInt(pair, bits - 4, false));
  const LLVMValueRef both = LLVMBuildBitCast(builder_, each, pairs, "");
  LLVMValueRef second =
      LLVMBuildLShr(builder_, both, LLVMConstVector(const_cast<LLVMValueRef*>(shift.data()), count), "");
  const std::vector<LLVMValueRef> mask(count, LLVMConstInt(pair, 0xf0, false));
  second = LLVMBuildAnd(builder_, second, LLVMConstVector(const_cast<LLVMValueRef*>(mask.data()), count), "");
  return LLVMBuildTrunc(builder_, LLVMBuildOr(builder_, both, second, ""),
                        LLVMVectorType(LLVMInt8TypeInContext(context_), count), "");
}

LLVMValueRef LlvmBuilder::nibbles_of_pairs(LLVMValueRef even, LLVMValueRef odd) {
  const LLVMTypeRef bytes = LLVMTypeOf(even);
  const bool are_words = is_of_words(even) && is_of_words(odd);
  if (are_words) even = LLVMGetOperand(even, 0), odd = LLVMGetOperand(odd, 0);
  const LLVMValueRef four = splat(LLVMConstInt(LLVMGetElementType(LLVMTypeOf(odd)), 4, false));
  const LLVMValueRef both = LLVMBuildOr(builder_, even, LLVMBuildShl(builder_, odd, four, ""), "");
  return are_words ? LLVMBuildTrunc(builder_, both, bytes, "") : both;
}

void LlvmBuilder::store_vector(LLVMValueRef codes, LLVMValueRef to, unsigned alignment, int count) {
  const auto width = static_cast<int>(LLVMGetVectorSize(LLVMTypeOf(codes)));
  if (count == width) {
    LLVMSetAlignment(LLVMBuildStore(builder_, codes, to), alignment);
  } else {
    call_intrinsic("llvm.masked.store", {LLVMTypeOf(codes), pointer_},
                   {codes, to, LLVMConstInt(word_, alignment, false), lane_mask(count, width)});
  }
}

// Reads only the requested elements and those between them.
LLVMValueRef LlvmBuilder::load_every_other(LLVMTypeRef type, LLVMValueRef from, unsigned alignment) {
  LLVMValueRef ahead = number(lanes_ - 1);
  const LLVMValueRef later = LLVMBuildGEP2(builder_, LLVMGetElementType(type), from, &ahead, 1, "");
  std::vector<LLVMValueRef> halves;
  for (const LLVMValueRef at : {from, later}) {
    halves.push_back(LLVMBuildLoad2(builder_, type, at, ""));
    LLVMSetAlignment(halves.back(), alignment);
  }
  std::vector<int> lanes;
  for (int i = 0; i < lanes_; ++i) lanes.push_back(2 * i < lanes_ ? 2 * i : 2 * i + 1);
  return shuffle(halves[0], halves[1], lanes);
}

void LlvmBuilder::store_pairs(const RowStore& store, Index index, std::int64_t offset, LLVMValueRef first,
                              LLVMValueRef second, int count) {
  const DType dtype = program_->buffers[static_cast<std::size_t>(store.buffer)].dtype;
  LLVMValueRef to = address(store.buffer, place_of(store.placement, index, offset, store.offset));
  if (dtype == DType::f4e2m1) return store_vector(nibbles_of_pairs(first, second), to, 1, lanes_);
  if (dtype != DType::f32 && count == lanes_) {
    const LLVMValueRef words = words_of_pairs(first, second, 8 * element_bytes(dtype));
    LLVMSetAlignment(LLVMBuildStore(builder_, words, to), element_bytes(dtype));
    return;
  }
  for (int begin = 0; begin < 2 * count; begin += lanes_) {
    std::vector<int> lanes;
    for (int i = begin; i < begin + lanes_; ++i) lanes.push_back(i / 2 + i % 2 * lanes_);
    LLVMValueRef after = number(begin);
    store_vector(shuffle(first, second, lanes), LLVMBuildGEP2(builder_, element_type(dtype), to, &after, 1, ""),
                 element_bytes(dtype), std::min(lanes_, 2 * count - begin));
  }
}

LLVMValueRef LlvmBuilder::words_of_pairs(LLVMValueRef even, LLVMValueRef odd, unsigned bits) {
  const auto count = static_cast<unsigned>(lanes_);
  if (bits == 8 && lanes_ == 16 && is_of_words(even) && is_of_words(odd)) {
    // The 32-bit words are joined first and narrowed together. Without the intrinsic LLVM would narrow both before.
    const LLVMValueRef high = LLVMBuildShl(builder_, LLVMGetOperand(odd, 0), splat(LLVMConstInt(word_, 8, false)), "");
    const LLVMValueRef low =
        LLVMBuildAnd(builder_, LLVMGetOperand(even, 0), splat(LLVMConstInt(word_, 255, false)), "");
    const LLVMTypeRef halves = LLVMVectorType(LLVMInt16TypeInContext(context_), count);
    return call_intrinsic("llvm.x86.avx512.mask.pmov.dw.512", {},
                          {LLVMBuildOr(builder_, high, low, ""), LLVMConstNull(halves),
                           LLVMConstAllOnes(LLVMInt16TypeInContext(context_))});
  }
  const LLVMTypeRef words = LLVMVectorType(LLVMIntTypeInContext(context_, 2 * bits), count);
  const LLVMValueRef width = LLVMConstInt(LLVMIntTypeInContext(context_, 2 * bits), bits, false);
  const LLVMValueRef high = LLVMBuildShl(builder_, LLVMBuildZExt(builder_, odd, words, ""), splat(width), "");
  return LLVMBuildOr(builder_, LLVMBuildZExt(builder_, even, words, ""), high, "");
}

std::pair<LLVMValueRef, LLVMValueRef> LlvmBuilder::load_pairs(int buffer, Index index, std::int64_t offset) {
  const RowBuffer& at = program_->buffers[static_cast<std::size_t>(buffer)];
  const unsigned bits = 8 * element_bytes(at.dtype);
  const LLVMTypeRef word = LLVMIntTypeInContext(context_, 2 * bits);
  const LLVMValueRef words = LLVMBuildLoad2(builder_, LLVMVectorType(word, static_cast<unsigned>(lanes_)),
                                            address(buffer, place_of(at.placement, index, offset, 0)), "");
  LLVMSetAlignment(words, element_bytes(at.dtype));
  const LLVMValueRef high = LLVMBuildLShr(builder_, words, splat(LLVMConstInt(word, bits, false)), "");
  const LLVMTypeRef codes = LLVMVectorType(element_type(at.dtype), static_cast<unsigned>(lanes_));
  return {LLVMBuildTrunc(builder_, words, codes, ""), LLVMBuildTrunc(builder_, high, codes, "")};
}

std::pair<LLVMValueRef, LLVMValueRef> LlvmBuilder::joined_pairs(LLVMValueRef even, LLVMValueRef odd) {
  std::vector<int> lanes;
  for (int i = 0; i < 2 * lanes_; ++i) lanes.push_back(i / 2 + i % 2 * lanes_);
  const auto middle = lanes.begin() + lanes_;
  return {shuffle(even, odd, {lanes.begin(), middle}), shuffle(even, odd, {middle, lanes.end()})};
}

void LlvmBuilder::prefetch(LLVMValueRef from, Cache into) {
  constexpr unsigned kReads = 0, kData = 1;
  const unsigned locality = into == Cache::first ? 3 : 2;
  call_intrinsic("llvm.prefetch", {pointer_},
                 {from, LLVMConstInt(word_, kReads, false), LLVMConstInt(word_, locality, false),
                  LLVMConstInt(word_, kData, false)});
}

void LlvmBuilder::prefetch_ahead(int buffer, Index index, std::int64_t ahead, std::int64_t offset) {
  const RowBuffer& at = program_->buffers[static_cast<std::size_t>(buffer)];
  LLVMValueRef place = place_of(at.placement, index, ahead + offset, 0);
  if (const std::int64_t gap = at.row_stride - at.placement.of(program_->columns); gap != 0) {
    const LLVMValueRef is_in_next_row =
        LLVMBuildICmp(builder_, LLVMIntSGE, index_value(index, ahead), number(program_->columns), "");
    place = LLVMBuildAdd(builder_, place, LLVMBuildSelect(builder_, is_in_next_row, number(gap), number(0), ""), "");
  }
  prefetch(address(buffer, place), Cache::first);
}

void LlvmBuilder::prefetch_next(int buffer, Index index, std::int64_t divisor, std::int64_t offset) {
  const RowBuffer& at = program_->buffers[static_cast<std::size_t>(buffer)];
  const Index divided{LLVMBuildUDiv(builder_, index_value(index, 0), number(divisor), ""), 0};
  prefetch(address(buffer, place_of(at.placement, divided, offset, at.row_stride)), Cache::second);
}

void LlvmBuilder::prefetch_store(const RowStore& store, Index index, std::int64_t offset) {
  prefetch(address(store.buffer, place_of(store.placement, index, offset, store.offset)), Cache::second);
}

LLVMValueRef LlvmBuilder::one_address(int buffer, Index index, std::int64_t offset, std::int64_t divisor) {
  LLVMValueRef at = LLVMBuildUDiv(builder_, index_value(index, offset), number(divisor), "");
  const DType dtype = program_->buffers[static_cast<std::size_t>(buffer)].dtype;
  return LLVMBuildGEP2(builder_, element_type(dtype), rows_[static_cast<std::size_t>(buffer)], &at, 1, "");
}

LLVMValueRef LlvmBuilder::load_one(int buffer, Index index, std::int64_t offset, std::int64_t divisor) {
  const LLVMTypeRef type = element_type(program_->buffers[static_cast<std::size_t>(buffer)].dtype);
  return LLVMBuildLoad2(builder_, type, one_address(buffer, index, offset, divisor), "");
}

void LlvmBuilder::store_one(int buffer, LLVMValueRef code) {
  LLVMBuildStore(builder_, code, one_address(buffer, at(0), 0, 1));
}

LLVMValueRef LlvmBuilder::slot_address(int slot, Index index, std::int64_t offset, std::int64_t divisor) {
  LLVMValueRef at = index_value(index, offset), begin = number(program_->slots[static_cast<std::size_t>(slot)]);
  if (divisor != 1) at = LLVMBuildUDiv(builder_, at, number(divisor), "");
  const LLVMValueRef first = LLVMBuildGEP2(builder_, float_, scratch_, &begin, 1, "");
  return LLVMBuildGEP2(builder_, float_, first, &at, 1, "");
}

LLVMValueRef LlvmBuilder::load_one_of_slot(int slot, Index index, std::int64_t offset, std::int64_t divisor) {
  return LLVMBuildLoad2(builder_, float_, slot_address(slot, index, offset, divisor), "");
}

void LlvmBuilder::store_one_of_slot(int slot, Index index, std::int64_t offset, std::int64_t divisor,
                                    LLVMValueRef one) {
  LLVMBuildStore(builder_, one, slot_address(slot, index, offset, divisor));
}

LLVMValueRef LlvmBuilder::load_slot(int slot, Index index, std::int64_t offset) {
  const LLVMValueRef value = LLVMBuildLoad2(builder_, floats_, slot_address(slot, index, offset), "");
  LLVMSetAlignment(value, kScratchAlignment);
  return value;
}

void LlvmBuilder::store_slot(int slot, Index index, std::int64_t offset, LLVMValueRef vector) {
  LLVMSetAlignment(LLVMBuildStore(builder_, vector, slot_address(slot, index, offset)), kScratchAlignment);
}

}  // namespace weft
