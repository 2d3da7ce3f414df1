#include "builtin/context.h"
#include "builtin/models.h"
#include "capi/handles.h"
#include "engine/open_checkpoint.h"

extern "C" {

int weft_model_open(weft_context* context, const char* path_or_name, weft_model** model, weft_error* error) {
  return weft::at_boundary(error, [&] {
    const char* name = "weft_model_open";
    weft::given(model, name, "model") = nullptr;
    weft::given(context, name, "context");
    const std::string wanted = weft::given_text(path_or_name, name, "path_or_name");
    const auto own = weft::context_of_its_own(*context);
    const std::string path = weft::resolve_model(wanted, own->options, weft::process_environment());
    auto made = std::make_unique<weft_model>();
    const weft::ModelRegistry models = weft::make_model_registry();
    made->engine = std::make_unique<weft::Engine>(own, weft::open_checkpoint(path, own->options, models), models);
    *model = made.release();
  });
}

int weft_model_close(weft_model* model, weft_error* error) {
  return weft::at_boundary(error, [&] {
    if (model == nullptr) return;
    { const weft::Turns::Turn last(model->turns, "weft_model_close"); }
    delete model;
  });
}

int weft_model_selected_impls(weft_model* model, char** json, weft_error* error) {
  return weft::at_boundary(error, [&] {
    weft::given(json, "weft_model_selected_impls", "json") = nullptr;
    weft::given(model, "weft_model_selected_impls", "model");
    const weft::Turns::Turn turn(model->turns, "weft_model_selected_impls");
    std::vector<const weft::CompileRecord*> records;
    for (const weft::CompileRecord& record : model->engine->runner().records()) records.push_back(&record);
    *json = weft::text_for_caller(weft::selected_impls_json(records));
  });
}
}
