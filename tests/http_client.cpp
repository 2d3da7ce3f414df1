#include "tests/http_client.h"

#include <stdexcept>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/text.h"

namespace weft {

HttpClient::HttpClient(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    throw std::runtime_error("nothing listens at port " + std::to_string(port));
  set_limit();
}

HttpClient::HttpClient(const std::string& socket_path) : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{.sun_family = AF_UNIX};
  socket_path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    ::close(socket_);
    throw std::runtime_error("nothing listens at " + socket_path);
  }
  set_limit();
}

void HttpClient::set_limit() {
  // For a server that never answers.
  const timeval limit{.tv_sec = 120, .tv_usec = 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
}

HttpClient::~HttpClient() { ::close(socket_); }

void HttpClient::send(const std::string& bytes) {
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t count = write_some(bytes.data() + sent, bytes.size() - sent);
    if (count <= 0) return;  // the server has refused the rest
    sent += static_cast<std::size_t>(count);
  }
}

ssize_t HttpClient::read_some(char* bytes, std::size_t size) { return ::recv(socket_, bytes, size, 0); }

ssize_t HttpClient::write_some(const char* bytes, std::size_t size) {
  return ::send(socket_, bytes, size, MSG_NOSIGNAL);
}

bool HttpClient::fill() {
  char buffer[65536];
  const ssize_t count = read_some(buffer, sizeof buffer);
  if (count <= 0) return false;
  in_.append(buffer, static_cast<std::size_t>(count));
  return true;
}

std::string HttpClient::some_bytes() {
  if (in_.empty()) fill();
  return take(in_.size());
}

void HttpClient::half_close() { ::shutdown(socket_, SHUT_WR); }

bool HttpClient::is_closed() {
  char byte = 0;
  return in_.empty() && read_some(&byte, 1) <= 0;
}

std::string HttpClient::take(std::size_t count) {
  while (in_.size() < count && fill()) {
  }
  const std::string taken = in_.substr(0, count);
  in_.erase(0, taken.size());
  return taken;
}

bool HttpClient::find(const std::string& text, std::size_t& at) {
  while ((at = in_.find(text)) == std::string::npos)
    if (!fill()) return false;
  return true;
}

ClientResponse HttpClient::receive(bool is_head) {
  ClientResponse response;
  std::size_t end = 0;
  if (!find("\r\n\r\n", end)) return response;
  const std::vector<std::string> lines = split_text(replace_all(take(end + 4), "\r\n", "\n"), '\n');
  response.status = std::stoi(lines[0].substr(9, 3));
  for (std::size_t i = 1; i < lines.size(); ++i)
    if (const auto colon = lines[i].find(": "); colon != std::string::npos)
      response.fields[to_lower_ascii(lines[i].substr(0, colon))] = lines[i].substr(colon + 2);
  if (response.status == 100) return receive(is_head);
  if (response.fields.contains("transfer-encoding")) {
    while (find("\r\n", end)) {
      const std::size_t size = std::stoul(take(end + 2), nullptr, 16);
      const std::string chunk = take(size + 2);
      if (chunk.size() != size + 2) return response;
      if (size == 0) {
        response.is_whole = true;
        return response;
      }
      response.chunks.push_back(chunk.substr(0, size));
      response.body += response.chunks.back();
    }
  } else if (response.fields.contains("content-length")) {
    const std::size_t size = is_head ? 0 : std::stoul(response.fields["content-length"]);
    response.body = take(size);
    response.is_whole = response.body.size() == size;
  } else {
    while (fill()) {
    }
    response.body = take(in_.size());
    response.is_whole = true;
  }
  return response;
}

ClientResponse HttpClient::get(const std::string& path, const std::string& fields) {
  send("GET " + path + " HTTP/1.1\r\nHost: test\r\n" + fields + "\r\n");
  return receive();
}

std::string post_bytes(const std::string& path, const std::string& json, const std::string& fields) {
  return "POST " + path +
         " HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(json.size()) +
         "\r\n" + fields + "\r\n" + json;
}

ClientResponse HttpClient::post(const std::string& path, const std::string& json, const std::string& fields) {
  send(post_bytes(path, json, fields));
  return receive();
}

}  // namespace weft
