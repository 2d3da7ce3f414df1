#pragma once

// The crash handler for LLVM. On a fatal error LLVM ends the process, or a signal does if LLVM crashes, and the program
// being compiled would be lost. While a LastWords object exists, such an end in its thread does three things: it writes
// the row program and the graph it was made from to files, prints one line on standard error that names the files and
// the reason, and exits with status 3.
//
// A crash of another thread is not changed.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <signal.h>

#include "codegen/llvm_library.h"

namespace weft {

class LastWords {
 public:
  // On a crash the files are created in the request's folder. If they cannot be created, their text goes to standard
  // error.
  explicit LastWords(const LlvmRequest& request);
  ~LastWords();
  LastWords(const LastWords&) = delete;

 private:
  struct File {
    std::string_view what;
    std::string path, text;
  };
  struct Words {
    std::string function;
    std::vector<File> files;
  };
  [[noreturn]] static void end(const Words& words, std::string_view reason);
  static void on_fatal_error(const char* reason);
  static void on_signal(int signal, siginfo_t* information, void*);
  static void install_handlers();

  // Initial-exec: reading it in a signal handler allocates nothing.
  static thread_local const Words* at_hand_ __attribute__((tls_model("initial-exec")));

  Words words_;
  std::unique_ptr<std::byte[]> stack_;  // of the handlers, because the thread's own stack may be exhausted
  stack_t previous_stack_ = {};
};

}  // namespace weft
