#pragma once

// The comparisons of check_parity with other engines, one family of cases each; the program is in check_parity.cpp.

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "io/checkpoint.h"
#include "io/tokenizer.h"

namespace weft::parity {

using Json = nlohmann::ordered_json;

// The cases of one family: counts those that pass and prints those that do not.
class Family {
 public:
  explicit Family(std::string name) : name_(std::move(name)) {}

  void check(const std::string& what, bool passed, const std::string& detail = "");
  void expect_ids(const std::string& what, const std::vector<int>& came, const std::vector<int>& wanted);
  void expect_text(const std::string& what, const std::string& came, const std::string& wanted);
  // Runs one case; an exception is its failure.
  void run(const std::string& what, const std::function<void()>& body);
  void note(const std::string& text) const;
  // Prints the counts. Whether all passed.
  bool finish() const;

 private:
  std::string name_;
  int passed_ = 0;
  int failed_ = 0;
};

// The inputs of every family.
struct Subject {
  std::string folder;
  Checkpoint checkpoint;
  Tokenizer tokenizer;
};

// A file of the folder.
Json read_json(const Subject& subject, const std::string& name);
std::vector<Json> read_cases(const Subject& subject, const std::string& name);
std::vector<int> ids_of(const Json& list);

// parity_text.cpp
void check_tokenizer(Family& family, const Subject& subject);
void check_detokenizer(Family& family, const Subject& subject);
void check_chat(Family& family, const Subject& subject);
void check_templates(Family& family, const Subject& subject);
// parity_model.cpp; `exact`: with f32 activations, as the references, else with the fast ones.
void check_forward(Family& family, const Subject& subject, bool exact);
void check_perplexity(Family& family, const Subject& subject, bool exact);
// parity_sampling.cpp
void check_sampling(Family& family, const Subject& subject);

}  // namespace weft::parity
