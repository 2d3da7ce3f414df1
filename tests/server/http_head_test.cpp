#include "server/http_head.h"

#include <new>
#include <stdexcept>

#include <gtest/gtest.h>

namespace weft::http_head_test {

// The status of the fault, 0 for a whole head, -1 for one that is not whole.
int scanned(const std::string& bytes, std::size_t at_once = 1 << 20, std::size_t most_bytes = 1000,
            std::size_t most_lines = 5) {
  HeadScanner scanner(most_bytes, most_lines);
  for (std::size_t size = std::min(at_once, bytes.size());; size = std::min(size + at_once, bytes.size())) {
    const auto end = scanner.scan(std::string_view(bytes).substr(0, size));
    if (scanner.fault()) return scanner.fault()->status;
    if (end) {
      EXPECT_TRUE(std::string_view(bytes).substr(0, *end).ends_with("\r\n\r\n"));
      return 0;
    }
    if (size == bytes.size()) return -1;
  }
}

std::string head_with(const std::string& fields) { return "GET / HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n"; }

TEST(HttpHead, IsFoundHoweverItsBytesArrive) {
  const std::string head = head_with("Accept: */*\r\nX-A:\tb \r\n");
  for (std::size_t at_once = 1; at_once <= head.size(); ++at_once) EXPECT_EQ(scanned(head + "rest", at_once), 0);
  for (std::size_t size = 0; size < head.size(); ++size) EXPECT_EQ(scanned(head.substr(0, size)), -1) << size;
}

TEST(HttpHead, IsReadStrictly) {
  const std::pair<std::string, int> cases[] = {
      {"GET / HTTP/1.1\nHost: a\r\n\r\n", 400},
      {"GET / HTTP/1.1\rHost: a\r\n\r\n", 400},
      {std::string("GET /\0 HTTP/1.1\r\n", 17), 400},
      {"GET  / HTTP/1.1\r\n", 400},
      {"GET /  HTTP/1.1\r\n", 400},
      {"GET /a b HTTP/1.1\r\n", 400},
      {"GET /\r\n", 400},
      {" GET / HTTP/1.1\r\n", 400},
      {"GE(T / HTTP/1.1\r\n", 400},
      {"GET / HTTP/2.0\r\n", 505},
      {"GET / HTTP/1.2\r\n", 505},
      {"GET / HTTP/1.10\r\n", 505},
      {"GET / HTTP/2\r\n", 505},
      {"PRI * HTTP/2.0\r\n", 505},
      {"GET / HTTP/0.9\r\n", 505},
      {"GET / HTTP/\r\n", 400},
      {"GET / HTTP/1.\r\n", 400},
      {"GET / HTTP/1.1.1\r\n", 400},
      {"GET / http/1.1\r\n", 400},
      {"\x16\x03\x01\x02", 400},
      {head_with("A : b\r\n"), 400},
      {head_with("A\r\n"), 400},
      {head_with(": b\r\n"), 400},
      {head_with("A: b\r\n c\r\n"), 400},
      {head_with("A: b\r\n\tc\r\n"), 400},
      {head_with("A: b\nC: d\r\n"), 400},
      {head_with("A: b\x01\r\n"), 400},
      {head_with("A: b\x7f\r\n"), 400},
      {head_with("A: 1\r\nA: 2\r\nA: 3\r\nA: 4\r\n"), 0},
      {head_with("A: 1\r\nA: 2\r\nA: 3\r\nA: 4\r\nA: 5\r\n"), 431},
      {head_with("A: " + std::string(2000, 'x') + "\r\n"), 431},
      {"GET /" + std::string(2000, 'x'), 431},
      {head_with("A: \xc3\xa9\r\n"), 0},
  };
  for (const auto& [bytes, status] : cases) EXPECT_EQ(scanned(bytes), status) << bytes;
}

TEST(HttpHead, LimitsEachField) {
  const auto status = [](std::size_t size, const std::string& end) {
    return scanned("GET / HTTP/1.1\r\nHost: a\r\nA: " + std::string(size, 'x') + end, 1 << 20, 1 << 20);
  };
  EXPECT_EQ(status(65532, "\r\n\r\n"), 0);
  EXPECT_EQ(status(65533, "\r\n\r\n"), 431);
  EXPECT_EQ(status(65534, ""), 431) << "before the end of its line";
  EXPECT_EQ(scanned("GET /" + std::string(70000, 'x') + " HTTP/1.1\r\nHost: a\r\n\r\n", 1 << 20, 1 << 20), 0);
}

BodyFraming framing(const std::string& fields, const std::string& line = "POST /a%20b?c=%20 HTTP/1.1") {
  const auto request = read_head(line + "\r\n" + fields + "\r\n");
  EXPECT_TRUE(request.has_value());
  return request ? framing_of(*request) : BodyFraming{};
}

TEST(HttpHead, HasOnePathAndItsFields) {
  const auto request = read_head("POST /a%20b%2?c=%20 HTTP/1.0\r\nHost:  x \r\nX-Y: z\r\n\r\n");
  ASSERT_TRUE(request);
  EXPECT_EQ(request->method, "POST");
  EXPECT_EQ(request->path, "/a b%2");
  EXPECT_EQ(request->query, "c=%20");
  EXPECT_TRUE(request->is_http_10);
  EXPECT_EQ(request->field("host"), "x");
  EXPECT_EQ(request->field("x-y"), "z");
  EXPECT_FALSE(request->field("y"));
  EXPECT_EQ(read_head("GET http://h:8/v1?q HTTP/1.1\r\n\r\n")->path, "/v1");
  EXPECT_EQ(read_head("GET http://h HTTP/1.1\r\n\r\n")->path, "/");
  EXPECT_FALSE(read_head("CONNECT h:8 HTTP/1.1\r\n\r\n"));
}

TEST(HttpHead, SaysHowTheBodyEnds) {
  EXPECT_EQ(framing("Host: a\r\nContent-Length: 12\r\n").length, 12U);
  EXPECT_EQ(framing("Host: a\r\nContent-Length: 12\r\nContent-Length: 12\r\n").length, 12U);
  EXPECT_EQ(framing("Host: a\r\nContent-Length: 9999999999999999999\r\n").length, BodyFraming::kMostLength);
  EXPECT_EQ(framing("Host: a\r\nContent-Length: 99999999999999999999\r\n").length, BodyFraming::kMostLength);
  EXPECT_TRUE(framing("Host: a\r\nTransfer-Encoding: Chunked\r\n").is_chunked);
  EXPECT_TRUE(framing("Host: a\r\nExpect: 100-Continue\r\n").expects_continue);
  EXPECT_TRUE(framing("Host: a\r\n").is_kept_alive);
  EXPECT_FALSE(framing("Host: a\r\nConnection: x, Close\r\n").is_kept_alive);
  EXPECT_FALSE(framing("", "GET / HTTP/1.0").is_kept_alive);
  EXPECT_TRUE(framing("Connection: Keep-Alive\r\n", "GET / HTTP/1.0").is_kept_alive);
}

TEST(HttpHead, RefusesWhatTwoReadersMayReadInTwoWays) {
  const std::pair<const char*, int> cases[] = {
      {"", 400},
      {"Host: a\r\nHost: a\r\n", 400},
      {"Host: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n", 400},
      {"Host: a\r\nContent-Length: 1, 1\r\n", 400},
      {"Host: a\r\nContent-Length: +1\r\n", 400},
      {"Host: a\r\nContent-Length: 0x1\r\n", 400},
      {"Host: a\r\nContent-Length:\r\n", 400},
      {"Host: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n", 400},
      {"Host: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400},
      {"Host: a\r\nTransfer-Encoding: gzip\r\n", 501},
      {"Host: a\r\nTransfer-Encoding: gzip, chunked\r\n", 501},
      {"Host: a\r\nExpect: a-miracle\r\n", 417},
  };
  for (const auto& [fields, status] : cases) {
    const BodyFraming read = framing(fields);
    ASSERT_TRUE(read.fault) << fields;
    EXPECT_EQ(read.fault->status, status) << fields;
  }
}

TEST(HttpFaults, OfALackOfMemoryAskToTryAgain) {
  EXPECT_EQ(fault_of(std::bad_alloc()).status, 503);
  EXPECT_EQ(fault_of(std::runtime_error("a")).status, 500);
}

}  // namespace weft::http_head_test
