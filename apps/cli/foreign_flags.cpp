#include "apps/cli/foreign_flags.h"

namespace weft {
namespace {

struct ForeignFlag {
  std::string_view name;
  std::string_view advice;
};

constexpr std::string_view kContext = "use --max-model-len", kLength = "use -n, --max-tokens",
                           kBatch = "use --max-num-batched-tokens", kCacheType = "use --kv-cache-dtype",
                           kModel = "MODEL is a file or a folder that is there",
                           kDevice = "--device chooses where all of the model runs", kChat = "use weft chat",
                           kSystem = "use --system of weft chat", kNone = "leave it out, nothing here depends on it",
                           kDraftContext = "use max_model_len in --speculative-config",
                           kEmbeds = "leave it out, --pooling says how /v1/embeddings answers";

constexpr ForeignFlag kFlags[] = {{"-c", kContext},
                                  {"--ctx-size", kContext},
                                  {"--max-seq-len", kContext},
                                  {"--max-seq-length", kContext},
                                  {"--max-kv-size", kContext},
                                  {"--n-predict", kLength},
                                  {"--predict", kLength},
                                  {"--max-new-tokens", kLength},
                                  {"-b", kBatch},
                                  {"-ub", kBatch},
                                  {"--batch-size", kBatch},
                                  {"--ubatch-size", kBatch},
                                  {"-np", "use --max-num-seqs"},
                                  {"--parallel", "use --max-num-seqs"},
                                  {"-ctk", kCacheType},
                                  {"-ctv", kCacheType},
                                  {"--cache-type-k", kCacheType},
                                  {"--cache-type-v", kCacheType},
                                  {"-hf", kModel},
                                  {"-hfr", kModel},
                                  {"--hf-repo", kModel},
                                  {"-hff", kModel},
                                  {"--hf-file", kModel},
                                  {"-mu", kModel},
                                  {"--model-url", kModel},
                                  {"-ngl", kDevice},
                                  {"--gpu-layers", kDevice},
                                  {"--n-gpu-layers", kDevice},
                                  {"-cnv", kChat},
                                  {"-no-cnv", "use weft complete"},
                                  {"--conversation", kChat},
                                  {"-sys", kSystem},
                                  {"-sysf", kSystem},
                                  {"--system-prompt", kSystem},
                                  {"--draft-min", kNone},
                                  {"--draft-p-min", "use --num-draft-tokens"},
                                  {"-cd", kDraftContext},
                                  {"--ctx-size-draft", kDraftContext},
                                  {"-ngld", kDevice},
                                  {"--gpu-layers-draft", kDevice},
                                  {"--speculative-model", "use --draft-model"},
                                  {"--num-speculative-tokens", "use --num-draft-tokens"},
                                  {"-fa", kNone},
                                  {"--flash-attn", kNone},
                                  {"-cb", kNone},
                                  {"--cont-batching", kNone},
                                  {"--mlock", kNone},
                                  {"--no-mmap", kNone},
                                  {"--embedding", kEmbeds},
                                  {"--embeddings", kEmbeds},
                                  {"--enable-lora", "leave it out, --lora loads an adapter; weft serve takes it"}};

}  // namespace

std::string_view advice_on(std::string_view flag) {
  for (const ForeignFlag& row : kFlags)
    if (row.name == flag) return row.advice;
  return "";
}

}  // namespace weft
