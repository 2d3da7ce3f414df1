#include "base/thread_pool.h"

#include <atomic>
#include <chrono>
#include <exception>
#include <limits>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "base/error.h"

namespace weft {
namespace {

// Longer than the serial work between two kernels, shorter than what a sleeping core would save.
constexpr std::chrono::microseconds kSpinTime{40};

// Two lines, because the neighbour-line prefetcher of x86 pairs them.
constexpr std::size_t kSeparation = 128;

void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns once `word` differs from `old`: spins first, then sleeps in the kernel.
void wait_while_equal(const std::atomic<std::uint32_t>& word, std::uint32_t old) {
  const auto limit = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int i = 0; i < 32; ++i) {
      if (word.load(std::memory_order_acquire) != old) return;
      pause_briefly();
    }
  } while (std::chrono::steady_clock::now() < limit);
  word.wait(old, std::memory_order_acquire);
}

// The pools whose chunks this thread is inside of, innermost first.
struct Inside {
  const void* pool;
  int thread;
  const Inside* outer;
};
thread_local const Inside* innermost = nullptr;

class EnterPool {
 public:
  EnterPool(const void* pool, int thread) : entry_{pool, thread, innermost} { innermost = &entry_; }
  ~EnterPool() { innermost = entry_.outer; }
  EnterPool(const EnterPool&) = delete;
  EnterPool& operator=(const EnterPool&) = delete;

 private:
  Inside entry_;
};

// The exception of the lowest chunk, so that what the caller sees does not depend on the threads.
class FirstFailure {
 public:
  void offer(std::int64_t chunk, std::exception_ptr error) {
    std::lock_guard lock(mutex_);
    if (chunk >= chunk_) return;
    chunk_ = chunk;
    error_.swap(error);
  }

  void rethrow_if_any() {
    std::exception_ptr error;
    {
      std::lock_guard lock(mutex_);
      chunk_ = kNone;
      error_.swap(error);
    }
    if (error) std::rethrow_exception(std::move(error));
  }

 private:
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  std::mutex mutex_;
  std::int64_t chunk_ = kNone;
  std::exception_ptr error_;
};

}  // namespace

// How a run stays apart from the next one. A thread first claims a chunk (one atomic decrement of a share's `left`) and
// only then reads the fields of the run. A run ends when every claimed chunk is counted off, so while a thread holds a
// claim the fields are those of the claim's run. A worker that comes late finds every `left` at zero or claims from
// the run that is current by then; there is no copy of an old run it could act on.
struct ThreadPool::State {
  // One thread's contiguous chunks [end - left, end). `left` goes below zero when several threads find it empty at
  // once.
  struct alignas(kSeparation) Share {
    std::atomic<std::int64_t> left{0};
    std::int64_t end = 0;
  };

  explicit State(int threads) : shares(static_cast<std::size_t>(threads)) {}

  // Written by the caller between runs, read under a claim.
  Function function = nullptr;
  void* body = nullptr;
  std::uint32_t run_number = 0;
  std::vector<Share> shares;

  alignas(kSeparation) std::atomic<std::int64_t> unfinished{0};  // chunks of this run not counted off
  alignas(kSeparation) std::atomic<std::uint32_t> started{0};    // number of the newest run
  std::atomic<bool> stopping{false};
  alignas(kSeparation) std::atomic<std::uint32_t> finished{0};  // number of the newest run with nothing unfinished
  std::atomic<bool> busy{false};
  FirstFailure failure;
  std::vector<std::thread> workers;

  void begin(std::int64_t chunks, Function run_function, void* run_body);
  std::int64_t drain_share(Share& share, int thread);
  void work(int thread);
  void worker(int thread);
  void stop();
};

void ThreadPool::State::begin(std::int64_t chunks, Function run_function, void* run_body) {
  function = run_function;
  body = run_body;
  ++run_number;
  unfinished.store(chunks, std::memory_order_relaxed);
  const auto count = static_cast<std::int64_t>(shares.size());
  const std::int64_t each = chunks / count;
  const std::int64_t with_one_more = chunks % count;
  std::int64_t end = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t length = each + (i < with_one_more ? 1 : 0);
    end += length;
    Share& share = shares[static_cast<std::size_t>(i)];
    share.end = end;
    share.left.store(length, std::memory_order_release);
  }
  started.store(run_number, std::memory_order_seq_cst);
  started.notify_all();
}

// Runs the chunks this thread gets from the share and returns how many.
std::int64_t ThreadPool::State::drain_share(Share& share, int thread) {
  std::int64_t done = 0;
  while (share.left.load(std::memory_order_relaxed) > 0) {
    const std::int64_t left = share.left.fetch_sub(1, std::memory_order_acq_rel);
    if (left <= 0) break;
    const std::int64_t chunk = share.end - left;
    try {
      function(body, chunk, thread);
    } catch (...) {
      failure.offer(chunk, std::current_exception());
    }
    ++done;
  }
  return done;
}

// Runs chunks, own share first, until none is left to claim, then counts them off together.
void ThreadPool::State::work(int thread) {
  std::int64_t done = 0;
  const auto count = static_cast<int>(shares.size());
  for (int i = 0; i < count; ++i) {
    const int owner = thread + i < count ? thread + i : thread + i - count;
    done += drain_share(shares[static_cast<std::size_t>(owner)], thread);
  }
  if (done == 0) return;
  // Read before the count: the next run may begin right after it.
  const std::uint32_t number = run_number;
  if (unfinished.fetch_sub(done, std::memory_order_acq_rel) == done) {
    finished.store(number, std::memory_order_seq_cst);
    finished.notify_one();
  }
}

void ThreadPool::State::worker(int thread) {
  const EnterPool inside(this, thread);
  std::uint32_t seen = 0;
  while (true) {
    wait_while_equal(started, seen);
    if (stopping.load(std::memory_order_relaxed)) return;
    seen = started.load(std::memory_order_acquire);
    work(thread);
  }
}

void ThreadPool::State::stop() {
  stopping.store(true, std::memory_order_relaxed);
  started.store(++run_number, std::memory_order_seq_cst);
  started.notify_all();
  for (std::thread& worker : workers) worker.join();
}

ThreadPool::ThreadPool(int threads) : threads_(threads) {
  CHECK(threads >= 1, "[thread_pool] needs at least 1 thread, but got {}", threads);
  state_ = std::make_unique<State>(threads);
  state_->workers.reserve(static_cast<std::size_t>(threads - 1));
  try {
    for (int thread = 1; thread < threads; ++thread) {
      state_->workers.emplace_back([state = state_.get(), thread] { state->worker(thread); });
    }
  } catch (const std::system_error& error) {
    const std::size_t created = state_->workers.size() + 1;
    state_->stop();
    fail_device("[thread_pool] wanted {} threads, but the system gave only {}: {}", threads, created, error.what());
  }
}

ThreadPool::~ThreadPool() { state_->stop(); }

void ThreadPool::run_inline(std::int64_t chunks, Function function, void* body, int thread) {
  const EnterPool inside(state_.get(), thread);
  std::exception_ptr first;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    try {
      function(body, chunk, thread);
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(std::move(first));
}

void ThreadPool::run_erased(std::int64_t chunks, Function function, void* body) {
  CHECK(chunks >= 0, "[thread_pool] needs 0 chunks or more, but got {}", chunks);
  if (chunks == 0) return;
  for (const Inside* inside = innermost; inside != nullptr; inside = inside->outer) {
    if (inside->pool == state_.get()) return run_inline(chunks, function, body, inside->thread);
  }

  State& state = *state_;
  CHECK(!state.busy.exchange(true, std::memory_order_acquire), "[thread_pool] two threads run loops on one pool");
  struct Release {
    std::atomic<bool>& busy;
    ~Release() { busy.store(false, std::memory_order_release); }
  } release{state.busy};

  if (chunks == 1 || threads_ == 1) return run_inline(chunks, function, body, 0);

  state.begin(chunks, function, body);
  const std::uint32_t number = state.run_number;
  {
    const EnterPool inside(&state, 0);
    state.work(0);
  }
  for (std::uint32_t seen; (seen = state.finished.load(std::memory_order_acquire)) != number;) {
    wait_while_equal(state.finished, seen);
  }
  state.failure.rethrow_if_any();
}

}  // namespace weft
