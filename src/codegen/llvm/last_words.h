#pragma once

// What a fatal error inside LLVM leaves behind: LLVM ends the process, as it would by a signal where it crashes, and
// what it was compiling would be lost. Between the constructor and the destructor of LastWords such an end, in this
// thread, is status 3 instead, after the row program and the graph it was made from are in files and a line on standard
// error says where, and why.
//
// A crash of another thread stays what it was.

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
  // The files are made in the request's folder when it comes to that; where they cannot be, standard error gets what
  // they would hold.
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
  static void on_signal(int signal);
  static void install_handlers();

  // Initial-exec: reading it in a signal handler allocates nothing.
  static thread_local const Words* at_hand_ __attribute__((tls_model("initial-exec")));

  Words words_;
  std::unique_ptr<std::byte[]> stack_;  // of the handlers: the thread's own may be what ran out
  stack_t previous_stack_ = {};
};

}  // namespace weft
