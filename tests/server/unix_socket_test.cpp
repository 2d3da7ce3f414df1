// A server on a Unix socket, and what is at the path of its file before it starts.

#include <cstring>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"
#include "server/server.h"
#include "tests/base/temporary_folder.h"

namespace weft::unix_socket_test {

std::unique_ptr<Server> server_at(const std::string& path) {
  ServerSettings settings;
  settings.socket_path = path;
  return std::make_unique<Server>(std::move(settings), [](const std::string&) {});
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{.sun_family = AF_UNIX};
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

// All of the response; "" if nobody listens.
std::string asked(const std::string& path, const std::string& request) {
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  const sockaddr_un address = address_of(path);
  std::string response;
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 &&
      ::send(socket, request.data(), request.size(), 0) == static_cast<ssize_t>(request.size())) {
    char bytes[4096];
    for (ssize_t count = 0; (count = ::recv(socket, bytes, sizeof(bytes), 0)) > 0;)
      response.append(bytes, static_cast<std::size_t>(count));
  }
  ::close(socket);
  return response;
}

constexpr const char* kAsk = "GET /version HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

TEST(UnixSocket, AnswersItsOwnerAlone) {
  const TemporaryFolder folder;
  const std::string path = folder / "weft.sock";
  {
    const auto server = server_at(path);
    EXPECT_EQ(server->url(), "unix:" + path);
    struct stat status {};
    ASSERT_EQ(::stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0600U);
    EXPECT_TRUE(asked(path, kAsk).starts_with("HTTP/1.1 200"));
    EXPECT_THROW(server_at(path), UserError) << "one server has it";
    EXPECT_TRUE(asked(path, kAsk).starts_with("HTTP/1.1 200")) << "and keeps it";
  }
  EXPECT_NE(::access(path.c_str(), F_OK), 0) << "its file ends with it";
}

TEST(UnixSocket, ReplacesAFileOnWhichNobodyListens) {
  const TemporaryFolder folder;
  const std::string path = folder / "weft.sock";
  const int socket = ::socket(AF_UNIX, SOCK_STREAM, 0);
  const sockaddr_un address = address_of(path);
  ASSERT_EQ(::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  ::close(socket);
  const auto server = server_at(path);
  EXPECT_TRUE(asked(path, kAsk).starts_with("HTTP/1.1 200"));
  const std::string other = folder / "text";
  std::ofstream(other) << "kept";
  EXPECT_THROW(server_at(other), UserError);
  EXPECT_EQ(::access(other.c_str(), F_OK), 0);
  EXPECT_THROW(server_at(folder / std::string(200, 'a')), UserError);
}

}  // namespace weft::unix_socket_test
