#include "builtin/context.h"
#include "builtin/models.h"
#include "capi/handles.h"
#include "engine/open_model.h"

extern "C" {

int weft_model_open(weft_context* context, const char* path_or_name, weft_model** model, weft_error* error) {
  return weft::at_boundary(error, [&] {
    const char* name = "weft_model_open";
    weft::given(model, name, "model") = nullptr;
    weft::given(context, name, "context");
    const std::string wanted = weft::given_text(path_or_name, name, "path_or_name");
    weft::OpenedModel opened =
        weft::open_model(wanted, "", weft::options_of(*context), weft::process_environment(),
                         [](weft::Options options) { return weft::make_context(std::move(options)); });
    auto made = std::make_unique<weft_model>();
    made->engine =
        std::make_unique<weft::Engine>(opened.context, std::move(opened.checkpoint), weft::make_model_registry());
    *model = made.release();
  });
}

int weft_model_close(weft_model* model, weft_error* error) {
  return weft::at_boundary(error, [&] {
    if (model == nullptr) return;
    { const weft::HandleMutex::Lock last(model->mutex, "weft_model_close"); }
    delete model;
  });
}

int weft_model_selected_impls(weft_model* model, char** json, weft_error* error) {
  return weft::at_boundary(error, [&] {
    weft::given(json, "weft_model_selected_impls", "json") = nullptr;
    weft::given(model, "weft_model_selected_impls", "model");
    const weft::HandleMutex::Lock lock(model->mutex, "weft_model_selected_impls");
    std::vector<const weft::CompileRecord*> records;
    for (const weft::CompileRecord& record : model->engine->runner().records()) records.push_back(&record);
    *json = weft::text_for_caller(weft::selected_impls_json(records));
  });
}
}
