#pragma once

// A client of one connection that sends bytes as they are, so that tests can send wrong ones.

#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

namespace weft {

struct ClientResponse {
  int status = 0;                             // 0: the connection ended before a whole head
  std::map<std::string, std::string> fields;  // names in lower case
  std::string body;                           // without chunks
  std::vector<std::string> chunks;
  bool is_whole = false;  // the body ended as its head says
};

class HttpClient {
 public:
  // Throws if nothing listens.
  explicit HttpClient(int port);
  explicit HttpClient(const std::string& socket_path);
  virtual ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  void send(const std::string& bytes);
  // Waits for the next response.
  ClientResponse receive(bool is_head = false);
  // Waits for more bytes of the response; "" at the end of the connection.
  std::string some_bytes();
  // Ends the client's side of the connection.
  void half_close();
  // Whether the server has ended the connection; waits for it.
  bool is_closed();

  ClientResponse get(const std::string& path, const std::string& fields = "");
  ClientResponse post(const std::string& path, const std::string& json, const std::string& fields = "");

 protected:
  int socket() const { return socket_; }
  // As recv() and send(): how many bytes were taken; 0 or less if there are no more.
  virtual ssize_t read_some(char* bytes, std::size_t size);
  virtual ssize_t write_some(const char* bytes, std::size_t size);

 private:
  void set_limit();
  bool fill();
  std::string take(std::size_t count);
  bool find(const std::string& text, std::size_t& at);

  int socket_ = -1;
  std::string in_;
};

// A POST of JSON, as bytes.
std::string post_bytes(const std::string& path, const std::string& json, const std::string& fields = "");

}  // namespace weft
