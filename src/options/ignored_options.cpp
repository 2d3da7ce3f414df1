#include "options/ignored_options.h"

#include "options/option_value.h"

namespace weft {
namespace {

constexpr std::string_view kSameGraph = "Requests with and without adapters have one graph.";
constexpr std::string_view kNoEncoder = "No model here has an encoder.";
constexpr std::string_view kNoReplayedDecoder = "Layers that share keys and values are replayed with the others.";
constexpr std::string_view kNoExpertLayers = "Experts are ops of the graph, not layers that are found by name.";
constexpr std::string_view kOneCutter = "The graph is always split before code generation.";
constexpr std::string_view kNoFusedCommunication = "No kernel joins communication with a product or a norm.";
constexpr std::string_view kNoSuchKernel = "No kernel computes these ops at once.";
constexpr std::string_view kCudagraphMode = "An earlier key of vLLM: cc.cudagraph_mode says what is captured.";
constexpr std::string_view kState = "State of a running vLLM.";

constexpr IgnoredOption kRows[] = {
    {"cc.compile_cache_save_format", "Compiled code has one format, which several processes may share."},
    {"cc.ir_enable_torch_wrap", "No op is an operator of torch."},
    {"cc.compile_mm_encoder", kNoEncoder},
    {"cc.cudagraph_mm_encoder", kNoEncoder},
    {"cc.encoder_cudagraph_token_budgets", kNoEncoder},
    {"cc.encoder_cudagraph_max_vision_items_per_batch", kNoEncoder},
    {"cc.encoder_cudagraph_max_frames_per_batch", kNoEncoder},
    {"cc.cudagraph_decoder_replay", kNoReplayedDecoder},
    {"cc.decoder_replay_cudagraph_capture_sizes", kNoReplayedDecoder},
    {"cc.decoder_replay_trim_threshold", kNoReplayedDecoder},
    {"cc.inductor_passes", "Passes are in plugins: --plugin."},
    {"cc.cudagraph_num_of_warmups", "A capture needs no run before it."},
    {"cc.cudagraph_specialize_lora", kSameGraph},
    {"cc.use_inductor_graph_partition", kOneCutter},
    {"cc.fast_moe_cold_start", kNoExpertLayers},
    {"cc.pass_config.fuse_gemm_comms", kNoFusedCommunication},
    {"cc.pass_config.fuse_allreduce_rms", kNoFusedCommunication},
    {"cc.pass_config.fi_allreduce_fusion_max_size_mb", kNoFusedCommunication},
    {"cc.pass_config.fuse_act_padding", kNoSuchKernel},
    {"cc.pass_config.fuse_mla_dual_rms_norm", kNoSuchKernel},
    {"cc.pass_config.fuse_rope_kvcache_cat_mla", kNoSuchKernel},
    {"cc.dynamic_shapes_config.assume_32_bit_indexing", "Indices have 64 bits."},
    {"cc.use_cudagraph", kCudagraphMode},
    {"cc.full_cuda_graph", kCudagraphMode},
    {"cc.use_inductor", "An earlier key of vLLM: cc.backend says what computes native ops."},
    {"cc.pass_config.enable_fusion",
     "An earlier key of vLLM: fuse_norm_quant and fuse_act_quant of cc.pass_config switch the fusions."},
    {"cc.pass_config.enable_async_tp", kNoFusedCommunication},
    {"cc.pass_config.enable_fi_allreduce_fusion", kNoFusedCommunication},
    {"cc.pass_config.fi_allreduce_fusion_max_token_num", kNoFusedCommunication},
    {"cc.pass_config.dump_graph_stages", "An earlier key of vLLM: --debug-dump-path writes the graph after each pass."},
    {"cc.pass_config.dump_graph_dir", "An earlier key of vLLM: --debug-dump-path is the folder of dumps."},
    {"cc.max_capture_size", kState},
    {"cc.local_cache_dir", kState},
    {"cc.enabled_custom_ops", kState},
    {"cc.disabled_custom_ops", kState},
    {"cc.traced_files", kState},
    {"cc.compilation_time", kState},
    {"cc.encoder_compilation_time", kState},
    {"cc.static_forward_context", kState},
    {"cc.static_all_moe_layers", kState},
    {"cc.bs_to_padded_graph_size", kState},
};

}  // namespace

std::span<const IgnoredOption> ignored_options() { return kRows; }

const IgnoredOption* find_ignored_option(std::string_view name) {
  const std::string wanted = plain_spelling(name);
  for (const IgnoredOption& row : kRows)
    if (plain_spelling(row.name) == wanted) return &row;
  return nullptr;
}

}  // namespace weft
