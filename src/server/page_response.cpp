#include "server/page_response.h"

#include <fmt/format.h>

#include "server/page/page.h"

namespace weft {

// Nothing but the server itself is reached from the page, whatever an answer of the model has in it.
HttpResponse page_response() {
  const std::string policy = fmt::format(
      "default-src 'none'; script-src '{}'; style-src 'unsafe-inline'; connect-src 'self'; img-src data:; "
      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      kPageScriptHash);
  const HttpFields fields = {{"content-security-policy", policy},
                             {"cache-control", "no-cache"},
                             {"referrer-policy", "no-referrer"},
                             {"x-content-type-options", "nosniff"}};
  return {.body = std::string(kPage), .content_type = "text/html; charset=utf-8", .fields = fields};
}

}  // namespace weft
