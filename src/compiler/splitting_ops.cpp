#include "compiler/splitting_ops.h"

#include <algorithm>
#include <map>

#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"

namespace weft {
namespace {

// vLLM's names (its default lists and the cache-update ops that it adds) and the ops of the same function here; empty
// if no model here has such an op.
const std::map<std::string, std::string, std::less<>> kOpsOfVllm = {
    {"vllm::unified_attention_with_output", "attention"},
    {"vllm::unified_attention", "attention"},
    {"vllm::unified_mla_attention_with_output", "attention"},
    {"vllm::unified_mla_attention", "attention"},
    {"vllm::unified_kv_cache_update", "kv_cache_update"},
    {"vllm::unified_mla_kv_cache_update", "kv_cache_update"},
    {"vllm::mamba_mixer", "selective_scan"},
    {"vllm::mamba_mixer2", "linear_attention"},
    {"vllm::plamo2_mamba_mixer", ""},
    {"vllm::short_conv", "causal_conv1d"},
    {"vllm::linear_attention", ""},
    {"vllm::kda_attention", ""},
    {"vllm::gdn_attention", "linear_attention"},
    {"vllm::gdn_attention_core", "linear_attention"},
    {"vllm::gdn_attention_core_xpu", "linear_attention"},
    {"vllm::qwen_gdn_attention_core", "linear_attention"},
    {"vllm::qwen_gdn_attention_core_fused_norm_packed", "linear_attention"},
    {"vllm::qwen4_exp_ple_short_conv", ""},
    {"vllm::qwen4_exp_qsa_with_output", ""},
    {"vllm::qwen4_exp_qsa_prepare_with_output", ""},
    {"vllm::olmo_hybrid_gdn_full_forward", ""},
    {"vllm::sparse_attn_indexer", ""},
    {"vllm::rocm_aiter_sparse_attn_indexer", ""},
    {"vllm::deepseek_v4_attention", ""},
    {"vllm::hpc_rope_norm_forward", ""},
};

// Early versions of vLLM print `vllm.` instead of `vllm::`.
const std::string* find_op_of_vllm(const std::string& name) {
  const auto found = kOpsOfVllm.find(name.starts_with("vllm.") ? "vllm::" + name.substr(5) : name);
  return found == kOpsOfVllm.end() ? nullptr : &found->second;
}

}  // namespace

std::vector<std::string> resolve_splitting_ops(const std::vector<std::string>& given, const OpTable& ops) {
  std::vector<std::string> known;
  for (const auto& [name, op] : ops.all()) known.push_back(name);
  for (const auto& [name, op] : kOpsOfVllm) known.push_back(name);
  std::vector<std::string> names, unknown;
  for (const std::string& one : given) {
    const std::string* op = find_op_of_vllm(one);
    if (op == nullptr && ops.find(one) == nullptr) unknown.push_back(quote(one) + suggestion(one, known));
    const std::string& name = op == nullptr ? one : *op;
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  // Where an op splits the graph, so do those that contain it.
  std::erase_if(names, [&](const std::string& name) {
    const Op* op = ops.find(name);
    return op != nullptr && std::find(names.begin(), names.end(), op->splits_as) != names.end();
  });
  USER_CHECK(unknown.empty(), "[cc.splitting_ops] wanted ops, but is {}", fmt::join(unknown, "; "));
  return names;
}

std::vector<std::string> splitting_ops_without_counterpart(const std::vector<std::string>& given) {
  std::vector<std::string> names;
  for (const std::string& one : given)
    if (const std::string* op = find_op_of_vllm(one); op != nullptr && op->empty()) names.push_back(one);
  return names;
}

}  // namespace weft
