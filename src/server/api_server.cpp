#include "server/api_server.h"

#include <new>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "base/version.h"
#include "server/answer_json.h"
#include "server/api_key.h"
#include "server/http_head.h"
#include "server/json_body.h"
#include "server/llama_endpoints.h"
#include "server/memory_wait.h"
#include "server/model_endpoints.h"
#include "server/page_response.h"
#include "server/process_values.h"
#include "server/request_id.h"
#include "server/text_endpoints.h"

namespace weft {
namespace {

bool is_json(std::string_view content_type) {
  return to_lower_ascii(trim(content_type.substr(0, content_type.find(';')))) == "application/json";
}

// Of an unknown path, the form that the clients of the paths next to it read.
ErrorForm error_form_at(const std::string& path) {
  if (const Route* route = find_route(path)) return error_form(route->endpoint);
  return path.starts_with("/v1/messages") ? ErrorForm::anthropic : ErrorForm::openai;
}

}  // namespace

// Also after an exception.
struct ApiServer::PreparingEnd {
  EngineLoop& loop;
  ~PreparingEnd() { loop.end_preparing(); }
};

// What a thread of the pool made of a request: a response, or a request for the engine. Neither if that threw.
struct ApiServer::Prepared {
  std::optional<HttpResponse> response;
  std::optional<PreparedRequest> request;
};

ApiServer::ApiServer(ApiSettings settings, Post post, Log log)
    : settings_(std::move(settings)), post_(std::move(post)), log_(std::move(log)) {}

void ApiServer::set_model(const ServedModel& model, EngineLoop& loop) {
  MetricValues values = make_metric_values(model.max_model_len);
  values.http_requests = std::move(values_.http_requests);
  values.http_times = std::move(values_.http_times);
  values.cache_config = model.cache_config;
  values_ = std::move(values);
  model_ = &model;
  loop_ = &loop;
  generations_ = std::make_unique<GenerationTable>(
      model, loop, values_, log_, [this](const std::shared_ptr<RunningRequest>& answer) { write_later(answer); });
}

HttpResponse ApiServer::fault(const HttpRequest& head, int status, const std::string& message) {
  return with_id(http_error(status, message).response(error_form_at(own_path(head.path))), head);
}

HttpResponse ApiServer::with_id(HttpResponse response, const HttpRequest& head) {
  if (settings_.has_id_fields) response.fields.emplace_back(kIdField, given_or_new_id(head));
  return response;
}

std::optional<HttpResponse> ApiServer::check(const HttpRequest& head) {
  refused_origins_.note(settings_.cors, head);
  if (auto response = preflight_response(settings_.cors, head)) return with_id(std::move(*response), head);
  const Route* route = find_route(own_path(head.path));
  if (route != nullptr && route->is_for_developers && !settings_.has_developer_paths) route = nullptr;
  try {
    check_head(head, route);
  } catch (const ApiError& error) {
    HttpResponse response = error.response(error_form_at(own_path(head.path)));
    if (error.status() == 405) response.fields.emplace_back("allow", route->methods);
    response.closes = is_draining_;
    return with_id(std::move(response), head);
  }
  return std::nullopt;
}

// The path without the prefix of --root-path.
std::string ApiServer::own_path(const std::string& path) const {
  const std::string& root = settings_.root_path;
  const bool has_root =
      !root.empty() && path.starts_with(root) && path.size() > root.size() && path[root.size()] == '/';
  return has_root ? path.substr(root.size()) : path;
}

// In the order that clients can rely on: key, path, method, content type.
void ApiServer::check_head(const HttpRequest& head, const Route* route) {
  const bool is_open = route != nullptr && route->is_open;
  if (!is_open && head.method != "OPTIONS" && !has_api_key(head, settings_.keys))
    throw ApiError(401, "Unauthorized", "wanted Authorization: Bearer, or X-Api-Key, and a key of this server");
  if (route == nullptr || (route->kind == RouteKind::page && !settings_.has_page))
    throw ApiError(
        404, "Not Found",
        fmt::format("there is no path {} here{}", quote(head.path, 200), path_suggestion(own_path(head.path))));
  if (!allows(*route, head.method))
    throw ApiError(405, "Method Not Allowed", fmt::format("this path takes {}", route->methods));
  if (route->kind == RouteKind::not_made)
    throw not_made_here(fmt::format("{} is not part of this version", route->path));
  if (route->kind == RouteKind::health || route->kind == RouteKind::version || route->kind == RouteKind::page) return;
  if (is_draining_ && route->kind != RouteKind::metrics) throw unavailable("the server is shutting down");
  if (model_ == nullptr) throw unavailable("the model is loading");
  const std::string_view type = head.field("content-type").value_or("");
  if (route->methods == "POST" && !route->is_for_developers && !is_json(type))
    throw ApiError(400, "Bad Request",
                   fmt::format("Content-Type must be application/json, but is {}", quote(type, 200)));
}

void ApiServer::handle(HttpRequest request, std::shared_ptr<HttpReply> reply) {
  request.path = own_path(request.path);
  const Route& route = *find_route(request.path);
  switch (route.kind) {
    case RouteKind::request:
      return prepare_later(route.endpoint, std::move(request), std::move(reply));
    case RouteKind::reset_prefix_cache:
      return reset_prefix_cache(std::move(reply));
    case RouteKind::lora_adapters:
      if (request.method == "POST") return prepare_later(route.endpoint, std::move(request), std::move(reply));
      return reply->send(adapter_scales(*model_));
    default:
      if (settings_.has_id_fields) reply->add_field(kIdField, given_or_new_id(request));
      return reply->send(answer_at_once(route, request));
  }
}

HttpResponse ApiServer::answer_at_once(const Route& route, const HttpRequest& request) {
  switch (route.kind) {
    case RouteKind::page:
      return page_response();
    case RouteKind::version:
      return {.body = json_text({{"version", kVersion}})};
    case RouteKind::load:
      return {.body = json_text({{"server_load", loop_->load()}})};
    case RouteKind::models:
      return models_answer(*model_, request.path);
    case RouteKind::metrics:
      return metrics();
    case RouteKind::props:
      return {.body = json_text(props(*model_))};
    case RouteKind::slots:
      return slots_answer(request);
    case RouteKind::tokenizer_info:
      if (!settings_.has_tokenizer_info)
        return not_made_here("/tokenizer_info is only there with --enable-tokenizer-info-endpoint").response();
      return {.body = json_text(tokenizer_info(*model_))};
    default:
      return health();
  }
}

HttpResponse ApiServer::slots_answer(const HttpRequest& request) const {
  if (!settings_.has_slots) return not_made_here("/slots is only there with --slots").response();
  const std::vector<OpenSequence> running = generations_->records().open_sequences();
  const bool wants_one = ("&" + request.query + "&").find("&fail_on_no_slot=1&") != std::string::npos;
  if (wants_one && std::ssize(running) >= model_->most_sequences) return unavailable("no slot is free").response();
  return {.body = json_text(slots(*model_, running))};
}

HttpResponse ApiServer::health() const {
  if (is_draining_) return unavailable("the server is shutting down").response();
  if (has_long_step()) return unavailable("a step of the engine does not end").response();
  if (model_ != nullptr) return {.body = R"({"status":"ok"})"};
  // The body that llama.cpp's clients wait for.
  return {.status = 503,
          .body = R"({"error":{"code":503,"message":"Loading model","type":"unavailable_error","param":null}})",
          .fields = {{"retry-after", "1"}}};
}

bool ApiServer::has_long_step() const { return loop_ != nullptr && loop_->step_time() > settings_.longest_step; }

HttpResponse ApiServer::metrics() {
  read_process_values(values_);
  return {.body = metrics_text(values_, {.prefix = settings_.metrics_prefix, .model_name = model_->names[0]}),
          .content_type = "text/plain; version=0.0.4; charset=utf-8"};
}

void ApiServer::reset_prefix_cache(std::shared_ptr<HttpReply> reply) {
  resets_.push_back(std::move(reply));
  loop_->reset_prefix_cache([this](bool is_done) {
    wait_for_memory([&] {
      post_([this, is_done] {
        const std::shared_ptr<HttpReply> waiting = std::move(resets_.front());
        resets_.pop_front();
        waiting->send(is_done ? HttpResponse{.body = R"({"success":true})"}
                              : unavailable("the prefix cache is in use: sequences run").response());
      });
    });
  });
}

void ApiServer::prepare_later(Endpoint endpoint, HttpRequest request, std::shared_ptr<HttpReply> reply) {
  const auto is_gone = std::make_shared<std::atomic<bool>>(false);
  const std::uint64_t number = next_waiting_++;
  reply->on_gone([this, is_gone, number] {
    *is_gone = true;
    waiting_.erase(number);
  });
  const auto body = std::make_shared<HttpBody>(std::move(request.body));
  const auto result = std::make_shared<Prepared>();
  const std::string given = given_request_id(request);
  const MonotonicClock::time_point arrival = request.arrival;
  // abort() has answered the requests that are not prepared.
  pool_.add(
      [this, endpoint, body, is_gone, result] {
        if (!*is_gone && !is_aborted_) prepare(endpoint, *body, *result);
      },
      [this, number, result, given, arrival, is_gone, reply] {
        const PreparingEnd end{*loop_};
        waiting_.erase(number);
        if (!*is_gone && !is_aborted_) take(*result, given, reply, arrival);
      });
  loop_->begin_preparing();
  waiting_.emplace(number, Waiting{endpoint, given, reply});
}

void ApiServer::take(Prepared& prepared, std::string id, const std::shared_ptr<HttpReply>& reply,
                     MonotonicClock::time_point arrival) {
  // The id of the head wins over that of the body.
  if (prepared.request && id.empty()) id = prepared.request->request.request_id.value_or("");
  if (!is_request_id(id)) id = new_id();
  if (settings_.has_id_fields) reply->add_field(kIdField, id);
  if (prepared.request) return begin(std::move(*prepared.request), id, reply, arrival);
  if (prepared.response) reply->send(std::move(*prepared.response));
}

void ApiServer::write_later(const std::shared_ptr<RunningRequest>& answer) {
  pool_.add([request = answer.get()] { request->write_answer(); }, [answer] { answer->send_written(); });
}

void ApiServer::prepare(Endpoint endpoint, HttpBody& body, Prepared& result) {
  try {
    const JsonBody json(body.take_text());
    if (endpoint == lora_scales) {
      result.response = set_adapter_scales(json, *model_);
      return;
    }
    ApiRequest request = read_fields(json.object(), endpoint);
    unknown_.note(request);
    if (endpoint == tokenize) {
      result.response = {.body = json_text(tokenized(request, *model_))};
    } else if (endpoint == detokenize) {
      result.response = {.body = json_text(detokenized(request, *model_))};
    } else if (endpoint == anthropic_count) {
      result.response = {.body = json_text(counted_tokens(std::move(request), *model_))};
    } else if (endpoint == apply_template) {
      result.response = {.body = json_text(applied_template(request, *model_))};
    } else if (endpoint == load_lora || endpoint == unload_lora) {
      result.response = change_adapters(request, *model_, log_);
    } else {
      result.request = weft::prepare(std::move(request), *model_);
    }
  } catch (const ApiError& error) {
    result.response = error.response(error_form(endpoint));
  } catch (const std::exception& error) {
    const ServerFault fault = fault_of(error);
    result.response = http_error(fault.status, fault.message).response(error_form(endpoint));
    failed(error.what());
  }
}

std::uint64_t ApiServer::random_bits() { return (std::uint64_t{random_()} << 32) | random_(); }

std::string ApiServer::new_id() { return fmt::format("{:016x}", random_bits()); }

std::string ApiServer::given_or_new_id(const HttpRequest& request) {
  const std::string given = given_request_id(request);
  return given.empty() ? new_id() : given;
}

void ApiServer::begin(PreparedRequest prepared, const std::string& id, const std::shared_ptr<HttpReply>& reply,
                      MonotonicClock::time_point arrival) {
  const ErrorForm form = error_form(prepared.request.endpoint);
  if (is_aborted_) return reply->send(unavailable("the server is shutting down").response(form));
  try {
    check_queue(prepared);
  } catch (const ApiError& error) {
    return reply->send(error.response(form));
  }
  if (settings_.forces_usage) prepared.request.include_usage = true;
  if (settings_.logs_requests) log_request(prepared, id);
  generations_->begin(std::move(prepared), id, random_bits(), reply, arrival);
}

void ApiServer::check_queue(const PreparedRequest& prepared) {
  std::int64_t tokens = 0;
  for (const PreparedPrompt& prompt : prepared.prompts) tokens += std::ssize(*prompt.ids) * prepared.choices;
  const std::int64_t sequences = std::ssize(prepared.prompts) * prepared.choices;
  const auto check = [&](Rejection reason, const std::optional<std::int64_t>& most, std::int64_t now,
                         std::int64_t asked, const char* what) {
    if (!most || now + asked <= *most) return;
    ++values_.rejections[static_cast<std::size_t>(reason)];
    throw unavailable(
        fmt::format("the queue is full: it may have {} {}, has {}, and the request has {}", *most, what, now, asked));
  };
  const SequenceRecords& records = generations_->records();
  check(Rejection::sequences, settings_.most_sequences, static_cast<std::int64_t>(records.open()), sequences,
        "sequences");
  check(Rejection::tokens, settings_.most_queued_tokens, records.queued_tokens(), tokens, "prompt tokens");
}

void ApiServer::log_request(const PreparedRequest& prepared, const std::string& id) {
  constexpr std::size_t kMostShown = 2000;
  const ApiRequest& request = prepared.request;
  for (std::size_t i = 0; i < prepared.prompts.size(); ++i) {
    const std::vector<int>& ids = *prepared.prompts[i].ids;
    const PromptText* text = is_llama(request.endpoint) ? &prepared.prompts[i].text
                             : request.prompts.empty()  ? &prepared.prompt_text
                                                        : std::get_if<PromptText>(&request.prompts[i]);
    const SamplingParameters& with = prepared.parameters;
    log_(fmt::format(
        "request {}: {} tokens, prompt {}, n {}, max_tokens {}, temperature {}, top_p {}, top_k {}, "
        "min_p {}, stream {}",
        id, ids.size(), text != nullptr ? quote(*text, kMostShown) : "of token ids", prepared.choices, with.max_tokens,
        with.temperature, with.top_p, with.top_k, with.min_p, request.stream.value_or(false)));
  }
}

void ApiServer::deliver(const StepReport& report) {
  if (generations_ != nullptr) generations_->deliver(report);
}

void ApiServer::abort() {
  is_draining_ = true;
  is_aborted_ = true;
  if (generations_ != nullptr) generations_->abort();
  // Preparing may take longer than the server may stay.
  for (const auto& [number, one] : std::exchange(waiting_, {})) {
    if (settings_.has_id_fields) one.reply->add_field(kIdField, one.given_id.empty() ? new_id() : one.given_id);
    one.reply->send(unavailable("the server is shutting down").response(error_form(one.endpoint)));
  }
}

void ApiServer::keep_alive() {
  if (generations_ != nullptr) generations_->keep_alive();
}

void ApiServer::log_statistics(std::chrono::duration<double> interval) {
  if (!settings_.logs_statistics) return;
  const double prompt = values_.prompt_tokens - std::exchange(logged_.prompt, values_.prompt_tokens);
  const double generated = values_.generation_tokens - std::exchange(logged_.generated, values_.generation_tokens);
  if (prompt == 0 && generated == 0 && values_.running == 0 && values_.waiting == 0) return;
  const double hits = values_.prefix_queries == 0 ? 0 : values_.prefix_hits / values_.prefix_queries;
  log_(fmt::format(
      "prompts {:.1f} tokens/s, generation {:.1f} tokens/s, running {}, waiting {}, KV pages used {:.1f} %, "
      "prefix cache hits {:.1f} %",
      prompt / interval.count(), generated / interval.count(), values_.running, values_.waiting,
      100 * values_.page_usage, 100 * hits));
}

void ApiServer::check_step() {
  const bool was_long = std::exchange(is_step_long_, has_long_step());
  if (!is_step_long_ || was_long) return;
  log_(fmt::format(
      "[engine] a step has run for {} s, with {} sequences that run and {} that wait: /health is 503 until "
      "it ends",
      std::chrono::duration_cast<std::chrono::seconds>(loop_->step_time()).count(), values_.running, values_.waiting));
}

void ApiServer::handshake_failed(const std::string& peer, const std::string& reason) {
  if (settings_.logs_access) log_(fmt::format("{} no TLS: {}", peer, reason));
}

// Any thread may call it.
void ApiServer::failed(const std::string& error) {
  try {
    log_(fmt::format("[server] a task failed: {}", error));
  } catch (const std::bad_alloc&) {  // without memory the line is lost
  }
}

void ApiServer::log(const HttpRequest& request, int status, std::chrono::duration<double> time) {
  const std::string path = own_path(request.path);
  const std::string handler = handler_label(find_route(path)), method = method_label(request.method);
  ++values_.http_requests[{handler, method, fmt::format("{}xx", status / 100)}];
  const auto timed = values_.http_times.try_emplace({handler, method}, bucket_bounds(Buckets::http, 0)).first;
  timed->second.observe(time.count());
  if (!settings_.logs_access || settings_.quiet_paths.contains(path)) return;
  log_(fmt::format("{} {} {} {} in {:.3f} s", request.peer, request.method.empty() ? "?" : request.method,
                   request.path.empty() ? "?" : quote(request.path, 200), status, time.count()));
}

}  // namespace weft
