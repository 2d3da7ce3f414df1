#include "server/worker_pool.h"

#include <future>
#include <new>

#include <gtest/gtest.h>

namespace weft::worker_pool_test {

TEST(WorkerPool, ConcurrentWorkThatThrowsIsFollowedByItsEnd) {
  int lacks = 2;  // of memory, to post an end
  WorkerPool pool(1, [&lacks](const std::function<void()>& task) {
    if (lacks-- > 0) throw std::bad_alloc();
    task();
  });
  std::promise<void> first, second;
  pool.add([] { throw std::bad_alloc(); }, [&first] { first.set_value(); });
  pool.add([] {}, [&second] { second.set_value(); });
  first.get_future().wait();
  second.get_future().wait();
  pool.end();
  EXPECT_EQ(lacks, -2) << "each end was posted once";
}

}  // namespace weft::worker_pool_test
