#include "server/model_endpoints.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"
#include "server/answer_json.h"
#include "server/llama_endpoints.h"
#include "server/prepared_request.h"
#include "server/request_fields.h"

namespace weft {

HttpResponse models_answer(const ServedModel& model, const std::string& path) {
  constexpr std::string_view kOne = "/v1/models/";
  if (!path.starts_with(kOne)) {
    Json list = Json::array();
    for (const std::string& name : model.names) list.push_back(model_card(model, name));
    for (const auto& adapter : model.adapters->list()) list.push_back(model_card(model, adapter->name, adapter.get()));
    return {.body = json_text({{"object", "list"}, {"data", std::move(list)}})};
  }
  ApiRequest asked;
  asked.model = path.substr(kOne.size());
  try {
    check_model(asked, model);
  } catch (const ApiError& error) {
    return error.response();
  }
  const ServedAdapterPointer adapter = model.adapters->find(*asked.model);
  return {.body = json_text(model_card(model, *asked.model, adapter.get()))};
}

HttpResponse change_adapters(const ApiRequest& request, const ServedModel& model,
                             const std::function<void(const std::string& line)>& log) {
  const std::string name = request.lora_name.value_or(""), path = request.lora_path.value_or("");
  const auto begin = std::chrono::steady_clock::now();
  const std::string done = request.endpoint == unload_lora
                               ? model.adapters->unload(name)
                               : model.adapters->load(name, path, request.load_inplace.value_or(false));
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  log(fmt::format("[lora] {}{} It took {:.3f} s.", done, path.empty() ? "" : " It is of " + quote(path, 1000) + ".",
                  time.count()));
  return {.body = done, .content_type = "text/plain; charset=utf-8"};
}

HttpResponse adapter_scales(const ServedModel& model) { return {.body = json_text(model.adapters->scales())}; }

HttpResponse set_adapter_scales(const JsonBody& body, const ServedModel& model) {
  ApiRequest request;
  try {
    const std::string wanted = read_lora_scales(body.root(), request);
    if (!wanted.empty()) throw wrong_type(fmt::format("the body must be an array, {}", wanted), "");
  } catch (const WrongPart& wrong) {
    throw wrong_type(wrong.sentence, "");
  }
  model.adapters->set_scales(request.lora);
  return {.body = R"({"success":true})"};
}

}  // namespace weft
