#include "apps/cli/bench/serve_target.h"

#include "base/error.h"
#include "base/text.h"

namespace weft {

std::pair<std::string, std::string> pair_of(const std::string& text, char separator, const char* flag) {
  const auto at = text.find(separator);
  USER_CHECK(at != std::string::npos && at > 0, "[{}] must be NAME{}VALUE, but is {}", flag, separator, quote(text));
  return {std::string(trim(text.substr(0, at))), std::string(trim(text.substr(at + 1)))};
}

HttpFields header_fields(const BenchServeArguments& arguments) {
  HttpFields fields;
  for (const std::string& text : arguments.headers) fields.push_back(pair_of(text, '=', "--header"));
  return fields;
}

LoadTarget given_target(const BenchServeArguments& arguments) {
  LoadTarget target{.server = {.host = arguments.host.empty() ? "127.0.0.1" : arguments.host,
                               .port = static_cast<int>(arguments.port == 0 ? 8000 : arguments.port)},
                    .fields = header_fields(arguments)};
  if (arguments.base_url.empty()) return target;
  const std::string& url = arguments.base_url;
  StreamServer& server = target.server;
  server.has_tls = url.starts_with("https://");
  USER_CHECK(server.has_tls || url.starts_with("http://"),
             "[--base-url] must begin with http:// or https://, but is {}", quote(url));
  server.is_verified = !arguments.is_insecure;
  server.flag = "--base-url";
  std::string rest = url.substr(url.find("//") + 2);
  if (const auto slash = rest.find('/'); slash != std::string::npos) {
    target.path = rest.substr(slash);
    rest.resize(slash);
  }
  while (target.path.ends_with('/')) target.path.pop_back();
  const auto colon = rest.rfind(':');
  const bool has_port = colon != std::string::npos && rest.find(']', colon) == std::string::npos;
  server.port = server.has_tls ? 443 : 80;
  if (has_port) {
    const std::int64_t port = human_integer(rest.substr(colon + 1), "--base-url");
    USER_CHECK(port >= 1 && port <= 65535, "[--base-url] a port must be from 1 to 65535, but is {}", port);
    server.port = static_cast<int>(port);
    rest.resize(colon);
  }
  server.host = rest.starts_with('[') && rest.ends_with(']') ? rest.substr(1, rest.size() - 2) : rest;
  USER_CHECK(!server.host.empty(), "[--base-url] must name a host, but is {}", quote(url));
  return target;
}

}  // namespace weft
