#include <algorithm>
#include <set>

#include <fmt/ranges.h>

#include "apps/cli/session.h"
#include "base/json.h"
#include "base/version.h"
#include "builtin/models.h"
#include "codegen/compile_rows.h"
#include "kernels/cuda/code/device_code.h"
#include "kernels/provider.h"
#include "options/options_text.h"
#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/driver_library.h"
#include "runtime/cuda/nvrtc.h"

namespace weft {
namespace {

// The row of the provider, or of the folder that has its kernels; null for a plugin's.
const ProviderEntry* entry_of(const KernelRegistry& kernels, const std::string& provider) {
  for (const ProviderEntry& entry : provider_table())
    if (entry.name == provider) return &entry;
  const ProviderEntry* folder = nullptr;
  kernels.for_each([&](const Kernel& kernel) {
    if (kernel.provider == provider) folder = folder_of(kernel);
  });
  return folder;
}

// {name, version, kernels, refused, reason of a refusal}, or {name, absent} for one that this program is without. A
// provider that a plugin brought has no version.
Json provider_facts(const KernelRegistry& kernels, const std::string& provider) {
  Json facts{{"name", provider}};
  const ProviderEntry* entry = entry_of(kernels, provider);
  if (entry != nullptr && *entry->absent != '\0') {
    facts["absent"] = entry->absent;
    return facts;
  }
  if (entry != nullptr) facts["version"] = entry->version == nullptr ? kVersion : entry->version();
  int usable = 0, refused = 0;
  for (const std::string& op : kernels.ops()) {
    const std::vector<std::string> names = kernels.providers(op);
    if (std::find(names.begin(), names.end(), provider) == names.end()) continue;
    ++(kernels.find(op, provider) != nullptr ? usable : refused);
    if (kernels.find(op, provider) == nullptr) facts["reason"] = kernels.refusal(op, provider);
  }
  facts["kernels"] = usable;
  facts["refused"] = refused;
  return facts;
}

// Those of the build and those of the Context, in the order of names.
std::set<std::string> all_providers(const KernelRegistry& kernels) {
  std::set<std::string> names;
  for (const ProviderEntry& entry : provider_table()) names.insert(entry.name);
  for (const std::string& op : kernels.ops())
    for (const std::string& provider : kernels.providers(op)) names.insert(provider);
  return names;
}

std::string provider_text(const Json& facts) {
  std::string text = facts["name"];
  if (facts.contains("version")) text += " " + facts["version"].get<std::string>();
  if (facts.contains("absent")) return text + ": absent, " + facts["absent"].get<std::string>();
  text += fmt::format(": {} kernels, {} refused", facts["kernels"].get<int>(), facts["refused"].get<int>());
  if (facts.contains("reason")) text += ": " + facts["reason"].get<std::string>();
  return text;
}

// {code: what architectures the program has kernels for, nvrtc and cublaslt: the libraries that are there, devices:
// [{device, name, compute_capability, multiprocessors, memory_bytes}]}, and the reason where there are none.
Json cuda_facts() {
  std::string problem;
  const auto driver = cuda::open_cuda(problem);
  const int driver_version = driver == nullptr ? 0 : driver->facts(0).driver_version;
  Json facts{{"code", cuda::device_code_text()},
             {"nvrtc", cuda::nvrtc_text()},
             {"cublaslt", cuda::cublaslt_text(driver_version)},
             {"devices", Json::array()}};
  if (driver == nullptr) facts["reason"] = problem;
  for (int device = 0; driver != nullptr && device < driver->device_count(); ++device) {
    const cuda::DeviceFacts& found = driver->facts(device);
    facts["devices"].push_back(
        {{"device", driver->device_name(device)},
         {"name", found.name},
         {"compute_capability", fmt::format("{}.{}", found.compute_capability / 10, found.compute_capability % 10)},
         {"multiprocessors", found.multiprocessors},
         {"memory_bytes", found.memory_bytes}});
  }
  return facts;
}

std::string cuda_device_text(const Json& device) {
  return fmt::format("{}: {}, compute capability {}, {} multiprocessors, {} bytes", device["device"].get<std::string>(),
                     device["name"].get<std::string>(), device["compute_capability"].get<std::string>(),
                     device["multiprocessors"].get<int>(), device["memory_bytes"].get<std::int64_t>());
}

Json versions() {
  return {{"weft", kVersion},
          {"compiler", __VERSION__},
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
            {"threads", device.threads},
            {"cuda", cuda_facts()}};
  if (!device.amx_problem.empty()) info["features"]["amx_problem"] = device.amx_problem;
  for (const std::string& provider : all_providers(context->kernels))
    info["providers"].push_back(provider_facts(context->kernels, provider));
  const std::string device_compiler = context->generated->device_compiler_text();
  info["generated_code"] = {{"host", row_compiler_text()},
                            {"device", device_compiler.empty() ? Json() : Json(device_compiler)}};
  info["models"] = make_model_registry().architectures();
  const Options defaults;
  info["options"] = Json::object();
  for (const OptionRow& row : option_table())
    if (value_text(context->options, row) != value_text(defaults, row))
      info["options"][std::string(row.name)] = value_text(context->options, row);
  if (as_json) {
    call.out << json_text(info, 2) << "\n";
    return 0;
  }
  for (const auto& [name, version] : info["versions"].items())
    call.out << fmt::format("{:<16}{}\n", name, version.get<std::string>());
  call.out << fmt::format("{:<16}{}: {}\n", "device", device_text(device.id), device.name)
           << fmt::format("{:<16}{} in use, host has {}\n", "features", cpu_features_text(device.features),
                          cpu_features_text(device.host));
  if (!device.amx_problem.empty()) call.out << fmt::format("{:<16}not usable: {}\n", "amx", device.amx_problem);
  call.out << fmt::format("{:<16}{}\n", "threads", device.threads);
  call.out << fmt::format("{:<16}{}\n", "cuda code", info["cuda"]["code"].get<std::string>());
  for (const char* library : {"nvrtc", "cublaslt"})
    call.out << fmt::format("{:<16}{}\n", library, info["cuda"][library].get<std::string>());
  for (const Json& found : info["cuda"]["devices"])
    call.out << fmt::format("{:<16}{}\n", "cuda", cuda_device_text(found));
  if (info["cuda"].contains("reason"))
    call.out << fmt::format("{:<16}no CUDA device: {}\n", "cuda", info["cuda"]["reason"].get<std::string>());
  for (const Json& provider : info["providers"])
    call.out << fmt::format("{:<16}{}\n", "provider", provider_text(provider));
  for (const auto& [machine, compiler] : info["generated_code"].items())
    if (compiler.is_string())
      call.out << fmt::format("{:<16}for the {}: {}\n", "generated code", machine, compiler.get<std::string>());
  call.out << fmt::format("{:<16}{}\n", "models", fmt::join(make_model_registry().architectures(), ", "));
  for (const auto& [name, value] : info["options"].items())
    call.out << fmt::format("{:<16}{} = {}\n", "option", name, value.get<std::string>());
  return 0;
}

}  // namespace
}  // namespace weft

VERB(info) {
  verbs.add("info", {"Report the machine, the providers and libraries, and the options in effect.",
                     [](Flags& flags, VerbCall& call) -> VerbBody {
                       auto as_json = std::make_shared<bool>(false);
                       flags.flag("--json", *as_json, "Print JSON.");
                       return [as_json, &call] { return print_info(*as_json, call); };
                     }});
}
