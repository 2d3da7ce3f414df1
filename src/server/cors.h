#pragma once

// Cross-origin requests (the Fetch standard): which pages of other origins may use the server.

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/http_message.h"

namespace weft {

// "*" in a list stands for all.
struct CorsSettings {
  std::vector<std::string> origins;  // none: pages of other origins may not
  std::vector<std::string> methods = {"*"};
  std::vector<std::string> headers = {"*"};
  bool allows_credentials = false;
};

// The origin of the page that sends the request, if it is another one than the server's and may not use the server;
// else "". A client that is no browser states none.
std::string refused_origin(const CorsSettings& settings, const HttpRequest& request);

// Logs each origin whose pages may not use the server, once.
class RefusedOrigins {
 public:
  explicit RefusedOrigins(std::function<void(const std::string& line)> log) : log_(std::move(log)) {}
  void note(const CorsSettings& settings, const HttpRequest& request);

 private:
  std::function<void(const std::string&)> log_;
  std::set<std::string> noted_;
};

// The fields that all responses to this request have.
HttpFields cors_fields(const CorsSettings& settings, const HttpRequest& request);

// The response to the request by which a browser asks beforehand; nullopt for any other request, and if no origin may.
std::optional<HttpResponse> preflight_response(const CorsSettings& settings, const HttpRequest& request);

}  // namespace weft
