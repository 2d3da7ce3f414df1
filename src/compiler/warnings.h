#pragma once

// Warnings: sentences for the user about what Weft cannot use and continues without, such as a damaged entry of the
// compile cache. The program prints them on stderr. A library must not, so the C interface opens its Contexts inside a
// WarningScope, which collects them.

#include <functional>
#include <string>

namespace weft {

class Log;

// Receives each warning. Any thread that uses the Context may call it. It must not throw.
using WarningSink = std::function<void(const std::string& sentence)>;

// The sink of this thread's innermost scope. Outside of every scope it prints `weft: SENTENCE` on stderr.
WarningSink current_warning_sink();

// A Context passes its warnings to the sink that was current when its Log was made, as long as the Context exists and
// from whatever thread. So the scope only has to be alive while the Context is made.
class WarningScope {
 public:
  explicit WarningScope(WarningSink sink);
  ~WarningScope();
  WarningScope(const WarningScope&) = delete;
  WarningScope& operator=(const WarningScope&) = delete;

 private:
  WarningSink before_;
};

// Passes the warning to the sink of this Log. A default-constructed Log has none and drops it.
void warn(const Log& log, const std::string& sentence);

}  // namespace weft
