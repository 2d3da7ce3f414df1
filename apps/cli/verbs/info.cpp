#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "apps/cli/session.h"
#include "base/options_text.h"
#include "base/version.h"
#include "builtin/models.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

std::vector<std::string> all_providers(const KernelRegistry& kernels) {
  std::map<std::string, bool> names;
  for (const std::string& op : kernels.ops())
    for (const std::string& provider : kernels.providers(op)) names[provider] = true;
  std::vector<std::string> list;
  for (const auto& [name, present] : names) list.push_back(name);
  return list;
}

Json kernel_counts(const KernelRegistry& kernels, const std::string& provider) {
  int usable = 0, refused = 0;
  for (const std::string& op : kernels.ops())
    for (const std::string& name : kernels.providers(op))
      if (name == provider) ++(kernels.find(op, name) != nullptr ? usable : refused);
  return {{"name", provider}, {"kernels", usable}, {"refused", refused}};
}

Json versions() {
  return {{"weft", kVersion},
          {"compiler", __VERSION__},
          {"cli11", CLI11_VERSION},
          {"fmt", fmt::format("{}.{}.{}", FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100)},
          {"nlohmann_json", fmt::format("{}.{}.{}", NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
                                        NLOHMANN_JSON_VERSION_PATCH)}};
}

int print_info(bool as_json, VerbCall& call) {
  const auto context = open_context(call);
  const DeviceDescription& device = context->device;
  Json info{{"versions", versions()},
            {"device", device_text(device.id)},
            {"processor", device.name},
            {"features", {{"host", cpu_features_text(device.host)}, {"in_use", cpu_features_text(device.features)}}},
            {"threads", device.threads}};
  for (const std::string& provider : all_providers(context->kernels))
    info["providers"].push_back(kernel_counts(context->kernels, provider));
  info["models"] = make_model_registry().architectures();
  const Options defaults;
  info["options"] = Json::object();
  for (const OptionRow& row : option_table())
    if (value_text(context->options, row) != value_text(defaults, row))
      info["options"][std::string(row.name)] = value_text(context->options, row);
  if (as_json) {
    call.out << info.dump(2) << "\n";
    return 0;
  }
  for (const auto& [name, version] : info["versions"].items())
    call.out << fmt::format("{:<16}{}\n", name, version.get<std::string>());
  call.out << fmt::format("{:<16}{}: {}\n", "device", device_text(device.id), device.name)
           << fmt::format("{:<16}{} in use, host has {}\n", "features", cpu_features_text(device.features),
                          cpu_features_text(device.host))
           << fmt::format("{:<16}{}\n", "threads", device.threads);
  for (const Json& provider : info["providers"])
    call.out << fmt::format("{:<16}{}: {} kernels, {} refused\n", "provider", provider["name"].get<std::string>(),
                            provider["kernels"].get<int>(), provider["refused"].get<int>());
  call.out << fmt::format("{:<16}{}\n", "models", fmt::join(make_model_registry().architectures(), ", "));
  for (const auto& [name, value] : info["options"].items())
    call.out << fmt::format("{:<16}{} = {}\n", "option", name, value.get<std::string>());
  return 0;
}

}  // namespace
}  // namespace weft

VERB(info) {
  verbs.add("info", {"Say what this machine and program have.", [](CLI::App& flags, VerbCall& call) -> VerbBody {
                       auto as_json = std::make_shared<bool>(false);
                       flags.add_flag("--json", *as_json, "Print JSON.");
                       return [as_json, &call] { return print_info(*as_json, call); };
                     }});
}
