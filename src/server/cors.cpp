#include "server/cors.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "base/text.h"
#include "server/api_error.h"

namespace weft {
namespace {

constexpr const char* kMethods = "GET, HEAD, OPTIONS, POST";
constexpr const char* kMaxAge = "600";  // seconds for which a browser need not ask again; as vLLM's

bool allows(const std::vector<std::string>& list, std::string_view name) {
  return std::any_of(list.begin(), list.end(),
                     [&](const std::string& one) { return one == "*" || to_lower_ascii(one) == to_lower_ascii(name); });
}

bool allows_all(const std::vector<std::string>& list) { return std::find(list.begin(), list.end(), "*") != list.end(); }

// The first of the names in a list with commas that is not allowed; "" if all are.
std::string first_refused(const CorsSettings& settings, std::string_view names) {
  for (const std::string& name : split_text(names, ','))
    if (!name.empty() && !allows(settings.headers, name)) return name;
  return "";
}

bool allows_origin(const CorsSettings& settings, const HttpRequest& request) {
  const auto origin = request.field("origin");
  return origin && (allows_all(settings.origins) ||
                    std::find(settings.origins.begin(), settings.origins.end(), *origin) != settings.origins.end());
}

}  // namespace

// The page of this server states the server's own origin, of which the request has the host.
std::string refused_origin(const CorsSettings& settings, const HttpRequest& request) {
  const auto origin = request.field("origin");
  if (!origin || allows_origin(settings, request)) return "";
  const auto scheme = origin->find("://");
  const std::string_view host = scheme == std::string_view::npos ? std::string_view() : origin->substr(scheme + 3);
  if (!host.empty() && to_lower_ascii(host) == to_lower_ascii(request.field("host").value_or(""))) return "";
  return std::string(*origin);
}

void RefusedOrigins::note(const CorsSettings& settings, const HttpRequest& request) {
  constexpr std::size_t kMostNoted = 100;  // clients choose the origins, so the set must have an end
  std::string origin = refused_origin(settings, request);
  if (origin.empty() || noted_.size() >= kMostNoted) return;
  if (const auto [noted, is_new] = noted_.insert(std::move(origin)); is_new)
    log_(fmt::format(
        "[server] pages of the origin {} may not use this server: --allowed-origins allows origins by name, or all of "
        "them as '*'",
        quote(*noted, 200)));
}

HttpFields cors_fields(const CorsSettings& settings, const HttpRequest& request) {
  if (settings.origins.empty()) return {};
  HttpFields fields{{"vary", "Origin"}};
  if (!allows_origin(settings, request)) return fields;
  const bool names_all = allows_all(settings.origins) && !settings.allows_credentials;
  fields.emplace_back("access-control-allow-origin", names_all ? "*" : std::string(*request.field("origin")));
  if (settings.allows_credentials) fields.emplace_back("access-control-allow-credentials", "true");
  return fields;
}

std::optional<HttpResponse> preflight_response(const CorsSettings& settings, const HttpRequest& request) {
  const auto method = request.field("access-control-request-method");
  if (settings.origins.empty() || request.method != "OPTIONS" || !method) return std::nullopt;
  const std::string_view asked = request.field("access-control-request-headers").value_or("");
  const std::string refused = first_refused(settings, asked);
  std::string wrong;
  if (!allows_origin(settings, request)) wrong = "this origin is not allowed";
  if (wrong.empty() && !allows(settings.methods, *method)) wrong = "this method is not allowed";
  if (wrong.empty() && !refused.empty()) wrong = fmt::format("the header {} is not allowed", quote(refused));
  if (!wrong.empty()) return ApiError(400, "Bad Request", "cross-origin: " + wrong).response();
  HttpResponse response{.content_type = "text/plain; charset=utf-8"};
  response.fields = {
      {"access-control-allow-methods",
       allows_all(settings.methods) ? kMethods : fmt::format("{}", fmt::join(settings.methods, ", "))},
      {"access-control-allow-headers",
       allows_all(settings.headers) ? std::string(asked) : fmt::format("{}", fmt::join(settings.headers, ", "))},
      {"access-control-max-age", kMaxAge}};
  return response;
}

}  // namespace weft
