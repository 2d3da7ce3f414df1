#include <algorithm>
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "tests/capi/handles.h"

namespace weft::graph_test {

constexpr const char* kGraph =
    "graph g(%x: f32[s0, 3], %w: f32[3]) stage=traced where s0 in [1, 8] {\n"
    "  %y = add(%x, %x)\n  %n = rms_norm(%y, %w, epsilon=1e-05)\n  return %y, %n\n}";

// A view of plain memory; without strides, row-major.
weft_tensor_view view_of(void* data, const char* dtype, const std::vector<std::int64_t>& size,
                         std::vector<std::int64_t> stride = {}) {
  if (stride.empty()) {
    stride.resize(size.size());
    std::int64_t next = 1;
    for (std::size_t i = size.size(); i-- > 0; next *= size[i]) stride[i] = next;
  }
  weft_tensor_view view{};
  view.data = data;
  view.dtype = dtype;
  view.rank = static_cast<std::int32_t>(size.size());
  std::copy(size.begin(), size.end(), view.size);
  std::copy(stride.begin(), stride.end(), view.stride);
  return view;
}

using Views = std::vector<weft_tensor_view>;

int run(weft_graph* graph, const Views& inputs, const Views& results, weft_error* error = nullptr) {
  return weft_graph_run(graph, inputs.data(), inputs.size(), results.data(), results.size(), error);
}

// Its two results for x [rows, 3] and w, as [y..., n...].
std::vector<float> values_of(weft_graph* graph, std::vector<float> x, std::vector<float> w) {
  const auto rows = static_cast<std::int64_t>(x.size() / 3);
  std::vector<float> results(2 * x.size());
  weft_error error;
  EXPECT_EQ(
      run(graph, {view_of(x.data(), "f32", {rows, 3}), view_of(w.data(), "f32", {3})},
          {view_of(results.data(), "f32", {rows, 3}), view_of(results.data() + x.size(), "f32", {rows, 3})}, &error),
      WEFT_SUCCESS)
      << error.text;
  return results;
}

TEST(CGraph, ComputesWhatItsTextSaysCompiledAndEagerly) {
  const OwnedContext context, eager(OptionPairs{{"enforce-eager", ""}}),
      stopped(OptionPairs{{"compile-to", "lowered"}}), device(OptionPairs{{"device", "fake-cuda"}});
  const OwnedGraph compiled(context, kGraph);
  const std::vector<float> x{1, 2, 3, -4, 5, 6}, w{1, 0.5F, 2};
  const std::vector<float> values = values_of(compiled, x, w);
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(values[i], 2 * x[i]);
    const float* row = x.data() + i / 3 * 3;
    const float mean = 4 * (row[0] * row[0] + row[1] * row[1] + row[2] * row[2]) / 3;
    EXPECT_NEAR(values[6 + i], 2 * x[i] / std::sqrt(mean + 1e-5F) * w[i % 3], 1e-6F);
  }
  EXPECT_EQ(values_of(OwnedGraph(eager, kGraph), x, w), values);
  EXPECT_EQ(values_of(OwnedGraph(stopped, kGraph), x, w), values);
  const OwnedGraph on_device(device, kGraph);
  EXPECT_EQ(values_of(on_device, x, w), values);
  EXPECT_EQ(values_of(on_device, {}, w), std::vector<float>());
  EXPECT_EQ(values_of(compiled, {7, 8, 9}, w).size(), 6U) << "another number of rows";
  EXPECT_EQ(values_of(compiled, x, w), values);
  EXPECT_EQ(values_of(compiled, {}, w), std::vector<float>()) << "no rows, no memory";
}

TEST(CGraph, ReadsAndWritesStridedMemory) {
  const OwnedContext context;
  const OwnedGraph graph(context, kGraph);
  // x is stored by columns, w in every second element; y is written by columns, n with gaps between its rows.
  float x[] = {1, -4, 2, 5, 3, 6}, w[] = {1, 99, 0.5F, 99, 2};
  float y[6] = {}, n[8] = {77, 77, 77, 77, 77, 77, 77, 77};
  weft_error error;
  ASSERT_EQ(run(graph, {view_of(x, "f32", {2, 3}, {1, 2}), view_of(w, "f32", {3}, {2})},
                {view_of(y, "f32", {2, 3}, {1, 2}), view_of(n, "f32", {2, 3}, {4, 1})}, &error),
            WEFT_SUCCESS)
      << error.text;
  const std::vector<float> plain = values_of(graph, {1, 2, 3, -4, 5, 6}, {1, 0.5F, 2});
  for (std::size_t row = 0; row < 2; ++row)
    for (std::size_t column = 0; column < 3; ++column) {
      EXPECT_EQ(y[column * 2 + row], plain[row * 3 + column]);
      EXPECT_EQ(n[row * 4 + column], plain[6 + row * 3 + column]);
    }
  EXPECT_EQ(n[3], 77);
  EXPECT_EQ(n[7], 77);
  EXPECT_EQ(w[1], 99);
}

TEST(CGraph, ReadsOneRowForAll) {
  const OwnedContext context;
  const OwnedGraph graph(context, kGraph);
  float x[] = {1, 2, 3}, w[] = {1, 1, 1}, y[6], n[6];
  ASSERT_EQ(run(graph, {view_of(x, "f32", {2, 3}, {0, 1}), view_of(w, "f32", {3})},
                {view_of(y, "f32", {2, 3}), view_of(n, "f32", {2, 3})}),
            WEFT_SUCCESS);
  EXPECT_EQ(std::vector<float>(y, y + 6), (std::vector<float>{2, 4, 6, 2, 4, 6}));
}

TEST(CGraph, OtherDtypesPassThrough) {
  const OwnedContext context;
  const OwnedGraph graph(context,
                         "graph g(%table: bf16[4, 2], %ids: i64[s0]) stage=traced where s0 in [1, 4] {\n"
                         "  %rows = embedding(%ids, %table, dtype=bf16)\n  return %rows\n}");
  std::uint16_t table[] = {0, 1, 2, 3, 4, 5, 6, 7}, rows[6] = {};
  std::int64_t ids[] = {3, 0, 1};
  weft_error error;
  ASSERT_EQ(
      run(graph, {view_of(table, "bf16", {4, 2}), view_of(ids, "i64", {3})}, {view_of(rows, "bf16", {3, 2})}, &error),
      WEFT_SUCCESS)
      << error.text;
  EXPECT_EQ(std::vector<std::uint16_t>(rows, rows + 6), (std::vector<std::uint16_t>{6, 7, 0, 1, 2, 3}));
}

TEST(CGraph, ResultsInTheMemoryOfInputsDoNotDisturbEachOther) {
  const OwnedContext context;
  // Its results are its inputs, crossed.
  const OwnedGraph graph(context, "graph g(%a: f32[3], %b: f32[3]) stage=traced {\n  return %b, %a\n}");
  float a[] = {1, 2, 3}, b[] = {4, 5, 6};
  const Views both{view_of(a, "f32", {3}), view_of(b, "f32", {3})};
  weft_error error;
  ASSERT_EQ(run(graph, both, both, &error), WEFT_SUCCESS) << error.text;
  EXPECT_EQ(std::vector<float>(a, a + 3), (std::vector<float>{4, 5, 6}));
  EXPECT_EQ(std::vector<float>(b, b + 3), (std::vector<float>{1, 2, 3}));
}

TEST(CGraph, WhatIsGivenAwayMayHoldTheResults) {
  const char* text =
      "graph g(%x: f32[s0, 3], %r: f32[s0, 3], %w: f32[3]) stage=traced where s0 in [1, 8] {\n"
      "  %n, %sum = fused_add_rms_norm.maybe_inplace(%x, %r, %w, epsilon=1e-05)\n  return %n, %sum\n}";
  const float from_x[] = {1, 2, 3, -4, 5, 6}, from_r[] = {6, 5, 4, 3, 2, 1};
  float w[] = {1, 0.5F, 2};
  std::vector<std::vector<float>> answers;
  for (const char* eager : {"false", "true"})
    for (const bool in_place : {false, true}) {
      const OwnedContext context(OptionPairs{{"enforce-eager", eager}});
      const OwnedGraph graph(context, text);
      float x[6], r[6], n[6], sum[6];
      std::copy(from_x, from_x + 6, x);
      std::copy(from_r, from_r + 6, r);
      const auto plain = [](float* data) { return view_of(data, "f32", {2, 3}); };
      // If the kernel works in place, the buffers are swapped: the norm is stored where the residual was.
      weft_error error;
      ASSERT_EQ(run(graph, {plain(x), plain(r), view_of(w, "f32", {3})},
                    {plain(in_place ? r : n), plain(in_place ? x : sum)}, &error),
                WEFT_SUCCESS)
          << error.text;
      answers.emplace_back(in_place ? r : n, (in_place ? r : n) + 6);
      answers.back().insert(answers.back().end(), in_place ? x : sum, (in_place ? x : sum) + 6);
    }
  EXPECT_EQ(std::vector<float>(answers[0].begin() + 6, answers[0].end()), (std::vector<float>{7, 7, 7, -1, 7, 7}));
  for (const std::vector<float>& answer : answers) EXPECT_EQ(answer, answers[0]);
}

TEST(CGraph, DescribesItsInputsAndResults) {
  const OwnedContext context;
  const OwnedGraph graph(context, kGraph);
  EXPECT_EQ(json_of(weft_graph_describe, static_cast<weft_graph*>(graph)), nlohmann::json::parse(R"({"name": "g",
              "inputs": [{"name": "x", "type": "f32[s0, 3]"}, {"name": "w", "type": "f32[3]"}],
              "results": [{"name": "y", "type": "f32[s0, 3]"}, {"name": "n", "type": "f32[s0, 3]"}]})"));
}

TEST(CGraph, SelectedImplsFollowThePriorities) {
  const OwnedContext context(OptionPairs{{"ir-op-priority.rms_norm", "reference"}}),
      eager(OptionPairs{{"enforce-eager", ""}});
  const nlohmann::json selected =
      json_of(weft_graph_selected_impls, static_cast<weft_graph*>(OwnedGraph(context, kGraph)));
  ASSERT_EQ(selected.size(), 1U);
  EXPECT_EQ(selected[0]["graph"], "g");
  EXPECT_EQ(selected[0]["range"], nlohmann::json({1, 8}));
  EXPECT_EQ(selected[0]["impls"]["rms_norm"], (nlohmann::json{{"n", "reference"}}));
  EXPECT_EQ(text_of(weft_graph_selected_impls, static_cast<weft_graph*>(OwnedGraph(eager, kGraph))), "[]");
}

TEST(CGraph, RefusesTextThatIsNoGraph) {
  const OwnedContext context;
  const auto breach = [&](const std::string& text, const std::string& part) {
    weft_graph* graph = nullptr;
    return breach_of_user_error(
        [&](weft_error* error) { return weft_graph_compile(context, text.c_str(), &graph, error); }, {part});
  };
  EXPECT_EQ(breach("graph g(", "weft_graph_compile"), "");
  EXPECT_EQ(breach("", "weft_graph_compile"), "");
  EXPECT_EQ(breach(std::string(kGraph) + "\n" + kGraph, "weft_graph_compile"), "");
  EXPECT_EQ(breach("graph g(%x: f32[3]) stage=traced {\n  %y: f32[3] = nge(%x)\n  return %y\n}", "nge"), "");
  EXPECT_EQ(breach("graph g(%x: f32[3]) stage=pure {\n  %y = add.maybe_inplace(%x, %x)\n  return %y\n}", "add"), "");
  EXPECT_EQ(breach("\xfe", "text must be UTF-8"), "");
}

TEST(CGraph, RefusesViewsThatDoNotFit) {
  const OwnedContext context;
  const OwnedGraph graph(context, kGraph);
  float x[24] = {}, w[3] = {}, y[24] = {};
  const weft_tensor_view good_x = view_of(x, "f32", {2, 3}), good_w = view_of(w, "f32", {3}),
                         good_y = view_of(y, "f32", {2, 3});
  const auto breach = [&](const Views& inputs, const Views& results, const std::vector<std::string>& parts) {
    return breach_of_user_error([&](weft_error* error) { return run(graph, inputs, results, error); }, parts);
  };
  const auto of_x = [&](const weft_tensor_view& bad, const std::vector<std::string>& parts) {
    return breach({bad, good_w}, {good_y, good_y}, parts);
  };
  EXPECT_EQ(breach({good_x}, {good_y, good_y}, {"g has 2 inputs, but 1 are given"}), "");
  EXPECT_EQ(breach({good_x, good_w}, {good_y}, {"g has 2 results, but memory for 1 is given"}), "");
  EXPECT_EQ(of_x(view_of(x, "f31", {2, 3}), {"input x", "\"f31\""}), "");
  EXPECT_EQ(of_x(view_of(x, nullptr, {2, 3}), {"input x", "dtype must be given"}), "");
  EXPECT_EQ(of_x(view_of(x, "f16", {2, 3}), {"input x must be f32[s0, 3], but is f16[2, 3]"}), "");
  EXPECT_EQ(of_x(view_of(x, "f32", {2, 4}), {"input x must be f32[s0, 3], but is f32[2, 4]"}), "");
  EXPECT_EQ(of_x(view_of(x, "f32", {6}), {"input x must be"}), "");
  EXPECT_EQ(of_x(view_of(x, "f32", {9, 3}), {"s0 must be in [1, 8], but is 9"}), "");
  EXPECT_EQ(of_x(view_of(nullptr, "f32", {2, 3}), {"input x", "data must be given"}), "");
  EXPECT_EQ(of_x(view_of(reinterpret_cast<char*>(x) + 1, "f32", {2, 3}), {"input x", "aligned to 4 bytes"}), "");
  EXPECT_EQ(of_x(view_of(x, "f32", {2, -3}, {3, 1}), {"input x", "must not be negative"}), "");
  EXPECT_EQ(of_x(view_of(x, "f32", {2, 3}, {-3, 1}), {"input x", "must not be negative"}), "");
  EXPECT_EQ(of_x(view_of(x, "f32", {2, 3}, {INT64_MAX, 1}), {"input x"}), "");
  weft_tensor_view bad_rank = good_x;
  for (const std::int32_t rank : {-1, 7, INT32_MAX}) {
    bad_rank.rank = rank;
    EXPECT_EQ(of_x(bad_rank, {"input x", "rank must be from 0 to 6"}), "");
  }
  EXPECT_EQ(breach({good_x, good_w}, {good_y, view_of(y, "f32", {3, 3})},
                   {"result 1", "must be f32[2, 3], but is f32[3, 3]"}),
            "");
  EXPECT_EQ(breach({good_x, good_w}, {view_of(y, "f32", {2, 3}, {0, 1}), good_y},
                   {"result 0", "must have its own memory for each element, but dim 0 has 2 with stride 0"}),
            "");
  EXPECT_EQ(breach({good_x, good_w}, {view_of(nullptr, "f32", {2, 3}), good_y}, {"result 0", "data must be given"}),
            "");
}

TEST(CGraph, InputsThatAreNoTensorsAreRefused) {
  const OwnedContext context;
  const OwnedGraph graph(context, R"(graph g(%k: f32[s0, 1, 8], %v: f32[s0, 1, 8],
      %pages: kv[f32, block=16, heads=1, head_dim=8], %slots: i64[s0]) stage=traced where s0 in [1, 4] {
  %new = kv_cache_update.maybe_inplace(%k, %v, %pages, %slots)
  return %new
})");
  float k[8] = {};
  std::int64_t slot = 0;
  const weft_tensor_view row = view_of(k, "f32", {1, 1, 8});
  EXPECT_EQ(breach_of_user_error(
                [&](weft_error* error) {
                  return run(graph, {row, row, row, view_of(&slot, "i64", {1})}, {row}, error);
                },
                {"input pages is of type kv[f32", "only tensors can be given"}),
            "");
}

TEST(CGraph, RefusesNull) {
  const OwnedContext context;
  const OwnedGraph graph(context, kGraph);
  weft_graph* made = nullptr;
  char* json = nullptr;
  float data[6] = {};
  const Views two(2, view_of(data, "f32", {2, 3}));
  const std::vector<std::pair<std::string, std::function<int(weft_error*)>>> calls = {
      {"context", [&](weft_error* error) { return weft_graph_compile(nullptr, kGraph, &made, error); }},
      {"text", [&](weft_error* error) { return weft_graph_compile(context, nullptr, &made, error); }},
      {"graph", [&](weft_error* error) { return weft_graph_compile(context, kGraph, nullptr, error); }},
      {"graph", [&](weft_error* error) { return weft_graph_describe(nullptr, &json, error); }},
      {"json", [&](weft_error* error) { return weft_graph_describe(graph, nullptr, error); }},
      {"graph", [&](weft_error* error) { return weft_graph_selected_impls(nullptr, &json, error); }},
      {"json", [&](weft_error* error) { return weft_graph_selected_impls(graph, nullptr, error); }},
      {"graph", [&](weft_error* error) { return weft_graph_run(nullptr, two.data(), 2, two.data(), 2, error); }},
      {"inputs", [&](weft_error* error) { return weft_graph_run(graph, nullptr, 2, two.data(), 2, error); }},
      {"results", [&](weft_error* error) { return weft_graph_run(graph, two.data(), 2, nullptr, 2, error); }},
  };
  for (const auto& [argument, call] : calls)
    EXPECT_EQ(breach_of_user_error(call, {"] " + argument + " must be given, but is null"}), "");
  EXPECT_EQ(weft_graph_close(nullptr, nullptr), WEFT_SUCCESS);
}

}  // namespace weft::graph_test
