#pragma once

// Random graphs for RapidCheck: properties take a GraphRecipe and build it. Shrinks to fewer nodes and first choices.

#include "tests/property.h"
#include "tests/random_graph.h"

namespace rc {

template <>
struct Arbitrary<weft::GraphRecipe> {
  static Gen<weft::GraphRecipe> arbitrary() {
    constexpr int kChoices = 5040;  // divides evenly among every small count of choices
    const auto choice = weft::number_in(0, kChoices);
    const auto node = gen::build<weft::NodeRecipe>(
        gen::set(&weft::NodeRecipe::op, choice), gen::set(&weft::NodeRecipe::first, choice),
        gen::set(&weft::NodeRecipe::second, choice), gen::set(&weft::NodeRecipe::detail, choice));
    return gen::build<weft::GraphRecipe>(gen::set(&weft::GraphRecipe::inputs, choice),
                                         gen::set(&weft::GraphRecipe::donated, weft::number_in(0, 8)),
                                         gen::set(&weft::GraphRecipe::nodes, weft::at_most(40, node)),
                                         gen::set(&weft::GraphRecipe::results, weft::at_most(4, choice)));
  }
};

}  // namespace rc
