#include "base/mapped_files.h"

#include <atomic>
#include <csignal>
#include <mutex>
#include <utility>

#include <fmt/core.h>
#include <unistd.h>

#include "base/interruption.h"
#include "base/text.h"

namespace weft {
namespace {

struct RememberedMapping {
  std::atomic<const std::byte*> begin = nullptr;  // null: this object is free
  std::atomic<const std::byte*> end = nullptr;
  std::string message;
  RememberedMapping* next = nullptr;
};

// The handler may neither allocate nor lock, so it reads a list whose objects are never freed, only used again. The
// object of the lost page does not change meanwhile: its mapping is being read, so no one forgets it.
std::atomic<RememberedMapping*> newest_mapping = nullptr;
std::mutex changes_of_mappings;

struct sigaction action_before;

// The object that begins at an address; for null a free object.
RememberedMapping* mapping_that_begins(const std::byte* begin) {
  RememberedMapping* mapping = newest_mapping;
  while (mapping != nullptr && mapping->begin != begin) mapping = mapping->next;
  return mapping;
}

void on_bus_error(int signal, siginfo_t* information, void*) {
  constexpr int kUserErrorStatus = 2;
  // A signal that a process sent has no address.
  const bool is_sent = information->si_code <= 0;
  const auto* address = static_cast<const std::byte*>(information->si_addr);
  for (RememberedMapping* at = newest_mapping; !is_sent && at != nullptr; at = at->next) {
    const std::byte* begin = at->begin;
    if (begin == nullptr || address < begin || address >= at->end) continue;
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, at->message.data(), at->message.size());
    remove_unfinished();
    ::_exit(kUserErrorStatus);
  }
  ::sigaction(signal, &action_before, nullptr);
  if (is_sent) ::raise(signal);  // a fault happens again on return
}

}  // namespace

void report_lost_pages() {
  struct sigaction action = {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &action, &action_before);
}

void remember_mapping(std::span<const std::byte> bytes, const std::string& path) {
  std::string message =
      fmt::format("weft: [{}] became shorter while it was read, or cannot be read\n", quote(path, 1000));
  const std::lock_guard guard(changes_of_mappings);
  RememberedMapping* mapping = mapping_that_begins(nullptr);
  if (mapping == nullptr) {
    mapping = new RememberedMapping;
    mapping->next = newest_mapping;
    newest_mapping = mapping;
  }
  mapping->message = std::move(message);
  mapping->end = bytes.data() + bytes.size();
  mapping->begin = bytes.data();
}

void forget_mapping(std::span<const std::byte> bytes) noexcept {
  const std::lock_guard guard(changes_of_mappings);
  if (RememberedMapping* mapping = mapping_that_begins(bytes.data())) mapping->begin = nullptr;
}

}  // namespace weft
