#include "parallel/thread_pool.h"

#include <algorithm>
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

// Longer than the serial work between two kernels, but so short that sleeping instead would save little.
constexpr std::chrono::microseconds kSpinTime{40};
// For workers that have a core each. Longer than the caller's serial work between two steps of a model (measured: 30 to
// 90 us), because a sleeping worker starts 20 to 50 us late.
constexpr std::chrono::microseconds kLongSpinTime{100};

// A claim takes 1 / kClaimsOfAShare of the remaining chunks of a share. The first claims are large, so there are few of
// them; the last claims are single chunks, so at the end threads wait for only one chunk.
constexpr std::int64_t kClaimsOfAShare = 4;

// The number of checks without a pause between them at the start of a spin. A pause can take half as long as passing
// data from core to core (50 ns on Sapphire Rapids), which is too long if the condition is about to become true.
constexpr int kHastyQuestions = 256;

// Two cache lines, because the adjacent-line prefetcher of x86 loads lines in pairs.
constexpr std::size_t kSeparation = 128;

void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Checks repeatedly, for at most `time`, until the condition is true. Returns whether it became true.
template <class Question>
bool spin_until(const Question& question, std::chrono::microseconds time) {
  for (int i = 0; i < kHastyQuestions; ++i)
    if (question()) return true;
  const auto limit = std::chrono::steady_clock::now() + time;
  do {
    for (int i = 0; i < 32; ++i) {
      if (question()) return true;
      pause_briefly();
    }
  } while (std::chrono::steady_clock::now() < limit);
  return false;
}

// The pools in whose chunks this thread is running, innermost first.
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

// Keeps the exception of the lowest chunk, so that the caller's result does not depend on the scheduling.
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

// A counter with a constant rate. Reading it takes a third of the time of the system clock, which matters because
// chunks are short.
std::int64_t ticks() {
#if defined(__x86_64__) || defined(__i386__)
  return static_cast<std::int64_t>(__builtin_ia32_rdtsc());
#else
  return std::chrono::steady_clock::now().time_since_epoch().count();
#endif
}

struct alignas(kSeparation) BusyTicks {
  std::int64_t count = 0;
};

}  // namespace

// How consecutive runs are kept separate: a thread first claims chunks (by an atomic update of a share's `left`) and
// only then reads the other fields of the share. A run ends when all claimed chunks have been counted, so while a
// thread holds a claim, these fields belong to the run of the claim. A late worker finds each `left` at zero, or claims
// from the current run. It has no copy of an old run that it could act on.
//
// Passing a cache line from core to core takes about 0.1 us, and a decode step has a hundred short runs. So a worker
// finds all the data that it needs to begin in the line on which it spins, it counts its own chunks before it searches
// other shares, and the caller spins on that counter directly.
struct ThreadPool::State {
  // The contiguous chunks [end - left, end) of one thread. The caller writes the other fields between runs; threads
  // read them while they hold a claim.
  struct alignas(kSeparation) Share {
    std::atomic<std::int64_t> left{0};
    std::int64_t end = 0;
    Function function = nullptr;
    void* body = nullptr;
  };

  explicit State(int threads)
      : shares(static_cast<std::size_t>(threads)),
        worker_spin(static_cast<unsigned>(threads) <= std::thread::hardware_concurrency() ? kLongSpinTime : kSpinTime) {
  }

  std::vector<Share> shares;
  std::chrono::microseconds worker_spin;

  alignas(kSeparation) std::atomic<std::int64_t> unfinished{0};  // chunks of this run that are not counted yet
  // Sleepers wait for a change of these counters: the number of runs, and the number of runs whose last chunk a worker
  // finished.
  alignas(kSeparation) std::atomic<std::uint32_t> started{0};
  std::atomic<bool> stopping{false};
  alignas(kSeparation) std::atomic<std::uint32_t> finished{0};
  std::atomic<bool> busy{false};
  FirstFailure failure;
  RunTimes* times = nullptr;          // null: no measurement
  std::vector<BusyTicks> busy_ticks;  // of this run, by thread; empty before the first measure()
  std::vector<std::thread> workers;

  void begin(std::int64_t chunks, Function run_function, void* run_body);
  void drain_share(Share& share, int thread);
  void run_claimed(const Share& share, std::int64_t first, std::int64_t last, int thread);
  void work(int thread);
  void wait_for_run(const Share& own) const;
  void wait_for_end() const;
  void worker(int thread);
  void stop();
};

void ThreadPool::State::begin(std::int64_t chunks, Function run_function, void* run_body) {
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
    share.function = run_function;
    share.body = run_body;
    share.left.store(length, std::memory_order_release);
  }
  started.fetch_add(1, std::memory_order_seq_cst);
  started.notify_all();
}

// Claims chunks of the share until none is left, runs them and counts them.
void ThreadPool::State::drain_share(Share& share, int thread) {
  std::int64_t done = 0;
  std::int64_t left = share.left.load(std::memory_order_relaxed);
  while (left > 0) {
    const std::int64_t claim = (left + kClaimsOfAShare - 1) / kClaimsOfAShare;
    if (!share.left.compare_exchange_weak(left, left - claim, std::memory_order_acq_rel, std::memory_order_relaxed))
      continue;
    const std::int64_t first = share.end - left;
    run_claimed(share, first, first + claim, thread);
    done += claim;
    left = share.left.load(std::memory_order_relaxed);
  }
  // The next run may begin immediately after the subtraction. If the last chunks were the caller's own, it is not
  // asleep.
  if (done == 0 || unfinished.fetch_sub(done, std::memory_order_acq_rel) != done || thread == 0) return;
  finished.fetch_add(1, std::memory_order_seq_cst);
  finished.notify_one();
}

void ThreadPool::State::run_claimed(const Share& share, std::int64_t first, std::int64_t last, int thread) {
  const std::int64_t start = times == nullptr ? 0 : ticks();
  for (std::int64_t chunk = first; chunk < last; ++chunk) {
    try {
      share.function(share.body, chunk, thread);
    } catch (...) {
      failure.offer(chunk, std::current_exception());
    }
  }
  if (times != nullptr) busy_ticks[static_cast<std::size_t>(thread)].count += ticks() - start;
}

// Runs chunks, those of its own share first, until none is left to claim.
void ThreadPool::State::work(int thread) {
  const auto count = static_cast<int>(shares.size());
  for (int i = 0; i < count; ++i) {
    const int owner = thread + i < count ? thread + i : thread + i - count;
    drain_share(shares[static_cast<std::size_t>(owner)], thread);
  }
}

// Returns when a share has chunks or the pool stops. Spins on its own share, then sleeps unless another share has
// chunks.
void ThreadPool::State::wait_for_run(const Share& own) const {
  const auto has_chunks = [](const Share& share) { return share.left.load(std::memory_order_acquire) > 0; };
  while (!spin_until([&] { return has_chunks(own); }, worker_spin)) {
    const std::uint32_t newest = started.load(std::memory_order_acquire);
    if (stopping.load(std::memory_order_relaxed) || std::any_of(shares.begin(), shares.end(), has_chunks)) return;
    started.wait(newest, std::memory_order_acquire);
  }
}

void ThreadPool::State::wait_for_end() const {
  const auto has_ended = [&] { return unfinished.load(std::memory_order_acquire) == 0; };
  while (!spin_until(has_ended, kSpinTime)) {
    const std::uint32_t seen = finished.load(std::memory_order_acquire);
    if (!has_ended()) finished.wait(seen, std::memory_order_acquire);
  }
}

void ThreadPool::State::worker(int thread) {
  const EnterPool inside(this, thread);
  while (true) {
    wait_for_run(shares[static_cast<std::size_t>(thread)]);
    if (stopping.load(std::memory_order_relaxed)) return;
    work(thread);
  }
}

void ThreadPool::State::stop() {
  stopping.store(true, std::memory_order_relaxed);
  started.fetch_add(1, std::memory_order_seq_cst);
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
  if (state.times != nullptr) return run_measured(chunks, function, body);
  run_shared(chunks, function, body);
}

void ThreadPool::run_shared(std::int64_t chunks, Function function, void* body) {
  State& state = *state_;
  state.begin(chunks, function, body);
  {
    const EnterPool inside(&state, 0);
    state.work(0);
  }
  state.wait_for_end();
  state.failure.rethrow_if_any();
}

void ThreadPool::run_measured(std::int64_t chunks, Function function, void* body) {
  State& state = *state_;
  for (BusyTicks& busy : state.busy_ticks) busy.count = 0;
  const auto start = std::chrono::steady_clock::now();
  const std::int64_t first_tick = ticks();
  run_shared(chunks, function, body);
  const std::int64_t wall_ticks = std::max<std::int64_t>(ticks() - first_tick, 1);
  const std::chrono::nanoseconds wall = std::chrono::steady_clock::now() - start;
  double busy_ticks = 0;
  for (const BusyTicks& busy : state.busy_ticks) busy_ticks += static_cast<double>(busy.count);
  const double share = busy_ticks / static_cast<double>(wall_ticks);  // the average number of busy threads
  state.times->wall += wall;
  state.times->busy += std::chrono::nanoseconds(static_cast<std::int64_t>(static_cast<double>(wall.count()) * share));
  ++state.times->runs;
}

void ThreadPool::measure(RunTimes* times) {
  state_->times = times;
  state_->busy_ticks.resize(static_cast<std::size_t>(threads_));
}

}  // namespace weft
