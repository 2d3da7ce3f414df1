#include "server/engine_loop.h"

#include <chrono>
#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "tests/engine/tiny_model.h"

namespace weft::engine_loop_test {

// An engine on a thread of its own, and the number of sequences that its first step begins.
class LoopRun {
 public:
  explicit LoopRun(std::chrono::milliseconds longest_wait)
      : engine_(tiny_engine(write_tiny_model(folder_))),
        loop_(
            *engine_,
            [this](const StepReport& report) {
              loop_.acknowledge();
              if (report.has_step && !std::exchange(has_begun_, true)) first_.set_value(report.scheduled.size());
            },
            [](const std::string&) {}, MonotonicClock::now, longest_wait),
        thread_([this] { loop_.run(); }) {}
  ~LoopRun() {
    loop_.stop();
    thread_.join();
  }

  EngineLoop& loop() { return loop_; }
  void submit(Ticket ticket) {
    loop_.submit({{.ticket = ticket,
                   .prompt = std::make_shared<const std::vector<int>>(some_ids(5)),
                   .parameters = std::make_shared<const SamplingParameters>(SamplingParameters{.max_tokens = 2})}});
  }
  std::size_t begun_in_first_step() { return first_.get_future().get(); }

 private:
  const TemporaryFolder folder_;
  std::unique_ptr<Engine> engine_;
  std::promise<std::size_t> first_;
  bool has_begun_ = false;  // of the thread of the engine
  EngineLoop loop_;
  std::thread thread_;
};

TEST(EngineLoop, WaitsForARequestThatIsBeingPrepared) {
  LoopRun run(std::chrono::minutes(1));
  run.loop().begin_preparing();
  run.loop().begin_preparing();
  run.submit(1);
  run.loop().end_preparing();
  // Enough for a step that does not wait to begin.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  run.submit(2);
  run.loop().end_preparing();
  EXPECT_EQ(run.begun_in_first_step(), 2u);
}

TEST(EngineLoop, WaitsNoLongerForARequestThatIsPreparedForLong) {
  LoopRun run(std::chrono::milliseconds(1));
  run.loop().begin_preparing();
  run.submit(1);
  EXPECT_EQ(run.begun_in_first_step(), 1u);
}

}  // namespace weft::engine_loop_test
