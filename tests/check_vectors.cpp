// check_vectors DIR [--provider P | --every] [--compiled] [--family F] [--expect-failing FILE] [--least-generated N]
//
// Compares the ops of this program with recorded vectors: DIR has FAMILY.manifest.json and FAMILY.safetensors
// (tests/data/ops/README.md describes the form). Each case with a known op runs as the op's meaning, or with --provider
// as this provider's kernel if it supports the call. With --every it runs as both, with every provider of the program
// and at every level of instruction sets of the host, or at the level of WEFT_CPU_FEATURES. Prints a line for each
// family and the failures; exits with 1 on a failure.
//
// With --compiled each op of a case is a separate graph, which is compiled and replayed: with default choices, or with
// the given provider first for every op; `native` is generated code for all ops that have it. With --every it is native
// at every level that has code of its own, then default choices at the highest level. The program prints the number of
// cases that generated functions computed; --least-generated is the least number for each family if every op is native.
//
// FILE has lines `FAMILY CASE ELEMENTS`, and comments after #: the cases that cannot pass and the number of elements
// that differ. A listed case that passes, differs in another number of elements or does not exist is a failure, too.

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
#include "compiler/run/eager.h"
#include "compiler/run/interpret.h"
#include "tests/compiled_evaluator.h"
#include "tests/recorded_family.h"
#include "tests/test_context.h"

namespace weft {
namespace {

using Json = nlohmann::ordered_json;

// Who computes.
struct Way {
  std::string provider;   // "" for the meanings; compiled for default choices
  std::string features;   // the ceiling of instruction sets
  bool compiled = false;  // from a Plan

  std::string text() const {
    if (compiled) return fmt::format("compiled, {}, {}", provider.empty() ? "defaults" : provider, features);
    return fmt::format("{}, {}", provider.empty() ? "meanings" : provider, features);
  }
};

// Returns the ops for one configuration of the Context, which it sets: one configuration at a time.
class Home {
 public:
  Home(const Way& way, Context& context) {
    const bool is_chosen = !way.provider.empty();
    for (const auto& [name, op] : context.ops.all())
      context.priorities.set(name, is_chosen ? std::vector{way.provider} : std::vector<std::string>());
    if (way.compiled) {
      compiled_ = std::make_unique<CompiledEvaluator>(context, kRecordedRange);
    } else if (is_chosen) {
      other_ = std::make_unique<EagerEvaluator>(context, kRecordedRange);
    } else {
      other_ = std::make_unique<Interpreter>(context);
    }
  }

  Evaluator& evaluator() { return compiled_ != nullptr ? static_cast<Evaluator&>(*compiled_) : *other_; }
  // Null unless compiled.
  const CompiledEvaluator* compiled() const { return compiled_.get(); }

 private:
  std::unique_ptr<CompiledEvaluator> compiled_;
  std::unique_ptr<Evaluator> other_;
};

// Cases of which generated functions computed something, and those of which they computed all.
struct GeneratedCases {
  int all = 0;
  int whole = 0;
};

class Family {
 public:
  Family(const std::string& folder, std::string name, Home& home, std::map<std::string, std::int64_t> known_failures)
      : name_(std::move(name)), recorded_(folder, name_), home_(home), known_failures_(std::move(known_failures)) {}

  // Whether exactly the cases that are known to fail failed.
  bool check() {
    int passed = 0, failed = 0, as_known = 0;
    std::map<std::string, int> unknown;
    std::string failures;
    for (const Json& entry : recorded_.cases()) {
      const std::string op = entry.at("op").get<std::string>(), name = entry.at("case").get<std::string>();
      RecordedProblem problem;
      try {
        problem = run(entry);
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
    fmt::print("{}: {} passed, {} failed{}, {} not known yet{}{}\n{}", name_, passed, failed,
               as_known == 0 ? "" : fmt::format(", {} differ as listed", as_known), not_known,
               names.empty() ? "" : names + ")", generated_text(), failures);
    return failed == 0;
  }

  // The count so far.
  const GeneratedCases& generated() const { return generated_; }

 private:
  RecordedProblem run(const Json& entry) {
    const RecordedCall call = recorded_.call_of(entry);
    const CompiledEvaluator::Steps before = steps();
    const RecordedProblem problem = recorded_.problem_of(entry, call, run_recorded(call, home_.evaluator()));
    const CompiledEvaluator::Steps after = steps();
    if (after.generated == before.generated) return problem;
    ++generated_.all;
    if (after.others == before.others) ++generated_.whole;
    return problem;
  }

  CompiledEvaluator::Steps steps() const {
    return home_.compiled() == nullptr ? CompiledEvaluator::Steps() : home_.compiled()->steps();
  }

  std::string generated_text() const {
    if (home_.compiled() == nullptr) return "";
    return fmt::format("; generated functions in {}, {} of them whole", generated_.all, generated_.whole);
  }

  // Empty if the case behaved as expected; removes it from the list of known failures.
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
  Home& home_;
  std::map<std::string, std::int64_t> known_failures_;
  GeneratedCases generated_;
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
std::vector<Way> every_eager_way() {
  std::vector<Way> ways;
  for (const std::string& features : cpu_features_to_try()) {
    if (ways.empty()) ways.push_back({"", features});
    std::set<std::string> providers = {"native"};
    const auto context = test_context(features);
    // Providers that refuse the device compute nothing here.
    context->kernels.for_each([&](const Kernel& kernel) {
      if (context->kernels.find(kernel.op, kernel.provider) != nullptr) providers.insert(kernel.provider);
    });
    for (const std::string& provider : providers) ways.push_back({provider, features});
  }
  return ways;
}

// Default choices share the code that is native under the highest level.
std::vector<Way> every_compiled_way() {
  std::vector<Way> ways;
  for (const std::string& features : vector_features_to_try()) ways.push_back({"native", features, true});
  ways.push_back({"", ways.back().features, true});
  return ways;
}

struct Arguments {
  std::string folder, provider, family, expect_failing;
  bool every = false, compiled = false;
  std::int64_t least_generated = 0;
};

class Check {
 public:
  explicit Check(const Arguments& arguments)
      : arguments_(arguments),
        known_(read_known_differences(arguments.expect_failing)),
        families_(families_of(arguments.folder)) {
    USER_CHECK(arguments.family.empty() || families_.count(arguments.family) != 0, "[--family] {} has no family {}",
               arguments.folder, arguments.family);
    for (const auto& [family, cases] : known_)
      USER_CHECK(families_.count(family) != 0, "[--expect-failing] {} has no family {}", arguments.folder, family);
  }

  // Whether all families pass in all configurations.
  bool run() {
    bool good = true;
    for (const Way& way : ways()) {
      if (arguments_.every) fmt::print("{}\n", way.text());
      // Configurations of one level share the generated code.
      std::shared_ptr<Context>& context = contexts_[way.features];
      if (context == nullptr) context = test_context(way.features);
      Home home(way, *context);
      for (const std::string& family : families_)
        if (arguments_.family.empty() || family == arguments_.family)
          good = holds(family, home, way.compiled && way.provider == "native" ? arguments_.least_generated : 0) && good;
    }
    return good;
  }

 private:
  std::vector<Way> ways() const {
    if (!arguments_.every) return {{arguments_.provider, cpu_features_to_try().back(), arguments_.compiled}};
    return arguments_.compiled ? every_compiled_way() : every_eager_way();
  }

  bool holds(const std::string& name, Home& home, std::int64_t least_generated) const {
    const auto known = known_.find(name);
    Family family(arguments_.folder, name, home,
                  known == known_.end() ? KnownDifferences::mapped_type() : known->second);
    const bool good = family.check();
    const bool enough = family.generated().all >= least_generated;
    if (!enough)
      fmt::print("  FAILED: generated functions computed {} cases, but {} were wanted\n", family.generated().all,
                 least_generated);
    return good && enough;
  }

  const Arguments& arguments_;
  KnownDifferences known_;
  std::set<std::string> families_;
  std::map<std::string, std::shared_ptr<Context>> contexts_;  // by the ceiling of instruction sets
};

int check_vectors_of(const std::vector<std::string>& words) {
  Flags flags("check_vectors", "Holds the ops to recorded vectors.");
  Arguments arguments;
  flags.option("folder", arguments.folder, "Holds FAMILY.manifest.json and FAMILY.safetensors.", {.required = true});
  flags.flag("--every", arguments.every, "Meanings and every provider, under every level of instruction sets.");
  flags.option("--provider", arguments.provider, "Run this provider's kernels instead of the meanings.",
               {.excludes = {"--every"}});
  flags.flag("--compiled", arguments.compiled, "Compile each op: at that provider, default choices, or both.");
  flags.option("--family", arguments.family, "Check this family alone.");
  flags.option("--expect-failing", arguments.expect_failing, "Lists the cases that differ, and in how many elements.");
  flags.option("--least-generated", arguments.least_generated, "Cases of a family that generated code must compute.");
  if (const std::string help = flags.parse(words); !help.empty()) {
    std::cout << help;
    return 0;
  }
  if (const std::string ceiling = unreached_ceiling(); !ceiling.empty()) {
    fmt::print("count: skipped: vectors under WEFT_CPU_FEATURES={}: this host lacks it\n", ceiling);
    return 0;
  }
  return Check(arguments).run() ? 0 : 1;
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  return weft::guarded(std::cerr, [&] { return weft::check_vectors_of({argv + 1, argv + argc}); });
}
