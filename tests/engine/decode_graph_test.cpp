// On a device, a step that decodes one token of each sequence is two graphs, one for the forward with attention and one
// for the head, for all sequences and lengths.

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "base/error.h"
#include "builtin/context.h"
#include "builtin/cuda_device.h"
#include "builtin/models.h"
#include "tests/engine/tiny_model.h"

namespace weft::decode_graph_test {

using Settings = std::vector<std::pair<std::string, std::string>>;

class DecodeGraph : public ::testing::Test {
 protected:
  DecodeGraph() : path_(write_tiny_model(folder_)) {}

  std::unique_ptr<Engine> engine(Settings settings, std::uint64_t seed = 1) {
    Options options;
    apply_environment(options, process_environment());
    set_option(options, "device", "fake-cuda", "test");
    set_option(options, "max-num-seqs", "5", "test");
    set_option(options, "block-size", "4", "test");
    for (const auto& [name, value] : settings) set_option(options, name, value, "test");
    const auto context = make_context(options);
    context->stream_device = open_fake_cuda({DeviceType::fake_cuda, 0}, {.seed = seed});
    device_ = context->stream_device.get();
    return std::make_unique<Engine>(context, Checkpoint::open(path_), make_model_registry());
  }

  // The work of the device so far: launches of graphs, and everything else: single launches, captures, and calls of its
  // library.
  struct Given {
    std::int64_t graphs, others, captures;
    bool operator==(const Given&) const = default;
  };
  Given given() const {
    return {device_->graph_builder().counts().launches, device_->queue().launches() + device_->queue().library_calls(),
            device_->graph_builder().counts().captures};
  }

  TemporaryFolder folder_;
  std::string path_;
  cuda::StreamDevice* device_ = nullptr;  // of the engine that was made last
};

SamplingParameters tokens(int count) { return {.temperature = 0, .max_tokens = count, .ignore_end = true, .stop = {}}; }

// Five prompts that begin and end in different steps, so that 1, 2, 3 and 5 sequences share one, and that pass borders
// of pages of 4 tokens.
std::vector<std::vector<int>> come_and_go(Engine& engine, const std::function<void(int events)>& after_step = {}) {
  std::vector<std::vector<int>> tokens(5);
  std::map<int, std::size_t> places;
  const auto add = [&](std::size_t i, int length, int count) {
    places[engine.add(some_ids(length, static_cast<int>(i)), decode_graph_test::tokens(count))] = i;
  };
  add(0, 3, 22);
  for (int step = 0; !engine.is_idle(); ++step) {
    if (step == 4) add(1, 1, 14);
    if (step == 7) add(2, 6, 7);
    if (step == 9) {
      add(3, 2, 4);
      add(4, 5, 5);
    }
    int events = 0;
    for (const RequestEvent& event : engine.step()) {
      tokens[places.at(event.request)].push_back(event.token);
      ++events;
    }
    if (after_step) after_step(events);
  }
  return tokens;
}

TEST_F(DecodeGraph, AndThatOfTheHeadAreAllThatAStepLaunches) {
  const auto engine = this->engine({{"dtype", "bf16"}, {"forbid-lazy", ""}});
  engine->add(some_ids(6), tokens(20));
  engine->step();  // the prompt
  for (int step = 0; step < 19; ++step) {
    const Given before = given();
    engine->step();
    EXPECT_EQ(given(), (Given{before.graphs + 2, before.others, before.captures})) << step;
  }
  EXPECT_TRUE(engine->is_idle());
  for (const Plan* plan : {engine->runner().forward_plan(), engine->runner().head_plan()})
    for (const PlanStep& step : plan->steps) EXPECT_TRUE(step.kernel->launches) << step.op << ", by the host";
}

TEST_F(DecodeGraph, ServesSequencesThatComeAndGoWithTheBitsOfStepsOneByOne) {
  for (const char* dtype : {"bf16", "f32"}) {
    const auto wanted = come_and_go(*engine({{"dtype", dtype}, {"cc.cudagraph_mode", "NONE"}}));
    std::uint64_t seed = 1;
    for (const Settings& how : {Settings{{"cc.cudagraph_capture_sizes", "1,2,4,5,8"}, {"check-replay", ""}},
                                {{"cc.cudagraph_capture_sizes", "1,4,8"}},
                                {{"cc.cudagraph_capture_sizes", "3"}},
                                {{"cc.cudagraph_capture_sizes", "5"}},
                                {{"cc.cudagraph_mode", "FULL_DECODE_ONLY"}},
                                {{"capture", "lazy"}}}) {
      Settings all{{"dtype", dtype}};
      all.insert(all.end(), how.begin(), how.end());
      EXPECT_EQ(come_and_go(*engine(all, ++seed)), wanted) << dtype << " " << how[0].first << " " << how[0].second;
    }
  }
}

// If ranges have Plans of their own, the head reads the results of another one in each.
TEST_F(DecodeGraph, CapturesNothingAfterReadyHoweverManyPlansThereAre) {
  const auto wanted = come_and_go(*engine({{"cc.cudagraph_mode", "NONE"}}));
  for (const Settings& settings :
       {Settings{{"cc.compile_ranges_split_points", "2,4"}, {"cc.compile_sizes", "1"}}, Settings{}}) {
    Settings all{{"forbid-lazy", ""}, {"cc.cudagraph_capture_sizes", "1,2,4,5,8,16"}};
    all.insert(all.end(), settings.begin(), settings.end());
    const auto engine = this->engine(all);
    const std::int64_t captures = given().captures;
    EXPECT_EQ(come_and_go(*engine), wanted);
    EXPECT_EQ(given().captures, captures);
  }
}

// Two for each step without a prompt; a step with a prompt uses its three pieces, or none if it is too long.
TEST_F(DecodeGraph, IsLaunchedForEveryCountOfSequences) {
  const auto engine = this->engine({{"cc.cudagraph_capture_sizes", "2,4,5"}, {"forbid-lazy", ""}});
  std::int64_t before = given().graphs;
  std::map<int, std::set<std::int64_t>> launched;  // by how many sequences were given a token
  come_and_go(*engine, [&](int events) {
    launched[events].insert(given().graphs - before);
    before = given().graphs;
  });
  EXPECT_EQ(launched,
            (std::map<int, std::set<std::int64_t>>{{1, {2, 3}}, {2, {2}}, {3, {0, 2}}, {4, {2}}, {5, {0, 2}}}));
}

// A sequence of one token that is not the last one of its prompt shares a step with one that generates.
TEST_F(DecodeGraph, GivesTheLogitsOfTheRowsThatWantThem) {
  const auto tokens_of = [](Engine& engine) {
    std::map<int, std::vector<int>> all;
    engine.add(some_ids(2), tokens(9));
    engine.step();
    engine.add(some_ids(9, 1), tokens(3));  // in chunks of 1, together with the other's token
    while (!engine.is_idle())
      for (const RequestEvent& event : engine.step()) all[event.request].push_back(event.token);
    return all;
  };
  const Settings chunks{{"max-num-batched-tokens", "2"}};
  Settings uncaptured = chunks;
  uncaptured.emplace_back("cc.cudagraph_mode", "NONE");
  EXPECT_EQ(tokens_of(*engine(chunks)), tokens_of(*engine(uncaptured)));
}

}  // namespace weft::decode_graph_test
