#pragma once

// The config.json of a model that takes images or sound, too, has the language model's keys in an object of its own,
// and its weights have names of their own.

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace weft {

// The config of the language model: `text_config` with the keys about the whole checkpoint (its tokens, its dtype, its
// quantization), or the config itself without that key. UserError, `[where] ...`, if the key has another value than an
// object.
Json text_config(Json config, const std::string& where);

// The names that folders of the whole model may have for a weight of the language model.
std::vector<std::string> names_in_checkpoint(std::string_view name);

// The name of a weight as folders of the language model alone have it: without the name of the module around the
// language model. Other names stay.
std::string name_in_language_model(std::string_view name);

// The name of the module around the layers that the names of this folder lack, as those of folders that were written
// without the head: "model.", or "" for none. `has_tensor` says whether the folder has a tensor.
std::string_view missing_module(const std::function<bool(std::string_view name)>& has_tensor);

}  // namespace weft
