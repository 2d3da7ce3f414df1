#pragma once

// The endpoints about the names of requests: /v1/models, and what changes LoRA adapters while the server runs.

#include <functional>
#include <string>

#include "server/api_request.h"
#include "server/http_message.h"
#include "server/json_body.h"
#include "server/served_model.h"

namespace weft {

// Of /v1/models and /v1/models/NAME.
HttpResponse models_answer(const ServedModel& model, const std::string& path);

// Of load_lora and unload_lora, as vLLM answers them. `log` gets a line about what was done, or refused. ApiError of
// AdapterTable.
HttpResponse change_adapters(const ApiRequest& request, const ServedModel& model,
                             const std::function<void(const std::string& line)>& log);

// GET /lora-adapters of llama.cpp, and POST, whose body is a list.
HttpResponse adapter_scales(const ServedModel& model);
HttpResponse set_adapter_scales(const JsonBody& body, const ServedModel& model);

}  // namespace weft
