// A server in TLS, and clients that are not what it expects.

#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "base/json.h"
#include "base/text.h"
#include "tests/certificates.h"
#include "tests/server/running_server.h"
#include "tests/tls_client.h"

namespace weft::tls_test {

class Tls : public ::testing::Test {
 protected:
  Tls() {
    authority_.write(path("authority.pem"));
    authority_.sign("server", path("server.pem"), path("server.key"));
  }

  std::string path(const std::string& name) const { return folder_ / name; }

  ServerSettings settings() const {
    ServerSettings settings;
    settings.tls = TlsFiles{.certificate = path("server.pem"), .key = path("server.key")};
    return settings;
  }

  TlsClientSettings trusting() const { return {.authority = path("authority.pem")}; }

  TlsClientSettings with_certificate(const CertificateAuthority& signer) const {
    signer.sign("client", path("client.pem"), path("client.key"));
    return {.certificate = path("client.pem"), .key = path("client.key")};
  }

  // Whether the log has a line with these words; waits for it.
  static bool has_line(RunningServer& running, const std::string& words) {
    for (int i = 0; i < 3000; ++i) {
      for (const std::string& line : running.log())
        if (line.find(words) != std::string::npos) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }

  const TemporaryFolder folder_;
  const CertificateAuthority authority_{"authority"};
};

// As without TLS: responses in one piece, streams, several requests of a connection, and more bytes than a record has.
TEST_F(Tls, ServesAsWithoutIt) {
  RunningServer running(settings()), plain;
  EXPECT_TRUE(running.server().url().starts_with("https://127.0.0.1:")) << running.server().url();
  const std::string completion = R"({"prompt":"ab","max_tokens":9,"temperature":0,"ignore_eos":true})";
  const std::string stream = R"({"prompt":"ab","max_tokens":9,"temperature":0,"ignore_eos":true,"stream":true})";
  const std::string long_text = R"({"prompt":")" + std::string(300000, 'a') + "\"}";
  HttpClient other(plain.port());
  const Json wanted = parse_json(other.post("/v1/completions", completion).body)["choices"];
  const std::string wanted_tokens = other.post("/tokenize", long_text).body;
  EXPECT_GT(wanted_tokens.size(), 600000U);
  for (const bool is_old : {false, true}) {
    TlsClientSettings client_settings = trusting();
    client_settings.is_old = is_old;
    TlsClient client(running.port(), client_settings);
    EXPECT_EQ(client.version(), is_old ? "TLSv1.2" : "TLSv1.3");
    EXPECT_EQ(parse_json(client.post("/v1/completions", completion).body)["choices"], wanted);
    const ClientResponse events = client.post("/v1/completions", stream);
    EXPECT_TRUE(events.is_whole);
    EXPECT_EQ(events.chunks.size(), 10U);
    EXPECT_EQ(client.post("/tokenize", long_text).body, wanted_tokens);
    client.send(post_bytes("/tokenize", long_text) + "GET /version HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_EQ(client.receive().body, wanted_tokens);
    EXPECT_EQ(client.receive().status, 200);
    client.send("GET /version HTTP/1.0\r\n\r\n");
    EXPECT_EQ(client.receive().status, 200);
    EXPECT_TRUE(client.is_closed());
  }
}

TEST_F(Tls, ConcurrentClientsAreServed) {
  RunningServer running(settings());
  std::vector<std::thread> threads;
  std::vector<std::vector<std::string>> texts(8);
  for (std::size_t i = 0; i < texts.size(); ++i)
    threads.emplace_back([&, i] {
      TlsClient client(running.port(), trusting());
      for (int round = 0; round < 4; ++round) {
        const ClientResponse events = client.post(
            "/v1/completions", R"({"prompt":"ab","max_tokens":20,"temperature":0,"ignore_eos":true,"stream":true})");
        std::string text;
        for (std::size_t k = 0; k + 1 < events.chunks.size(); ++k)
          text += parse_json(events.chunks[k].substr(6))["choices"][0]["text"].get<std::string>();
        texts[i].push_back(text);
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& rounds : texts) EXPECT_EQ(rounds, std::vector<std::string>(4, texts[0][0]));
  EXPECT_FALSE(texts[0][0].empty());
}

// A disconnect cancels what was asked for, with and without a last word of TLS, and a client that reads nothing is cut
// off.
TEST_F(Tls, ConcurrentDisconnectsFreeTheirRequests) {
  ServerSettings quick = settings();
  quick.limits.stall = std::chrono::milliseconds(200);
  RunningServer running(std::move(quick));
  const std::string endless =
      post_bytes("/v1/completions", R"({"prompt":"a","n":16384,"max_tokens":120,"ignore_eos":true,"stream":true})");
  const auto waits_for_load = [&](bool is_wanted) {
    for (int i = 0; i < 6000; ++i) {
      const int load = parse_json(TlsClient(running.port()).get("/load").body)["server_load"].get<int>();
      if ((load > 0) == is_wanted) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  };
  {
    TlsClient client(running.port());
    client.send(endless);
    EXPECT_TRUE(waits_for_load(true));
  }
  EXPECT_TRUE(waits_for_load(false));
  TlsClient reads_nothing(running.port());
  reads_nothing.send(endless);
  EXPECT_TRUE(waits_for_load(true));
  EXPECT_TRUE(waits_for_load(false));
}

TEST_F(Tls, ClientsWithoutItAreToldSo) {
  RunningServer running(settings());
  HttpClient client(running.port());
  const ClientResponse response = client.post("/v1/completions", R"({"prompt":")" + std::string(100000, 'a') + "\"}");
  EXPECT_EQ(response.status, 400);
  EXPECT_NE(response.body.find("https://"), std::string::npos) << response.body;
  EXPECT_TRUE(client.is_closed());
  EXPECT_EQ(TlsClient(running.port()).get("/health").status, 200);
}

TEST_F(Tls, ClientsWithOtherBytesAreLogged) {
  RunningServer running(settings());
  HttpClient garbage(running.port());
  garbage.send(std::string(1000, 'x'));
  while (!garbage.some_bytes().empty()) {
  }
  EXPECT_TRUE(has_line(running, "no TLS: wrong version number"));
  // The head of a ClientHello, and then nothing more.
  {
    HttpClient vanishes(running.port());
    vanishes.send(std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11));
  }
  EXPECT_TRUE(has_line(running, "no TLS: the other side disconnected"));
  const std::size_t lines = running.log().size();
  { HttpClient probe(running.port()); }  // as load balancers do
  EXPECT_EQ(TlsClient(running.port()).get("/health").status, 200);
  EXPECT_TRUE(has_line(running, "\"/health\" 200"));
  EXPECT_EQ(running.log().size(), lines + 1) << "of /health alone";
  EXPECT_THROW(TlsClient(running.port(), {.authority = path("server.pem")}), std::runtime_error);
  EXPECT_TRUE(has_line(running, "unknown ca"));
}

TEST_F(Tls, HandshakesHaveATimeLimitAndHoldUpNobody) {
  ServerSettings quick = settings();
  quick.limits.handshake = std::chrono::milliseconds(300);
  RunningServer running(std::move(quick));
  std::vector<std::unique_ptr<HttpClient>> silent;
  for (int i = 0; i < 50; ++i) {
    silent.push_back(std::make_unique<HttpClient>(running.port()));
    if (i % 2 == 0) silent.back()->send("\x16\x03\x01");
  }
  EXPECT_EQ(TlsClient(running.port()).get("/health").status, 200);
  for (const auto& client : silent) EXPECT_TRUE(client->is_closed());
  EXPECT_TRUE(has_line(running, "the handshake took too long"));
}

TEST_F(Tls, RenegotiationEndsTheConnection) {
  RunningServer running(settings());
  TlsClientSettings old = trusting();
  old.is_old = true;
  TlsClient client(running.port(), old);
  EXPECT_EQ(client.get("/health").status, 200);
  EXPECT_FALSE(client.renegotiate());
  EXPECT_EQ(client.get("/health").status, 0);
  EXPECT_EQ(TlsClient(running.port(), old).get("/health").status, 200);
}

TEST_F(Tls, ClientsShowCertificates) {
  const CertificateAuthority stranger("stranger");
  ServerSettings strict = settings();
  strict.tls->authorities = path("authority.pem");
  strict.tls->clients = ClientCertificates::required;
  ServerSettings lenient = strict;
  lenient.tls->clients = ClientCertificates::optional;
  RunningServer required(std::move(strict)), optional(std::move(lenient)), none(settings());
  // In TLS 1.2 the handshake fails, in TLS 1.3 there is no response after it.
  const auto status = [](const RunningServer& running, TlsClientSettings client, bool is_old) {
    client.is_old = is_old;
    try {
      return TlsClient(running.port(), client).get("/health").status;
    } catch (const std::runtime_error&) {
      return 0;
    }
  };
  for (const bool is_old : {false, true}) {
    EXPECT_EQ(status(required, {}, is_old), 0);
    EXPECT_EQ(status(required, with_certificate(stranger), is_old), 0);
    EXPECT_EQ(status(required, with_certificate(authority_), is_old), 200);
    EXPECT_EQ(status(optional, {}, is_old), 200);
    EXPECT_EQ(status(optional, with_certificate(stranger), is_old), 0);
    EXPECT_EQ(status(optional, with_certificate(authority_), is_old), 200);
    EXPECT_EQ(status(none, with_certificate(stranger), is_old), 200);
  }
  EXPECT_TRUE(has_line(required, "no TLS: peer did not return a certificate"));
  EXPECT_TRUE(has_line(required, "no TLS: the certificate: unable to get local issuer certificate"));
}

TEST_F(Tls, FilesAreReadAgain) {
  RunningServer running(settings());
  TlsClient before(running.port(), trusting());
  EXPECT_EQ(before.server_name(), "server");
  EXPECT_EQ(before.get("/health").status, 200);
  authority_.sign("next", path("server.pem"), path("server.key"));
  running.server().renew_tls();
  EXPECT_TRUE(has_line(running, "read again"));
  EXPECT_EQ(before.get("/health").status, 200) << "a connection outlives the certificate that it began with";
  EXPECT_EQ(TlsClient(running.port(), trusting()).server_name(), "next");
  // A key that does not belong to the certificate.
  authority_.sign("third", path("other.pem"), path("server.key"));
  running.server().renew_tls();
  EXPECT_TRUE(has_line(running, "server.key"));
  EXPECT_TRUE(has_line(running, "the certificate that was read before stays"));
  TlsClient after(running.port(), trusting());
  EXPECT_EQ(after.server_name(), "next");
  EXPECT_EQ(after.get("/health").status, 200);
  EXPECT_EQ(before.get("/health").status, 200);
}

// A server that ends waits for no handshake.
TEST_F(Tls, ConcurrentHandshakesEndWithTheServer) {
  ServerSettings patient = settings();
  patient.shutdown_timeout = std::chrono::hours(1);
  RunningServer running(std::move(patient));
  HttpClient half(running.port());
  half.send("\x16\x03\x01");
  TlsClient idle(running.port());
  EXPECT_EQ(idle.get("/health").status, 200);
  running.shut_down();
  EXPECT_TRUE(half.is_closed());
  EXPECT_TRUE(idle.is_closed());
}

}  // namespace weft::tls_test
