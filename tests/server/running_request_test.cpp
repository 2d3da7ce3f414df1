// How answers end that do not end by themselves.

#include "server/running_request.h"

#include <gtest/gtest.h>

namespace weft::running_request_test {

class RecordedReply final : public HttpReply {
 public:
  void add_field(std::string, std::string) override {}
  void send(HttpResponse response) override {
    status = response.status;
    body = std::move(response.body);
  }
  void send_event(const std::string& event) override { events.push_back(event); }
  void end() override { has_ended = true; }
  void on_gone(std::function<void()>) override {}

  int status = 0;
  std::string body;
  std::vector<std::string> events;
  bool has_ended = false;
};

class Request final : public RunningRequest {
 public:
  explicit Request(std::shared_ptr<HttpReply> reply, bool is_stream = true, std::string last_event = "")
      : RunningRequest(std::move(reply), is_stream, std::move(last_event)) {}

  std::vector<Sequence> begin(std::uint64_t) override { return {}; }
  void take(const SequenceEvent& event) override {
    if (event.event.finished == FinishReason::failed) return fail(event.event);
    send_event(event.event.text);
  }
  std::vector<Ticket> open_tickets() const override { return {}; }
  std::size_t size() const override { return 1; }

 private:
  void cut_stream() override {
    send_event("cut");
    end_stream();
  }
};

const SequenceEvent kText{.event = {.text = "a"}};
const SequenceEvent kFailed{.event = {.finished = FinishReason::failed, .error = "/a/path"}};

TEST(RunningRequest, TellsTheClientWhatItsOwnAnswerFailedBy) {
  const auto reply = std::make_shared<RecordedReply>();
  Request(reply).take(
      {.event = {.finished = FinishReason::failed, .error = "[sampling] no token", .cause = FailureCause::answer}});
  EXPECT_EQ(parse_json(reply->body)["error"]["message"], "[sampling] no token");
}

TEST(RunningRequest, FailsWithAStatusOrAnEvent) {
  const auto before = std::make_shared<RecordedReply>(), after = std::make_shared<RecordedReply>(),
             plain = std::make_shared<RecordedReply>();
  Request(before).take(kFailed);
  EXPECT_EQ(before->status, 500);
  EXPECT_TRUE(before->events.empty());
  Request failed(after, true, "data: [DONE]\n\n");
  failed.take(kText);
  failed.take(kFailed);
  EXPECT_TRUE(failed.is_over());
  EXPECT_EQ(failed.error(), "/a/path") << "for the log";
  ASSERT_EQ(after->events.size(), 3U);
  EXPECT_EQ(parse_json(after->events[1].substr(6))["error"]["code"], 500);
  EXPECT_EQ(after->events[1].find("/a/path"), std::string::npos) << "not for clients";
  EXPECT_EQ(after->events[2], "data: [DONE]\n\n");
  EXPECT_TRUE(after->has_ended);
  Request without(plain);
  without.take(kText);
  without.take(kFailed);
  EXPECT_EQ(plain->events.size(), 2U) << "an empty event would end the chunks";
  EXPECT_TRUE(plain->has_ended);
}

TEST(RunningRequest, IsAbortedWithAStatusOrCut) {
  const auto before = std::make_shared<RecordedReply>(), after = std::make_shared<RecordedReply>();
  Request(before).abort();
  EXPECT_EQ(before->status, 503);
  Request cut(after);
  cut.take(kText);
  cut.abort();
  cut.abort();
  EXPECT_EQ(after->events, (std::vector<std::string>{"data: \"a\"\n\n", "data: \"cut\"\n\n"}));
  EXPECT_TRUE(after->has_ended);
}

TEST(RunningRequest, GetsACommentAfterFourSilentIntervals) {
  const auto reply = std::make_shared<RecordedReply>(), whole = std::make_shared<RecordedReply>();
  Request stream(reply), in_one_piece(whole, false);
  const auto wait = [&](int intervals) {
    for (int i = 0; i < intervals; ++i) {
      stream.keep_alive();
      in_one_piece.keep_alive();
    }
  };
  wait(3);
  EXPECT_TRUE(reply->events.empty());
  wait(1);
  ASSERT_EQ(reply->events.size(), 1U);
  EXPECT_TRUE(reply->events[0].starts_with(":"));
  wait(3);
  stream.take(kText);
  wait(3);
  EXPECT_EQ(reply->events.size(), 2U) << "an event begins the interval again";
  stream.abort();
  EXPECT_EQ(reply->status, 0) << "a comment has sent the status already";
  wait(4);
  EXPECT_EQ(reply->events.size(), 3U) << "it is over";
  EXPECT_TRUE(whole->events.empty());
}

}  // namespace weft::running_request_test
