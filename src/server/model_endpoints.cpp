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

namespace {

std::string changed_adapter(const ApiRequest& request, AdapterTable& adapters) {
  const std::string name = request.lora_name.value_or("");
  if (request.endpoint == unload_lora) return adapters.unload(name);
  return adapters.load(name, request.lora_path.value_or(""), request.load_inplace.value_or(false));
}

}  // namespace

HttpResponse change_adapters(const ApiRequest& request, const ServedModel& model,
                             const std::function<void(const std::string& line)>& log) {
  const auto begin = std::chrono::steady_clock::now();
  std::string done;
  try {
    done = changed_adapter(request, *model.adapters);
  } catch (const ApiError& error) {
    log(fmt::format("[lora] refused: {}", quote(error.what(), 1000)));
    throw;
  }
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  const std::string source = request.lora_path ? " It is of " + quote(*request.lora_path, 1000) + "." : "";
  log(fmt::format("[lora] {}{} It took {:.3f} s.", quote(done, 1000), source, time.count()));
  return {.body = std::move(done), .content_type = "text/plain; charset=utf-8"};
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
