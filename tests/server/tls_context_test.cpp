// Files of certificates and keys: what is wrong with one is said with its name.

#include "server/tls_context.h"

#include <fstream>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/files.h"
#include "tests/base/temporary_folder.h"
#include "tests/certificates.h"

namespace weft::tls_context_test {

class TlsContexts : public ::testing::Test {
 protected:
  TlsContexts() {
    authority_.sign("one", path("one.pem"), path("one.key"));
    authority_.sign("two", path("two.pem"), path("two.key"));
    authority_.sign("both", path("both.pem"), path("both.pem"));
    authority_.sign("secret", path("secret.pem"), path("secret.key"), {.passphrase = "a passphrase"});
    authority_.write(path("authority.pem"));
    write("empty.pem", "");
    write("text.pem", "no certificate\n");
    write("chain.pem", text("one.pem") + text("authority.pem"));
    const std::string damaged = text("one.pem");
    write("damaged.pem", damaged.substr(0, 100) + "AAAA" + damaged.substr(104));
    write("half.pem", text("one.pem") + damaged.substr(0, 200));
  }

  std::string path(const std::string& name) const { return folder_ / name; }
  std::string text(const std::string& name) const { return read_file(path(name), 1 << 20); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(path(name)) << text; }

  // The message of the error, "" if there is none.
  static std::string error_of(const TlsFiles& files) {
    try {
      TlsContext::of_server(files);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  }

  const TemporaryFolder folder_;
  const CertificateAuthority authority_{"authority"};
};

TEST_F(TlsContexts, TakeWhatFits) {
  EXPECT_EQ(error_of({.certificate = path("one.pem"), .key = path("one.key")}), "");
  EXPECT_EQ(error_of({.certificate = path("chain.pem"), .key = path("one.key")}), "");
  EXPECT_EQ(error_of({.certificate = path("both.pem")}), "");
  EXPECT_EQ(error_of({.certificate = path("both.pem"),
                      .authorities = path("authority.pem"),
                      .clients = ClientCertificates::required}),
            "");
}

TEST_F(TlsContexts, NameTheFileThatIsWrong) {
  struct Case {
    TlsFiles files;  // names in the folder
    const char* flag;
    const char* file;
    const char* words;
  };
  const Case cases[] = {
      {{.certificate = "none.pem", .key = "one.key"}, "--ssl-certfile", "none.pem", "no such file"},
      {{.certificate = "", .key = "one.key"}, "--ssl-certfile", "", "wanted"},
      {{.certificate = "empty.pem", .key = "one.key"}, "--ssl-certfile", "empty.pem", "has none"},
      {{.certificate = "text.pem", .key = "one.key"}, "--ssl-certfile", "text.pem", "has none"},
      {{.certificate = "one.key", .key = "one.key"}, "--ssl-certfile", "one.key", "has none"},
      {{.certificate = "damaged.pem", .key = "one.key"}, "--ssl-certfile", "damaged.pem", "wrong"},
      {{.certificate = "half.pem", .key = "one.key"}, "--ssl-certfile", "half.pem", "wrong"},
      {{.certificate = "one.pem", .key = "none.key"}, "--ssl-keyfile", "none.key", "no such file"},
      {{.certificate = "one.pem", .key = "text.pem"}, "--ssl-keyfile", "text.pem", "has none"},
      {{.certificate = "one.pem", .key = "one.pem"}, "--ssl-keyfile", "one.pem", "has none"},
      {{.certificate = "one.pem"}, "--ssl-keyfile", "one.pem", "has none"},
      {{.certificate = "one.pem", .key = "two.key"}, "--ssl-keyfile", "two.key", "another"},
      {{.certificate = "secret.pem", .key = "secret.key"}, "--ssl-keyfile", "secret.key", "passphrase"},
      {{.certificate = "both.pem", .authorities = "none.pem"}, "--ssl-ca-certs", "none.pem", "no such file"},
      {{.certificate = "both.pem", .authorities = "one.key"}, "--ssl-ca-certs", "one.key", "has none"},
      {{.certificate = "both.pem", .clients = ClientCertificates::optional}, "--ssl-cert-reqs", "", "--ssl-ca-certs"},
  };
  for (const auto& [given, flag, file, words] : cases) {
    TlsFiles files = given;
    for (std::string* name : {&files.certificate, &files.key, &files.authorities})
      if (!name->empty()) *name = path(*name);
    const std::string message = error_of(files);
    for (const char* wanted : {flag, file, words})
      EXPECT_NE(message.find(wanted), std::string::npos) << wanted << " is missing in: " << message;
  }
}

}  // namespace weft::tls_context_test
