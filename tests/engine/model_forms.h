#pragma once

// Tiny models of every architecture with weights in every form, for tests of the compiler; those that are folders have
// only a config.

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "options/options.h"
#include "tests/base/temporary_folder.h"

namespace weft {

struct ModelForm {
  std::string architecture;
  std::string form;  // f32, bf16; fp8, ... of `weft quantize`; q4_1 and q8_0, which are GGUF files
  std::string path;
  Options options;

  std::string name() const { return architecture + " in " + form; }
};

// The sample config of each architecture, with these changes.
std::vector<ModelForm> model_forms(const TemporaryFolder& folder, const nlohmann::json& changes);

// Of these: Llama in every form, each other architecture as one plain model, one with codes and one with blocks. What a
// form changes is within a product, and all architectures have the same products.
std::vector<ModelForm> sample_forms(const TemporaryFolder& folder, const nlohmann::json& changes);

}  // namespace weft
