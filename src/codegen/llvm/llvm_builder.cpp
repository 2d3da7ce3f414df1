#include "codegen/llvm/llvm_builder.h"

#include <string>
#include <utility>

#include <fmt/core.h>

#include "base/error.h"

namespace weft {

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
      words_(LLVMVectorType(word_, static_cast<unsigned>(lanes))),
      halves_(LLVMVectorType(LLVMInt16TypeInContext(context_), 2 * static_cast<unsigned>(lanes))) {}

LlvmBuilder::~LlvmBuilder() { LLVMDisposeBuilder(builder_); }

LLVMValueRef LlvmBuilder::number(std::int64_t value) const {
  return LLVMConstInt(long_, static_cast<unsigned long long>(value), true);
}

LLVMTypeRef LlvmBuilder::element_type(DType dtype) const {
  return dtype == DType::f32 ? float_
                             : LLVMIntTypeInContext(context_, 8 * static_cast<unsigned>(dtype_info(dtype).block_bytes));
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
  // Without stackrealign half of all spilled vectors would cross a cache line.
  for (const auto& [name, value] : {std::pair<std::string, std::string>{"prefer-vector-width", width},
                                    {"min-legal-vector-width", width},
                                    {"stackrealign", ""}})
    LLVMAddAttributeAtIndex(function_, static_cast<LLVMAttributeIndex>(LLVMAttributeFunctionIndex),
                            LLVMCreateStringAttribute(context_, name.data(), static_cast<unsigned>(name.size()),
                                                      value.data(), static_cast<unsigned>(value.size())));
  entry_ = LLVMAppendBasicBlockInContext(context_, function_, "entry");
  LLVMPositionBuilderAtEnd(builder_, entry_);
  std::vector<LLVMValueRef> bases;
  const std::size_t count = program.buffers.size() + (program.slots.empty() ? 0 : 1);
  for (std::size_t i = 0; i < count; ++i) {
    LLVMValueRef at = number(static_cast<std::int64_t>(i));
    bases.push_back(LLVMBuildLoad2(builder_, pointer_,
                                   LLVMBuildGEP2(builder_, pointer_, LLVMGetParam(function_, 0), &at, 1, ""), ""));
  }
  scratch_ = bases.empty() ? nullptr : bases.back();
  LLVMValueRef row = begin_loop(LLVMGetParam(function_, 1), LLVMGetParam(function_, 2), 1, "row"), part = nullptr;
  if (program.tuning.parts > 1) {
    part = LLVMBuildSRem(builder_, row, number(program.tuning.parts), "");
    row = LLVMBuildSDiv(builder_, row, number(program.tuning.parts), "");
  }
  rows_.clear();
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    const RowBuffer& buffer = program.buffers[i];
    const std::int64_t unit = buffer.elements_of_unit();
    LLVMValueRef offset = LLVMBuildMul(builder_, row_of(buffer, row, bases), number(buffer.row_stride / unit), "");
    if (buffer.begin > 0) offset = LLVMBuildAdd(builder_, offset, number(buffer.begin), "");
    if (part != nullptr)
      offset = LLVMBuildAdd(builder_, offset, LLVMBuildMul(builder_, part, number(buffer.part_stride / unit), ""), "");
    rows_.push_back(LLVMBuildGEP2(builder_, element_type(buffer.dtype), bases[i], &offset, 1, ""));
  }
}

LLVMValueRef LlvmBuilder::row_of(const RowBuffer& buffer, LLVMValueRef row, const std::vector<LLVMValueRef>& bases) {
  if (buffer.numbers < 0) return row;
  const auto numbers = static_cast<std::size_t>(buffer.numbers);
  const LLVMTypeRef type = element_type(program_->buffers[numbers].dtype);
  const LLVMValueRef taken =
      LLVMBuildLoad2(builder_, type, LLVMBuildGEP2(builder_, type, bases[numbers], &row, 1, ""), "");
  return type == long_ ? taken : LLVMBuildSExt(builder_, taken, long_, "");
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

LLVMValueRef LlvmBuilder::splat_halves(LLVMValueRef first, LLVMValueRef second) {
  std::vector<int> lanes;
  for (int i = 0; i < lanes_; ++i) lanes.push_back(i < lanes_ / 2 ? i : lanes_ + i);
  return shuffle(splat(first), splat(second), lanes);
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
    case RowOp::at_least:
    case RowOp::at_most:
      if (is_vector(a)) return limited(op, a, b);
      [[fallthrough]];
    default:
      return call_row_op(std::string(row_op_text(op)), LLVMTypeOf(a), {a, b});
  }
}

// The processor's minimum and maximum return their second operand, here `a`, if one is NaN or both are zeros. LLVM
// would take comparisons and selects apart: for the limits of a magnitude it emitted eight operations instead of three.
LLVMValueRef LlvmBuilder::limited(RowOp op, LLVMValueRef a, LLVMValueRef limit) {
  const std::string name = op == RowOp::at_least ? "max" : "min";
  if (lanes_ < 16)
    return call_intrinsic(
        fmt::format("llvm.x86.{}.{}.ps{}", lanes_ == 8 ? "avx" : "sse", name, lanes_ == 8 ? ".256" : "").c_str(), {},
        {limit, a});
  const LLVMValueRef rounding_of_the_thread = LLVMConstInt(word_, 4, false);
  return call_intrinsic(fmt::format("llvm.x86.avx512.{}.ps.512", name).c_str(), {}, {limit, a, rounding_of_the_thread});
}

LLVMValueRef LlvmBuilder::ternary(RowOp op, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c) {
  return call_row_op(std::string(row_op_text(op)), LLVMTypeOf(a), {a, b, c});
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
  return LLVMBuildSelect(builder_, lane_mask(count, lanes_), vector, splat(constant(static_cast<double>(rest), false)),
                         "");
}

// Lanes [from, from + width) of a vector.
LLVMValueRef LlvmBuilder::half(LLVMValueRef vector, unsigned from, unsigned width) {
  std::vector<int> lanes;
  for (unsigned i = 0; i < width; ++i) lanes.push_back(static_cast<int>(from + i));
  return shuffle(vector, LLVMGetPoison(LLVMTypeOf(vector)), lanes);
}

LLVMValueRef LlvmBuilder::shuffle(LLVMValueRef a, LLVMValueRef b, const std::vector<int>& lanes) {
  std::vector<LLVMValueRef> numbers;
  for (const int lane : lanes) numbers.push_back(LLVMConstInt(word_, static_cast<unsigned long long>(lane), false));
  return LLVMBuildShuffleVector(builder_, a, b, LLVMConstVector(numbers.data(), static_cast<unsigned>(numbers.size())),
                                "");
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

// Floats without a sign are ordered like their bits (row_larger). Vectors may have any width.
LLVMValueRef LlvmBuilder::larger(LLVMValueRef a, LLVMValueRef b) {
  const LLVMTypeRef floats = LLVMTypeOf(a);
  const LLVMTypeRef words = is_vector(a) ? LLVMVectorType(word_, LLVMGetVectorSize(floats)) : word_;
  const LLVMValueRef largest = call_intrinsic(
      "llvm.umax", {words}, {LLVMBuildBitCast(builder_, a, words, ""), LLVMBuildBitCast(builder_, b, words, "")});
  return LLVMBuildBitCast(builder_, largest, floats, "");
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
  for (unsigned width = static_cast<unsigned>(lanes_) / 2; width > 0; width /= 2)
    rest = larger(half(rest, 0, width), half(rest, width, width));
  return LLVMBuildExtractElement(builder_, rest, LLVMConstInt(word_, 0, false), "");
}

// Of two zeros either may be returned. That takes three instructions instead of four, in a shorter dependency chain.
LLVMValueRef LlvmBuilder::signed_larger(LLVMValueRef a, LLVMValueRef b) {
  const LLVMValueRef larger = call_intrinsic("llvm.maximum", {LLVMTypeOf(a)}, {a, b});
  LLVMSetFastMathFlags(larger, LLVMFastMathNoSignedZeros);
  return larger;
}

// Computes with whole vectors; in the end each lane has the result.
LLVMValueRef LlvmBuilder::signed_largest(const std::vector<LLVMValueRef>& vectors) {
  LLVMValueRef rest = vectors[0];
  for (std::size_t i = 1; i < vectors.size(); ++i) rest = signed_larger(rest, vectors[i]);
  for (int width = lanes_ / 2; width > 0; width /= 2) {
    std::vector<int> turned;
    for (int i = 0; i < lanes_; ++i) turned.push_back((i + width) % lanes_);
    rest = signed_larger(rest, shuffle(rest, LLVMGetPoison(floats_), turned));
  }
  return LLVMBuildExtractElement(builder_, rest, LLVMConstInt(word_, 0, false), "");
}

}  // namespace weft
