#pragma once

// The requests that run: gives tickets to their sequences, and reports of the engine to their answers and to the
// metrics. It lives on the thread that takes the reports.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "server/engine_loop.h"
#include "server/http_message.h"
#include "server/metric_values.h"
#include "server/prepared_request.h"
#include "server/running_request.h"
#include "server/sequence_records.h"

namespace weft {

class GenerationTable {
 public:
  // Has a large answer written on another thread, and sent: see RunningRequest::is_unwritten().
  using WriteLater = std::function<void(const std::shared_ptr<RunningRequest>&)>;

  // All but the functions outlive this object. `log` gets the reason of each failure.
  GenerationTable(const ServedModel& model, EngineLoop& loop, MetricValues& values,
                  std::function<void(const std::string& line)> log, WriteLater write_later);

  // `random_seed` is for a request without a seed, `arrival` for the metrics.
  void begin(PreparedRequest prepared, const std::string& id, std::uint64_t random_seed,
             const std::shared_ptr<HttpReply>& reply, MonotonicClock::time_point arrival);
  void deliver(const StepReport& report);
  // Ends the answers that are not complete.
  void abort();
  // To be called four times in each interval of --sse-keep-alive-interval.
  void keep_alive();

  const SequenceRecords& records() const { return records_; }

 private:
  void end(Ticket first);
  void lose(Ticket first, RunningRequest& generation);
  void cancel(const std::vector<Ticket>& tickets);

  const ServedModel& model_;
  EngineLoop& loop_;
  MetricValues& values_;
  std::function<void(const std::string&)> log_;
  WriteLater write_later_;
  SequenceRecords records_{values_};
  std::map<Ticket, std::shared_ptr<RunningRequest>> generations_;  // by the first ticket of each
  Ticket next_ticket_ = 0;
};

}  // namespace weft
