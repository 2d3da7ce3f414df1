#include "capture/run_eagerly.h"

#include "base/error.h"
#include "capture/recorder.h"

namespace weft {

Values run_eagerly(const Values& values, const std::function<Values(const Values&)>& function,
                   std::source_location where) {
  for (const Value& value : values)
    if (value.present())
      if (auto* home = dynamic_cast<Recorder::Home*>(&value.home()))
        return placed_at(where, [&] {
          return home->recorder().run_eagerly(values, function, {"run_eagerly()", where});
        });
  return function(values);
}

}  // namespace weft
