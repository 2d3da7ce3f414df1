#include "runtime/launch_graph_dispatcher.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace weft::launch_graph_dispatcher_test {

using Batch = LaunchGraphDispatcher::Batch;
using Dispatch = LaunchGraphDispatcher::Dispatch;

LaunchGraphDispatcher dispatcher(ReplayMode mode, std::int64_t max_num_seqs = 8) {
  return LaunchGraphDispatcher({.mode = mode, .sizes = {1, 2, 4, 8, 16}, .max_num_seqs = max_num_seqs});
}

Dispatch uncaptured(std::int64_t tokens) { return {ReplayMode::none, {.num_tokens = tokens}}; }

TEST(LaunchGraphDispatcher, PadsToTheNextLargerSize) {
  const LaunchGraphDispatcher full = dispatcher(ReplayMode::full);
  EXPECT_EQ(full.max_size(), 16);
  const std::int64_t padded[] = {0, 1, 2, 4, 4, 8, 8, 8, 8, 16, 16, 16, 16, 16, 16, 16, 16};
  for (std::int64_t tokens = 0; tokens <= 16; ++tokens) EXPECT_EQ(full.padded(tokens), padded[tokens]) << tokens;
}

TEST(LaunchGraphDispatcher, GivesAFullCaptureThePaddedCountAndItsRequests) {
  const LaunchGraphDispatcher full = dispatcher(ReplayMode::full);
  EXPECT_EQ(full.dispatch({.num_tokens = 3}),
            (Dispatch{ReplayMode::full, {.num_tokens = 4, .num_reqs = 4, .uniform = false}}));
  // Decode batches are handled separately only in pair modes.
  EXPECT_EQ(full.dispatch({.num_tokens = 3, .uniform_decode = true}), full.dispatch({.num_tokens = 3}));
  EXPECT_EQ(full.dispatch({.num_tokens = 16}), (Dispatch{ReplayMode::full, {.num_tokens = 16, .num_reqs = 8}}));
}

TEST(LaunchGraphDispatcher, LeavesTheRequestsOutOfPiecewiseCaptures) {
  EXPECT_EQ(dispatcher(ReplayMode::piecewise).dispatch({.num_tokens = 5}),
            (Dispatch{ReplayMode::piecewise, {.num_tokens = 8, .num_reqs = std::nullopt}}));
}

TEST(LaunchGraphDispatcher, LeavesWhatHasNoCaptureAsItIs) {
  for (const ReplayMode mode : {ReplayMode::piecewise, ReplayMode::full, ReplayMode::full_and_piecewise}) {
    EXPECT_EQ(dispatcher(mode).dispatch({.num_tokens = 17}), uncaptured(17));
    EXPECT_EQ(dispatcher(mode).dispatch({.num_tokens = 0}), uncaptured(0));
  }
  EXPECT_EQ(dispatcher(ReplayMode::none).dispatch({.num_tokens = 4}), uncaptured(4));
  EXPECT_EQ(LaunchGraphDispatcher().dispatch({.num_tokens = 4}), uncaptured(4));
  EXPECT_EQ(LaunchGraphDispatcher({.mode = ReplayMode::full, .sizes = {}}).dispatch({.num_tokens = 1}), uncaptured(1));
}

TEST(LaunchGraphDispatcher, GivesUniformBatchesAFullCaptureOfTheirOwn) {
  const LaunchGraphDispatcher pair = dispatcher(ReplayMode::full_and_piecewise);
  EXPECT_EQ(pair.dispatch({.num_tokens = 3, .uniform_decode = true}),
            (Dispatch{ReplayMode::full, {.num_tokens = 4, .num_reqs = 4, .uniform = true}}));
  EXPECT_EQ(pair.dispatch({.num_tokens = 3}), (Dispatch{ReplayMode::piecewise, {.num_tokens = 4}}));
}

TEST(LaunchGraphDispatcher, RunsAUniformBatchOfTooManyRequestsPiecewise) {
  const LaunchGraphDispatcher pair = dispatcher(ReplayMode::full_and_piecewise, 8);
  EXPECT_EQ(pair.dispatch({.num_tokens = 8, .uniform_decode = true}).mode, ReplayMode::full);
  EXPECT_EQ(pair.dispatch({.num_tokens = 9, .uniform_decode = true}),
            (Dispatch{ReplayMode::piecewise, {.num_tokens = 16}}));
}

TEST(LaunchGraphDispatcher, RunsMixedBatchesUncapturedWithFullDecodeOnly) {
  const LaunchGraphDispatcher pair = dispatcher(ReplayMode::full_decode_only);
  EXPECT_EQ(pair.dispatch({.num_tokens = 3}), uncaptured(3));
  EXPECT_EQ(pair.dispatch({.num_tokens = 3, .uniform_decode = true}).mode, ReplayMode::full);
}

TEST(LaunchGraphDispatcher, FallsBackOverWhatIsNotAllowed) {
  const LaunchGraphDispatcher pair = dispatcher(ReplayMode::full_and_piecewise);
  const Batch decode{.num_tokens = 3, .uniform_decode = true};
  constexpr ReplayMode kNotFull[] = {ReplayMode::none, ReplayMode::piecewise}, kNone[] = {ReplayMode::none},
                       kFull[] = {ReplayMode::full};
  EXPECT_EQ(pair.dispatch(decode, kNotFull), (Dispatch{ReplayMode::piecewise, {.num_tokens = 4}}));
  EXPECT_EQ(pair.dispatch(decode, kNone), uncaptured(3));
  EXPECT_EQ(pair.dispatch(decode, kFull).mode, ReplayMode::full);
  EXPECT_THROW(pair.dispatch({.num_tokens = 3}, kFull), InternalError);
  EXPECT_THROW(pair.dispatch(decode, {}), InternalError);
}

TEST(LaunchGraphDispatcher, CountsTheTokensThatARequestHasInADecodeStep) {
  const LaunchGraphDispatcher pair(
      {.mode = ReplayMode::full_and_piecewise, .sizes = {3, 6, 9, 12}, .max_num_seqs = 3, .decode_query_len = 3});
  EXPECT_EQ(pair.dispatch({.num_tokens = 6, .uniform_decode = true}),
            (Dispatch{ReplayMode::full, {.num_tokens = 6, .num_reqs = 2, .uniform = true}}));
  EXPECT_EQ(pair.dispatch({.num_tokens = 12, .uniform_decode = true}).mode, ReplayMode::piecewise);
  EXPECT_THROW(LaunchGraphDispatcher(
                   {.mode = ReplayMode::full_and_piecewise, .sizes = {4}, .max_num_seqs = 8, .decode_query_len = 3}),
               UserError);
}

TEST(LaunchGraphDispatcher, KeepsAdaptersApart) {
  LaunchGraphSettings settings{.mode = ReplayMode::piecewise, .sizes = {4}, .max_num_seqs = 8, .max_loras = 5};
  const auto loras_of = [&](std::int64_t active) {
    const Dispatch dispatch = LaunchGraphDispatcher(settings).dispatch({.num_tokens = 3, .num_active_loras = active});
    return dispatch.mode == ReplayMode::none ? -1 : dispatch.descriptor.num_active_loras;
  };
  EXPECT_EQ(loras_of(0), 0);
  EXPECT_EQ(loras_of(1), 6);
  settings.specialize_lora_count = true;  // 1, 2, 4 and 6 are captured
  EXPECT_EQ(loras_of(3), 4);
  EXPECT_EQ(loras_of(5), 6);
  EXPECT_EQ(loras_of(7), -1);
  settings.specialize_lora = false;
  EXPECT_EQ(loras_of(0), -1);
  EXPECT_EQ(loras_of(2), 2);
}

TEST(LaunchGraphDispatcher, CapturesWhatMostStepsRunWithFirst) {
  const LaunchGraphDispatcher pair({.mode = ReplayMode::full_and_piecewise, .sizes = {4, 1, 4, 16}, .max_num_seqs = 4});
  std::vector<std::pair<ReplayMode, std::int64_t>> order;
  for (const Dispatch& capture : pair.captures()) order.emplace_back(capture.mode, capture.descriptor.num_tokens);
  EXPECT_EQ(order, (std::vector<std::pair<ReplayMode, std::int64_t>>{{ReplayMode::full, 1},
                                                                     {ReplayMode::full, 4},
                                                                     {ReplayMode::piecewise, 1},
                                                                     {ReplayMode::piecewise, 16},
                                                                     {ReplayMode::piecewise, 4}}));
  // Each finds itself again.
  for (const Dispatch& capture : pair.captures())
    EXPECT_EQ(
        pair.dispatch({.num_tokens = capture.descriptor.num_tokens, .uniform_decode = capture.descriptor.uniform}),
        capture);
}

TEST(LaunchGraphDispatcher, RefusesACompileSizeThatPaddingWouldChange) {
  EXPECT_THROW(LaunchGraphDispatcher({.mode = ReplayMode::full, .sizes = {4, 8}, .compile_sizes = {5}}), UserError);
  EXPECT_EQ(LaunchGraphDispatcher({.mode = ReplayMode::full, .sizes = {4, 8}, .compile_sizes = {4, 9}}).max_size(), 8);
}

}  // namespace weft::launch_graph_dispatcher_test
