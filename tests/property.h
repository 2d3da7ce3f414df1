#pragma once

// Properties under RapidCheck: a law, and generators of its inputs. A failing case is shrunk and printed.
//
//   check_property(300, [](const GraphRecipe& recipe) { RC_ASSERT(display(...) == ...); });
//
// RC_PARAMS="seed=7 max_success=1000" draws other cases, ten times the number.

#include <iostream>
#include <sstream>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace weft {

// Fails the running test with the smallest found case for which `property` is false; prints the number of cases that
// passed.
template <class Property>
void check_property(int cases, Property&& property) {
  const testing::TestInfo& test = *testing::UnitTest::GetInstance()->current_test_info();
  rc::detail::TestMetadata metadata;
  metadata.id = std::string(test.test_suite_name()) + "/" + test.name();
  metadata.description = test.name();
  rc::detail::TestParams parameters = rc::detail::configuration().testParams;
  constexpr int kDefaultCases = 100;  // RapidCheck's max_success
  parameters.maxSuccess = cases * parameters.maxSuccess / kDefaultCases;
  const auto result = rc::detail::checkTestable(std::forward<Property>(property), metadata, parameters);
  rc::detail::SuccessResult success;
  if (result.match(success)) {
    std::cout << "count: " << metadata.id << " held for " << success.numSuccess << " cases\n";
    EXPECT_EQ(success.numSuccess, parameters.maxSuccess);
    return;
  }
  std::ostringstream message;
  rc::detail::printResultMessage(result, message);
  ADD_FAILURE() << message.str();
}

// A number in [lo, hi), for every size of the case; shrinks toward lo.
inline rc::Gen<int> number_in(int lo, int hi) { return rc::gen::resize(rc::kNominalSize, rc::gen::inRange(lo, hi)); }

// Up to `most` elements, fewer in the first cases; shrinks by leaving some out.
template <class T>
rc::Gen<std::vector<T>> at_most(int most, rc::Gen<T> element) {
  return rc::gen::scale(most / static_cast<double>(rc::kNominalSize),
                        rc::gen::container<std::vector<T>>(rc::gen::resize(rc::kNominalSize, std::move(element))));
}

}  // namespace weft
