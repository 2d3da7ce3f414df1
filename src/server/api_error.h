#pragma once

// The errors that clients get, with the body of the API that they use.

#include <exception>
#include <string>
#include <utility>

#include "base/json.h"
#include "server/http_message.h"

namespace weft {

enum class ErrorForm {
  openai,     // {"error":{"message","type","param","code"}}
  anthropic,  // {"type":"error","error":{"type","message"}}
};

class ApiError : public std::exception {
 public:
  // `parameter` is the field that is wrong, or "".
  ApiError(int status, std::string type, const std::string& message, std::string parameter = "");

  int status() const { return status_; }
  const char* what() const noexcept override { return message_.c_str(); }
  Json body(ErrorForm form = ErrorForm::openai) const;
  HttpResponse response(ErrorForm form = ErrorForm::openai) const;

 private:
  int status_;
  std::string type_, message_, parameter_;
};

// A value of the wrong type, a missing field, or a body that is not JSON. `field` is "" for the body as a whole.
ApiError wrong_type(const std::string& message, const std::string& field);
// A value out of its range, or a combination that is not allowed.
ApiError wrong_value(const std::string& message, const std::string& field);
// What this server does not do, or not yet.
ApiError not_made_here(const std::string& message, const std::string& field = "");
// Not now, but the client may try again.
ApiError unavailable(const std::string& message);
ApiError internal_error(const std::string& message);
// Of bytes that are not a request which this server takes.
ApiError http_error(int status, const std::string& message);

}  // namespace weft
