#include "compiler/splitting_ops.h"

#include <algorithm>
#include <map>

namespace weft {
namespace {

// vLLM's names (its default list and the cache-update ops that it adds) and the ops of the same function here.
const std::map<std::string, std::string, std::less<>> kAliases = {
    {"vllm::unified_attention_with_output", "attention"},     {"vllm::unified_attention", "attention"},
    {"vllm::unified_mla_attention_with_output", "attention"}, {"vllm::unified_kv_cache_update", "kv_cache_update"},
    {"vllm::unified_mla_kv_cache_update", "kv_cache_update"},
};

}  // namespace

std::vector<std::string> resolve_splitting_ops(const CodeOptions& options) {
  std::vector<std::string> names;
  for (const std::string& given : options.splitting_ops) {
    auto alias = kAliases.find(given);
    const std::string& name = alias == kAliases.end() ? given : alias->second;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

}  // namespace weft
