#pragma once

#include <vector>

#include "compiler/pipeline.h"

namespace weft {

// The choices that `weft explain` reports, as text and as JSON.
struct ReportedChoices {
  // The ops that run, each once: without the clones that a pass removed later. An op that a pass added after `lower`
  // has the provider that this pass set.
  std::vector<NodeChoice> runs;
  // The ops whose meaning replaced them; the ops of the meaning are in one of the lists, too.
  std::vector<NodeChoice> written_out;
};
ReportedChoices reported_choices(const CompileRecord& record);

}  // namespace weft
