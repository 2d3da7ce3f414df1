#include "server/served_model.h"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>

#include "base/content_hash.h"
#include "base/error.h"
#include "base/version.h"
#include "engine/conversation.h"
#include "options/options_text.h"

namespace weft {
namespace {

// The same for everything that gives the same answers: program, options that change code, and the model's size and
// types. Weights are not read for it.
std::string fingerprint_of(Engine& engine) {
  ContentHasher hasher;
  hasher.add(kVersion);
  for (const auto& [name, value] : code_options(engine.context().options)) hasher.add(name).add(value);
  const Checkpoint& checkpoint = engine.runner().checkpoint();
  hasher.add(checkpoint.architecture()).add(checkpoint.file_bytes());
  return fmt::format("weft-{}-{}", kVersion, hasher.finish().hex().substr(0, 8));
}

}  // namespace

bool ServedModel::has_name(const std::string& name) const {
  return std::find(names.begin(), names.end(), name) != names.end();
}

ServedModel make_served_model(Engine& engine, const ServedModelSettings& settings) {
  const Checkpoint& checkpoint = engine.runner().checkpoint();
  ServedModel model{.names = settings.names,
                    .root = settings.root,
                    .created = std::time(nullptr),
                    .fingerprint = fingerprint_of(engine),
                    .max_model_len = engine.max_model_len(),
                    .vocabulary_size = engine.runner().vocabulary_size(),
                    .tokenizer = engine.has_tokenizer() ? &engine.tokenizer() : nullptr,
                    .template_arguments = settings.template_arguments,
                    .answers = settings.answers};
  if (engine.has_tokenizer())
    model.constraints = std::make_shared<const ConstraintCompiler>(
        engine.tokenizer(), engine.end_tokens(), static_cast<std::size_t>(engine.runner().vocabulary_size()));
  const bool has_template = !settings.chat_template.empty() || checkpoint.chat_template().has_value();
  if (has_template) {
    model.chat_template.emplace(chosen_chat_template(&checkpoint, settings.chat_template, Json::object()));
  } else {
    model.missing_template = "the model has no chat template; weft serve --chat-template FILE gives it one";
  }
  model.cache_config = {{"block_size", std::to_string(engine.page_tokens())},
                        {"cache_dtype", engine.context().options.kv_cache_dtype},
                        {"enable_prefix_caching", engine.context().options.enable_prefix_caching ? "True" : "False"},
                        {"num_gpu_blocks", std::to_string(engine.page_count())}};
  // OpenAI's default, unlike that of the command line.
  const SamplingRequest request{.parameters = {.temperature = 1}, .config = settings.generation_config};
  model.defaults = sampling_parameters(request, checkpoint, engine.context().log);
  return model;
}

}  // namespace weft
