#include "server/http_message.h"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>

namespace weft {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 20;  // of a body
constexpr std::size_t kReserve = 64;                  // bytes after a body, for the padding of the JSON parser

const char* reason_phrase(int status) {
  switch (status) {
    case 100:
      return "Continue";
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 417:
      return "Expectation Failed";
    case 431:
      return "Request Header Fields Too Large";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Internal Server Error";
  }
}

// "Fri, 27 Nov 2026 16:30:00 GMT", whatever the locale.
std::string date_text(std::time_t now) {
  static constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                            "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm parts{};
  gmtime_r(&now, &parts);
  return fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", kDays[parts.tm_wday], parts.tm_mday,
                     kMonths[parts.tm_mon], parts.tm_year + 1900, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

}  // namespace

void HttpBody::append(std::string_view bytes) {
  while (!bytes.empty()) {
    if (blocks_.empty() || blocks_.back().size() == kBlock) {
      blocks_.emplace_back();
      if (blocks_.size() > 1) blocks_.back().reserve(kBlock);
    }
    const std::size_t count = std::min(bytes.size(), kBlock - blocks_.back().size());
    blocks_.back() += bytes.substr(0, count);
    bytes.remove_prefix(count);
  }
}

std::string HttpBody::take_text() {
  const std::vector<std::string> blocks = std::move(blocks_);
  std::size_t size = 0;
  for (const std::string& block : blocks) size += block.size();
  std::string text;
  text.reserve(size + kReserve);
  for (const std::string& block : blocks) text += block;
  return text;
}

std::optional<std::string_view> HttpRequest::field(std::string_view name) const {
  for (const auto& [known, value] : fields)
    if (known == name) return value;
  return std::nullopt;
}

std::string response_head(int status, const HttpFields& fields, const std::string& framing) {
  std::string head =
      fmt::format("HTTP/1.1 {} {}\r\ndate: {}\r\n", status, reason_phrase(status), date_text(std::time(nullptr)));
  for (const auto& [name, value] : fields) head += name + ": " + value + "\r\n";
  return head + framing + "\r\n\r\n";
}

}  // namespace weft
