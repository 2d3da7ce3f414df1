#include <fmt/core.h>

#include "apps/cli/plugin_check/isolated.h"
#include "apps/cli/verb.h"
#include "base/error.h"
#include "base/json.h"
#include "base/text.h"

namespace weft {
namespace {

struct PluginArguments {
  std::string library;
  double seconds = 60;
  bool json = false;
};

void print_json(const PluginArguments& arguments, const plugin_check::PluginReport& report, VerbCall& call) {
  Json rows = Json::array();
  for (const plugin_check::CheckRow& row : report.rows)
    rows.push_back({{"subject", row.subject}, {"check", row.check}, {"passed", row.passed}, {"detail", row.detail}});
  call.out << json_text(Json{{"library", arguments.library},
                             {"name", report.name},
                             {"version", report.version},
                             {"brings", report.subjects},
                             {"patterns", report.patterns},
                             {"checks", rows},
                             {"passed", report.passed()}},
                        2)
           << "\n";
}

void print_text(const plugin_check::PluginReport& report, VerbCall& call) {
  if (!report.name.empty()) call.out << fmt::format("{} {}\n", report.name, report.version);
  for (const plugin_check::CheckRow& row : report.rows)
    call.out << fmt::format("{:<5} {}: {}: {}\n", row.passed ? "ok" : "FAIL", row.subject, row.check, row.detail);
  for (const std::string& pattern : report.patterns) call.out << "ok    " << pattern << "\n";
}

int check(const PluginArguments& arguments, VerbCall& call) {
  USER_CHECK(arguments.seconds > 0, "[--timeout] must be above 0, but is {}", arguments.seconds);
  const plugin_check::PluginReport report =
      plugin_check::check_plugin(arguments.library, call.options, arguments.seconds);
  if (arguments.json) {
    print_json(arguments, report, call);
  } else {
    print_text(report, call);
  }
  int failed = 0;
  for (const plugin_check::CheckRow& row : report.rows) failed += row.passed ? 0 : 1;
  if (failed > 0)
    call.err << fmt::format("weft: [plugin check] {}: {} of {} checks failed\n", quote(arguments.library), failed,
                            report.rows.size());
  return failed > 0 ? 2 : 0;
}

}  // namespace
}  // namespace weft

VERB(plugin) {
  verbs.add("plugin", {"Try a plugin out.", [](Flags& flags, VerbCall& call) -> VerbBody {
                         auto arguments = std::make_shared<PluginArguments>();
                         Flags& verb = flags.verb("check", "Run the generic tests on it, in a process of its own.");
                         verb.option("library", arguments->library, "The shared library.", {.required = true});
                         verb.option("--timeout", arguments->seconds, "Seconds that each check may take.",
                                     {.shows_default = true});
                         verb.flag("--json", arguments->json, "Print JSON.");
                         return [arguments, &call] { return check(*arguments, call); };
                       }});
}
