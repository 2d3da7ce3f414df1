#include "server/batch_run.h"

#include <istream>
#include <ostream>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "io/byte_order_mark.h"
#include "server/api_error.h"
#include "server/json_body.h"
#include "server/metric_families.h"
#include "server/names.h"

namespace weft {
namespace {

// Lines that are read and not written: the memory that a file of any length takes.
constexpr std::size_t kMostLines = 4096;

struct BatchUrl {
  std::string_view url;
  Endpoint endpoint;
};
constexpr BatchUrl kUrls[] = {{"/v1/chat/completions", chat}, {"/v1/completions", completions},
                              {"/v1/responses", responses},   {"/v1/embeddings", embeddings},
                              {"/v1/score", score},           {"/v1/rerank", rerank},
                              {"/classify", classify},        {"/pooling", raw_pooling}};

const BatchUrl* find_url(std::string_view url) {
  for (const BatchUrl& known : kUrls)
    if (known.url == url) return &known;
  return nullptr;
}

std::string_view text_of(simdjson::dom::object line, std::string_view key) {
  std::string_view text;
  const auto value = last_member(line, key);
  if (!value || value->get(text) != simdjson::SUCCESS)
    throw wrong_type(fmt::format("[{}] must be a text", key), std::string(key));
  return text;
}

}  // namespace

// Takes the answer to one line; a batch has no streams and no client that disconnects.
class BatchRun::LineReply final : public HttpReply {
 public:
  LineReply(BatchRun& run, std::size_t index) : run_(run), index_(index) {}
  void add_field(std::string, std::string) override {}
  void send(HttpResponse response) override {
    if (!run_.is_answered(index_)) run_.answer(index_, response);
  }
  void send_event(const std::string&) override { CHECK(false, "a line of a batch is answered in one piece"); }
  void end() override {}
  void on_gone(std::function<void()>) override {}

 private:
  BatchRun& run_;
  std::size_t index_;
};

BatchRun::BatchRun(Engine& engine, const ServedModel& model, std::istream& in, std::ostream& out,
                   const std::function<void(const std::string&)>& log)
    : model_(model),
      in_(in),
      out_(out),
      log_(log),
      unknown_(log),
      loop_(
          engine,
          [this](const StepReport& report) {
            generations_.deliver(report);
            read_lines();
            if (is_over()) loop_.stop();
            loop_.acknowledge();
          },
          log),
      values_(make_metric_values(model.max_model_len)),
      generations_(model, loop_, values_, log, [](const std::shared_ptr<RunningRequest>& answer) {
        // Nothing waits for this thread but the next step.
        answer->write_answer();
        answer->send_written();
      }) {}

BatchRun::Counts BatchRun::run() {
  read_lines();
  if (!is_over()) loop_.run();
  return counts_;
}

void BatchRun::read_lines() {
  std::string text;
  while (!is_read_ && lines_.size() < kMostLines) {
    if (!std::getline(in_, text)) {
      USER_CHECK(!in_.bad(), "[input] cannot be read after line {}", lines_read_);
      is_read_ = true;
      return;
    }
    if (++lines_read_ == 1) text = std::string(without_byte_order_mark(text));
    if (!trim(text).empty()) begin(std::move(text));
  }
}

void BatchRun::begin(std::string text) {
  const std::size_t index = first_ + lines_.size();
  lines_.push_back({.number = lines_read_, .custom_id = "null", .result = {}});
  ++counts_.lines;
  try {
    const JsonBody json(std::move(text), "the line");
    const simdjson::dom::object line = json.object();
    lines_.back().custom_id = json_text(std::string(text_of(line, "custom_id")));
    const std::string_view method = text_of(line, "method"), url = text_of(line, "url");
    if (method != "POST") throw wrong_value(fmt::format("[method] must be POST, but is {}", quote(method)), "method");
    simdjson::dom::object body;
    const auto given = last_member(line, "body");
    if (!given || given->get(body) != simdjson::SUCCESS) throw wrong_type("[body] must be an object", "body");
    begin_request(index, url, body);
  } catch (const ApiError& error) {
    refuse(index, error.what());
  } catch (const std::exception& error) {
    if (is_answered(index)) throw;  // its result could not be written
    log_(fmt::format("[run-batch] a request failed: {}", error.what()));
    answer(index, internal_error("the model failed to compute this answer").response());
  }
}

bool BatchRun::is_answered(std::size_t index) const {
  return index < first_ || lines_[index - first_].result.has_value();
}

void BatchRun::begin_request(std::size_t index, std::string_view url, simdjson::dom::object body) {
  const BatchUrl* known = find_url(url);
  if (known == nullptr)
    return refuse(index, fmt::format("[url] must be one of {}, but is {}",
                                     names_of(kUrls, [](const BatchUrl& one) { return one.url; }), quote(url)));
  std::optional<PreparedRequest> prepared;
  try {
    ApiRequest request = read_fields(body, known->endpoint);
    if (request.stream.value_or(false)) return refuse(index, "[stream] a line of a batch must not ask for a stream");
    unknown_.note(request);
    prepared = prepare(std::move(request), model_);
  } catch (const ApiError& error) {
    return answer(index, error.response());
  }
  const std::string id = prepared->request.request_id.value_or(new_id());
  const std::uint64_t seed = (std::uint64_t{random_()} << 32) | random_();
  generations_.begin(std::move(*prepared), id, seed, std::make_shared<LineReply>(*this, index), MonotonicClock::now());
}

void BatchRun::answer(std::size_t index, const HttpResponse& response) {
  const bool is_answer = response.status == 200;
  finish(index, response.status, is_answer ? response.body : "null", is_answer ? "null" : response.body);
}

void BatchRun::refuse(std::size_t index, const std::string& sentence) {
  finish(index, 400, "null", json_text(fmt::format("line {}: {}", lines_[index - first_].number, sentence)));
}

// The body is JSON already: it is written as the server writes it.
void BatchRun::finish(std::size_t index, int status, const std::string& body, const std::string& error) {
  Line& line = lines_[index - first_];
  if (status != 200) ++counts_.failed;
  line.result = fmt::format(
      R"({{"id":"weft-{}","custom_id":{},"response":{{"status_code":{},"request_id":"weft-batch-{}","body":{}}},)"
      R"("error":{}}})",
      new_id(), line.custom_id, status, new_id(), body, error);
  write_results();
}

void BatchRun::write_results() {
  if (!lines_.front().result) return;
  const auto check = [this] {
    if (!out_.good()) throw OutputError(system_error_text());
  };
  for (; !lines_.empty() && lines_.front().result; ++first_) {
    out_ << *lines_.front().result << '\n';
    check();
    lines_.pop_front();
  }
  out_.flush();
  check();
}

std::string BatchRun::new_id() { return fmt::format("{:08x}{:08x}", random_(), random_()); }

}  // namespace weft
