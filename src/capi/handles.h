#pragma once

// The structs of the handles of weft.h.

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "capi/boundary.h"
#include "compiler/run/graph_program.h"
#include "compiler/warnings.h"
#include "engine/engine.h"

namespace weft {

// Sentences for the caller. A thread may add one while another reads them, because the threads that compile add
// warnings.
class Notes {
 public:
  // Does nothing if there is such a sentence.
  void add(const std::string& sentence);
  bool contains(const std::string& sentence) const;
  // One sentence in each line.
  std::string text() const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> sentences_;
};

// Adds the warnings of a Context to the notes, which stay alive as long as it may warn.
WarningSink sink_of(const std::shared_ptr<Notes>& notes);

}  // namespace weft

struct weft_context {
  std::mutex mutex;
  std::shared_ptr<weft::Context> context;
  std::shared_ptr<weft::Notes> notes = std::make_shared<weft::Notes>();
  std::vector<std::pair<weft_priority_scope, std::unique_ptr<weft::PriorityScope>>> scopes;  // newest last
  weft_priority_scope last_scope = 0;
};

struct weft_model {
  weft::HandleMutex mutex;
  std::unique_ptr<weft::Engine> engine;
  std::shared_ptr<weft::Notes> notes = std::make_shared<weft::Notes>();
};

struct weft_graph {
  weft::HandleMutex mutex;
  std::shared_ptr<weft::Context> context;
  std::shared_ptr<const weft::Graph> graph;  // as given by the caller
  std::unique_ptr<weft::GraphProgram> program;
};

namespace weft {

// A copy of the current options and priorities. A model or graph gets its own Context with them, and its own threads,
// so it never waits for another, and later changes of `from` do not affect it.
Options options_of(weft_context& from);

std::string selected_impls_json(const std::vector<const CompileRecord*>& records);

}  // namespace weft
