#pragma once

// Memory, time and files of this process, for the metrics.

#include "server/metric_values.h"

namespace weft {

// Sets the values `of the process`. What the system does not report stays as it is.
void read_process_values(MetricValues& values);

}  // namespace weft
