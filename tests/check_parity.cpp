// check_parity DIR MODEL
//
// Compares this program with the recorded results of other engines for one real checkpoint. DIR is a folder in the form
// of tests/data/parity: strings.json, detokenize.json, chat.json, template_cases.json, forward.json, perplexity.json,
// sampling.json with sampling.safetensors. Prints one line for each family, `N passed, N failed`, after the names of
// failed cases; exits with 1 on a failure. A family without its file is reported as missing and fails.
//
// --family F runs one family; --skip-slow leaves out the families that run the model.

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "apps/cli/flags.h"
#include "apps/cli/session.h"
#include "base/error.h"
#include "base/files.h"
#include "builtin/models.h"
#include "tests/parity.h"

namespace weft::parity {
namespace {

struct FamilyRow {
  const char* name;
  bool slow;
  void (*run)(Family&, const Subject&);
};

constexpr FamilyRow kFamilies[] = {
    {"tokenizer", false, check_tokenizer},
    {"detokenizer", false, check_detokenizer},
    {"chat", false, check_chat},
    {"templates", false, check_templates},
    {"sampling", false, check_sampling},
    {"forward.exact", true, [](Family& f, const Subject& s) { check_forward(f, s, true); }},
    {"forward.fast", true, [](Family& f, const Subject& s) { check_forward(f, s, false); }},
    {"perplexity.exact", true, [](Family& f, const Subject& s) { check_perplexity(f, s, true); }},
    {"perplexity.fast", true, [](Family& f, const Subject& s) { check_perplexity(f, s, false); }},
};

int check_parity(int argc, char** argv) {
  Flags flags("check_parity", "Holds this program against what other engines gave for one checkpoint.");
  std::string folder, model;
  std::vector<std::string> families;
  bool skip_slow = false;
  flags.option("folder", folder, "A folder in the form of tests/data/parity.", {.required = true});
  flags.option("model", model, "The checkpoint, or a built-in name.", {.required = true});
  flags.option("--family", families, "Only this one: tokenizer, forward.fast, ...");
  flags.flag("--skip-slow", skip_slow, "Leave out what runs the model.");
  if (const std::string help = flags.parse({argv + 1, argv + argc}); !help.empty()) {
    std::cout << help;
    return 0;
  }
  const std::string path =
      std::filesystem::exists(model) ? model : resolve_model(model, models_folder(process_environment()));
  const Checkpoint checkpoint = Checkpoint::open(path);
  const Subject subject{folder, checkpoint, Tokenizer(checkpoint.vocabulary())};
  bool all_passed = true;
  int ran = 0;
  for (const FamilyRow& row : kFamilies) {
    const bool chosen = families.empty() || std::find(families.begin(), families.end(), row.name) != families.end();
    if (!chosen || (skip_slow && row.slow)) continue;
    Family family(row.name);
    family.run(row.name, [&] { row.run(family, subject); });
    all_passed = family.finish() && all_passed;
    ++ran;
  }
  USER_CHECK(ran > 0, "[--family] there is no such family");
  return all_passed ? 0 : 1;
}

}  // namespace
}  // namespace weft::parity

int main(int argc, char** argv) {
  return weft::guarded(std::cerr, [&] { return weft::parity::check_parity(argc, argv); });
}
