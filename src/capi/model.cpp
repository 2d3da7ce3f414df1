#include "capi/handles.h"
#include "engine/open_model.h"

extern "C" {

int weft_model_open(weft_context* context, const char* path_or_name, weft_model** model, weft_error* error) {
  return weft::at_boundary(error, [&] {
    const char* name = "weft_model_open";
    weft::given(model, name, "model") = nullptr;
    weft::given(context, name, "context");
    const std::string wanted = weft::given_text(path_or_name, name, "path_or_name");
    auto made = std::make_unique<weft_model>();
    const auto note = [&](const std::string& sentence) {
      if (!context->notes->contains(sentence)) made->notes->add(sentence);
    };
    const weft::WarningScope warnings(weft::sink_of(made->notes));
    made->engine = weft::open_engine({.name = wanted, .options = weft::options_of(*context)}, note);
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

int weft_model_notes(weft_model* model, char** text, weft_error* error) {
  return weft::at_boundary(error, [&] {
    weft::given(text, "weft_model_notes", "text") = nullptr;
    weft::given(model, "weft_model_notes", "model");
    *text = weft::text_for_caller(model->notes->text());
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
