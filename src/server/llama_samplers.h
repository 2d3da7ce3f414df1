#pragma once

// llama.cpp's field `samplers`: which samplers apply to a request, and in which order.

#include <string>
#include <vector>

#include "engine/sampling/sampler.h"
#include "server/request_fields.h"

namespace weft {

// Reader of the field, as in request_fields.h: a list of names, or a text with a letter for each.
std::string read_samplers(Element value, ApiRequest& request);

// Turns off the samplers that the list does not have, and takes its order for the others. ApiError 400 if a penalty is
// on and does not come first.
void use_samplers(SamplingParameters& parameters, const std::vector<std::string>& names);

// The names of the samplers in the order of these parameters; those that are not implemented are left out.
std::vector<std::string> sampler_names(const SamplingParameters& parameters);

}  // namespace weft
