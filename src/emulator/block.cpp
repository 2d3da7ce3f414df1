#include "emulator/block.h"

#include <algorithm>
#include <bit>
#include <exception>

#include <fmt/core.h>

#include "base/error.h"
#include "emulator/checks.h"
#include "emulator/thread_sanitizer.h"

namespace weft::cuda {
namespace {

thread_local Block* current_block = nullptr;

// Thrown only within the frames of one fiber.
struct Fault {
  std::string text;
};

std::string site_text(const Site& site) {
  const std::string file = site.file_name();
  return fmt::format("{}:{}", file.substr(file.rfind('/') + 1), site.line());
}
bool is_crooked(const void* address, std::size_t bytes) {
  return is_checked(EmulatorCheck::places) && reinterpret_cast<std::uintptr_t>(address) % bytes != 0;
}
bool same_place(const Site& a, const Site& b) {
  return a.line() == b.line() && std::string_view(a.file_name()) == b.file_name();
}

// One request of the running thread to its block, until the end of the full expression.
class Request {
 public:
  Request() { begin_bookkeeping(); }
  ~Request() { end_bookkeeping(); }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;
  Block* operator->() const { return &Block::current(); }
};

}  // namespace

Block& Block::current() { return *current_block; }

Block::Block(Launch& launch, std::uint32_t block, std::uint32_t block_row)
    : launch_(launch), alive_(launch.shape.threads), threads_(launch.shape.threads) {
  const std::uint32_t count = launch.shape.threads;
  meetings_.resize((count + 31) / 32);
  for (std::uint32_t i = 0; i < count; ++i) {
    const ThreadOrder order = launch.settings.order;
    ready_.push_back(order == ThreadOrder::backward ? count - 1 - i : i);
    threads_[i].place = {i, count, block, block_row, launch.shape.blocks, launch.shape.block_rows};
    threads_[i].fiber.start(launch.stacks.stack(i), thread_main, this);
  }
}

void Block::run() {
  const struct Restoring {
    Block* outer = current_block;
    ~Restoring() { current_block = outer; }
  } restoring;
  current_block = this;
  std::uint32_t next = 0;
  while (alive_ > 0 && failure_.empty()) {
    if (next == ready_.size() && !let_waiting_go()) {
      failure_ = fmt::format("[{}] block ({}, {}) never ends: {}", launch_.kernel.name, threads_[0].place.block,
                             threads_[0].place.block_row, waiting_text());
      break;
    }
    if (launch_.settings.order == ThreadOrder::random)
      std::swap(ready_[next], ready_[next + random_number() % (ready_.size() - next)]);
    running_ = ready_[next++];
    if (next > 4096) {
      ready_.erase(ready_.begin(), ready_.begin() + next);
      next = 0;
    }
    self().fiber.resume();
  }
  if (!failure_.empty()) throw DeviceError(failure_);
}

std::uint32_t Block::random_number() {
  std::uint64_t& state = launch_.random_state;  // xorshift64
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return static_cast<std::uint32_t>(state >> 32);
}

void Block::thread_main(void* self) { static_cast<Block*>(self)->run_thread(); }

void Block::run_thread() {
  std::string failure;
  try {
    launch_.kernel.body(launch_.arguments);
  } catch (const Fault& fault) {
    failure = fault.text;
  } catch (const std::exception& error) {  // an error of the emulator itself must not leave the fiber
    failure = fmt::format("[{}] {}", launch_.kernel.name, error.what());
  }
  Request()->end_thread(failure);
}

void Block::end_thread(const std::string& failure) {
  if (!failure.empty()) failure_ = failure;
  self().state = State::ended;
  --alive_;
  arrive_at(barrier_point());
  release_barrier();
}

void Block::wait(State state, const Site& site) {
  Thread& thread = self();
  thread.state = state;
  thread.waits_at = site;
  end_bookkeeping();  // a thread that is never resumed must not be left inside bookkeeping
  thread.fiber.suspend();
  begin_bookkeeping();
}

void Block::barrier(const Site& site) {
  if (at_barrier_ > 0 && !same_place(barrier_site_, site))
    fault(fmt::format("reaches a barrier while others wait at the one of {}", site_text(barrier_site_)), site);
  barrier_site_ = site;
  const void* point = barrier_point();
  arrive_at(point);
  ++at_barrier_;
  if (at_barrier_ == alive_) {
    release_barrier();
  } else {
    wait(State::at_barrier, site);
  }
  pass(point);
}

void Block::release_barrier() {
  if (at_barrier_ == 0 || at_barrier_ != alive_) return;
  at_barrier_ = 0;
  ++barriers_;
  for (std::uint32_t i = 0; i < threads_.size(); ++i) {
    if (threads_[i].state != State::at_barrier) continue;
    threads_[i].state = State::ready;
    ready_.push_back(i);
  }
}

bool Block::let_waiting_go() {
  if (is_checked(EmulatorCheck::meetings)) return false;
  at_barrier_ = 0;
  ++barriers_;
  for (std::map<std::uint32_t, Meeting>& of_warp : meetings_) {
    for (auto& [mask, meeting] : of_warp) {
      meeting.turn += meeting.arrived != 0 ? 1 : 0;
      meeting.arrived = 0;
    }
  }
  for (std::uint32_t i = 0; i < threads_.size(); ++i) {
    if (threads_[i].state == State::ended) continue;
    threads_[i].state = State::ready;
    ready_.push_back(i);
  }
  return true;
}

std::uint32_t Block::lanes_of_warp(std::uint32_t warp) const {
  std::uint32_t lanes = 0;
  for (std::uint32_t i = warp * 32; i < std::min<std::size_t>(warp * 32 + 32, threads_.size()); ++i)
    if (threads_[i].state != State::ended) lanes |= 1u << (i % 32);
  return lanes;
}

const LaneWords* Block::meet(std::uint32_t mask, const char* kind, const LaneWords& value, const Site& site) {
  const ThreadPlace& at = place();
  const std::uint32_t own = 1u << at.lane();
  if (!is_checked(EmulatorCheck::meetings)) mask = (mask & lanes_of_warp(at.warp())) | own;
  if ((mask & own) == 0) fault(fmt::format("calls a {} with mask {:#x}, without itself", kind, mask), site);
  if (const std::uint32_t gone = mask & ~lanes_of_warp(at.warp()); gone != 0)
    fault(fmt::format("calls a {} with mask {:#x}, but lane {} has ended", kind, mask, std::countr_zero(gone)), site);
  Meeting& meeting = meetings_[at.warp()][mask];
  if (meeting.arrived != 0 && (meeting.kind != kind || !same_place(meeting.site, site)))
    fault(fmt::format("calls a {} while lanes of its mask are in the {} of {}", kind, meeting.kind,
                      site_text(meeting.site)),
          site);
  meeting.mask = mask;
  meeting.kind = kind;
  meeting.site = site;
  const std::uint32_t turn = meeting.turn;
  arrive_at(meeting.values[turn % 2]);
  meeting.values[turn % 2][at.lane()] = value;
  meeting.arrived |= own;
  if (meeting.arrived != mask) {
    wait(State::in_exchange, site);
    return meeting.values[turn % 2];
  }
  meeting.arrived = 0;
  ++meeting.turn;
  for (std::uint32_t rest = mask & ~own; rest != 0; rest &= rest - 1) {
    const std::uint32_t other = at.warp() * 32 + static_cast<std::uint32_t>(std::countr_zero(rest));
    threads_[other].state = State::ready;
    ready_.push_back(other);
  }
  return meeting.values[turn % 2];
}

void Block::warp_barrier(std::uint32_t mask, const Site& site) {
  pass(meet(mask, "warp barrier", {}, site));
  ++self().warp_barriers;
}

std::uint64_t Block::shuffle(std::uint32_t mask, std::uint64_t value, std::uint32_t source, const Site& site) {
  const LaneWords* values = meet(mask, "shuffle", {value}, site);
  if (is_checked(EmulatorCheck::meetings) && (mask >> source & 1u) == 0)
    fault(fmt::format("reads lane {}, which takes no part in the shuffle (mask {:#x})", source, mask), site);
  return values[source][0];
}

const LaneWords* Block::gather(const char* kind, const LaneWords& words, const Site& site) {
  return meet(0xffffffffu, kind, words, site);
}

void Block::reading(const void* address, std::size_t bytes, const Site& site) {
  if (is_crooked(address, bytes))
    fault(fmt::format("reads {} bytes at an address that is not a multiple of them", bytes), site);
  const ThreadPlace& at = place();
  const std::uint32_t thread = (at.block_row * at.blocks + at.block) * at.threads + at.thread;
  if (const std::string problem = launch_.memory.note_reading(address, bytes, thread); !problem.empty())
    fault(problem, site);
  if (launch_.traffic != nullptr) launch_.traffic->note(at, address, bytes, false, site);
}

void Block::writing(void* address, std::size_t bytes, const Site& site) {
  if (is_crooked(address, bytes))
    fault(fmt::format("writes {} bytes at an address that is not a multiple of them", bytes), site);
  const ThreadPlace& at = place();
  const std::uint32_t thread = (at.block_row * at.blocks + at.block) * at.threads + at.thread;
  if (const std::string problem = launch_.memory.note_writing(address, bytes, thread); !problem.empty())
    fault(problem, site);
  if (launch_.traffic != nullptr) launch_.traffic->note(at, address, bytes, true, site);
}

SharedAccess Block::access_now() const {
  return {static_cast<std::int32_t>(running_), barriers_, threads_[running_].warp_barriers};
}

bool Block::is_ordered(const SharedAccess& access) const {
  if (access.thread < 0 || static_cast<std::uint32_t>(access.thread) == running_) return true;
  if (access.block_barriers != barriers_) return true;
  const bool is_same_warp = static_cast<std::uint32_t>(access.thread) / 32 == running_ / 32;
  return is_same_warp && access.warp_barriers < threads_[running_].warp_barriers;
}

void Block::shared_reading(SharedElement& element, std::size_t index, const Site& array) {
  if (!is_checked(EmulatorCheck::shared)) return;
  if (element.writer.thread < 0) fault(fmt::format("reads shared element {}, which no thread wrote", index), array);
  if (!is_ordered(element.writer))
    fault(fmt::format("reads shared element {}, which thread {} wrote with no barrier between", index,
                      element.writer.thread),
          array);
  if (!is_ordered(element.reader)) element.other_reader = element.reader;
  element.reader = access_now();
}

void Block::shared_writing(SharedElement& element, std::size_t index, const Site& array) {
  if (!is_checked(EmulatorCheck::shared)) return;
  for (const SharedAccess& access : {element.writer, element.reader, element.other_reader})
    if (!is_ordered(access))
      fault(fmt::format("writes shared element {}, which thread {} used with no barrier between", index, access.thread),
            array);
  element.writer = access_now();
}

void* Block::shared(const void* key, void* (*make)(const Site&), void (*destroy)(void*), const Site& site) {
  std::shared_ptr<void>& array = shared_[key];
  if (array == nullptr) array = {make(site), destroy};
  return array.get();
}

void Block::fault(const std::string& what, const Site& site) const {
  const ThreadPlace& at = place();
  throw Fault{fmt::format("[{}] thread {} of block ({}, {}) {} ({})", launch_.kernel.name, at.thread, at.block,
                          at.block_row, what, site_text(site))};
}

std::string Block::waiting_text() const {
  std::map<std::string, std::pair<int, std::uint32_t>>
      places;  // the number of threads that wait there, and the first of them
  for (const Thread& thread : threads_) {
    if (thread.state == State::ended) continue;
    const char* what = thread.state == State::at_barrier ? "at the barrier of" : "in the exchange of";
    auto [found, is_new] =
        places.try_emplace(fmt::format("{} {}", what, site_text(thread.waits_at)), 0, thread.place.thread);
    ++found->second.first;
  }
  std::string text;
  for (const auto& [place, who] : places)
    text += fmt::format("{}{} threads (first {}) wait {}", text.empty() ? "" : "; ", who.first, who.second, place);
  return text;
}

const ThreadPlace& this_thread() { return Request()->place(); }
void block_barrier(const Site& site) { Request()->barrier(site); }
void warp_barrier(std::uint32_t mask, const Site& site) { Request()->warp_barrier(mask, site); }
std::uint64_t shuffle(std::uint32_t mask, std::uint64_t value, std::uint32_t source, const Site& site) {
  return Request()->shuffle(mask, value, source, site);
}
const LaneWords* gather_lanes(const char* kind, const LaneWords& words, const Site& site) {
  return Request()->gather(kind, words, site);
}
void note_reading(const void* address, std::size_t bytes, const Site& site) {
  Request()->reading(address, bytes, site);
}
void note_writing(void* address, std::size_t bytes, const Site& site) { Request()->writing(address, bytes, site); }
void kernel_fault(const std::string& what, const Site& site) { Request()->fault(what, site); }
void note_shared_reading(SharedElement& element, std::size_t index, const Site& array) {
  Request()->shared_reading(element, index, array);
}
void note_shared_writing(SharedElement& element, std::size_t index, const Site& array) {
  Request()->shared_writing(element, index, array);
}
void* shared_array(const void* key, void* (*make)(const Site&), void (*destroy)(void*), const Site& site) {
  return Request()->shared(key, make, destroy, site);
}

}  // namespace weft::cuda
