// check_vectors DIR [--provider P | --every] [--family F] [--expect-failing FILE]
//
// Holds the ops of this program to recorded vectors: DIR has FAMILY.manifest.json and FAMILY.safetensors (the form is
// described in tests/data/ops/README.md). Each case whose op is known runs as the op's meaning, or with --provider as
// that provider's kernel wherever it supports the call; with --every in both ways, by every provider of the program and
// under every level of instruction sets that the host has, or the one that WEFT_CPU_FEATURES says. Prints a line per
// family and what failed; exits 1 on a failure.
//
// FILE has lines `FAMILY CASE ELEMENTS`, and comments after #: the cases that cannot pass and in how many elements they
// differ. A listed case that passes, differs in another number of elements or does not exist is a failure too.

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>
#include <sstream>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "apps/cli/flags.h"
#include "apps/cli/verb.h"
#include "base/error.h"
#include "base/files.h"
#include "tests/recorded_family.h"
#include "tests/test_context.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

// Who computes.
struct Way {
  std::string provider;  // "" for the meanings
  std::string features;  // the ceiling of instruction sets

  std::string text() const { return fmt::format("{}, {}", provider.empty() ? "meanings" : provider, features); }
};

class Family {
 public:
  Family(const std::string& folder, std::string name, const Context& context, std::string provider,
         std::map<std::string, std::int64_t> known_failures)
      : name_(std::move(name)),
        recorded_(folder, name_),
        context_(context),
        provider_(std::move(provider)),
        known_failures_(std::move(known_failures)) {}

  // Whether nothing failed but what is known to, and that did.
  bool check() {
    int passed = 0, failed = 0, as_known = 0;
    std::map<std::string, int> unknown;
    std::string failures;
    for (const Json& entry : recorded_.cases()) {
      const std::string op = entry.at("op").get<std::string>(), name = entry.at("case").get<std::string>();
      RecordedProblem problem;
      try {
        const RecordedCall call = recorded_.call_of(entry);
        problem = recorded_.problem_of(entry, call, run_recorded(call, context_, provider_));
      } catch (const NotKnownYet&) {
        ++unknown[op];
        continue;
      } catch (const Error& error) {
        problem = {error.what()};
      }
      const std::string text = judged(name, problem);
      if (!text.empty()) {
        ++failed;
        failures += fmt::format("  FAILED {}: {}\n", name, text);
      } else {
        ++(problem.text.empty() ? passed : as_known);
      }
    }
    for (const auto& [name, elements] : known_failures_) {
      ++failed;
      failures += fmt::format("  FAILED {}: is listed as failing, but was not checked\n", name);
    }
    int not_known = 0;
    std::string names;
    for (const auto& [op, count] : unknown) {
      not_known += count;
      names += (names.empty() ? " (" : ", ") + op;
    }
    fmt::print("{}: {} passed, {} failed{}, {} not known yet{}\n{}", name_, passed, failed,
               as_known == 0 ? "" : fmt::format(", {} differ as listed", as_known), not_known,
               names.empty() ? "" : names + ")", failures);
    return failed == 0;
  }

 private:
  // Empty if the case did as it should; takes it off the list of those that are known to fail.
  std::string judged(const std::string& name, const RecordedProblem& problem) {
    auto listed = known_failures_.extract(name);
    if (listed.empty()) return problem.text;
    if (problem.text.empty()) return "passes, but is listed as failing";
    if (problem.elements == listed.mapped()) return "";
    return fmt::format("{} elements differ instead of the {} listed: {}", problem.elements, listed.mapped(),
                       problem.text);
  }

  std::string name_;
  RecordedFamily recorded_;
  const Context& context_;
  std::string provider_;
  std::map<std::string, std::int64_t> known_failures_;
};

std::set<std::string> families_of(const std::string& folder) {
  std::set<std::string> families;
  const std::string ending = ".manifest.json";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string file = entry.path().filename().string();
    if (file.ends_with(ending)) families.insert(file.substr(0, file.size() - ending.size()));
  }
  return families;
}

// The meanings do not depend on the instruction sets; kernels do.
std::vector<Way> every_way() {
  std::vector<Way> ways;
  for (const std::string& features : cpu_features_to_try()) {
    if (ways.empty()) ways.push_back({"", features});
    std::set<std::string> providers = {"native"};
    const auto context = test_context(features);
    // Those that refuse the device compute nothing here.
    context->kernels.for_each([&](const Kernel& kernel) {
      if (context->kernels.find(kernel.op, kernel.provider) != nullptr) providers.insert(kernel.provider);
    });
    for (const std::string& provider : providers) ways.push_back({provider, features});
  }
  return ways;
}

struct Arguments {
  std::string folder, provider, family, expect_failing;
  bool every = false;
};

int check_vectors(const Arguments& arguments) {
  const KnownDifferences known = read_known_differences(arguments.expect_failing);
  const std::set<std::string> families = families_of(arguments.folder);
  USER_CHECK(arguments.family.empty() || families.count(arguments.family) != 0, "[--family] {} has no family {}",
             arguments.folder, arguments.family);
  for (const auto& [family, cases] : known)
    USER_CHECK(families.count(family) != 0, "[--expect-failing] {} has no family {}", arguments.folder, family);
  USER_CHECK(!arguments.every || arguments.provider.empty(), "[--every] means all providers, not {} alone",
             arguments.provider);
  bool good = true;
  for (const Way& way :
       arguments.every ? every_way() : std::vector<Way>{{arguments.provider, cpu_features_to_try().back()}}) {
    const auto context = test_context(way.features);
    if (!way.provider.empty())
      for (const auto& [name, op] : context->ops.all()) context->priorities.set(name, {way.provider});
    if (arguments.every) fmt::print("{}\n", way.text());
    for (const std::string& family : families) {
      if (!arguments.family.empty() && family != arguments.family) continue;
      const auto of_family = known.find(family);
      good = Family(arguments.folder, family, *context, way.provider,
                    of_family == known.end() ? std::map<std::string, std::int64_t>() : of_family->second)
                 .check() &&
             good;
    }
  }
  return good ? 0 : 1;
}

int check_vectors_of(const std::vector<std::string>& words) {
  Flags flags("check_vectors", "Holds the ops to recorded vectors.");
  Arguments arguments;
  flags.option("folder", arguments.folder, "Holds FAMILY.manifest.json and FAMILY.safetensors.", {.required = true});
  flags.option("--provider", arguments.provider, "Run this provider's kernels instead of the meanings.");
  flags.flag("--every", arguments.every, "Meanings and every provider, under every level of instruction sets.");
  flags.option("--family", arguments.family, "Check this family alone.");
  flags.option("--expect-failing", arguments.expect_failing, "Lists the cases that differ, and in how many elements.");
  if (const std::string help = flags.parse(words); !help.empty()) {
    std::cout << help;
    return 0;
  }
  return check_vectors(arguments);
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  return weft::guarded(std::cerr, [&] { return weft::check_vectors_of({argv + 1, argv + argc}); });
}
