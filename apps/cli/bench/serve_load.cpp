#include "apps/cli/bench/serve_load.h"

#include <algorithm>
#include <chrono>
#include <deque>

#include <fmt/format.h>
#include <simdjson.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace weft {
namespace {

using Time = std::chrono::steady_clock::time_point;

class Load {
 public:
  Load(const LoadTarget& target, const std::vector<LoadRequest>& requests)
      : target_(target),
        requests_(requests),
        client_(target.server),
        progress_(requests.size()),
        outcomes_(requests.size()) {}

  LoadResult run() {
    begin_ = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < requests_.size(); ++i)
      client_.after(std::chrono::duration<double>(requests_[i].send_at), [this, i] { release(i); });
    client_.run();
    return {.outcomes = std::move(outcomes_), .duration = duration_};
  }

 private:
  struct Progress {
    double released = 0;    // when the request was to be sent
    double last_event = 0;  // with choices
    std::int64_t events = 0;
    bool has_usage = false;
  };

  double now() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

  void release(std::size_t i) {
    progress_[i].released = now();
    waiting_.push_back(i);
    send_waiting();
  }

  void send_waiting() {
    while (!waiting_.empty() && (!target_.max_concurrency || open_ < *target_.max_concurrency)) {
      const std::size_t i = waiting_.front();
      waiting_.pop_front();
      send(i);
    }
  }

  void send(std::size_t i) {
    ++open_;
    ServeOutcome& outcome = outcomes_[i];
    outcome.start = progress_[i].last_event = now();
    outcome.queue_time = outcome.start - progress_[i].released;
    outcome.prompt_tokens = requests_[i].prompt_tokens;
    HttpFields fields = target_.fields;
    fields.insert(fields.end(), requests_[i].fields.begin(), requests_[i].fields.end());
    client_.send({.path = target_.path,
                  .fields = std::move(fields),
                  .body = requests_[i].body,
                  .on_event = [this, i](std::string_view data) { take_event(i, data); },
                  .on_end = [this, i](int status, const std::string& body) { finish(i, status, body); }});
  }

  void take_event(std::size_t i, std::string_view data) {
    if (data == "[DONE]") return;
    ServeOutcome& outcome = outcomes_[i];
    Progress& progress = progress_[i];
    const double time = now();
    simdjson::dom::element event;
    if (parser_.parse(data.data(), data.size()).get(event) != simdjson::SUCCESS ||
        event["error"].error() == simdjson::SUCCESS) {
      outcome.error = data;
      return;
    }
    simdjson::dom::array choices;
    if (event["choices"].get(choices) == simdjson::SUCCESS && choices.size() > 0) {
      if (progress.events++ == 0) {
        outcome.first_token = time - outcome.start;
      } else {
        outcome.gaps.push_back(time - progress.last_event);
      }
      progress.last_event = time;
      outcome.latency = time - outcome.start;
      std::string_view text;
      const simdjson::dom::element choice = choices.at(0);
      if (choice["text"].get(text) == simdjson::SUCCESS || choice["delta"]["content"].get(text) == simdjson::SUCCESS)
        outcome.text += text;
    }
    std::int64_t tokens = 0;
    if (event["usage"]["completion_tokens"].get(tokens) != simdjson::SUCCESS) return;
    progress.has_usage = true;
    outcome.output_tokens = tokens;
    if (event["usage"]["prompt_tokens"].get(tokens) == simdjson::SUCCESS) outcome.prompt_tokens = tokens;
  }

  void finish(std::size_t i, int status, const std::string& body) {
    ServeOutcome& outcome = outcomes_[i];
    const Progress& progress = progress_[i];
    if (!progress.has_usage) outcome.output_tokens = progress.events;
    if (status == 0) {
      outcome.error = body;
    } else if (status != 200) {
      outcome.error = fmt::format("status {}: {}", status, body);
    } else if (progress.events == 0 && outcome.error.empty()) {
      outcome.error = "the response has no event with choices: is it a stream?";
    }
    outcome.is_success = outcome.error.empty();
    --open_;
    duration_ = now();
    send_waiting();
  }

  const LoadTarget& target_;
  const std::vector<LoadRequest>& requests_;
  StreamClient client_;
  simdjson::dom::parser parser_;
  Time begin_;
  double duration_ = 0;
  std::int64_t open_ = 0;
  std::deque<std::size_t> waiting_;
  std::vector<Progress> progress_;
  std::vector<ServeOutcome> outcomes_;
};

}  // namespace

LoadResult send_load(const LoadTarget& target, const std::vector<LoadRequest>& requests) {
  return Load(target, requests).run();
}

ListedModel first_model(const LoadTarget& target) {
  const std::string path = target.path + "/v1/models";
  ListedModel model;
  StreamClient client(target.server);
  client.send(
      {.method = "GET", .path = path, .fields = target.fields, .on_end = [&](int status, const std::string& body) {
         USER_CHECK(status != 0, "[--model] is not given, and {} cannot be read: {}", path, body);
         USER_CHECK(status == 200, "[--model] is not given, and {} wanted status 200, but got {}: {}", path, status,
                    quote(body, 500));
         const Json list = parse_json(body);
         const Json data = list.is_object() ? list.value("data", Json()) : Json();
         USER_CHECK(data.is_array() && !data.empty() && data[0].is_object() && data[0].contains("id") &&
                        data[0]["id"].is_string(),
                    "[--model] is not given, and {} lists no model: {}", path, quote(body, 500));
         model.name = data[0]["id"];
         model.root =
             data[0].contains("root") && data[0]["root"].is_string() ? data[0]["root"].get<std::string>() : model.name;
       }});
  client.run();
  return model;
}

}  // namespace weft
