#include "server/http_head.h"

#include <algorithm>
#include <cstring>
#include <new>

#include <fmt/format.h>

#include "base/hexadecimal.h"
#include "base/text.h"

namespace weft {
namespace {

constexpr std::size_t kMostLengthDigits = 18;
constexpr std::size_t kMostFieldBytes = 65535;  // Beast's parser counts them in 16 bits

bool is_token(std::string_view text) {
  const auto is_part = [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c != '\0' && std::strchr("!#$%&'*+-.^_`|~", c) != nullptr);
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), is_part);
}

bool is_number(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), is_digit); }

bool is_control(char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F; }

// nullopt for a request line that is right.
std::optional<HttpFault> request_line_fault(std::string_view line) {
  const auto first = line.find(' '), last = line.rfind(' ');
  if (first == std::string_view::npos || last == first || line.find(' ', first + 1) != last)
    return HttpFault{400, "wanted a method, a path and a version with one space between them"};
  const std::string_view version = line.substr(last + 1);
  const std::string_view number = version.substr(std::min<std::size_t>(version.size(), 5));
  const bool is_version = version.starts_with("HTTP/") && is_number(number.substr(0, number.find('.'))) &&
                          is_number(number.substr(number.find('.') + 1));
  if (!is_token(line.substr(0, first)) || last == first + 1 || !is_version)
    return HttpFault{400, "wanted a method, a path and a version with one space between them"};
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return HttpFault{505, "wanted HTTP/1.1 or HTTP/1.0"};
  return std::nullopt;
}

// A broken escape stays as it is, so that the path is none of ours.
std::string decoded(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? hexadecimal_value(text[i + 1]) : -1;
    const int low = high < 0 ? -1 : hexadecimal_value(text[i + 2]);
    if (low < 0) {
      bytes += text[i];
    } else {
      bytes += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return bytes;
}

bool has_word(std::string_view list, std::string_view word) {
  for (const std::string& item : split_text(list, ','))
    if (to_lower_ascii(item) == word) return true;
  return false;
}

struct Framing {
  std::optional<std::string> length;
  std::optional<std::string> encoding;
  std::optional<HttpFault> fault;
};

Framing framing_fields(const HttpRequest& request) {
  Framing framing;
  const auto refuse = [&](int status, const char* message) {
    if (!framing.fault) framing.fault = HttpFault{status, message};
  };
  int hosts = 0;
  for (const auto& [name, value] : request.fields) {
    if (name == "host") ++hosts;
    if (name == "content-length") {
      if (!is_number(value)) refuse(400, "Content-Length must be plain digits");
      if (framing.length && framing.length != value) refuse(400, "two Content-Length differ");
      framing.length = value;
    }
    if (name == "transfer-encoding") {
      if (framing.encoding) refuse(400, "Transfer-Encoding must be given once");
      framing.encoding = to_lower_ascii(value);
    }
  }
  if (hosts > 1 || (hosts == 0 && !request.is_http_10)) refuse(400, "wanted one Host");
  if (framing.length && framing.encoding) refuse(400, "Content-Length and Transfer-Encoding exclude each other");
  if (framing.encoding && request.is_http_10) refuse(400, "HTTP/1.0 has no Transfer-Encoding");
  if (framing.encoding && framing.encoding != "chunked") refuse(501, "Transfer-Encoding must be chunked");
  return framing;
}

}  // namespace

ServerFault fault_of(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return {503, "the server is short of memory"};
  return {500, "the request could not be read"};
}

std::optional<std::size_t> HeadScanner::scan(std::string_view bytes) {
  while (!fault_ && next_ < bytes.size()) {
    const char c = bytes[next_];
    if (next_ >= most_bytes_) {
      fault_ = HttpFault{431, fmt::format("the head must have at most {} bytes", most_bytes_)};
    } else if (lines_ > 0 && next_ - begin_of_line_ > kMostFieldBytes) {
      fault_ = HttpFault{431, fmt::format("a field of the head must have at most {} bytes", kMostFieldBytes)};
    } else if (c == '\r') {
      if (next_ + 1 == bytes.size()) return std::nullopt;
      if (bytes[next_ + 1] != '\n') {
        fault_ = HttpFault{400, "a CR without LF"};
        break;
      }
      const std::string_view line = bytes.substr(begin_of_line_, next_ - begin_of_line_);
      next_ += 2;
      begin_of_line_ = next_;
      if (line.empty() && lines_ > 0) return next_;
      check_line(line);
    } else if (is_control(c)) {
      fault_ = HttpFault{400, c == '\n' ? "an LF without CR" : "a control character in the head"};
    } else {
      ++next_;
    }
  }
  return std::nullopt;
}

void HeadScanner::check_line(std::string_view line) {
  if (lines_++ == 0) {
    fault_ = request_line_fault(line);
    return;
  }
  if (lines_ > most_lines_ + 1) {
    fault_ = HttpFault{431, fmt::format("the head must have at most {} fields", most_lines_)};
  } else if (line.starts_with(' ') || line.starts_with('\t')) {
    fault_ = HttpFault{400, "a field must not be folded"};
  } else if (!is_token(line.substr(0, line.find(':'))) || line.find(':') == std::string_view::npos) {
    fault_ = HttpFault{400, "wanted a field's name and a colon"};
  }
}

std::optional<HttpRequest> read_head(std::string_view head) {
  HttpRequest request;
  auto end = head.find("\r\n");
  const std::string_view line = head.substr(0, end);
  const auto first = line.find(' '), last = line.rfind(' ');
  request.method = line.substr(0, first);
  request.is_http_10 = line.ends_with("1.0");
  std::string_view target = line.substr(first + 1, last - first - 1);
  for (const std::string_view scheme : {"http://", "https://"})
    if (target.starts_with(scheme)) {
      const auto path = target.find('/', scheme.size());
      target = path == std::string_view::npos ? "/" : target.substr(path);
    }
  if (!target.starts_with('/') && target != "*") return std::nullopt;
  const auto query = target.find('?');
  request.path = decoded(target.substr(0, query));
  if (query != std::string_view::npos) request.query = target.substr(query + 1);
  for (std::size_t begin = end + 2; (end = head.find("\r\n", begin)) != begin && end != std::string_view::npos;
       begin = end + 2) {
    const std::string_view field = head.substr(begin, end - begin);
    const auto colon = field.find(':');
    request.fields.emplace_back(to_lower_ascii(field.substr(0, colon)), trim(field.substr(colon + 1)));
  }
  return request;
}

BodyFraming framing_of(const HttpRequest& request) {
  const Framing fields = framing_fields(request);
  if (fields.fault) return {.fault = fields.fault};
  BodyFraming framing;
  framing.is_chunked = fields.encoding.has_value();
  if (fields.length)
    framing.length =
        fields.length->size() <= kMostLengthDigits ? std::stoull(*fields.length) : BodyFraming::kMostLength;
  if (const auto expectation = request.field("expect")) {
    if (to_lower_ascii(*expectation) != "100-continue") return {.fault = HttpFault{417, "wanted Expect: 100-continue"}};
    framing.expects_continue = !request.is_http_10;
  }
  framing.is_kept_alive = !request.is_http_10;
  for (const auto& [name, value] : request.fields) {
    if (name != "connection") continue;
    if (has_word(value, "close")) {
      framing.is_kept_alive = false;
      break;
    }
    if (has_word(value, "keep-alive")) framing.is_kept_alive = true;
  }
  return framing;
}

}  // namespace weft
