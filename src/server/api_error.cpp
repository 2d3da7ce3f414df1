#include "server/api_error.h"

#include "base/utf8.h"

namespace weft {
namespace {

constexpr std::size_t kLongestMessage = 1000;

std::string shortened(const std::string& message) {
  if (message.size() <= kLongestMessage) return message;
  const std::string begin = message.substr(0, kLongestMessage);
  return begin.substr(0, begin.size() - incomplete_utf8_suffix(begin));
}

// The types that Anthropic's clients know.
const char* anthropic_type(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 503:
      return "overloaded_error";
    default:
      return status < 500 ? "invalid_request_error" : "api_error";
  }
}

}  // namespace

ApiError::ApiError(int status, std::string type, const std::string& message, std::string parameter)
    : status_(status), type_(std::move(type)), message_(shortened(message)), parameter_(std::move(parameter)) {}

Json ApiError::body(ErrorForm form) const {
  if (form == ErrorForm::anthropic)
    return {{"type", "error"}, {"error", {{"type", anthropic_type(status_)}, {"message", message_}}}};
  return {{"error",
           {{"message", message_},
            {"type", type_},
            {"param", parameter_.empty() ? Json(nullptr) : Json(parameter_)},
            {"code", status_}}}};
}

HttpResponse ApiError::response(ErrorForm form) const {
  HttpResponse response{.status = status_, .body = json_text(body(form))};
  if (status_ == 401) response.fields.emplace_back("www-authenticate", "Bearer");
  if (status_ == 503) response.fields.emplace_back("retry-after", "1");
  return response;
}

ApiError wrong_type(const std::string& message, const std::string& field) {
  return {400, "Bad Request", message, field.empty() ? "body" : "body." + field};
}

ApiError wrong_value(const std::string& message, const std::string& field) {
  return {400, "BadRequestError", message, field};
}

ApiError not_made_here(const std::string& message, const std::string& field) {
  return {501, "NotImplementedError", message, field};
}

ApiError unavailable(const std::string& message) { return {503, "Service Unavailable", message}; }

ApiError internal_error(const std::string& message) { return {500, "InternalServerError", message}; }

ApiError http_error(int status, const std::string& message) {
  switch (status) {
    case 500:
      return internal_error(message);
    case 501:
      return not_made_here(message);
    case 503:
      return unavailable(message);
    default:
      return {status, "Bad Request", message};
  }
}

}  // namespace weft
