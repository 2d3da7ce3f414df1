#pragma once

// Threads for what takes long and is of no connection: parsing, templates, tokenizing, large answers. Tasks begin in
// the order in which they were added.

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "server/memory_wait.h"

namespace weft {

class WorkerPool {
 public:
  // Runs a function on the I/O thread.
  using Post = std::function<void(std::function<void()>)>;

  WorkerPool(int threads, Post post) : post_(std::move(post)) {
    for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run_tasks(); });
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

  // `work` runs on a thread of the pool. After it `end` runs on the I/O thread and is destroyed there. If `work`
  // throws, such as std::bad_alloc, `end` runs all the same, and has to see that there is no result.
  void add(std::function<void()> work, std::function<void()> end) {
    auto task = std::make_shared<Task>(Task{std::move(work), std::move(end)});
    {
      const std::lock_guard lock(mutex_);
      if (is_ended_) return;
      tasks_.push_back(std::move(task));
    }
    changed_.notify_one();
  }

 private:
  struct Task {
    std::function<void()> work, end;
  };

  void run_tasks() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return is_ended_ || !tasks_.empty(); });
      if (is_ended_) return;
      std::shared_ptr<Task> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      run(task);
      task = nullptr;
      lock.lock();
    }
  }

  void run(const std::shared_ptr<Task>& task) {
    try {
      task->work();
    } catch (...) {  // an exception that leaves a thread ends the process
    }
    task->work = nullptr;
    wait_for_memory([&] {
      post_([task] {
        const std::function<void()> end = std::move(task->end);
        end();
      });
    });
  }

  Post post_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Task>> tasks_;
  bool is_ended_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace weft
