#include "codegen/llvm/llvm_builder.h"

#include <fmt/core.h>

#include "base/error.h"

namespace weft {
namespace {

constexpr unsigned kScratchAlignment = 16;

unsigned element_bytes(DType dtype) { return static_cast<unsigned>(dtype_info(dtype).block_bytes); }

}  // namespace

LlvmBuilder::LlvmBuilder(LLVMModuleRef module, int lanes, bool converts_halves)
    : module_(module),
      context_(LLVMGetModuleContext(module)),
      builder_(LLVMCreateBuilderInContext(context_)),
      lanes_(lanes),
      converts_halves_(converts_halves),
      float_(LLVMFloatTypeInContext(context_)),
      word_(LLVMInt32TypeInContext(context_)),
      long_(LLVMInt64TypeInContext(context_)),
      pointer_(LLVMPointerTypeInContext(context_, 0)),
      floats_(LLVMVectorType(float_, static_cast<unsigned>(lanes))),
      words_(LLVMVectorType(word_, static_cast<unsigned>(lanes))) {}

LlvmBuilder::~LlvmBuilder() { LLVMDisposeBuilder(builder_); }

LLVMValueRef LlvmBuilder::number(std::int64_t value) const {
  return LLVMConstInt(long_, static_cast<unsigned long long>(value), true);
}

LLVMTypeRef LlvmBuilder::element_type(DType dtype) const {
  return dtype == DType::f32 ? float_ : LLVMIntTypeInContext(context_, 8 * element_bytes(dtype));
}

bool LlvmBuilder::is_vector(LLVMValueRef value) const {
  return LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMVectorTypeKind;
}

void LlvmBuilder::begin(const RowProgram& program) {
  program_ = &program;
  LLVMTypeRef parameters[] = {pointer_, long_, long_, long_};
  const LLVMTypeRef type = LLVMFunctionType(LLVMVoidTypeInContext(context_), parameters, 4, false);
  function_ = LLVMAddFunction(module_, program.name().c_str(), type);
  const unsigned kind = LLVMGetEnumAttributeKindForName("nounwind", 8);
  LLVMAddAttributeAtIndex(function_, static_cast<LLVMAttributeIndex>(LLVMAttributeFunctionIndex),
                          LLVMCreateEnumAttribute(context_, kind, 0));
  const std::string width = std::to_string(32 * lanes_);
  for (const std::string name : {"prefer-vector-width", "min-legal-vector-width"})
    LLVMAddAttributeAtIndex(function_, static_cast<LLVMAttributeIndex>(LLVMAttributeFunctionIndex),
                            LLVMCreateStringAttribute(context_, name.data(), static_cast<unsigned>(name.size()),
                                                      width.data(), static_cast<unsigned>(width.size())));
  entry_ = LLVMAppendBasicBlockInContext(context_, function_, "entry");
  LLVMPositionBuilderAtEnd(builder_, entry_);
  std::vector<LLVMValueRef> bases;
  const std::size_t count = program.buffers.size() + (program.slots > 0 ? 1 : 0);
  for (std::size_t i = 0; i < count; ++i) {
    LLVMValueRef at = number(static_cast<std::int64_t>(i));
    bases.push_back(LLVMBuildLoad2(builder_, pointer_,
                                   LLVMBuildGEP2(builder_, pointer_, LLVMGetParam(function_, 0), &at, 1, ""), ""));
  }
  scratch_ = bases.empty() ? nullptr : bases.back();
  const LLVMValueRef row = begin_loop(LLVMGetParam(function_, 1), LLVMGetParam(function_, 2), 1, "row");
  rows_.clear();
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    const RowBuffer& buffer = program.buffers[i];
    LLVMValueRef offset = LLVMBuildMul(builder_, row, number(buffer.row_stride), "");
    rows_.push_back(LLVMBuildGEP2(builder_, element_type(buffer.dtype), bases[i], &offset, 1, ""));
  }
}

void LlvmBuilder::end() {
  end_loop();
  LLVMBuildRetVoid(builder_);
}

LLVMValueRef LlvmBuilder::begin_loop(LLVMValueRef first, LLVMValueRef last, std::int64_t step, const char* name) {
  const LLVMBasicBlockRef before = LLVMGetInsertBlock(builder_);
  const LLVMBasicBlockRef head = LLVMAppendBasicBlockInContext(context_, function_, name);
  const LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(context_, function_, "body");
  const LLVMBasicBlockRef exit = LLVMAppendBasicBlockInContext(context_, function_, "exit");
  LLVMBuildBr(builder_, head);
  LLVMPositionBuilderAtEnd(builder_, head);
  LLVMValueRef index = LLVMBuildPhi(builder_, long_, name);
  LLVMValueRef start = first;
  LLVMBasicBlockRef from = before;
  LLVMAddIncoming(index, &start, &from, 1);
  LLVMBuildCondBr(builder_, LLVMBuildICmp(builder_, LLVMIntSLT, index, last, ""), body, exit);
  LLVMPositionBuilderAtEnd(builder_, body);
  loops_.push_back({head, exit, index, step});
  return index;
}

void LlvmBuilder::end_loop() {
  const Loop loop = loops_.back();
  loops_.pop_back();
  LLVMValueRef next = LLVMBuildNSWAdd(builder_, loop.index, number(loop.step), "");
  LLVMBasicBlockRef from = LLVMGetInsertBlock(builder_);
  LLVMAddIncoming(loop.index, &next, &from, 1);
  LLVMBuildBr(builder_, loop.head);
  LLVMPositionBuilderAtEnd(builder_, loop.exit);
}

LlvmBuilder::Index LlvmBuilder::begin_columns(std::int64_t first, std::int64_t last, std::int64_t step) {
  return {begin_loop(number(first), number(last), step, "column"), 0};
}

void LlvmBuilder::end_columns() { end_loop(); }

LLVMValueRef LlvmBuilder::constant(double value, bool is_wide) {
  return LLVMConstReal(is_wide ? LLVMDoubleTypeInContext(context_) : float_, value);
}

LLVMValueRef LlvmBuilder::splat(LLVMValueRef one) {
  if (LLVMIsConstant(one)) {
    std::vector<LLVMValueRef> each(static_cast<std::size_t>(lanes_), one);
    return LLVMConstVector(each.data(), static_cast<unsigned>(lanes_));
  }
  const LLVMTypeRef type = LLVMVectorType(LLVMTypeOf(one), static_cast<unsigned>(lanes_));
  const LLVMValueRef first =
      LLVMBuildInsertElement(builder_, LLVMGetPoison(type), one, LLVMConstInt(word_, 0, false), "");
  return LLVMBuildShuffleVector(builder_, first, LLVMGetPoison(type), LLVMConstNull(words_), "");
}

LLVMValueRef LlvmBuilder::like(LLVMValueRef other, float value) {
  const LLVMValueRef one = constant(static_cast<double>(value), false);
  return is_vector(other) ? splat(one) : one;
}

LLVMValueRef LlvmBuilder::call(const std::string& name, LLVMTypeRef result,
                               const std::vector<LLVMValueRef>& arguments) {
  const LLVMValueRef callee = LLVMGetNamedFunction(module_, name.c_str());
  CHECK(callee != nullptr, "the prelude has no {}", name);
  std::vector<LLVMTypeRef> types;
  for (LLVMValueRef argument : arguments) types.push_back(LLVMTypeOf(argument));
  const LLVMTypeRef type = LLVMFunctionType(result, types.data(), static_cast<unsigned>(types.size()), false);
  return LLVMBuildCall2(builder_, type, callee, const_cast<LLVMValueRef*>(arguments.data()),
                        static_cast<unsigned>(arguments.size()), "");
}

LLVMValueRef LlvmBuilder::call_row_op(const std::string& op, LLVMTypeRef result,
                                      const std::vector<LLVMValueRef>& arguments) {
  return call(fmt::format("weft_{}_{}", op, is_vector(arguments[0]) ? "v" : "s"), result, arguments);
}

LLVMValueRef LlvmBuilder::call_intrinsic(const char* name, const std::vector<LLVMTypeRef>& types,
                                         const std::vector<LLVMValueRef>& arguments) {
  const unsigned id = LLVMLookupIntrinsicID(name, std::char_traits<char>::length(name));
  const LLVMValueRef callee =
      LLVMGetIntrinsicDeclaration(module_, id, const_cast<LLVMTypeRef*>(types.data()), types.size());
  const LLVMTypeRef type = LLVMIntrinsicGetType(context_, id, const_cast<LLVMTypeRef*>(types.data()), types.size());
  return LLVMBuildCall2(builder_, type, callee, const_cast<LLVMValueRef*>(arguments.data()),
                        static_cast<unsigned>(arguments.size()), "");
}

LLVMValueRef LlvmBuilder::unary(RowOp op, LLVMValueRef a) {
  if (op == RowOp::neg) return LLVMBuildFNeg(builder_, a, "");
  if (op == RowOp::widen) return LLVMBuildFPExt(builder_, a, as_wide_as(a, LLVMDoubleTypeInContext(context_)), "");
  if (op == RowOp::narrow) return LLVMBuildFPTrunc(builder_, a, as_wide_as(a, float_), "");
  return call_row_op(std::string(row_op_text(op)), LLVMTypeOf(a), {a});
}

LLVMValueRef LlvmBuilder::binary(RowOp op, LLVMValueRef a, LLVMValueRef b) {
  if (is_vector(a) && !is_vector(b)) b = splat(b);
  switch (op) {
    case RowOp::add:
      return LLVMBuildFAdd(builder_, a, b, "");
    case RowOp::sub:
      return LLVMBuildFSub(builder_, a, b, "");
    case RowOp::mul:
      return LLVMBuildFMul(builder_, a, b, "");
    case RowOp::div:
      return LLVMBuildFDiv(builder_, a, b, "");
    default:
      return call_row_op(std::string(row_op_text(op)), LLVMTypeOf(a), {a, b});
  }
}

LLVMValueRef LlvmBuilder::replace_zero(LLVMValueRef a, float value, LLVMValueRef b) {
  return call_row_op("replace_zero", LLVMTypeOf(a), {a, like(a, value), b});
}

LLVMValueRef LlvmBuilder::select_at_most(LLVMValueRef a, float value, LLVMValueRef b, LLVMValueRef c) {
  return call_row_op("select_at_most", LLVMTypeOf(a), {a, like(a, value), b, c});
}

LLVMTypeRef LlvmBuilder::as_wide_as(LLVMValueRef value, LLVMTypeRef type) const {
  return is_vector(value) ? LLVMVectorType(type, static_cast<unsigned>(lanes_)) : type;
}

LLVMValueRef LlvmBuilder::encode(DType dtype, LLVMValueRef floats) {
  const LLVMTypeRef codes = as_wide_as(floats, element_type(dtype));
  if (dtype == DType::f16 && converts_halves_) {
    const LLVMTypeRef halves = as_wide_as(floats, LLVMHalfTypeInContext(context_));
    return LLVMBuildBitCast(builder_, LLVMBuildFPTrunc(builder_, floats, halves, ""), codes, "");
  }
  const LLVMValueRef words = call_row_op(fmt::format("to_{}", dtype_text(dtype)), as_wide_as(floats, word_), {floats});
  return LLVMBuildTrunc(builder_, words, codes, "");
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

LLVMValueRef LlvmBuilder::lane_mask(int count) {
  std::vector<LLVMValueRef> lanes;
  for (int i = 0; i < lanes_; ++i)
    lanes.push_back(LLVMConstInt(LLVMInt1TypeInContext(context_), i < count ? 1 : 0, false));
  return LLVMConstVector(lanes.data(), static_cast<unsigned>(lanes_));
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
  return LLVMBuildGEP2(builder_, element_type(at.dtype), rows_[static_cast<std::size_t>(buffer)], &place, 1, "");
}

LLVMValueRef LlvmBuilder::load(int buffer, Index index, std::int64_t offset, int count) {
  const RowBuffer& at = program_->buffers[static_cast<std::size_t>(buffer)];
  const LLVMTypeRef type = LLVMVectorType(element_type(at.dtype), static_cast<unsigned>(lanes_));
  const LLVMValueRef alignment = LLVMConstInt(word_, element_bytes(at.dtype), false);
  if (at.placement.stride != 1) {
    const LLVMValueRef from = address(buffer, places_of(at.placement, index, offset, 0));
    return call_intrinsic("llvm.masked.gather", {type, LLVMTypeOf(from)},
                          {from, alignment, lane_mask(count), LLVMConstNull(type)});
  }
  const LLVMValueRef from = address(buffer, place_of(at.placement, index, offset, 0));
  if (count < lanes_)
    return call_intrinsic("llvm.masked.load", {type, pointer_},
                          {from, alignment, lane_mask(count), LLVMConstNull(type)});
  const LLVMValueRef value = LLVMBuildLoad2(builder_, type, from, "");
  LLVMSetAlignment(value, element_bytes(at.dtype));
  return value;
}

void LlvmBuilder::store(const RowStore& store, Index index, std::int64_t offset, LLVMValueRef codes, int count) {
  const DType dtype = program_->buffers[static_cast<std::size_t>(store.buffer)].dtype;
  const LLVMValueRef alignment = LLVMConstInt(word_, element_bytes(dtype), false);
  if (store.placement.stride != 1) {
    const LLVMValueRef to = address(store.buffer, places_of(store.placement, index, offset, store.offset));
    call_intrinsic("llvm.masked.scatter", {LLVMTypeOf(codes), LLVMTypeOf(to)},
                   {codes, to, alignment, lane_mask(count)});
    return;
  }
  const LLVMValueRef to = address(store.buffer, place_of(store.placement, index, offset, store.offset));
  if (count < lanes_) {
    call_intrinsic("llvm.masked.store", {LLVMTypeOf(codes), pointer_}, {codes, to, alignment, lane_mask(count)});
    return;
  }
  LLVMSetAlignment(LLVMBuildStore(builder_, codes, to), element_bytes(dtype));
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

void LlvmBuilder::store_one(int buffer, Index index, std::int64_t offset, std::int64_t divisor, LLVMValueRef code) {
  LLVMBuildStore(builder_, code, one_address(buffer, index, offset, divisor));
}

LLVMValueRef LlvmBuilder::slot_address(int slot, Index index, std::int64_t offset) {
  LLVMValueRef at = index_value(index, offset + slot * program_->slot_floats());
  return LLVMBuildGEP2(builder_, float_, scratch_, &at, 1, "");
}

LLVMValueRef LlvmBuilder::load_slot(int slot, Index index, std::int64_t offset) {
  const LLVMValueRef value = LLVMBuildLoad2(builder_, floats_, slot_address(slot, index, offset), "");
  LLVMSetAlignment(value, kScratchAlignment);
  return value;
}

void LlvmBuilder::store_slot(int slot, Index index, std::int64_t offset, LLVMValueRef vector) {
  LLVMSetAlignment(LLVMBuildStore(builder_, vector, slot_address(slot, index, offset)), kScratchAlignment);
}

LLVMValueRef LlvmBuilder::variable(LLVMValueRef start) {
  const LLVMBasicBlockRef here = LLVMGetInsertBlock(builder_);
  LLVMPositionBuilderBefore(builder_, LLVMGetFirstInstruction(entry_));
  const LLVMValueRef variable = LLVMBuildAlloca(builder_, LLVMTypeOf(start), "");
  LLVMPositionBuilderAtEnd(builder_, here);
  set(variable, start);
  return variable;
}

LLVMValueRef LlvmBuilder::get(LLVMValueRef variable) {
  return LLVMBuildLoad2(builder_, LLVMGetAllocatedType(variable), variable, "");
}

void LlvmBuilder::set(LLVMValueRef variable, LLVMValueRef value) { LLVMBuildStore(builder_, value, variable); }

LLVMValueRef LlvmBuilder::first_lanes(LLVMValueRef vector, int count, float rest) {
  return LLVMBuildSelect(builder_, lane_mask(count), vector, splat(constant(static_cast<double>(rest), false)), "");
}

// Lanes [from, from + width) of a vector.
LLVMValueRef LlvmBuilder::half(LLVMValueRef vector, unsigned from, unsigned width) {
  std::vector<LLVMValueRef> lanes;
  for (unsigned i = 0; i < width; ++i) lanes.push_back(LLVMConstInt(word_, from + i, false));
  return LLVMBuildShuffleVector(builder_, vector, LLVMGetPoison(LLVMTypeOf(vector)),
                                LLVMConstVector(lanes.data(), width), "");
}

LLVMValueRef LlvmBuilder::sum(const std::vector<LLVMValueRef>& vectors) {
  std::vector<LLVMValueRef> partial = vectors;
  for (std::size_t width = partial.size() / 2; width > 0; width /= 2)
    for (std::size_t i = 0; i < width; ++i) partial[i] = LLVMBuildFAdd(builder_, partial[i], partial[i + width], "");
  LLVMValueRef rest = partial[0];
  for (unsigned width = static_cast<unsigned>(lanes_) / 2; width > 0; width /= 2)
    rest = LLVMBuildFAdd(builder_, half(rest, 0, width), half(rest, width, width), "");
  return LLVMBuildExtractElement(builder_, rest, LLVMConstInt(word_, 0, false), "");
}

LLVMValueRef LlvmBuilder::larger(LLVMValueRef a, LLVMValueRef b) {
  return call_row_op("larger", LLVMTypeOf(a), {a, b});
}

LLVMValueRef LlvmBuilder::largest(const std::vector<LLVMValueRef>& vectors) {
  std::vector<LLVMValueRef> partial = vectors;
  while (partial.size() > 1) {
    std::vector<LLVMValueRef> next;
    for (std::size_t i = 0; i + 1 < partial.size(); i += 2) next.push_back(larger(partial[i], partial[i + 1]));
    if (partial.size() % 2 == 1) next.push_back(partial.back());
    partial = std::move(next);
  }
  LLVMValueRef rest = partial[0];
  // Lanes turn, so that each step still has a whole vector, as the prelude's functions take it.
  for (unsigned width = static_cast<unsigned>(lanes_) / 2; width > 0; width /= 2) {
    std::vector<LLVMValueRef> lanes;
    for (unsigned i = 0; i < static_cast<unsigned>(lanes_); ++i)
      lanes.push_back(LLVMConstInt(word_, (i + width) % static_cast<unsigned>(lanes_), false));
    const LLVMValueRef turned = LLVMBuildShuffleVector(
        builder_, rest, LLVMGetPoison(floats_), LLVMConstVector(lanes.data(), static_cast<unsigned>(lanes_)), "");
    rest = larger(rest, turned);
  }
  return LLVMBuildExtractElement(builder_, rest, LLVMConstInt(word_, 0, false), "");
}

}  // namespace weft
