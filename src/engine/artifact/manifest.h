#pragma once

// manifest.json of an artifact (engine/artifact/artifact.h).

#include <string>
#include <string_view>

#include "base/json.h"
#include "engine/artifact/artifact.h"

namespace weft {

Json manifest_json(const ArtifactManifest& manifest);

// Parses the text of manifest_json. UserError, which begins with [where], for any other text.
ArtifactManifest parse_manifest(std::string_view text, const std::string& where);

}  // namespace weft
