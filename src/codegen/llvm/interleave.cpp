#include "codegen/llvm/interleave.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace weft {
namespace {

// Cycles until a result is available, approximately those of x86 processors with AVX-512. Only the ratios matter.
int latency_of(LLVMOpcode opcode) {
  switch (opcode) {
    case LLVMFDiv:
      return 12;
    case LLVMLoad:
      return 7;
    case LLVMGetElementPtr:
    case LLVMBitCast:
      return 0;
    case LLVMAdd:
    case LLVMSub:
    case LLVMAnd:
    case LLVMOr:
    case LLVMXor:
    case LLVMShl:
    case LLVMLShr:
    case LLVMAShr:
    case LLVMICmp:
    case LLVMSelect:
    case LLVMTrunc:
    case LLVMZExt:
    case LLVMSExt:
    case LLVMShuffleVector:
    case LLVMInsertElement:
    case LLVMExtractElement:
      return 1;
    default:
      return 4;
  }
}

// A call counts as a write unless LLVM knows that it does not access memory.
enum class Access : std::uint8_t { none, reads, writes };

Access access_of(LLVMValueRef instruction) {
  switch (LLVMGetInstructionOpcode(instruction)) {
    case LLVMLoad:
      return Access::reads;
    case LLVMStore:
      return Access::writes;
    case LLVMCall: {
      static const unsigned kMemory = LLVMGetEnumAttributeKindForName("memory", 6);
      const LLVMAttributeRef memory = LLVMGetEnumAttributeAtIndex(
          LLVMGetCalledValue(instruction), static_cast<LLVMAttributeIndex>(LLVMAttributeFunctionIndex), kMemory);
      return memory != nullptr && LLVMGetEnumAttributeValue(memory) == 0 ? Access::none : Access::writes;
    }
    default:
      return Access::none;
  }
}

struct Operation {
  LLVMValueRef instruction;
  Access access;
  int latency;
  std::vector<std::size_t> operands;  // indices of those in the same section
  int early = 0;                      // the earliest cycle in which it can begin
  int late = 0;                       // the latest one in which it can begin without a stall
};

class Section {
 public:
  bool is_long() const { return operations_.size() >= kLeastOperations; }

  void add(LLVMValueRef instruction) {
    Operation operation{instruction, access_of(instruction), latency_of(LLVMGetInstructionOpcode(instruction)), {}};
    for (int i = 0; i < LLVMGetNumOperands(instruction); ++i)
      if (const auto found = numbers_.find(LLVMGetOperand(instruction, static_cast<unsigned>(i)));
          found != numbers_.end())
        operation.operands.push_back(found->second);
    numbers_.emplace(instruction, operations_.size());
    operations_.push_back(std::move(operation));
  }

  // Inserts the section before `next` in its new order, and clears it.
  void place(LLVMBuilderRef builder, LLVMValueRef next) {
    if (is_long()) {
      find_early();
      find_late();
      std::vector<const Operation*> order;
      for (const Operation& operation : operations_) order.push_back(&operation);
      std::stable_sort(order.begin(), order.end(),
                       [](const Operation* a, const Operation* b) { return a->late < b->late; });
      for (const Operation& operation : operations_) LLVMInstructionRemoveFromParent(operation.instruction);
      LLVMPositionBuilderBefore(builder, next);
      for (const Operation* operation : order) LLVMInsertIntoBuilder(builder, operation->instruction);
    }
    operations_.clear();
    numbers_.clear();
  }

 private:
  // A shorter section has nothing to interleave.
  static constexpr std::size_t kLeastOperations = 32;

  // A read of memory depends on the writes before it, and a write on all reads and writes before it.
  void find_early() {
    int read = 0, written = 0;
    for (Operation& operation : operations_) {
      for (const std::size_t operand : operation.operands)
        operation.early = std::max(operation.early, operations_[operand].early + operations_[operand].latency);
      if (operation.access == Access::reads) {
        operation.early = std::max(operation.early, written);
        read = std::max(read, operation.early);
      } else if (operation.access == Access::writes) {
        operation.early = std::max({operation.early, read, written});
        written = operation.early;
      }
    }
  }

  // Writes are scheduled as early as possible, since they free registers; all other operations as late as possible.
  void find_late() {
    int last = 0;
    for (Operation& operation : operations_) last = std::max(last, operation.early);
    for (Operation& operation : operations_) operation.late = last;
    int written = last;
    for (std::size_t i = operations_.size(); i-- > 0;) {
      Operation& operation = operations_[i];
      if (operation.access == Access::writes) {
        operation.late = written = operation.early;
      } else if (operation.access == Access::reads) {
        operation.late = std::min(operation.late, written);
      }
      for (const std::size_t operand : operation.operands)
        operations_[operand].late = std::min(operations_[operand].late, operation.late - operations_[operand].latency);
    }
  }

  std::vector<Operation> operations_;  // in their order in the function
  std::unordered_map<LLVMValueRef, std::size_t> numbers_;
};

void interleave_block(LLVMBasicBlockRef block, LLVMBuilderRef builder) {
  Section section;
  const LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
  for (LLVMValueRef i = LLVMGetFirstInstruction(block); i != end;) {
    const LLVMValueRef next = LLVMGetNextInstruction(i);
    if (LLVMGetInstructionOpcode(i) != LLVMPHI) section.add(i);
    if (access_of(i) == Access::writes && section.is_long()) section.place(builder, next);
    i = next;
  }
  section.place(builder, end);
}

}  // namespace

void interleave_chains(LLVMValueRef function) {
  const LLVMBuilderRef builder = LLVMCreateBuilderInContext(LLVMGetModuleContext(LLVMGetGlobalParent(function)));
  for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block != nullptr;
       block = LLVMGetNextBasicBlock(block))
    interleave_block(block, builder);
  LLVMDisposeBuilder(builder);
}

}  // namespace weft
