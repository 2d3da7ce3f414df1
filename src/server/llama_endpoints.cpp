#include "server/llama_endpoints.h"

#include "base/version.h"
#include "server/prepared_request.h"

namespace weft {

SamplingParameters llama_defaults() { return {.temperature = 0.8, .top_k = 40, .top_p = 0.95, .min_p = 0.05}; }

Json llama_settings(const SamplingParameters& parameters) {
  return {{"temperature", parameters.temperature},
          {"top_k", parameters.top_k},
          {"top_p", parameters.top_p},
          {"min_p", parameters.min_p},
          {"repeat_penalty", parameters.repetition_penalty},
          {"repeat_last_n", -1},
          {"presence_penalty", parameters.presence_penalty},
          {"frequency_penalty", parameters.frequency_penalty},
          {"ignore_eos", parameters.ignore_end}};
}

Json props(const ServedModel& model) {
  return {
      {"default_generation_settings", {{"n_ctx", model.max_model_len}, {"params", llama_settings(llama_defaults())}}},
      {"total_slots", model.most_sequences},
      {"model_alias", model.names[0]},
      {"model_path", model.root},
      {"modalities", {{"vision", false}, {"audio", false}}},
      {"chat_template", model.template_source},
      {"build_info", std::string("weft-") + kVersion}};
}

Json slots(const ServedModel& model, std::size_t running) {
  Json list = Json::array();
  for (std::int64_t i = 0; i < model.most_sequences; ++i)
    list.push_back(
        {{"id", i}, {"n_ctx", model.max_model_len}, {"is_processing", static_cast<std::size_t>(i) < running}});
  return list;
}

Json applied_template(const ApiRequest& request, const ServedModel& model) {
  check_model(request, model);
  check_fields(request);
  return {{"prompt", render_messages(request, model)}};
}

}  // namespace weft
