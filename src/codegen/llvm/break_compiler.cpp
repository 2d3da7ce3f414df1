// Makes LLVM fail during a compilation, in each of several ways. Only tests look up this symbol.

#include <cstdint>
#include <cstdlib>

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

#include "codegen/llvm/last_words.h"
#include "codegen/llvm_library.h"

namespace weft {
namespace {

// LLVM ends the process for an intrinsic that the target processor does not have.
void select_what_there_is_not() {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  LLVMContextRef context = LLVMContextCreate();
  LLVMModuleRef module = LLVMModuleCreateWithNameInContext("broken", context);
  LLVMTypeRef vector = LLVMVectorType(LLVMFloatTypeInContext(context), 16);
  LLVMTypeRef type = LLVMFunctionType(vector, &vector, 1, false);
  LLVMValueRef function = LLVMAddFunction(module, "broken", type);
  LLVMBuilderRef builder = LLVMCreateBuilderInContext(context);
  LLVMPositionBuilderAtEnd(builder, LLVMAppendBasicBlockInContext(context, function, "entry"));
  LLVMTypeRef integer = LLVMInt32TypeInContext(context), mask = LLVMInt16TypeInContext(context);
  LLVMTypeRef operand_types[] = {vector, integer, vector, mask, integer};
  LLVMTypeRef intrinsic_type = LLVMFunctionType(vector, operand_types, 5, false);
  LLVMValueRef intrinsic = LLVMAddFunction(module, "llvm.x86.avx512.mask.rndscale.ps.512", intrinsic_type);
  LLVMValueRef x = LLVMGetParam(function, 0);
  LLVMValueRef operands[] = {x, LLVMConstInt(integer, 0, false), x, LLVMConstInt(mask, 1, false),
                             LLVMConstInt(integer, 4, false)};
  LLVMBuildRet(builder, LLVMBuildCall2(builder, intrinsic_type, intrinsic, operands, 5, ""));
  LLVMTargetRef target = nullptr;
  char* message = nullptr;
  LLVMGetTargetFromTriple("x86_64-unknown-linux-gnu", &target, &message);
  LLVMTargetMachineRef machine = LLVMCreateTargetMachine(target, "x86_64-unknown-linux-gnu", "x86-64-v2", "",
                                                         LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelSmall);
  LLVMMemoryBufferRef code = nullptr;
  LLVMTargetMachineEmitToMemoryBuffer(machine, module, LLVMObjectFile, &message, &code);
}

// The recursion ends only when the stack is exhausted. The addition after the call prevents that it becomes a loop.
int run_out_of_stack(volatile int* depth) {
  volatile int here = *depth + 1;
  return here == 0 ? 0 : run_out_of_stack(&here) + here;
}

}  // namespace
}  // namespace weft

extern "C" __attribute__((visibility("default"))) void weft_llvm_break(const weft::LlvmRequest& request,
                                                                       weft::LlvmBreak how) {
  const weft::LastWords words(request);
  switch (how) {
    case weft::LlvmBreak::fatal_error:
      return weft::select_what_there_is_not();
    case weft::LlvmBreak::bad_address: {
      volatile std::uintptr_t nowhere = 64;
      *reinterpret_cast<volatile int*>(nowhere) = 1;
      return;
    }
    case weft::LlvmBreak::stack_overflow: {
      volatile int depth = 0;
      weft::run_out_of_stack(&depth);
      return;
    }
    case weft::LlvmBreak::abort:
      std::abort();
  }
}
