#include "server/routes.h"

#include <algorithm>

#include "base/text.h"

namespace weft {
namespace {

constexpr const char* kGet = "GET, HEAD";
constexpr const char* kPost = "POST";
constexpr const char* kAny = "GET, HEAD, POST";

constexpr Route request(std::string_view path, Endpoint endpoint) {
  return {.path = path, .methods = kPost, .kind = RouteKind::request, .endpoint = endpoint};
}

constexpr Route kRoutes[] = {
    {"/", kGet, RouteKind::page, true},
    {"/health", kGet, RouteKind::health, true},
    {"/v1/health", kGet, RouteKind::health, true},
    {"/ping", kAny, RouteKind::health, true},
    {"/version", kGet, RouteKind::version, true},
    {"/load", kGet, RouteKind::load},
    {"/metrics", kGet, RouteKind::metrics, true},
    {"/v1/models", kGet, RouteKind::models},
    {"/v1/models/", kGet, RouteKind::models},
    {"/models", kGet, RouteKind::models},
    request("/v1/completions", completions),
    request("/v1/chat/completions", chat),
    request("/chat/completions", chat),
    request("/v1/responses", responses),
    request("/responses", responses),
    request("/v1/messages", anthropic_messages),
    request("/v1/messages/count_tokens", anthropic_count),
    request("/v1/embeddings", embeddings),
    request("/embedding", llama_embedding),
    request("/embeddings", llama_embedding),
    request("/score", score),
    request("/v1/score", score),
    request("/rerank", rerank),
    request("/v1/rerank", rerank),
    request("/v2/rerank", rerank),
    request("/reranking", rerank),
    request("/v1/reranking", rerank),
    request("/classify", classify),
    request("/pooling", raw_pooling),
    request("/tokenize", tokenize),
    request("/detokenize", detokenize),
    {"/reset_prefix_cache", kPost, RouteKind::reset_prefix_cache, false, true},
    request("/completion", llama_completion),
    request("/completions", llama_completion),
    request("/infill", infill),
    request("/apply-template", apply_template),
    {"/props", kGet, RouteKind::props},
    {"/slots", kGet, RouteKind::slots},
    {"/tokenizer_info", kGet, RouteKind::tokenizer_info},
    request("/v1/load_lora_adapter", load_lora),
    request("/v1/unload_lora_adapter", unload_lora),
    {"/lora-adapters", kAny, RouteKind::lora_adapters, false, false, lora_scales},

    {"/v1/messages/batches", kAny, RouteKind::not_made, false, false, anthropic_messages},
    {"/v1/images/generations", kPost, RouteKind::not_made},
    {"/v1/audio/speech", kPost, RouteKind::not_made},
    {"/v1/audio/transcriptions", kPost, RouteKind::not_made},
    {"/v1/audio/translations", kPost, RouteKind::not_made},
};

}  // namespace

const Route* find_route(std::string_view path) {
  for (const Route& route : kRoutes) {
    const bool is_begin = route.path.size() > 1 && route.path.ends_with('/');
    if (is_begin ? path.size() > route.path.size() && path.starts_with(route.path) : path == route.path) return &route;
  }
  return nullptr;
}

std::string path_suggestion(std::string_view path) {
  std::string near(path);
  while (near.ends_with('/')) near.pop_back();
  while (near.starts_with("/v1/v1/")) near.erase(0, 3);
  for (const std::string& known : {near, "/v1" + near})
    if (known != path && known.size() > 1 && find_route(known) != nullptr)
      return ", did you mean " + quote(known) + "?";
  return "";
}

bool allows(const Route& route, std::string_view method) {
  for (std::string_view rest = route.methods; !rest.empty();) {
    const auto comma = rest.find(", ");
    if (rest.substr(0, comma) == method) return true;
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 2);
  }
  return false;
}

std::string handler_label(const Route* route) {
  if (route == nullptr) return "none";
  return std::string(route->path) + (route->path.size() > 1 && route->path.ends_with('/') ? "{name}" : "");
}

std::string method_label(const std::string& method) {
  static constexpr std::string_view kKnown[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"};
  return std::find(std::begin(kKnown), std::end(kKnown), method) == std::end(kKnown) ? "other" : method;
}

}  // namespace weft
