#include "apps/cli/vllm_flags.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <vector>

#include <fmt/ranges.h>

#include "apps/cli/foreign_flags.h"
#include "base/error.h"
#include "base/text.h"

namespace weft {
namespace {

struct Row {
  // The value of `model` must be MODEL, and that of `quantization` the format of its weights.
  enum Kind : std::uint8_t { flag, option, model, quantization, refused_flag, refused_option };
  std::uint8_t commands;  // bits of VllmCommand
  Kind kind;
  const char* names;      // as Flags takes them
  const char* reason;     // why it decides nothing, or what is not there
  const char* only = "";  // of an option: the values that are accepted where others would ask for something else

  std::string name() const { return split_text(names, ',')[0]; }
  bool is_of(VllmCommand command) const { return (commands & static_cast<std::uint8_t>(command)) != 0; }
};

constexpr std::uint8_t kServe = 1, kLoad = 2, kEngine = 4;

constexpr const char* kPages = "--kv-cache-memory-bytes or --num-gpu-blocks-override set the size of the KV cache";
constexpr const char* kNoSwap = "nothing is moved out of the memory that it is in";
constexpr const char* kOneProcess = "the server is one process";
constexpr const char* kNoDownload = "nothing is downloaded, and --revision is of all files of MODEL";
constexpr const char* kOwnReader = "MODEL is read by Weft alone, and nothing in it is run";
constexpr const char* kOwnLog =
    "--disable-uvicorn-access-log, --enable-log-requests and --disable-log-stats say what is logged";
constexpr const char* kTextAlone = "requests are text alone";
constexpr const char* kAlwaysChunked = "long prompts are always computed in chunks";
constexpr const char* kCheckpointSays = "the checkpoint says it";
constexpr const char* kOneRate = "all requests are those of the dataset, sent at --request-rate";
constexpr const char* kTextAndEmbeddings = "MODEL generates text, and /v1/embeddings has its embeddings (--pooling)";
constexpr const char* kAdaptersNamed =
    "--lora-modules and --lora load adapters, and --allow-runtime-lora-updating has room for more";
constexpr const char* kOneAdapter = "all requests have the adapter of --lora, or that which their model names";
constexpr const char* kNoProfiler = "there is no profiler of vLLM's; WEFT_TRACE=FILE writes a trace";
constexpr const char* kNoPlots = "nothing is drawn; --save-detailed writes the values";
constexpr const char* kDatasets = "it belongs to a dataset that is not there; there are random, sharegpt and custom";

constexpr Row kRows[] = {
    {kServe | kEngine, Row::option, "--gpu-memory-utilization", kPages},
    {kServe | kEngine, Row::option, "--swap-space", kNoSwap},
    {kServe | kEngine, Row::option, "--cpu-offload-gb", kNoSwap},
    {kServe | kEngine, Row::option, "--distributed-executor-backend", kOneProcess},
    {kServe, Row::option, "--api-server-count", kOneProcess},
    {kServe, Row::flag, "--disable-frontend-multiprocessing", kOneProcess},
    {kServe | kEngine, Row::option, "--pipeline-parallel-size", kOneProcess, "1"},
    {kServe | kEngine, Row::option, "--data-parallel-size", kOneProcess, "1"},
    {kServe | kEngine, Row::flag, "--disable-custom-all-reduce", kOneProcess},
    {kServe | kEngine, Row::option, "--code-revision", kNoDownload},
    {kServe | kEngine, Row::option, "--tokenizer-revision", kNoDownload},
    {kServe | kEngine, Row::option, "--download-dir", "nothing is downloaded: HF_HUB_CACHE says where models are"},
    {kServe | kLoad | kEngine, Row::flag, "--trust-remote-code", kOwnReader},
    {kServe | kLoad | kEngine, Row::option, "--tokenizer-mode", kOwnReader},
    {kServe | kEngine, Row::option, "--config-format", kOwnReader},
    {kServe | kEngine, Row::option, "--model-impl", kOwnReader},
    {kServe | kEngine, Row::model, "--tokenizer", "the tokenizer is the model's"},
    {kServe | kEngine, Row::quantization, "--quantization,-q", kCheckpointSays},
    {kServe | kEngine, Row::option, "--hf-overrides", "config.json says what the model is", "{}"},
    {kServe | kEngine, Row::option,
     "--limit-mm-per-prompt,--limit-mm-per-prompt.image,--limit-mm-per-prompt.video,--limit-mm-per-prompt.audio",
     kTextAlone},
    {kServe | kEngine, Row::option, "--mm-processor-kwargs", kTextAlone},
    {kServe | kEngine, Row::flag, "--language-model-only", kTextAlone},
    {kServe | kEngine, Row::flag, "--enable-lora", kAdaptersNamed},
    {kServe | kEngine, Row::flag, "--fully-sharded-loras", kOneProcess},
    {kServe | kEngine, Row::option, "--lora-dtype", "adapters are in the type of the model", "auto"},
    {kServe | kEngine, Row::option, "--attention-backend", "the kernels are Weft's: --ir-op-priority chooses them"},
    {kServe | kEngine, Row::option, "--runner", kTextAndEmbeddings, "auto generate pooling"},
    {kServe | kEngine, Row::option, "--task", kTextAndEmbeddings, "auto generate embed embedding"},
    {kServe | kEngine, Row::option, "--convert", kTextAndEmbeddings, "auto none embed"},
    {kServe, Row::option, "--response-role", "answers are the assistant's", "assistant"},
    {kServe | kEngine, Row::option, "--logprobs-mode", "log probabilities are those of the model", "raw_logprobs"},
    {kServe, Row::option, "--seed", "a request without a seed is drawn with one of its own"},
    {kServe, Row::option, "--chat-template-content-format", "a template gets the texts of a message as one text",
     "auto string"},
    {kServe | kEngine, Row::option, "--structured-outputs-config.backend", "Weft's own compiler makes all constraints"},
    {kServe, Row::flag, "--enable-auto-tool-choice", "tool calls are always found"},
    {kServe, Row::flag, "--enable-server-load-tracking", "GET /load is always answered"},
    {kServe | kEngine, Row::flag, "--enable-chunked-prefill,--no-enable-chunked-prefill", kAlwaysChunked},
    {kServe | kEngine, Row::flag, "--async-scheduling,--no-async-scheduling",
     "a step is prepared while the one before it runs"},
    {kServe | kEngine, Row::option, "--prefix-caching-hash-algo", "tokens are compared where hashes are equal"},
    {kServe, Row::option, "--uvicorn-log-level", kOwnLog},
    {kServe, Row::flag, "--disable-log-requests", kOwnLog},
    {kServe, Row::flag, "--enable-log-outputs", kOwnLog},
    {kServe, Row::option, "--max-log-len", kOwnLog},
    {kServe, Row::flag, "--disable-fastapi-docs", "there is no page of the API"},

    {kLoad, Row::flag, "--disable-tqdm", "there is no progress bar"},
    {kLoad, Row::flag, "--no-stream", "a dataset is a file"},
    {kLoad, Row::flag, "--skip-chat-template", "prompts are sent as the dataset has them"},
    {kLoad, Row::flag, "--skip-tokenizer-init", "the tokenizer makes and measures the prompts"},
    {kLoad, Row::flag, "--no-self-timed", "requests are sent at --request-rate"},
    {kLoad | kEngine, Row::option, "--random-batch-size", "a request has one prompt", "1"},
    {kLoad, Row::option, "--probe-request-rate", kOneRate, "0 0.0"},
    {kEngine, Row::option, "--backend", "the engine is the one of this program", "vllm"},
    {kEngine, Row::flag, "--async-engine", "the engine has one way to run"},
    {kEngine, Row::flag, "--prequeue-requests", "all requests are queued before the first step"},
    {kEngine, Row::flag, "--disable-detokenize", "tokens always become text, on the engine's thread"},
    {kEngine, Row::option, "--served-model-name", "no request names the model"},

    {kServe, Row::refused_flag, "--exclude-tools-when-tool-choice-none",
     "a prompt has the tools of its request, whatever tool_choice is"},
    {kLoad | kEngine, Row::refused_flag, "--use-beam-search", "there is no beam search"},
    {kLoad | kEngine, Row::refused_flag, "--profile", kNoProfiler},
    {kEngine, Row::refused_option, "--lora-assignment", kOneAdapter},
    {kEngine, Row::refused_option, "--lora-path", kOneAdapter},
    {kLoad, Row::refused_option, "--ramp-up-strategy", kOneRate},
    {kLoad, Row::refused_option, "--ramp-up-start-rps", kOneRate},
    {kLoad, Row::refused_option, "--ramp-up-end-rps", kOneRate},
    {kLoad, Row::refused_flag, "--self-timed", kOneRate},
    {kLoad, Row::refused_option, "--chat-template-kwargs",
     "the server renders prompts: give it --extra-body '{\"chat_template_kwargs\": {...}}'"},
    {kLoad, Row::refused_flag, "--plot-timeline", kNoPlots},
    {kLoad, Row::refused_option, "--timeline-itl-thresholds", kNoPlots},
    {kLoad, Row::refused_flag, "--plot-dataset-stats", kNoPlots},
    {kEngine, Row::refused_option, "--hf-max-batch-size", "the engine is the one of this program"},
    {kEngine, Row::refused_flag, "--hf-enable-torch-compile", "the engine is the one of this program"},
    {kLoad | kEngine, Row::refused_flag, "--enable-multimodal-chat", kDatasets},
    {kLoad | kEngine, Row::refused_flag, "--no-reranker", kDatasets},
    {kLoad | kEngine, Row::refused_option, "--random-mm-base-items-per-request", kDatasets},
    {kLoad | kEngine, Row::refused_option, "--random-mm-num-mm-items-range-ratio", kDatasets},
    {kLoad | kEngine, Row::refused_option, "--random-mm-limit-mm-per-prompt", kDatasets},
    {kLoad | kEngine, Row::refused_option, "--random-mm-bucket-config", kDatasets},
    {kLoad, Row::refused_flag, "--custom-ensure-client-side-data", kDatasets},
    {kLoad, Row::refused_option, "--spec-bench-output-len", kDatasets},
    {kLoad, Row::refused_option, "--spec-bench-category", kDatasets},
    {kLoad, Row::refused_option, "--timed-trace-chunk-hash-size", kDatasets},
    {kLoad, Row::refused_option, "--timed-trace-sec-multiplier", kDatasets},
    {kLoad, Row::refused_option, "--timed-trace-label-timestamp", kDatasets},
    {kLoad, Row::refused_option, "--timed-trace-label-input-length", kDatasets},
    {kLoad, Row::refused_option, "--timed-trace-label-output-length", kDatasets},
    {kLoad, Row::refused_option, "--timed-trace-label-hash-ids", kDatasets},
    {kLoad, Row::refused_option, "--blazedit-min-distance", kDatasets},
    {kLoad, Row::refused_option, "--blazedit-max-distance", kDatasets},
    {kLoad | kEngine, Row::refused_option, "--asr-max-audio-len-sec", kDatasets},
    {kLoad | kEngine, Row::refused_option, "--asr-min-audio-len-sec", kDatasets},
    {kLoad | kEngine, Row::refused_option, "--hf-subset", kDatasets},
    {kLoad | kEngine, Row::refused_option, "--hf-split", kDatasets},
    {kLoad | kEngine, Row::refused_option, "--hf-name", kDatasets},
    {kLoad, Row::refused_option, "--hf-output-len", kDatasets},
    {kLoad, Row::refused_option, "--bfcl-categories", kDatasets},
    {kLoad | kEngine, Row::refused_option, "--prefix-repetition-prefix-len", kDatasets},
    {kLoad | kEngine, Row::refused_option, "--prefix-repetition-suffix-len", kDatasets},
    {kLoad | kEngine, Row::refused_option, "--prefix-repetition-num-prefixes", kDatasets},
    {kLoad | kEngine, Row::refused_option, "--prefix-repetition-output-len", kDatasets},
    {kLoad, Row::refused_option, "--speed-bench-dataset-subset", kDatasets},
    {kLoad, Row::refused_option, "--speed-bench-output-len", kDatasets},
    {kLoad, Row::refused_option, "--speed-bench-category", kDatasets},
};

// Throws UserError unless the value decides nothing.
void check_value(const Row& row, const std::string& value) {
  const std::vector<std::string> only = split_text(row.only, ' ');
  std::string dense = value;  // "{ }" is an empty object, too
  std::erase(dense, ' ');
  USER_CHECK(*row.only == '\0' || std::find(only.begin(), only.end(), dense) != only.end(),
             "[{}] must be {}, because {}, but is {}", row.name(), fmt::join(only, " or "), row.reason, quote(value));
}

// The method of a checkpoint that vLLM calls so: it has several names for some, by the kernels that run them.
std::string method_of(const std::string& quantization) {
  static const std::map<std::string, std::string> kSame = {
      {"gptq_marlin", "gptq"}, {"awq_marlin", "awq"},        {"moe_wna16", "gptq"},
      {"inc", "auto-round"},   {"auto_round", "auto-round"}, {"compressed_tensors", "compressed-tensors"}};
  const auto found = kSame.find(quantization);
  return found == kSame.end() ? quantization : found->second;
}

// How a checkpoint that is not quantized becomes one of this format; "" if weft quantize does not write it.
std::string quantize_hint(const std::string& method) {
  static const std::map<std::string, const char*> kFormats = {
      {"fp8", "fp8"},           {"fbgemm_fp8", "fp8"}, {"modelopt", "fp8"},       {"int8", "int8"},
      {"experts_int8", "int8"}, {"w4a16", "w4a16"},    {"awq", "w4a16"},          {"gptq", "w4a16"},
      {"auto-round", "w4a16"},  {"nvfp4", "nvfp4"},    {"bitsandbytes", "w4a16"}, {"modelopt_fp4", "nvfp4"}};
  const auto found = kFormats.find(method);
  return found == kFormats.end() ? "" : fmt::format("; weft quantize --format {} writes such weights", found->second);
}

// The help leaves it out.
void declare_refused(const Row& row, Flags& flags) {
  const auto refuse = [&row](const std::string&) { fail_user("[{}] is refused, because {}", row.name(), row.reason); };
  flags.option(row.names, refuse, "", {.is_hidden = true, .has_no_value = row.kind == Row::refused_flag});
}

}  // namespace

void VllmFlags::declare(Flags& flags) {
  for (const Row& row : kRows) {
    if (!row.is_of(command_)) continue;
    if (row.kind == Row::refused_flag || row.kind == Row::refused_option) {
      declare_refused(row, flags);
      continue;
    }
    const std::string sentence = fmt::format("Accepted for vLLM's scripts; decides nothing: {}.", row.reason);
    bool& is_given = given_[row.name()];
    if (row.kind == Row::flag) {
      flags.flag(row.names, is_given, sentence);
      continue;
    }
    const auto take = [this, &row, &is_given](const std::string& value) {
      check_value(row, value);
      if (row.kind == Row::model) models_[row.name()] = value;
      if (row.kind == Row::quantization) {
        quantization_ = to_lower_ascii(value);
        return;  // check_quantization() reports it
      }
      is_given = true;
    };
    flags.option(row.names, take, sentence);
  }
}

void VllmFlags::report(const std::string& model, const NoteFunction& note) const {
  for (const auto& [name, value] : models_) {
    std::error_code none;
    USER_CHECK(value == model || std::filesystem::equivalent(value, model, none),
               "[{}] must be MODEL, which is {}, but is {}", name, quote(model, 1000), quote(value, 1000));
  }
  std::map<std::string, std::vector<std::string>> names;  // by reason
  for (const Row& row : kRows)
    if (const auto given = given_.find(row.name()); row.is_of(command_) && given != given_.end() && given->second)
      names[row.reason].push_back(row.name());
  note_without_effect(names, note);
}

void VllmFlags::check_quantization(const Checkpoint& checkpoint, const ModelConfig& config,
                                   const NoteFunction& note) const {
  if (quantization_.empty() || quantization_ == "none" || quantization_ == "auto") return;
  const std::string asked = method_of(quantization_);
  std::string stated = checkpoint.is_gguf() ? "gguf" : "";
  if (stated.empty() && config.quantization) stated = config.quantization->method;
  USER_CHECK(!stated.empty(),
             "[--quantization] must be left out, because the weights of {} are not quantized, but is {}{}",
             quote(checkpoint.path(), 1000), quote(quantization_), quantize_hint(asked));
  USER_CHECK(asked == stated, "[--quantization] must be {} or be left out, because {} has such weights, but is {}",
             stated, quote(checkpoint.path(), 1000), quote(quantization_));
  note(fmt::format("[--quantization] has no effect: {}", kCheckpointSays));
}

}  // namespace weft
