#pragma once

// Models that other programs have downloaded: the cache of Hugging Face's hub, which `hf download`, vLLM, transformers,
// mlx-lm and llama.cpp fill, and the folder of earlier versions of llama.cpp. Nothing is downloaded here.
// Layout of the first: https://huggingface.co/docs/huggingface_hub/guides/manage-cache

#include <optional>
#include <string>

#include "base/environment.h"

namespace weft {

struct HubCache {
  std::string folder;         // models--USER--REPO/{refs,snapshots}; "": there is none
  std::string llama_folder;   // USER_REPO_FILE.gguf; "": there is none
  std::string revision = {};  // branch, tag or commit; "": main, or the only snapshot

  // HF_HUB_CACHE, HF_HOME or XDG_CACHE_HOME say where the first is, LLAMA_CACHE where the second is; else they are in
  // the cache folder of the user.
  static HubCache of_user(const EnvironmentLookup& environment);

  // The path of USER/REPO or USER/REPO:FORMAT: a folder with config.json, or a GGUF file, of several parts the first.
  // FORMAT is part of a file's name (Q4_K_M, in any case); without it that is Q4_K_M, or the only file. nullopt if
  // `name` has another form or nothing of it is there. UserError if the revision, or a file of the format, is not
  // there, or if several are.
  std::optional<std::string> find(const std::string& name) const;
};

// Whether a name has the form USER/REPO or USER/REPO:FORMAT.
bool is_hub_name(const std::string& name);

}  // namespace weft
