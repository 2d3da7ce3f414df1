#include "tests/parity.h"

#include <iostream>

#include <fmt/core.h>

#include "base/files.h"

namespace weft::parity {

void Family::check(const std::string& what, bool passed, const std::string& detail) {
  ++(passed ? passed_ : failed_);
  if (!passed) std::cout << name_ << " failed: " << what << (detail.empty() ? "" : ": " + detail) << "\n";
}

void Family::expect_ids(const std::string& what, const std::vector<int>& came, const std::vector<int>& wanted) {
  check(what, came == wanted, fmt::format("wanted {}, but came {}", Json(wanted).dump(), Json(came).dump()));
}

void Family::expect_text(const std::string& what, const std::string& came, const std::string& wanted) {
  const auto shown = [](const std::string& text) {
    return Json(text).dump(-1, ' ', true, Json::error_handler_t::replace);
  };
  check(what, came == wanted, fmt::format("wanted {}, but came {}", shown(wanted), shown(came)));
}

void Family::run(const std::string& what, const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& error) {
    check(what, false, error.what());
  }
}

void Family::note(const std::string& text) const { std::cout << name_ << ": " << text << "\n"; }

bool Family::finish() const {
  std::cout << name_ << ": " << passed_ << " passed, " << failed_ << " failed" << std::endl;
  return failed_ == 0 && passed_ > 0;
}

Json read_json(const Subject& subject, const std::string& name) {
  constexpr std::size_t kMaxFileBytes = 64u << 20;
  return Json::parse(read_file(subject.folder + "/" + name, kMaxFileBytes));
}

std::vector<Json> read_cases(const Subject& subject, const std::string& name) {
  return read_json(subject, name).at("cases").get<std::vector<Json>>();
}

std::vector<int> ids_of(const Json& list) { return list.get<std::vector<int>>(); }

}  // namespace weft::parity
