#include "server/engine_loop.h"

#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "tests/engine/tiny_model.h"

namespace weft::engine_loop_test {

// An engine on a thread of its own, and the number of sequences that its first step begins.
class LoopRun {
 public:
  LoopRun()
      : engine_(tiny_engine(write_tiny_model(folder_))),
        loop_(
            *engine_,
            [this](const StepReport& report) {
              loop_.acknowledge();
              if (report.has_step && !std::exchange(has_begun_, true)) first_.set_value(report.scheduled.size());
            },
            [](const std::string&) {}),
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

TEST(EngineLoop, WaitsAMomentForRequestsThatAreBeingPrepared) {
  int together = 0;
  // A thread of this test may be stopped for longer than the wait.
  for (int attempt = 0; attempt < 10; ++attempt) {
    LoopRun run;
    run.loop().begin_preparing();
    run.loop().begin_preparing();
    run.submit(1);
    run.loop().end_preparing();
    std::this_thread::sleep_for(std::chrono::microseconds(300));
    run.submit(2);
    run.loop().end_preparing();
    together += run.begun_in_first_step() == 2 ? 1 : 0;
  }
  EXPECT_GT(together, 0);
}

TEST(EngineLoop, WaitsNoLongerForARequestThatIsPreparedForLong) {
  LoopRun run;
  run.loop().begin_preparing();
  run.submit(1);
  EXPECT_EQ(run.begun_in_first_step(), 1U);
}

}  // namespace weft::engine_loop_test
