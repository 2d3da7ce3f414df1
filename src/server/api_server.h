#pragma once

// The API: checks requests, prepares them on threads of its own, has the engine run them, and writes the answers. All
// its members are of the I/O thread, except where a comment says otherwise.

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "server/api_error.h"
#include "server/cors.h"
#include "server/engine_loop.h"
#include "server/http_message.h"
#include "server/prepared_request.h"
#include "server/routes.h"
#include "server/running_request.h"
#include "server/served_model.h"
#include "server/worker_pool.h"

namespace weft {

struct ApiSettings {
  std::vector<std::string> keys;  // none: anybody may ask
  bool logs_requests = true;
  bool has_page = true;
  bool has_slots = false;  // GET /slots
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
  void deliver(std::vector<SequenceEvent> events);
  // Refuses new requests.
  void drain() { is_draining_ = true; }
  // Ends the answers that are not complete.
  void abort();

  std::optional<HttpResponse> check(const HttpRequest& head) override;
  HttpFields fields(const HttpRequest& head) override { return cors_fields(settings_.cors, head); }
  void handle(HttpRequest request, std::shared_ptr<HttpReply> reply) override;
  HttpResponse fault(int status, const std::string& message) override;
  void log(const HttpRequest& request, int status, std::chrono::duration<double> time) override;
  void failed(const std::string& error) override;

 private:
  struct Prepared;

  std::string own_path(const std::string& path) const;
  void check_head(const HttpRequest& head, const Route* route);
  HttpResponse answer_at_once(const Route& route, const HttpRequest& request);
  HttpResponse health() const;
  HttpResponse models(const HttpRequest& request) const;
  void prepare_later(const Route& route, HttpRequest request, std::shared_ptr<HttpReply> reply);
  std::shared_ptr<Prepared> prepared(RouteKind kind, std::string body);  // on a thread of the pool
  void note_unknown(const ApiRequest& request);                          // on a thread of the pool
  void begin(const std::shared_ptr<Prepared>& prepared, std::string id, const std::shared_ptr<HttpReply>& reply);
  void end(Ticket first);
  std::uint64_t random_bits();

  ApiSettings settings_;
  Post post_;
  Log log_;
  const ServedModel* model_ = nullptr;
  EngineLoop* loop_ = nullptr;
  bool is_draining_ = false;
  std::atomic<bool> is_aborted_ = false;

  std::map<Ticket, std::unique_ptr<RunningRequest>> generations_;  // by the first ticket of each
  Ticket next_ticket_ = 0;
  std::random_device random_;

  std::mutex noted_mutex_;
  std::set<std::string> noted_;  // unknown fields that were logged

  WorkerPool pool_{2};  // its threads end first
};

}  // namespace weft
