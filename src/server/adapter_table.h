#pragma once

// The LoRA adapters that requests may have: by their names, which a client may load and unload while the server runs,
// and by the scales of those that all requests have. What a request was given stays as it is until the request ends.

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/engine.h"

namespace weft {

// What a request runs with. Names and paths are in UTF-8; one of scales has neither.
struct ServedAdapter {
  std::string name, path;
  std::shared_ptr<const LoadedAdapter> loaded;
};

using ServedAdapterPointer = std::shared_ptr<const ServedAdapter>;

// Any thread may call it.
class AdapterTable {
 public:
  // Takes the adapters of --lora-modules from the engine, which must outlive the table. UserError where one has a name
  // of the model.
  AdapterTable(Engine& engine, std::vector<std::string> model_names);

  // By name; null for none.
  ServedAdapterPointer find(const std::string& name) const;
  // In the order in which they were loaded.
  std::vector<ServedAdapterPointer> list() const;

  // As vLLM: the sentence of the answer, or ApiError. Only with --allow-runtime-lora-updating.
  std::string load(const std::string& name, const std::string& path, bool replaces);
  std::string unload(const std::string& name);

  // As llama.cpp: the adapters of all requests and their scales; a request that names no adapter has them. An id that
  // has no scale has 0.
  Json scales() const;
  void set_scales(const std::map<std::int64_t, double>& scales);
  // Null: those that the model was opened with. ApiError for an unknown id, or where no place is free.
  ServedAdapterPointer of_all() const;
  ServedAdapterPointer with_scales(const std::map<std::int64_t, double>& scales);

 private:
  using Scales = std::vector<double>;
  struct Combination {
    Scales scales;
    ServedAdapterPointer adapter;
  };
  void check_allowed() const;
  Scales all_scales(const std::map<std::int64_t, double>& scales) const;
  ServedAdapterPointer combination(const Scales& scales);
  std::shared_ptr<const LoadedAdapter> load_parts(const LoraParts& parts);
  bool drop_unused_combination();

  AdapterSlots& slots_;
  const std::vector<std::string> model_names_;
  const bool is_allowed_;
  const std::vector<ScaledLora> scaled_;   // of all requests
  std::mutex loading_;                     // one adapter is loaded at a time
  std::vector<Combination> combinations_;  // under loading_; the last one was used last

  mutable std::mutex mutex_;  // of the following ones; it is never held for long
  std::vector<ServedAdapterPointer> named_;
  Scales scales_;
  ServedAdapterPointer of_all_;
};

}  // namespace weft
