#pragma once

// Sends requests at their times to a server, as many at once as are allowed, and measures the streams that answer.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/bench/serve_results.h"
#include "server/stream_client.h"

namespace weft {

struct LoadTarget {
  StreamServer server;
  std::string path;  // of requests; for first_model() what is before /v1
  HttpFields fields;
  std::optional<std::int64_t> max_concurrency;
};

struct LoadRequest {
  std::string body;
  HttpFields fields = {};          // after those of the target
  std::int64_t prompt_tokens = 0;  // where the server does not report them
  double send_at = 0;              // seconds from the begin
};

struct LoadResult {
  std::vector<ServeOutcome> outcomes;  // in the order of the requests
  double duration = 0;                 // from the begin to the last end
};

LoadResult send_load(const LoadTarget& target, const std::vector<LoadRequest>& requests);

struct ListedModel {
  std::string name;  // in requests
  std::string root;  // the file or folder that the server opened, or the name if the server does not list one
};

// The first model of the server's /v1/models.
ListedModel first_model(const LoadTarget& target);

}  // namespace weft
