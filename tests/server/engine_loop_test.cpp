#include "server/engine_loop.h"

#include <array>
#include <chrono>
#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "tests/engine/tiny_model.h"

namespace weft::engine_loop_test {

// An engine on a thread of its own, and the number of sequences that begin together, for the first times that any do.
class LoopRun {
 public:
  explicit LoopRun(std::chrono::milliseconds longest_wait)
      : engine_(tiny_engine(write_tiny_model(folder_))),
        loop_(
            *engine_,
            [this](const StepReport& report) {
              loop_.acknowledge();
              if (!report.scheduled.empty()) begun_.at(times_++).set_value(report.scheduled.size());
              for (const SequenceEvent& one : report.events)
                if (one.event.finished != FinishReason::none && ++ended_ == 2) two_ended_.set_value();
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
  std::size_t begun_together(std::size_t time = 0) { return begun_.at(time).get_future().get(); }
  void wait_for_two_ends() { two_ended_.get_future().get(); }

 private:
  const TemporaryFolder folder_;
  std::unique_ptr<Engine> engine_;
  std::array<std::promise<std::size_t>, 2> begun_;
  std::promise<void> two_ended_;
  std::size_t times_ = 0, ended_ = 0;  // of the thread of the engine
  EngineLoop loop_;
  std::thread thread_;
};

// Requests of a test arrive within a part of it.
constexpr std::chrono::seconds kLong(4);

TEST(EngineLoop, WaitsForARequestThatIsBeingPrepared) {
  LoopRun run(kLong);
  run.loop().begin_preparing();
  run.loop().begin_preparing();
  run.submit(1);
  run.loop().end_preparing();
  // Enough for a step that does not wait to begin.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  run.submit(2);
  run.loop().end_preparing();
  EXPECT_EQ(run.begun_together(), 2u);
}

TEST(EngineLoop, WaitsForAsManyRequestsAsEndedTogether) {
  LoopRun run(kLong);
  run.loop().begin_preparing();
  run.submit(1);
  run.submit(2);
  run.loop().end_preparing();
  run.wait_for_two_ends();
  run.submit(3);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  run.submit(4);
  EXPECT_EQ(run.begun_together(1), 2u);
}

TEST(EngineLoop, WaitsAMomentForRequestsThatNothingAnnounces) {
  LoopRun run(kLong);
  run.submit(1);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  run.submit(2);
  EXPECT_EQ(run.begun_together(), 2u);
}

TEST(EngineLoop, WaitsNoLongerForARequestThatIsPreparedForLong) {
  LoopRun run(std::chrono::milliseconds(1));
  run.loop().begin_preparing();
  run.submit(1);
  EXPECT_EQ(run.begun_together(), 1u);
}

}  // namespace weft::engine_loop_test
