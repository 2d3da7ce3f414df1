#include "server/adapter_table.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "base/utf8.h"
#include "server/api_error.h"

namespace weft {
namespace {

// vLLM's names of its errors.
ApiError wrong_adapter(const std::string& message) { return {400, "InvalidUserInput", message}; }
ApiError no_adapter(const std::string& message) { return {404, "NotFoundError", message}; }

}  // namespace

AdapterTable::AdapterTable(Engine& engine, std::vector<std::string> model_names)
    : slots_(engine.runner().adapters()),
      model_names_(std::move(model_names)),
      is_allowed_(engine.context().options.allow_runtime_lora_updating),
      scaled_(scaled_loras(engine.context().options)) {
  const std::vector<NamedLora> named = named_loras(engine.context().options);
  const auto loaded = slots_.take_named();
  CHECK(loaded.size() == named.size(), "the adapters of this engine have another table");
  for (std::size_t i = 0; i < named.size(); ++i) {
    ServedAdapter adapter{replace_invalid_utf8(named[i].name), replace_invalid_utf8(named[i].path), loaded[i]};
    USER_CHECK(std::find(model_names_.begin(), model_names_.end(), adapter.name) == model_names_.end(),
               "[--lora-modules] {} is a name of the model", quote(adapter.name));
    named_.push_back(std::make_shared<const ServedAdapter>(std::move(adapter)));
  }
  for (const ScaledLora& one : scaled_) scales_.push_back(one.scale);
}

ServedAdapterPointer AdapterTable::find(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(named_.begin(), named_.end(), [&](const auto& one) { return one->name == name; });
  return found == named_.end() ? nullptr : *found;
}

std::vector<ServedAdapterPointer> AdapterTable::list() const {
  const std::lock_guard lock(mutex_);
  return named_;
}

void AdapterTable::check_allowed() const {
  if (!is_allowed_)
    throw ApiError(404, "Not Found",
                   "adapters are loaded while the server runs only with --allow-runtime-lora-updating, or "
                   "VLLM_ALLOW_RUNTIME_LORA_UPDATING=True");
}

std::string AdapterTable::load(const std::string& name, const std::string& path, bool replaces) {
  check_allowed();
  if (name.empty() || path.empty()) throw wrong_adapter("Both 'lora_name' and 'lora_path' must be provided.");
  if (std::find(model_names_.begin(), model_names_.end(), name) != model_names_.end())
    throw wrong_adapter(fmt::format("The lora adapter '{}' has a name of the model.", name));
  const std::lock_guard loading(loading_);
  if (!replaces && find(name) != nullptr)
    throw wrong_adapter(
        fmt::format("The lora adapter '{}' has already been loaded. If you want to load the adapter in place, set "
                    "'load_inplace' to True.",
                    name));
  if (file_status(path).kind == FileKind::missing)
    throw no_adapter(fmt::format("Loading lora {} failed: No adapter found for {}", name, path));
  std::shared_ptr<const LoadedAdapter> loaded;
  try {
    LoraParts parts;
    slots_.stacks().reader().read(path, 1, parts);
    loaded = load_parts(parts);
  } catch (const UserError& error) {
    throw ApiError(400, "BadRequestError", fmt::format("Loading lora {} failed: {}", name, error.what()));
  }
  const auto adapter = std::make_shared<const ServedAdapter>(ServedAdapter{name, path, std::move(loaded)});
  ServedAdapterPointer replaced;  // its memory may be given back here, after the lock
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(named_.begin(), named_.end(), [&](const auto& one) { return one->name == name; });
  if (found == named_.end()) {
    named_.push_back(adapter);
  } else {
    replaced = std::exchange(*found, adapter);
  }
  return fmt::format("Success: LoRA adapter '{}' added successfully.", name);
}

std::string AdapterTable::unload(const std::string& name) {
  check_allowed();
  if (name.empty()) throw wrong_adapter("'lora_name' needs to be provided to unload a LoRA adapter.");
  const std::lock_guard loading(loading_);
  ServedAdapterPointer removed;
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(named_.begin(), named_.end(), [&](const auto& one) { return one->name == name; });
  if (found == named_.end()) throw no_adapter(fmt::format("The lora adapter '{}' cannot be found.", name));
  removed = std::move(*found);
  named_.erase(found);
  return fmt::format("Success: LoRA adapter '{}' removed successfully.", name);
}

Json AdapterTable::scales() const {
  const std::lock_guard lock(mutex_);
  Json list = Json::array();
  for (std::size_t i = 0; i < scaled_.size(); ++i)
    list.push_back({{"id", i},
                    {"path", replace_invalid_utf8(scaled_[i].path)},
                    {"scale", scales_[i]},
                    {"task_name", ""},
                    {"prompt_prefix", ""}});
  return list;
}

AdapterTable::Scales AdapterTable::all_scales(const std::map<std::int64_t, double>& scales) const {
  Scales all(scaled_.size());
  for (const auto& [id, scale] : scales) {
    if (id < 0 || id >= std::ssize(all))
      throw wrong_value(fmt::format("[lora] invalid adapter id {}: there are {} adapters of --lora", id, all.size()),
                        "lora");
    all[static_cast<std::size_t>(id)] = scale;
  }
  return all;
}

void AdapterTable::set_scales(const std::map<std::int64_t, double>& scales) {
  const std::lock_guard loading(loading_);
  Scales all = all_scales(scales);
  ServedAdapterPointer adapter = combination(all);
  const std::lock_guard lock(mutex_);
  scales_ = std::move(all);
  of_all_ = std::move(adapter);
}

ServedAdapterPointer AdapterTable::of_all() const {
  const std::lock_guard lock(mutex_);
  return of_all_;
}

ServedAdapterPointer AdapterTable::with_scales(const std::map<std::int64_t, double>& scales) {
  const std::lock_guard loading(loading_);
  return combination(all_scales(scales));
}

// Sets of scales that are not used stay loaded as long as there is room for others, so that clients that take turns
// load nothing, and find their prefixes.
ServedAdapterPointer AdapterTable::combination(const Scales& scales) {
  const bool is_first = std::equal(scales.begin(), scales.end(), scaled_.begin(), scaled_.end(),
                                   [](double scale, const ScaledLora& one) { return scale == one.scale; });
  if (is_first) return nullptr;
  const auto known = std::find_if(combinations_.begin(), combinations_.end(),
                                  [&](const Combination& one) { return one.scales == scales; });
  if (known != combinations_.end()) {
    std::rotate(known, known + 1, combinations_.end());
    return combinations_.back().adapter;
  }
  if (slots_.stacks().spare() == 0)
    throw not_made_here(
        "[lora] other scales than those of the command line need places: "
        "--lora-scale-slots, on the CPU",
        "lora");
  const auto loaded = load_parts(slots_.stacks().scaled_parts(scales));
  combinations_.push_back({scales, std::make_shared<const ServedAdapter>(ServedAdapter{"", "", loaded})});
  return combinations_.back().adapter;
}

std::shared_ptr<const LoadedAdapter> AdapterTable::load_parts(const LoraParts& parts) {
  while (true) {
    if (auto loaded = slots_.load(parts)) return loaded;
    if (!drop_unused_combination())
      throw unavailable(
          fmt::format("all {} places of adapters are in use: unload one, wait, or start the server with more "
                      "(--max-loras, --lora-scale-slots)",
                      slots_.stacks().choices() - 1));
  }
}

bool AdapterTable::drop_unused_combination() {
  const auto unused = std::find_if(combinations_.begin(), combinations_.end(),
                                   [](const Combination& one) { return one.adapter.use_count() == 1; });
  if (unused == combinations_.end()) return false;
  combinations_.erase(unused);
  return true;
}

}  // namespace weft
