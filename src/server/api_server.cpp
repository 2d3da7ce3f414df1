#include "server/api_server.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "base/version.h"
#include "server/generation.h"
#include "server/json_body.h"
#include "server/llama_completion.h"
#include "server/llama_endpoints.h"
#include "server/page/page.h"
#include "server/text_endpoints.h"

namespace weft {
namespace {

constexpr std::size_t kLongestId = 128;
constexpr std::size_t kMostNoted = 1000;

// In a time that does not depend on where they differ.
bool equal_keys(std::string_view a, std::string_view b) {
  unsigned char difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i] ^ (b.empty() ? '\1' : b[i % b.size()]));
  return difference == 0;
}

bool has_key(const HttpRequest& head, const std::vector<std::string>& keys) {
  if (keys.empty()) return true;
  const std::string_view given = head.field("authorization").value_or("");
  if (to_lower_ascii(given.substr(0, 7)) != "bearer ") return false;
  bool is_known = false;
  for (const std::string& key : keys) is_known |= equal_keys(trim(given.substr(7)), key);
  return is_known;
}

bool is_json(std::string_view content_type) {
  return to_lower_ascii(trim(content_type.substr(0, content_type.find(';')))) == "application/json";
}

bool is_id(std::string_view text) {
  return !text.empty() && text.size() <= kLongestId &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7F; });
}

Endpoint endpoint_of(RouteKind kind) {
  switch (kind) {
    case RouteKind::chat:
      return chat;
    case RouteKind::tokenize:
      return tokenize;
    case RouteKind::detokenize:
      return detokenize;
    case RouteKind::llama_completion:
      return llama_completion;
    case RouteKind::apply_template:
      return apply_template;
    default:
      return completions;
  }
}

// Nothing but the server itself is reached from the page, whatever an answer of the model has in it.
HttpResponse page() {
  const std::string policy = fmt::format(
      "default-src 'none'; script-src '{}'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:; "
      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      kPageScriptHash);
  return {.body = std::string(kPage),
          .content_type = "text/html; charset=utf-8",
          .fields = {{"content-security-policy", policy},
                     {"cache-control", "no-cache"},
                     {"referrer-policy", "no-referrer"},
                     {"x-content-type-options", "nosniff"}}};
}

}  // namespace

// What a thread of the pool made of a request: a response, or a request for the engine.
struct ApiServer::Prepared {
  std::optional<HttpResponse> response;
  std::optional<PreparedRequest> request;
};

ApiServer::ApiServer(ApiSettings settings, Post post, Log log)
    : settings_(std::move(settings)), post_(std::move(post)), log_(std::move(log)) {}

void ApiServer::set_model(const ServedModel& model, EngineLoop& loop) {
  model_ = &model;
  loop_ = &loop;
}

HttpResponse ApiServer::fault(int status, const std::string& message) {
  switch (status) {
    case 501:
      return not_made_here(message).response();
    case 503:
      return unavailable(message).response();
    default:
      return ApiError(status, "Bad Request", message).response();
  }
}

std::optional<HttpResponse> ApiServer::check(const HttpRequest& head) {
  if (auto response = preflight_response(settings_.cors, head)) return response;
  const Route* route = find_route(own_path(head.path));
  try {
    check_head(head, route);
  } catch (const ApiError& error) {
    HttpResponse response = error.response();
    if (error.status() == 405) response.fields.emplace_back("allow", route->methods);
    response.closes = is_draining_;
    return response;
  }
  return std::nullopt;
}

// Without the prefix.
std::string ApiServer::own_path(const std::string& path) const {
  const std::string& root = settings_.root_path;
  const bool has_root =
      !root.empty() && path.starts_with(root) && path.size() > root.size() && path[root.size()] == '/';
  return has_root ? path.substr(root.size()) : path;
}

// In the order that clients can rely on: key, path, method, content type.
void ApiServer::check_head(const HttpRequest& head, const Route* route) {
  const bool is_open = route != nullptr && route->is_open;
  if (!is_open && head.method != "OPTIONS" && !has_key(head, settings_.keys))
    throw ApiError(401, "Unauthorized", "wanted Authorization: Bearer and a key of this server");
  if (route == nullptr || (route->kind == RouteKind::page && !settings_.has_page))
    throw ApiError(404, "Not Found", "there is no such path here");
  if (!allows(*route, head.method))
    throw ApiError(405, "Method Not Allowed", fmt::format("this path takes {}", route->methods));
  if (route->kind == RouteKind::not_made)
    throw not_made_here(fmt::format("{} is not part of this version", route->path));
  if (route->kind == RouteKind::health || route->kind == RouteKind::version || route->kind == RouteKind::page) return;
  if (is_draining_) throw unavailable("the server is shutting down");
  if (model_ == nullptr) throw unavailable("the model is loading");
  if (route->methods == "POST" && !is_json(head.field("content-type").value_or("")))
    throw ApiError(400, "Bad Request", "Content-Type must be application/json");
}

void ApiServer::handle(HttpRequest request, std::shared_ptr<HttpReply> reply) {
  request.path = own_path(request.path);
  const Route& route = *find_route(request.path);
  switch (route.kind) {
    case RouteKind::completions:
    case RouteKind::chat:
    case RouteKind::tokenize:
    case RouteKind::detokenize:
    case RouteKind::llama_completion:
    case RouteKind::apply_template:
      return prepare_later(route, std::move(request), std::move(reply));
    default:
      return reply->send(answer_at_once(route, request));
  }
}

HttpResponse ApiServer::answer_at_once(const Route& route, const HttpRequest& request) {
  switch (route.kind) {
    case RouteKind::page:
      return page();
    case RouteKind::version:
      return {.body = json_text({{"version", kVersion}})};
    case RouteKind::load:
      return {.body = json_text({{"server_load", loop_->load()}})};
    case RouteKind::models:
      return models(request);
    case RouteKind::props:
      return {.body = json_text(props(*model_))};
    case RouteKind::slots:
      if (!settings_.has_slots) return not_made_here("/slots is only there with --slots").response();
      return {.body = json_text(slots(*model_, loop_->load()))};
    default:
      return health();
  }
}

HttpResponse ApiServer::health() const {
  if (is_draining_) return unavailable("the server is shutting down").response();
  if (model_ != nullptr) return {.body = R"({"status":"ok"})"};
  // The body that llama.cpp's clients wait for.
  return {.status = 503,
          .body = R"({"error":{"code":503,"message":"Loading model","type":"unavailable_error","param":null}})",
          .fields = {{"retry-after", "1"}}};
}

HttpResponse ApiServer::models(const HttpRequest& request) const {
  constexpr std::string_view kList = "/v1/models";
  if (request.path == kList) {
    Json list = Json::array();
    for (const std::string& name : model_->names) list.push_back(model_card(*model_, name));
    return {.body = json_text({{"object", "list"}, {"data", std::move(list)}})};
  }
  const std::string name = request.path.substr(kList.size() + 1);
  if (model_->has_name(name)) return {.body = json_text(model_card(*model_, name))};
  ApiRequest asked;
  asked.model = name;
  try {
    check_model(asked, *model_);
  } catch (const ApiError& error) {
    return error.response();
  }
  return {};
}

void ApiServer::prepare_later(const Route& route, HttpRequest request, std::shared_ptr<HttpReply> reply) {
  const auto is_gone = std::make_shared<std::atomic<bool>>(false);
  reply->on_gone([is_gone] { *is_gone = true; });
  const auto body = std::make_shared<std::string>(std::move(request.body));
  const std::string id(request.field("x-request-id").value_or(""));
  pool_.add([this, kind = route.kind, id, body, is_gone, reply = std::move(reply)] {
    if (*is_gone || is_aborted_) {
      // Also lets go of the reply on its own thread.
      return post_([reply] { reply->send(unavailable("the server is shutting down").response()); });
    }
    const std::shared_ptr<Prepared> result = prepared(kind, std::move(*body));
    post_([this, result, id, is_gone, reply] {
      if (*is_gone) return;
      if (result->response) return reply->send(std::move(*result->response));
      begin(result, id, reply);
    });
  });
}

std::shared_ptr<ApiServer::Prepared> ApiServer::prepared(RouteKind kind, std::string body) {
  const auto result = std::make_shared<Prepared>();
  try {
    const JsonBody json(std::move(body));
    ApiRequest request = read_fields(json.object(), endpoint_of(kind));
    note_unknown(request);
    if (kind == RouteKind::tokenize) {
      result->response = {.body = json_text(tokenized(request, *model_))};
    } else if (kind == RouteKind::detokenize) {
      result->response = {.body = json_text(detokenized(request, *model_))};
    } else if (kind == RouteKind::apply_template) {
      result->response = {.body = json_text(applied_template(request, *model_))};
    } else {
      result->request = weft::prepare(std::move(request), *model_);
    }
  } catch (const ApiError& error) {
    result->response = error.response();
  } catch (const std::exception& error) {
    log_(fmt::format("[server] a request failed: {}", error.what()));
    result->response = internal_error("the request could not be read").response();
  }
  return result;
}

void ApiServer::note_unknown(const ApiRequest& request) {
  for (const std::string& name : request.unknown) {
    {
      const std::lock_guard lock(noted_mutex_);
      if (noted_.size() >= kMostNoted || !noted_.insert(name).second) continue;
    }
    log_(fmt::format("[server] the field {} of requests is unknown and ignored{}", quote(name),
                     suggestion(name, field_names(request.endpoint))));
  }
}

std::uint64_t ApiServer::random_bits() { return (std::uint64_t{random_()} << 32) | random_(); }

// The id of the head wins over that of the body.
void ApiServer::begin(const std::shared_ptr<Prepared>& prepared, std::string id,
                      const std::shared_ptr<HttpReply>& reply) {
  if (is_aborted_) return reply->send(unavailable("the server is shutting down").response());
  if (!is_id(id)) id = prepared->request->request.request_id.value_or("");
  if (!is_id(id)) id = fmt::format("{:016x}", random_bits());
  const Ticket first = next_ticket_;
  std::unique_ptr<RunningRequest> generation;
  if (prepared->request->request.endpoint == llama_completion) {
    generation = std::make_unique<LlamaCompletion>(std::move(*prepared->request), *model_, first, reply);
  } else {
    generation = std::make_unique<Generation>(std::move(*prepared->request), *model_, id, first, reply);
  }
  next_ticket_ += generation->size();
  std::vector<Sequence> sequences = generation->begin(random_bits());
  if (sequences.empty()) return;
  generations_.emplace(first, std::move(generation));
  reply->on_gone([this, first] { end(first); });
  loop_->submit(std::move(sequences));
}

// Also cancels what of the request still runs.
void ApiServer::end(Ticket first) {
  const auto found = generations_.find(first);
  if (found == generations_.end()) return;
  std::vector<Ticket> open = found->second->open_tickets();
  if (!open.empty()) loop_->cancel(std::move(open));
  generations_.erase(found);
}

void ApiServer::deliver(std::vector<SequenceEvent> events) {
  for (const SequenceEvent& event : events) {
    auto found = generations_.upper_bound(event.ticket);
    if (found == generations_.begin()) continue;
    --found;
    RunningRequest& generation = *found->second;
    if (event.ticket >= found->first + generation.size()) continue;
    generation.take(event);
    if (!generation.is_over()) continue;
    if (!generation.error().empty()) log_(fmt::format("[server] a request failed: {}", generation.error()));
    end(found->first);
  }
}

void ApiServer::abort() {
  is_draining_ = true;
  is_aborted_ = true;
  while (!generations_.empty()) {
    const auto first = generations_.begin()->first;
    std::vector<Ticket> open = generations_.begin()->second->open_tickets();
    generations_.begin()->second->abort();
    if (!open.empty()) loop_->cancel(std::move(open));
    generations_.erase(first);
  }
}

void ApiServer::failed(const std::string& error) { log_(fmt::format("[server] a task failed: {}", error)); }

void ApiServer::log(const HttpRequest& request, int status, std::chrono::duration<double> time) {
  if (!settings_.logs_requests) return;
  log_(fmt::format("{} {} {} {} in {:.3f} s", request.peer, request.method.empty() ? "?" : request.method,
                   request.path.empty() ? "?" : quote(request.path, 200), status, time.count()));
}

}  // namespace weft
