#include "apps/cli/plugin_check/isolated.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <fmt/core.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace weft::plugin_check {
namespace {

// One JSON value a line, from child to parent.
void send(int pipe, const Json& message) {
  const std::string line = json_text(message) + "\n";
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t count = ::write(pipe, line.data() + sent, line.size() - sent);
    if (count <= 0) ::_exit(1);
    sent += static_cast<std::size_t>(count);
  }
}

// The child: loads, and runs the subjects from `first` on. Ends with {"done": true}, unless it is ended before.
void run_child(int pipe, const std::string& path, const Options& options, std::size_t first, FaultRecord& record) {
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // A plugin that calls exit must not run what the parent left to be done at its own exit.
  ::on_exit([](int status, void*) { ::_exit(status); }, nullptr);
  record_faults(record);
  try {
    PluginChecks checks(path, options, record);
    send(pipe, {{"name", checks.plugin().name},
                {"version", checks.plugin().version},
                {"subjects", checks.subjects()},
                {"patterns", checks.patterns()}});
    for (std::size_t i = first; i < checks.subjects().size(); ++i) {
      send(pipe, {{"begin", i}});
      checks.run(i, [&](const CheckRow& row) {
        send(pipe, {{"subject", row.subject}, {"check", row.check}, {"passed", row.passed}, {"detail", row.detail}});
      });
    }
  } catch (const std::exception& error) {
    send(pipe, {{"refused", error.what()}});
  }
  send(pipe, {{"done", true}});
}

struct Child {
  pid_t process = -1;
  int pipe = -1;
  std::string unread = {};
};

Child start_child(const std::string& path, const Options& options, std::size_t first, FaultRecord& record) {
  int ends[2];
  if (::pipe(ends) != 0) fail_device("[plugin check] no pipe: {}", system_error_text());
  const pid_t process = ::fork();
  if (process < 0) fail_device("[plugin check] no process: {}", system_error_text());
  if (process == 0) {
    ::close(ends[0]);
    run_child(ends[1], path, options, first, record);
    ::_exit(0);
  }
  ::close(ends[1]);
  return {process, ends[0]};
}

enum class Heard { line, end, silence };

// The next line of the child, at most `seconds` from now.
Heard next_line(Child& child, double seconds, std::string& line) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  for (;;) {
    if (const std::size_t newline = child.unread.find('\n'); newline != std::string::npos) {
      line = child.unread.substr(0, newline);
      child.unread.erase(0, newline + 1);
      return Heard::line;
    }
    const double left = std::chrono::duration<double>(until - std::chrono::steady_clock::now()).count();
    pollfd waiting{child.pipe, POLLIN, 0};
    const int ready = left <= 0 ? 0 : ::poll(&waiting, 1, static_cast<int>(left * 1000) + 1);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return Heard::silence;
    char bytes[4096];
    const ssize_t count = ::read(child.pipe, bytes, sizeof bytes);
    if (count <= 0) return Heard::end;
    child.unread.append(bytes, static_cast<std::size_t>(count));
  }
}

// Waits for the child, and says how it ended.
std::string ending(const Child& child, const FaultRecord& record) {
  int status = 0;
  while (::waitpid(child.process, &status, 0) < 0 && errno == EINTR) continue;
  ::close(child.pipe);
  if (!WIFSIGNALED(status)) return fmt::format("ended the process with status {}", WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  const std::string where = record.signal == 0 ? "" : record.text();
  return fmt::format("crashed with signal {} ({}){}", signal, ::strsignal(signal), where.empty() ? "" : ": " + where);
}

// One child's report from subject `first` on. The subject that ended it, or nothing when it came to the end.
std::optional<std::size_t> hear_child(Child& child, double seconds, const FaultRecord& record, PluginReport& report) {
  std::optional<std::size_t> current;
  std::string line;
  const auto fail = [&](const std::string& how) {
    report.rows.push_back({current ? report.subjects[*current] : "plugin", current ? "runs" : "loads", false, how});
    return current ? *current + 1 : report.subjects.size();
  };
  for (;;) {
    const Heard heard = next_line(child, seconds, line);
    if (heard == Heard::silence) {
      ::kill(child.process, SIGKILL);
      ending(child, record);
      return fail(fmt::format("took longer than {} s", seconds));
    }
    if (heard == Heard::end) return fail(ending(child, record));
    const Json message = parse_json(line);
    CHECK(message.is_object(), "the process of the check wrote {}", quote(line));
    if (message.contains("done")) {
      ending(child, record);
      return std::nullopt;
    }
    if (message.contains("refused")) {
      report.rows.push_back({"plugin", "loads", false, message["refused"]});
    } else if (message.contains("subjects")) {
      report.name = message["name"];
      report.version = message["version"];
      report.subjects = message["subjects"].get<std::vector<std::string>>();
      report.patterns = message["patterns"].get<std::vector<std::string>>();
    } else if (message.contains("begin")) {
      current = message["begin"].get<std::size_t>();
    } else {
      report.rows.push_back({message["subject"], message["check"], message["passed"], message["detail"]});
    }
  }
}

}  // namespace

bool PluginReport::passed() const {
  return std::all_of(rows.begin(), rows.end(), [](const CheckRow& row) { return row.passed; });
}

PluginReport check_plugin(const std::string& path, const Options& options, double seconds) {
  PluginReport report;
  FaultRecord& record = *FaultRecord::shared();
  std::optional<std::size_t> next = 0;
  do {
    record.signal = 0;
    Child child = start_child(path, options, *next, record);
    next = hear_child(child, seconds, record, report);
  } while (next && *next < report.subjects.size());
  return report;
}

}  // namespace weft::plugin_check
