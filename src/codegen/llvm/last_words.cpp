#include "codegen/llvm/last_words.h"

#include <array>
#include <atomic>
#include <cstring>
#include <initializer_list>
#include <mutex>
#include <string_view>

#include <fcntl.h>
#include <fmt/core.h>
#include <llvm-c/ErrorHandling.h>
#include <unistd.h>

namespace weft {
namespace {

// More than any processor needs to save its registers there.
constexpr std::size_t kStackBytes = std::size_t{128} << 10;

struct Caught {
  int signal;
  const char* reason;
};
constexpr std::array kCaught = {
    Caught{SIGSEGV, "it touched memory that it has not, or ran out of its stack"},
    Caught{SIGBUS, "it touched memory that is not there"},
    Caught{SIGILL, "it reached unreachable code"},
    Caught{SIGFPE, "it divided by zero"},
    Caught{SIGABRT, "it aborted"},
};

// Threads inside LLVM share the handlers of the process: the first thread installs them, and the last one restores the
// previous handlers.
std::mutex handlers_lock;
int threads_inside = 0;
std::array<struct sigaction, kCaught.size()> previous_actions;

// Calls only functions that a signal handler may call.
bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// The file must not exist yet, so that no other file is overwritten, not even through a link.
bool write_new_file(const char* path, std::string_view text) {
  const int file = ::open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (file < 0) return false;
  const bool is_written = write_all(file, text);
  return ::close(file) == 0 && is_written;
}

}  // namespace

thread_local const LastWords::Words* LastWords::at_hand_ = nullptr;

void LastWords::end(const Words& words, std::string_view reason) {
  // If several threads fail at the same time, only one reports it.
  static std::atomic_flag is_ending;
  while (is_ending.test_and_set()) ::pause();
  const auto say = [](std::initializer_list<std::string_view> parts) {
    for (const std::string_view part : parts) write_all(STDERR_FILENO, part);
  };
  say({"weft: [codegen] LLVM cannot go on with ", words.function, ": ", reason});
  for (const File& file : words.files) {
    const bool is_kept = write_new_file(file.path.c_str(), file.text);
    say({"; ", file.what, is_kept ? " is in " : " could not be written to ", file.path});
    if (!is_kept) say({":\n", file.text});
  }
  say({"\n"});
  ::_exit(3);
}

void LastWords::on_fatal_error(const char* reason) {
  static const Words nothing{};  // not reached: LLVM is only called for a program
  std::string_view line = reason;
  if (line.ends_with('\n')) line.remove_suffix(1);
  end(at_hand_ == nullptr ? nothing : *at_hand_, line);
}

void LastWords::on_signal(int signal, siginfo_t* information, void*) {
  for (std::size_t i = 0; i < kCaught.size(); ++i) {
    if (kCaught[i].signal != signal) continue;
    if (at_hand_ != nullptr) end(*at_hand_, kCaught[i].reason);
    // The signal is not LLVM's, so the previous handler gets it. A fault happens again on return, with its address.
    ::sigaction(signal, &previous_actions[i], nullptr);
    if (information->si_code <= 0) ::raise(signal);  // a process sent it
  }
}

void LastWords::install_handlers() {
  static std::once_flag once;
  std::call_once(once, [] { LLVMInstallFatalErrorHandler(on_fatal_error); });
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_ONSTACK | SA_SIGINFO;
  for (std::size_t i = 0; i < kCaught.size(); ++i) ::sigaction(kCaught[i].signal, &action, &previous_actions[i]);
}

LastWords::LastWords(const LlvmRequest& request) : stack_(std::make_unique_for_overwrite<std::byte[]>(kStackBytes)) {
  words_.function = request.program.name();
  const std::string path = fmt::format("{}/{}-{}", request.dump_folder, words_.function, ::getpid());
  words_.files.push_back({"its row program", path + ".rows", request.program.text()});
  if (!request.graph.empty()) words_.files.push_back({"the graph it was made from", path + ".graph", request.graph});
  const stack_t stack = {.ss_sp = stack_.get(), .ss_flags = 0, .ss_size = kStackBytes};
  ::sigaltstack(&stack, &previous_stack_);
  {
    const std::lock_guard guard(handlers_lock);
    if (threads_inside++ == 0) install_handlers();
  }
  at_hand_ = &words_;
}

LastWords::~LastWords() {
  at_hand_ = nullptr;
  {
    const std::lock_guard guard(handlers_lock);
    if (--threads_inside == 0)
      for (std::size_t i = 0; i < kCaught.size(); ++i) ::sigaction(kCaught[i].signal, &previous_actions[i], nullptr);
  }
  ::sigaltstack(&previous_stack_, nullptr);
}

}  // namespace weft
