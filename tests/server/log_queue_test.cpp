#include "server/log_queue.h"

#include <atomic>
#include <future>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace weft::log_queue_test {

using Lines = std::vector<std::string>;

TEST(LogQueue, WritesAllLinesInTheirOrderBeforeItEnds) {
  Lines written, wanted;
  {
    LogQueue log([&](const std::string& line) { written.push_back(line); });
    for (int i = 0; i < 1000; ++i) {
      wanted.push_back(std::to_string(i));
      log.add(wanted.back());
    }
  }
  EXPECT_EQ(written, wanted);
}

TEST(LogQueue, CountsTheLinesThatItDropsWhileTheReaderBlocks) {
  Lines written;
  std::promise<void> blocked, goes_on;
  std::shared_future<void> waits = goes_on.get_future();
  {
    LogQueue log(
        [&](const std::string& line) {
          if (line == "first") {
            blocked.set_value();
            waits.wait();
          }
          written.push_back(line);
        },
        10);
    log.add("first");
    blocked.get_future().wait();  // the line waits no more
    for (const char* line : {"12345", "67890", "a", "b", "c"}) log.add(line);
    goes_on.set_value();
  }
  ASSERT_EQ(written.size(), 4U);
  EXPECT_EQ((Lines{written.begin(), written.begin() + 3}), (Lines{"first", "12345", "67890"}));
  EXPECT_TRUE(written[3].starts_with("3 lines")) << written[3];
}

TEST(LogQueue, EndsWhileTheReaderBlocks) {
  struct Reader {
    std::promise<void> goes_on;
    std::atomic<int> written = 0;
  };
  const auto reader = std::make_shared<Reader>();
  std::shared_future<void> waits = reader->goes_on.get_future();
  {
    LogQueue log([reader, waits](const std::string&) {
      waits.wait();
      ++reader->written;
    });
    log.add("a");
    log.add("b");
  }
  EXPECT_EQ(reader->written, 0);
  reader->goes_on.set_value();
  for (int i = 0; i < 1000 && reader->written < 2; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(reader->written, 2);
}

}  // namespace weft::log_queue_test
