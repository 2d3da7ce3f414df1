// weft_device_check on a fake device: its findings, its detection of seeded faults, and that it reports no time as
// measured.

#include "apps/device_check/device_check.h"

#include <array>
#include <limits>
#include <map>
#include <sstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "apps/device_check/difference.h"
#include "apps/device_check/phases.h"
#include "apps/device_check/program.h"
#include "apps/device_check/run_launch.h"
#include "apps/device_check/timings.h"
#include "base/error.h"
#include "base/files.h"
#include "tests/cuda/sample_launches.h"
#include "tests/thrown_message.h"

namespace weft::device_check_test {

using namespace device_check;

Report checked(std::vector<RecordedLaunch> launches) {
  Target target = Target::fake(1);
  return check_device(target, launches, "");
}

const Report& report_without_launches() {
  static const Report report = checked({});
  return report;
}

TEST(DeviceCheck, FindsEverySampleGoodInBothKindsOfMathematics) {
  const Report report = checked(sample_launches());
  EXPECT_TRUE(is_good(report)) << table_text(report);
  int reference = 0, device = 0;
  for (const KernelChecks& checks : report.kernels) {
    EXPECT_EQ(checks.absent, 0) << checks.kernel;
    EXPECT_GT(checks.passed, 0) << checks.kernel;
    reference += checks.kernel.ends_with("_reference");
    device += checks.kernel.ends_with("_device");
  }
  EXPECT_EQ(reference, device);
  EXPECT_GE(reference, 50);
}

TEST(DeviceCheck, TakesNoNumberForAnInfinity) {
  const auto bytes_of = [](const std::array<float, 2>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  };
  const float infinity = std::numeric_limits<float>::infinity();
  const RecordedBuffer wanted{.name = "result 0", .wanted = bytes_of({infinity, 1})};
  for (const Bound bound : {Bound::bits, Bound::last_places, Bound::of_largest}) {
    EXPECT_EQ(difference_of(wanted, bytes_of({infinity, 1}), bound, DType::f32), "");
    for (const float other : {-5.0f, -infinity})
      EXPECT_NE(difference_of(wanted, bytes_of({other, 1}), bound, DType::f32), "") << other;
  }
  EXPECT_EQ(difference_of(wanted, bytes_of({infinity, 1.0f + 0x1p-22f}), Bound::last_places, DType::f32), "");
}

TEST(DeviceCheck, FindsAWrongByteInAResult) {
  RecordedLaunch launch = launch_of("rms_norm_bf16_plain_reference");
  for (RecordedBuffer& buffer : launch.buffers)
    if (!buffer.wanted.empty()) buffer.wanted.back() ^= std::byte{0x40};
  const Report report = checked({launch});
  EXPECT_FALSE(is_good(report));
  const std::string text = table_text(report);
  EXPECT_NE(text.find("FAILED rms_norm_bf16_plain_reference, sample of"), std::string::npos) << text;
  EXPECT_NE(text.find("1 of "), std::string::npos) << text;
}

// Differences that the device's mathematics may have, reference math must not have in any bit.
TEST(DeviceCheck, AllowsAStepInTheLastPlaceToTheDevicesMathematicsAlone) {
  RecordedLaunch launch = launch_of("rms_norm_bf16_plain_reference");
  for (RecordedBuffer& buffer : launch.buffers)
    if (!buffer.wanted.empty()) buffer.wanted.front() ^= std::byte{1};
  const Report report = checked({launch});
  ASSERT_EQ(report.kernels.size(), 2u);
  EXPECT_EQ(report.kernels[0].kernel, "rms_norm_bf16_plain_device");
  EXPECT_EQ(report.kernels[0].failed.size(), 0u);
  EXPECT_EQ(report.kernels[1].failed.size(), 1u);
}

TEST(DeviceCheck, FindsThatAKernelWroteWhatItWasToRead) {
  RecordedLaunch launch = launch_of("rms_norm_f32_plain_reference");
  for (RecordedBuffer& buffer : launch.buffers) buffer.wanted.clear();
  EXPECT_NE(table_text(checked({launch})).find("result 0 was written"), std::string::npos);
}

TEST(DeviceCheck, ChecksWhatIsSelectedAndNamesTheRest) {
  const RecordedLaunch one = launch_of("rms_norm_bf16_plain_reference"),
                       other = launch_of("rms_norm_f32_plain_reference");
  const auto select = [&](const Selection& selection) {
    Target target = Target::fake(1);
    return check_device(target, std::vector{one, one, other}, "", selection);
  };
  const Report of_one = select({.parts = {"launches"}, .name = "bf16", .one_each = true});
  EXPECT_TRUE(is_good(of_one)) << table_text(of_one);
  ASSERT_EQ(of_one.kernels.size(), 2u);  // in both kinds of mathematics
  for (const KernelChecks& checks : of_one.kernels) EXPECT_EQ(checks.passed, 1) << checks.kernel;
  EXPECT_TRUE(of_one.faults.empty() && of_one.designs.empty() && of_one.timings.empty());
  EXPECT_NE(table_text(of_one).find("Not run: designs, timed launches once, timings, faults, kernel fault"),
            std::string::npos);
  const Report of_timings = select({.parts = {"timings"}});
  EXPECT_TRUE(of_timings.kernels.empty());
  EXPECT_FALSE(of_timings.timings.empty());
}

TEST(DeviceCheck, GoesOnWhenAKernelFails) {
  RecordedLaunch broken = launch_of("rms_norm_f32_plain_reference");
  broken.pointers.front().offset += 4;
  const Report report = checked({broken, launch_of("rms_norm_bf16_plain_reference")});
  EXPECT_FALSE(is_good(report));
  EXPECT_NE(table_text(report).find("at an address that is not a multiple"), std::string::npos);
  for (const KernelChecks& checks : report.kernels)
    EXPECT_EQ(checks.passed, checks.kernel.find("bf16") != std::string::npos ? 1 : 0) << checks.kernel;
}

// As a driver that refuses the device to a process after a kernel fault.
TEST(DeviceCheck, StopsWhereTheDeviceIsLost) {
  RecordedLaunch broken = launch_of("rms_norm_f32_plain_reference");
  broken.pointers.front().offset += 4;
  Target target = Target::fake(1, 0, false);
  const Report report = check_device(target, std::vector{broken, launch_of("rms_norm_bf16_plain_reference")}, "");
  EXPECT_FALSE(is_good(report));
  EXPECT_NE(report.lost.find("start the process again"), std::string::npos) << report.lost;
  ASSERT_EQ(report.kernels.size(), 1u);
  EXPECT_EQ(report.kernels[0].failed.size(), 1u);
  EXPECT_TRUE(report.designs.empty() && report.faults.empty());
  EXPECT_NE(table_text(report).find("FAILED, the device is lost: recorded launches"), std::string::npos);
}

TEST(DeviceCheck, TakesALostDeviceForAnAnswerToAKernelFault) {
  for (const char* part : {"kernel_fault", "graph_fault"}) {
    Target target = Target::fake(1, 0, false);
    const Report report = check_device(target, {}, "", {.parts = {part}});
    EXPECT_TRUE(is_good(report)) << table_text(report);
    ASSERT_EQ(report.faults.size(), 1u);
    EXPECT_NE(report.faults[0].text.find("start the process again"), std::string::npos) << report.faults[0].text;
  }
  // Later parts of the same process do not run, and do not count as passed.
  Target target = Target::fake(1, 0, false);
  const Report report = check_device(target, {}, "", {.parts = {"kernel_fault", "graph_fault"}});
  ASSERT_EQ(report.faults.size(), 2u);
  EXPECT_EQ(report.faults[1].outcome, Outcome::not_run);
}

// With two devices, while another one is current, and with a stream of its own.
TEST(DeviceCheck, LaunchesWhereTheBuffersLieAndLeavesWhatWasCurrent) {
  Target target = Target::fake(1, 1);
  cuda::Driver& driver = target.driver();
  const cuda::Stream of_second = target.stream(), of_first = driver.create_stream(0);
  driver.make_current(of_first);
  const auto expect_as_before = [&] {
    EXPECT_EQ(driver.current_device(), 0);
    EXPECT_EQ(driver.current_stream(0), of_first);
    EXPECT_EQ(driver.current_stream(1), of_second);
  };
  RecordedLaunch launch = launch_of("rms_norm_bf16_plain_reference");
  EXPECT_EQ(run_launch(target, launch, cuda::Mathematics::reference), "");
  expect_as_before();
  launch.pointers.front().offset += 2;
  const std::string message =
      message_of<DeviceError>([&] { run_launch(target, launch, cuda::Mathematics::reference); });
  EXPECT_TRUE(message.starts_with("[fake-cuda:1] cuStreamSynchronize")) << message;
  expect_as_before();
}

TEST(DeviceCheck, ComparesTheDesigns) {
  const Report& report = report_without_launches();
  ASSERT_EQ(report.designs.size(), 1u);
  EXPECT_EQ(report.designs[0].outcome, Outcome::passed) << report.designs[0].text;
}

TEST(DeviceCheck, ProvokesEveryFaultAndTheDeviceComputesAfterwards) {
  const Report& report = report_without_launches();
  EXPECT_GE(report.faults.size(), 26u);
  for (const CheckedCase& fault : report.faults)
    EXPECT_EQ(fault.outcome, Outcome::passed) << fault.name << ": " << fault.text;
  for (const char* of_input : {"misaligned pointer", "group that does not divide", "zero rows", "wrong dtype",
                               "layout with gaps", "columns before rows", "dtype of codes as input"}) {
    const auto fault = std::find_if(report.faults.begin(), report.faults.end(),
                                    [&](const CheckedCase& one) { return one.name == of_input; });
    ASSERT_NE(fault, report.faults.end()) << of_input;
    EXPECT_TRUE(fault->text.starts_with("[fake-cuda:0] silu_and_mul_per_block_quant: ")) << fault->text;
  }
}

TEST(DeviceCheck, MeasuresNothingOnAFakeDevice) {
  const Report& report = report_without_launches();
  const auto json = nlohmann::json::parse(json_text(report));
  EXPECT_TRUE(json.at("is_fake").get<bool>());
  EXPECT_TRUE(json.at("copied_bytes_per_second").is_null());
  EXPECT_GE(json.at("timings").size(), 40u);
  for (const auto& timing : json.at("timings")) EXPECT_TRUE(timing.at("microseconds").is_null()) << timing;
  for (const char* what :
       {"rms_norm | 1024", "the same, fused, reference math | 1024", "the same, reference math | 8192"})
    EXPECT_NE(table_text(report).find(fmt::format("| {} x ", what)), std::string::npos) << what;
  for (const char* what : {"attention of a prompt, matrix units", "the same, multiply-adds"})
    EXPECT_NE(table_text(report).find(fmt::format("| {} | 2048 x 4096 | 41.9 | not measured |", what)),
              std::string::npos);
  EXPECT_NE(table_text(report).find("not measured (a fake device has no clock)"), std::string::npos);
}

TEST(DeviceCheck, StatesTimesWhereThereAreSome) {
  Report report{.copied_bytes_per_second = 4e12};
  report.timings.push_back({.what = "fused", .rows = 1024, .columns = 14336, .bytes = 40e6, .microseconds = 20.0});
  EXPECT_NE(table_text(report).find("| fused | 1024 x 14336 | 40.0 | 10.00 | 20.00 | 50 % | |\n"), std::string::npos);
  const auto json = nlohmann::json::parse(json_text(report));
  EXPECT_EQ(json.at("timings").at(0).at("microseconds"), 20.0);
  EXPECT_EQ(json.at("timings").at(0).at("floor_microseconds"), 10.0);
}

TEST(DeviceCheck, JudgesTargets) {
  Report report{.copied_bytes_per_second = 4e12};
  const auto add = [&](double target_share, std::optional<double> microseconds) {
    report.timings.push_back({.what = "fused",
                              .rows = 8,
                              .columns = 128,
                              .bytes = 40e6,
                              .target_share = target_share,
                              .microseconds = microseconds});
  };
  add(0.85, 10 / 0.86);
  add(0.85, 10 / 0.84);
  add(0.5, std::nullopt);
  add(0, 10.0);
  const std::string text = table_text(report);
  for (const char* end : {"| 86 % | 85 %: met |\n", "| 84 % | 85 %: missed |\n",
                          "| not measured | not measured | 50 %: not measured |\n", "| 100 % | |\n"})
    EXPECT_NE(text.find(end), std::string::npos) << end << text;
  const auto json = nlohmann::json::parse(json_text(report)).at("timings");
  for (std::size_t i = 0; const char* target : {"met", "missed", "not measured", ""})
    EXPECT_EQ(json.at(i++).at("target"), target);
  EXPECT_EQ(json.at(0).at("target_share"), 0.85);
  EXPECT_TRUE(is_good(report));  // of another GPU than the targets were set for
  report.copied_bytes_per_second.reset();
  EXPECT_NE(table_text(report).find("| 85 %: not measured |"), std::string::npos);
}

TEST(DeviceCheck, SetsTargetsForTheFusedKernelAlone) {
  std::map<std::int64_t, double> shares;
  for (const Timing& timing : planned_timings()) {
    if (timing.target_share == 0) continue;
    EXPECT_EQ(timing.what, "silu_and_mul + group-128 fp8, fused");
    EXPECT_EQ(timing.columns, 14336);
    shares[timing.rows] = timing.target_share;
  }
  EXPECT_EQ(shares, (std::map<std::int64_t, double>{{128, 0.5}, {1024, 0.85}, {8192, 0.85}}));
}

TEST(DeviceCheck, IsLateOnAGpuAlone) {
  Report report{.phases = {{"timings", kSecondsAllowed - 1}, {"faults", 1}}};
  EXPECT_TRUE(is_good(report)) << table_text(report);
  report.phases[1].seconds = 1.5;
  EXPECT_FALSE(is_good(report));
  EXPECT_NE(table_text(report).find("480 allowed on a GPU: FAILED; timings 479.0"), std::string::npos);
  report.is_fake = true;
  EXPECT_TRUE(is_good(report));
}

// bench/cuda.md has the rows that would be measured, filled or not.
TEST(DeviceCheck, StandsInTheBenchWithAllItsRows) {
  const std::string table = table_text({.timings = planned_timings()});
  // The columns before the first measured number: kernel, size, MB.
  const auto rows_of = [](const std::string& text) {
    std::vector<std::string> rows;
    std::istringstream lines(text.substr(std::min(text.size(), text.find("| kernel | rows x columns |"))));
    for (std::string line; std::getline(lines, line) && line.starts_with("|");) {
      std::size_t end = 0;
      for (int cell = 0; cell < 3; ++cell) end = line.find('|', end + 1);
      rows.push_back(line.substr(0, end));
    }
    return rows;
  };
  EXPECT_GE(rows_of(table).size(), 70u);
  EXPECT_EQ(rows_of(read_file(WEFT_SOURCE_ROOT "/bench/cuda.md", 1u << 20)), rows_of(table));
}

TEST(DeviceCheck, StatesTheFloorsOfTheFusedKernel) {
  Report report{.copied_bytes_per_second = 4.34e12, .timings = planned_timings()};
  const std::string text = table_text(report);
  for (const char* row :
       {"| 128 x 14336 | 9.2 | 2.13 |", "| 1024 x 14336 | 73.9 | 17.02 |", "| 8192 x 14336 | 590.9 | 136.15 |"})
    EXPECT_NE(text.find(fmt::format("| silu_and_mul + group-128 fp8, fused {} not measured |", row)), std::string::npos)
        << row;
}

// For 64 sequences of 4096 tokens with 8 KV heads of 128 columns of bf16: K and V, queries and results.
TEST(DeviceCheck, CountsTheBytesOfAttention) {
  constexpr double kKeysAndValues = 2.0 * 64 * 4096 * 8 * 128 * 2, kRows = 2.0 * 64 * 4096 * 2;
  int found = 0;
  for (const Timing& timing : planned_timings()) {
    if (timing.what != "attention of single tokens, 4096 in each cache" || timing.rows != 64) continue;
    ++found;
    EXPECT_EQ(timing.bytes, kKeysAndValues + kRows);
  }
  EXPECT_EQ(found, 1);
}

TEST(DeviceCheck, RunsEachTimedLaunchOnce) {
  const Report& report = report_without_launches();
  EXPECT_GE(report.timed_launches.size(), 26u);
  for (const CheckedCase& launch : report.timed_launches)
    EXPECT_EQ(launch.outcome, Outcome::passed) << launch.name << ": " << launch.text;
}

TEST(DeviceCheck, FailsWhereATimedLaunchDoes) {
  Report report{.is_fake = true};
  EXPECT_TRUE(is_good(report));
  report.timed_launches.push_back({"rotation", Outcome::failed, "reads behind x"});
  EXPECT_FALSE(is_good(report));
  EXPECT_NE(table_text(report).find("1 in all, 1 failed\n* FAILED rotation: reads behind x"), std::string::npos);
}

TEST(DeviceCheck, SaysWhatEachPhaseTook) {
  const Report& report = report_without_launches();
  std::vector<std::string> names;
  for (const Phase& phase : report.phases) names.push_back(phase.name);
  EXPECT_EQ(names, (std::vector<std::string>{"recorded launches", "designs", "timed launches once", "timings", "faults",
                                             "kernel fault", "graph fault"}));
  const Report given{.phases = {{"designs", 1.5}, {"faults", 2.25}}};
  EXPECT_NE(table_text(given).find("Seconds: 3.8 in all, 480 allowed on a GPU; designs 1.5; faults 2.2\n"),
            std::string::npos)
      << table_text(given);
  const auto json = nlohmann::json::parse(json_text(given));
  EXPECT_EQ(json.at("seconds"), 3.75);
  EXPECT_EQ(json.at("seconds_allowed"), 480);
  EXPECT_EQ(json.at("phases").at(1).at("name"), "faults");
  EXPECT_EQ(json.at("phases").at(1).at("seconds"), 2.25);
}

TEST(DeviceCheck, CountsAPhaseThatThrows) {
  std::vector<Phase> phases;
  EXPECT_THROW(run_phase(phases, "first", [] { throw DeviceError("broken"); }), DeviceError);
  EXPECT_EQ(run_phase(phases, "second", [] { return 7; }), 7);
  ASSERT_EQ(phases.size(), 2u);
  EXPECT_EQ(phases[0].name, "first");
  EXPECT_GE(phases[0].seconds, 0);
}

TEST(DeviceCheck, WritesItsReportAndRefusesWhereThereIsNoDevice) {
  const std::string folder = ::testing::TempDir() + "device_check";
  const std::string launches = folder + ".launches", json = folder + ".json", table = folder + ".md";
  write_then_rename(launches, pack_launches(std::vector{launch_of("rms_norm_f32_plain_reference")}));
  std::ostringstream out, err;
  const auto run = [&](const std::vector<std::string>& words) {
    out.str("");
    err.str("");
    return run_program(words, out, err);
  };
  EXPECT_EQ(run({"--fake", "--launches", launches, "--json", json, "--table", table}), 0) << out.str() << err.str();
  const auto written = nlohmann::json::parse(read_file(json, 1u << 20));
  EXPECT_TRUE(written.at("good").get<bool>());
  EXPECT_EQ(written.at("phases").at(0).at("name"), "reading and opening");
  EXPECT_EQ(read_file(table, 1u << 20), out.str());
  EXPECT_EQ(run({"--fake", "--launches", folder, "--json", json, "--table", table}), 1);
  EXPECT_NE(out.str().find("Recorded launches: not run"), std::string::npos) << out.str();
  EXPECT_EQ(run({"--device", "99"}), 4);
  EXPECT_NE(err.str(), "");
  EXPECT_EQ(run({"--real"}), 2);
}

}  // namespace weft::device_check_test
