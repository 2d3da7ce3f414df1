#pragma once

// A server of the tiny model (tests/engine/tiny_model.h) in this process, with a chat template. It listens on a free
// port.

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "engine/engine.h"
#include "server/server.h"
#include "tests/base/temporary_folder.h"

namespace weft {

class RunningServer {
 public:
  using EngineOptions = std::vector<std::pair<std::string, std::string>>;

  // What differs from the tiny model and its template.
  struct ModelChanges {
    std::vector<std::string> added_tokens = {};
    std::string prompt_end = "<assistant>";  // what the template writes at the end
    std::string tool_call_parser = "auto", reasoning_parser = "auto";
    bool trusts_templates = false;
    std::string fingerprint_mode = "full";
    std::optional<Pooling> pooling = {};
    std::string path = "";  // of another model
  };

  explicit RunningServer(ServerSettings settings = {}, const EngineOptions& options = {},
                         const AnswerSettings& answers = {})
      : RunningServer(std::move(settings), options, answers, ModelChanges()) {}
  RunningServer(ServerSettings settings, const EngineOptions& options, const AnswerSettings& answers,
                const ModelChanges& changes);
  ~RunningServer();

  Server& server() { return *server_; }
  int port() const { return server_->port(); }
  const std::string& model_path() const { return path_; }
  std::string template_path() const { return folder_ / "template.jinja"; }
  // Ends the server and waits for its threads.
  void shut_down();
  // Waits until GET /load reports at least this number; false if it does not.
  bool has_load(int least);
  // The number that GET /load reports, once it is 0 or the time is over.
  int load_at_rest();
  std::vector<std::string> log();

 private:
  int load();

  TemporaryFolder folder_;
  std::string path_;
  std::mutex mutex_;
  std::vector<std::string> lines_;
  std::unique_ptr<Engine> engine_;
  ServedModel model_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

}  // namespace weft
