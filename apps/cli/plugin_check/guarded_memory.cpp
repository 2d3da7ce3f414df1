#include "apps/cli/plugin_check/guarded_memory.h"

#include <algorithm>
#include <csignal>
#include <cstring>

#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"

namespace weft::plugin_check {
namespace {

constexpr std::byte kGuard{0xC3};
constexpr std::int64_t kAlignment = 64;  // what kernels may count on

std::int64_t page_bytes() { return ::sysconf(_SC_PAGESIZE); }

// A signal handler has nothing else to look at.
FaultRecord* fault_record = nullptr;

void on_fault(int signal, siginfo_t* info, void*) {
  fault_record->signal = signal;
  fault_record->address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  ::signal(signal, SIG_DFL);  // on return the fault happens again, and ends the process
}

}  // namespace

FaultRecord* FaultRecord::shared() {
  void* memory = ::mmap(nullptr, sizeof(FaultRecord), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail_device("[plugin check] no shared memory: {}", system_error_text());
  return new (memory) FaultRecord();
}

std::string FaultRecord::text() const {
  for (int i = 0; i < zones; ++i) {
    const Zone& at = zone[i];
    if (address >= at.begin && address < at.data)
      return fmt::format("touched the byte {} before {}", at.data - address, at.name);
    if (address >= at.data_end && address < at.end)
      return fmt::format("touched the byte {} after {}", address - at.data_end + 1, at.name);
  }
  return "";
}

void record_faults(FaultRecord& record) {
  fault_record = &record;
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  for (int signal : {SIGSEGV, SIGBUS}) ::sigaction(signal, &action, nullptr);
}

GuardedMemory::GuardedMemory(FaultRecord& record) : record_(record) { record_.zones = 0; }

GuardedMemory::~GuardedMemory() {
  record_.zones = 0;
  for (const Buffer& buffer : buffers_) ::munmap(buffer.mapping, static_cast<std::size_t>(buffer.mapped));
}

std::byte* GuardedMemory::buffer(const std::string& name, std::int64_t bytes, std::byte fill) {
  const std::int64_t page = page_bytes(), guard = 16 * page;
  const std::int64_t aligned = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const std::int64_t readable = (aligned + page - 1) / page * page + page;  // a page of known bytes before, at least
  Buffer buffer{.name = name, .mapped = readable + 2 * guard, .bytes = bytes};
  void* mapping =
      ::mmap(nullptr, static_cast<std::size_t>(buffer.mapped), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) fail_device("[plugin check] no memory for {}: {}", name, system_error_text());
  buffer.mapping = static_cast<std::byte*>(mapping);
  buffer.before = readable - aligned;
  buffer.after = aligned - bytes;
  std::byte* inside = buffer.mapping + guard;
  if (::mprotect(inside, static_cast<std::size_t>(readable), PROT_READ | PROT_WRITE) != 0)
    fail_device("[plugin check] no memory for {}: {}", name, system_error_text());
  std::fill_n(inside, readable, kGuard);
  std::byte* data = inside + buffer.before;
  std::fill_n(data, bytes, fill);
  if (record_.zones < FaultRecord::kMostZones) {
    FaultRecord::Zone& zone = record_.zone[record_.zones++];
    std::strncpy(zone.name, name.c_str(), sizeof zone.name - 1);
    zone.begin = reinterpret_cast<std::uintptr_t>(buffer.mapping);
    zone.data = reinterpret_cast<std::uintptr_t>(data);
    zone.data_end = zone.data + static_cast<std::uintptr_t>(bytes);
    zone.end = zone.begin + static_cast<std::uintptr_t>(buffer.mapped);
  }
  buffers_.push_back(buffer);
  return data;
}

Tensor GuardedMemory::tensor(const std::string& name, const Meta& meta, std::int64_t bytes, std::byte fill) {
  Tensor tensor;
  tensor.meta = meta;
  tensor.storage = Storage::view_of(buffer(name, bytes, fill), bytes, nullptr);
  return tensor;
}

std::string GuardedMemory::breach() const {
  for (const Buffer& buffer : buffers_) {
    const std::byte* data = buffer.mapping + 16 * page_bytes() + buffer.before;
    for (std::int64_t i = 1; i <= buffer.before; ++i)
      if (data[-i] != kGuard) return fmt::format("wrote the byte {} before {}", i, buffer.name);
    for (std::int64_t i = 0; i < buffer.after; ++i)
      if (data[buffer.bytes + i] != kGuard) return fmt::format("wrote the byte {} after {}", i + 1, buffer.name);
  }
  return "";
}

}  // namespace weft::plugin_check
