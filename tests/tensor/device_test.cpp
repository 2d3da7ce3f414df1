#include "tensor/device.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace weft::device_test {

TEST(Device, TextReadsBack) {
  for (const DeviceId id : {DeviceId{DeviceType::cpu, 0}, DeviceId{DeviceType::cuda, 0}, DeviceId{DeviceType::cuda, 3},
                            DeviceId{DeviceType::fake_cuda, 0}})
    EXPECT_EQ(device_from_text(device_text(id)), id);
  EXPECT_EQ(device_text({DeviceType::cuda, 0}), "cuda:0");
  EXPECT_EQ(device_from_text("cuda"), (DeviceId{DeviceType::cuda, 0}));
  EXPECT_EQ(device_from_text("fake-cuda"), (DeviceId{DeviceType::fake_cuda, 0}));
  for (const char* text : {"", "gpu", "cpu:0", "cuda:", "cuda:x", "cuda:1x", "cuda:-1", "cuda:999", "CPU"})
    EXPECT_THROW(device_from_text(text), UserError) << text;
}

TEST(Device, CeilingLowersWhatTheHostHasAndNeverRaisesIt) {
  const DeviceDescription host = describe_cpu("", 0);
  EXPECT_EQ(host.features, host.host);
  EXPECT_FALSE(host.name.empty());
  EXPECT_GE(host.threads, 1);
  CpuFeatures previous = CpuFeatures::baseline;
  for (const char* ceiling : {"baseline", "avx2", "avx512", "vnni", "bf16", "amx"}) {
    const DeviceDescription described = describe_cpu(ceiling, 3);
    EXPECT_EQ(described.threads, 3);
    EXPECT_EQ(described.host, host.host);
    EXPECT_LE(described.features, host.host);
    EXPECT_GE(described.features, previous);
    if (described.features < host.host) {
      EXPECT_EQ(cpu_features_text(described.features), ceiling);
    }
    previous = described.features;
  }
  EXPECT_EQ(previous, host.host);
}

TEST(Device, RefusesUnknownCeilingsAndThreadCounts) {
  EXPECT_THROW(describe_cpu("avx1024", 0), UserError);
  EXPECT_THROW(describe_cpu("", -1), UserError);
  EXPECT_THROW(describe_cpu("", 100000), UserError);
}

}  // namespace weft::device_test
