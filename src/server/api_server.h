#pragma once

// The API: checks requests, prepares them on threads of its own, has the engine run them, and writes the answers. All
// its members are of the I/O thread, except where a comment says otherwise.

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "server/api_error.h"
#include "server/cors.h"
#include "server/engine_loop.h"
#include "server/generation_table.h"
#include "server/http_message.h"
#include "server/metric_families.h"
#include "server/prepared_request.h"
#include "server/routes.h"
#include "server/served_model.h"
#include "server/unknown_fields.h"
#include "server/worker_pool.h"

namespace weft {

struct ApiSettings {
  std::vector<std::string> keys;      // none: anybody may ask
  bool logs_access = true;            // a line for each response
  std::set<std::string> quiet_paths;  // no such line for them
  bool logs_requests = false;         // a line with the prompt and the parameters of each request
  bool logs_statistics = true;        // see log_statistics()
  bool has_id_fields = false;         // each response has X-Request-Id
  bool forces_usage = false;          // streams have the usage event without being asked
  bool has_developer_paths = false;
  std::optional<std::int64_t> most_sequences, most_queued_tokens;  // running and waiting; else 503
  std::chrono::milliseconds longest_step{120'000};  // beyond it /health answers 503, since the engine may be lost
  std::string metrics_prefix = "vllm:";
  bool has_page = true;
  bool has_slots = false;           // GET /slots
  bool has_tokenizer_info = false;  // GET /tokenizer_info
  CorsSettings cors;
  std::string root_path;  // a prefix of paths that a proxy may leave there, such as /x; "" for none
};

class ApiServer final : public HttpHandler {
 public:
  // Any thread may call them. `post` runs a task on the I/O thread.
  using Log = std::function<void(const std::string& line)>;
  using Post = std::function<void(std::function<void()>)>;

  ApiServer(ApiSettings settings, Post post, Log log);

  // Until then all requests of the model are answered by 503. Both outlive this object.
  void set_model(const ServedModel& model, EngineLoop& loop);
  void deliver(const StepReport& report);
  // Refuses new requests.
  void drain() { is_draining_ = true; }
  // Ends the answers that are not complete.
  void abort();
  // Waits for what the threads of the pool do, which refers to the model, and drops what they have not begun.
  void end_work() { pool_.end(); }
  // To be called four times in each interval of --sse-keep-alive-interval.
  void keep_alive();
  // Logs the rates since the last call, if there was anything to do. To be called each `interval`.
  void log_statistics(std::chrono::duration<double> interval);
  // Logs a step that takes too long, once. To be called now and then.
  void check_step();

  std::optional<HttpResponse> check(const HttpRequest& head) override;
  HttpFields fields(const HttpRequest& head) override { return cors_fields(settings_.cors, head); }
  void handle(HttpRequest request, std::shared_ptr<HttpReply> reply) override;
  HttpResponse fault(const HttpRequest& head, int status, const std::string& message) override;
  void log(const HttpRequest& request, int status, std::chrono::duration<double> time) override;
  void handshake_failed(const std::string& peer, const std::string& reason) override;
  void cannot_accept(const std::string& reason) override { log_("[server] no connection can be accepted: " + reason); }
  void failed(const std::string& error) override;

 private:
  struct Prepared;
  struct PreparingEnd;

  std::string own_path(const std::string& path) const;
  // With the id of the request as a field, if responses have it.
  HttpResponse with_id(HttpResponse response, const HttpRequest& head);
  void check_head(const HttpRequest& head, const Route* route);
  HttpResponse answer_at_once(const Route& route, const HttpRequest& request);
  HttpResponse slots_answer(const HttpRequest& request) const;
  bool has_long_step() const;
  HttpResponse health() const;
  HttpResponse metrics();
  void reset_prefix_cache(std::shared_ptr<HttpReply> reply);
  void prepare_later(Endpoint endpoint, HttpRequest request, std::shared_ptr<HttpReply> reply);
  void prepare(Endpoint endpoint, HttpBody& body, Prepared& result);  // on a thread of the pool
  void take(Prepared& prepared, std::string id, const std::shared_ptr<HttpReply>& reply,
            MonotonicClock::time_point arrival);
  void write_later(const std::shared_ptr<RunningRequest>& answer);
  void begin(PreparedRequest prepared, const std::string& id, const std::shared_ptr<HttpReply>& reply,
             MonotonicClock::time_point arrival);
  // Throws the ApiError of a full queue.
  void check_queue(const PreparedRequest& prepared);
  void log_request(const PreparedRequest& prepared, const std::string& id);
  std::uint64_t random_bits();
  std::string new_id();
  std::string given_or_new_id(const HttpRequest& request);

  ApiSettings settings_;
  Post post_;
  Log log_;
  UnknownFields unknown_{log_};
  RefusedOrigins refused_origins_{log_};
  const ServedModel* model_ = nullptr;
  EngineLoop* loop_ = nullptr;
  struct Waiting {
    Endpoint endpoint;
    std::string given_id;
    std::shared_ptr<HttpReply> reply;
  };
  std::uint64_t next_waiting_ = 0;
  std::map<std::uint64_t, Waiting> waiting_;  // requests that threads of the pool prepare, or will prepare
  bool is_draining_ = false;
  bool is_step_long_ = false;  // at the last check_step()
  std::atomic<bool> is_aborted_ = false;

  MetricValues values_;
  std::unique_ptr<GenerationTable> generations_;  // null until there is a model
  struct {
    double prompt = 0, generated = 0;
  } logged_;                                       // tokens
  std::deque<std::shared_ptr<HttpReply>> resets_;  // that wait for EngineLoop::reset_prefix_cache
  std::random_device random_;

  WorkerPool pool_{2, post_};  // its threads end first
};

}  // namespace weft
