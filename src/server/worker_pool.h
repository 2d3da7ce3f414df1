#pragma once

// Threads for what takes long and is of no connection: parsing, templates, tokenizing, large answers. Tasks begin in
// the order in which they were added.

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace weft {

class WorkerPool {
 public:
  explicit WorkerPool(int threads) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
  }
  ~WorkerPool() { end(); }
  // Waits for the tasks that run, and drops the others, as those that are added later.
  void end() {
    {
      const std::lock_guard lock(mutex_);
      is_ended_ = true;
      tasks_.clear();
    }
    changed_.notify_all();
    for (std::thread& thread : threads_)
      if (thread.joinable()) thread.join();
  }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // A task must not throw.
  void add(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      if (is_ended_) return;
      tasks_.push_back(std::move(task));
    }
    changed_.notify_one();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return is_ended_ || !tasks_.empty(); });
      if (is_ended_) return;
      std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      task = nullptr;
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool is_ended_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace weft
