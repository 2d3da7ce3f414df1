// Answers for which memory is too short while they are written.

#include "server/generation_table.h"

#include <new>

#include <gtest/gtest.h>

#include "server/json_body.h"
#include "server/metric_families.h"
#include "tests/engine/tiny_model.h"

namespace weft::generation_table_test {

class ShortReply final : public HttpReply {
 public:
  explicit ShortReply(int lacks) : lacks_(lacks) {}
  void add_field(std::string, std::string) override {}
  void send(HttpResponse response) override {
    take_memory();
    answer = std::move(response);
  }
  void send_event(const std::string& event) override {
    take_memory();
    events += event;
  }
  void end() override {}
  void on_gone(std::function<void()>) override {}

  HttpResponse answer{.status = 0};
  std::string events;

 private:
  void take_memory() {
    if (lacks_-- == 0) throw std::bad_alloc();
  }
  int lacks_;  // which call throws; -1: none
};

TEST(GenerationTable, EndsOnlyTheAnswerForWhichMemoryIsTooShort) {
  const TemporaryFolder folder;
  const auto engine = tiny_engine(write_tiny_model(folder));
  const ServedModel model = make_served_model(*engine, {.names = {"tiny"}, .root = "tiny.gguf"});
  MetricValues values = make_metric_values(model.max_model_len);
  GenerationTable* running = nullptr;
  const auto log = [](const std::string&) {};
  EngineLoop loop(
      *engine,
      [&](const StepReport& report) {
        running->deliver(report);
        loop.acknowledge();
        if (running->records().open() == 0) loop.stop();
      },
      log);
  GenerationTable table(model, loop, values, log, [](const std::shared_ptr<RunningRequest>&) {});
  running = &table;
  const auto begin = [&](const std::string& more, int lacks) {
    const JsonBody body(R"({"prompt":"abc","temperature":0,"ignore_eos":true,"max_tokens":5)" + more + "}");
    auto reply = std::make_shared<ShortReply>(lacks);
    table.begin(prepare(read_fields(body.object(), completions), model), "id", 0, reply, MonotonicClock::now());
    return reply;
  };
  const auto first = begin(R"(,"stream":true)", 0), later = begin(R"(,"stream":true)", 2), whole = begin("", 0),
             other = begin("", -1);
  loop.run();
  EXPECT_EQ(first->answer.status, 500) << "no event was sent";
  EXPECT_NE(first->answer.body.find("short of memory"), std::string::npos) << first->answer.body;
  EXPECT_EQ(later->answer.status, 0);
  EXPECT_NE(later->events.find("short of memory"), std::string::npos) << later->events;
  EXPECT_TRUE(later->events.ends_with("data: [DONE]\n\n")) << later->events;
  EXPECT_EQ(whole->answer.status, 500);
  EXPECT_EQ(other->answer.status, 200);
  EXPECT_EQ(loop.load(), 0U);
}

}  // namespace weft::generation_table_test
