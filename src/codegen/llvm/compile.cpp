// libweft_llvm.so: row programs to an object file.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include <fmt/core.h>
#include <llvm-c/Analysis.h>
#include <llvm-c/BitReader.h>
#include <llvm-c/Core.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <llvm/Config/llvm-config.h>

#include "base/error.h"
#include "codegen/emit.h"
#include "codegen/llvm/interleave.h"
#include "codegen/llvm/last_words.h"
#include "codegen/llvm/llvm_builder.h"
#include "codegen/llvm_interface.h"
#include "codegen/llvm_library.h"
#include "tensor/vector_lanes.h"

// The prelude's bitcode for each number of lanes; the build embeds it.
extern "C" {
extern const char weft_prelude_4[], weft_prelude_4_end[];
extern const char weft_prelude_8[], weft_prelude_8_end[];
extern const char weft_prelude_16[], weft_prelude_16_end[];
}

namespace weft {
namespace {

// Measured: the code is as fast as with all of -O2, in 60 % of the compile time.
constexpr const char* kPasses =
    "always-inline,globaldce,function(sroa,early-cse,loop-simplify,loop-mssa(loop-rotate,licm),"
    "instcombine<no-verify-fixpoint>,early-cse,adce,simplifycfg)";
constexpr const char* kTriple = "x86_64-unknown-linux-gnu";

// A fixed name, so that machines with the same features get the same code.
constexpr const char* kCpu = "x86-64-v2";

struct Target {
  // The features that the kernels of provider cpu are built with (cmake/compile_options.cmake). evex512 enables 512-bit
  // registers; without it vectors are cut into halves. slow-unaligned-mem-32 is a property of kCpu that no machine with
  // AVX2 has.
  const char* features;
  const char* prelude;
  const char* prelude_end;
};

// The target depends on the lanes only; the keys of objects rely on that (compiler/functions/generated_kernels.cpp).
Target target_of(int lanes) {
  if (lanes == 16)
    return {"+avx2,+fma,+f16c,-slow-unaligned-mem-32,+avx512f,+avx512bw,+avx512dq,+avx512vl,+evex512", weft_prelude_16,
            weft_prelude_16_end};
  if (lanes == 8) return {"+avx2,+fma,+f16c,-slow-unaligned-mem-32", weft_prelude_8, weft_prelude_8_end};
  return {"", weft_prelude_4, weft_prelude_4_end};
}

template <class Handle>
using Owned = std::unique_ptr<std::remove_pointer_t<Handle>, void (*)(Handle)>;

// Returns a copy of a message of LLVM and frees the message.
std::string taken(char* message) {
  std::string text = message == nullptr ? "LLVM gives no reason" : message;
  if (message != nullptr) LLVMDisposeMessage(message);
  return text;
}

void initialize() {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
}

// Functions of the prelude are compiled for the features of their callers and are removed after they are inlined.
void open_prelude(LLVMModuleRef module) {
  for (LLVMValueRef function = LLVMGetFirstFunction(module); function != nullptr;
       function = LLVMGetNextFunction(function)) {
    if (LLVMIsDeclaration(function)) continue;
    LLVMSetLinkage(function, LLVMInternalLinkage);
    for (const char* name : {"target-cpu", "target-features", "tune-cpu", "min-legal-vector-width",
                             "prefer-vector-width", "no-trapping-math", "stack-protector-buffer-size"})
      LLVMRemoveStringAttributeAtIndex(function, static_cast<LLVMAttributeIndex>(LLVMAttributeFunctionIndex), name,
                                       static_cast<unsigned>(std::strlen(name)));
  }
}

bool compile(const LlvmRequest& request, std::vector<std::byte>& object, std::string& problem) {
  const int lanes = vector_lanes(request.features);
  const Target target = target_of(lanes);
  const Owned<LLVMContextRef> context(LLVMContextCreate(), LLVMContextDispose);
  const Owned<LLVMMemoryBufferRef> bitcode(
      LLVMCreateMemoryBufferWithMemoryRange(
          target.prelude, static_cast<std::size_t>(target.prelude_end - target.prelude), "prelude", false),
      LLVMDisposeMemoryBuffer);
  LLVMModuleRef parsed = nullptr;
  if (LLVMParseBitcodeInContext2(context.get(), bitcode.get(), &parsed)) {
    problem = "the prelude cannot be read";
    return false;
  }
  const Owned<LLVMModuleRef> module(parsed, LLVMDisposeModule);
  open_prelude(module.get());
  bool is_in_order = false;
  {
    LlvmBuilder builder(module.get(), lanes, lanes >= 8);
    RowEmitter<LlvmBuilder> emitter(request.program, builder);
    emitter.run();
    is_in_order = emitter.is_in_order();
  }
  const LLVMValueRef function = LLVMGetNamedFunction(module.get(), request.program.name().c_str());
  // Without this check LLVM compiles even operations whose operands have wrong types, into arbitrary code.
  if (LLVMVerifyFunction(function, LLVMReturnStatusAction)) {
    char* reason = nullptr;
    LLVMVerifyModule(module.get(), LLVMReturnStatusAction, &reason);
    problem = taken(reason);
    return false;
  }

  LLVMTargetRef llvm_target = nullptr;
  char* message = nullptr;
  if (LLVMGetTargetFromTriple(kTriple, &llvm_target, &message)) {
    problem = taken(message);
    return false;
  }
  const Owned<LLVMTargetMachineRef> machine(
      LLVMCreateTargetMachine(llvm_target, kTriple, kCpu, target.features, LLVMCodeGenLevelDefault, LLVMRelocPIC,
                              LLVMCodeModelSmall),
      LLVMDisposeTargetMachine);
  const Owned<LLVMPassBuilderOptionsRef> options(LLVMCreatePassBuilderOptions(), LLVMDisposePassBuilderOptions);
  if (LLVMErrorRef error = LLVMRunPasses(module.get(), kPasses, machine.get(), options.get())) {
    char* words = LLVMGetErrorMessage(error);
    problem = words;
    LLVMDisposeErrorMessage(words);
    return false;
  }
  if (!is_in_order) interleave_chains(function);
  LLVMMemoryBufferRef made = nullptr;
  if (LLVMTargetMachineEmitToMemoryBuffer(machine.get(), module.get(), LLVMObjectFile, &message, &made)) {
    problem = taken(message);
    return false;
  }
  const Owned<LLVMMemoryBufferRef> code(made, LLVMDisposeMemoryBuffer);
  const auto* bytes = reinterpret_cast<const std::byte*>(LLVMGetBufferStart(code.get()));
  object.assign(bytes, bytes + LLVMGetBufferSize(code.get()));
  return true;
}

constexpr std::size_t kInterfaceBytes = std::string_view(kLlvmInterface).size() + 1;  // with the terminating zero

struct InterfaceNote {
  std::uint32_t owner_bytes = 0;
  std::uint32_t content_bytes = kInterfaceBytes;
  std::uint32_t type = kLlvmNoteType;
  char owner[8] = {};
  char content[(kInterfaceBytes + 3) / 4 * 4] = {};
};

constexpr InterfaceNote interface_note() {
  InterfaceNote note;
  const std::string_view owner(kLlvmNoteOwner);
  note.owner_bytes = static_cast<std::uint32_t>(owner.size() + 1);
  std::copy(owner.begin(), owner.end(), note.owner);
  std::copy_n(kLlvmInterface, kInterfaceBytes, note.content);
  return note;
}

__attribute__((section(".note.weft"), used, aligned(4))) constexpr InterfaceNote kInterfaceNote = interface_note();

}  // namespace
}  // namespace weft

#define WEFT_EXPORTED extern "C" __attribute__((visibility("default")))

WEFT_EXPORTED const char* weft_llvm_interface() { return weft::kInterfaceNote.content; }
WEFT_EXPORTED const char* weft_llvm_version() { return LLVM_VERSION_STRING; }

WEFT_EXPORTED bool weft_llvm_compile(const weft::LlvmRequest& request, std::vector<std::byte>& object,
                                     std::string& problem) {
  using namespace weft;
  static const bool once = (initialize(), true);
  static_cast<void>(once);
  const LastWords words(request);
  bool is_made = false;
  // No exception may leave this function, because the caller is another library.
  try {
    is_made = compile(request, object, problem);
  } catch (const std::exception& error) {
    problem = error.what();
  }
  return is_made;
}
