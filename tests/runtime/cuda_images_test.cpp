// Which images a fake device takes: those that the driver takes on a device of its architecture.

#include <gtest/gtest.h>

#include "runtime/cuda/fake_device.h"
#include "tests/runtime/cuda_test_device.h"

namespace weft::cuda_images_test {

using namespace weft::cuda;

// A device of that capability, to which every image is this one.
std::unique_ptr<Driver> device_of(int capability, const FakeImage& image, int driver_version = 0) {
  return open_fake_device({.compute_capability = capability,
                           .driver_version = driver_version,
                           .read_image = [image](std::span<const std::byte>) { return image; }});
}

FakeImage image_of(int architecture, bool is_ptx, char suffix = 0, int ptx_version = 0) {
  return {.architecture = architecture,
          .is_ptx = is_ptx,
          .suffix = suffix,
          .ptx_version = ptx_version,
          .kernels = {{.name = "mix", .run = {}}}};
}

constexpr std::byte kImage[4] = {};

TEST(ImagesOfDevices, ThatFitAreTaken) {
  for (const auto& [architecture, is_ptx, capability] :
       {std::tuple{80, true, 80}, {80, true, 90}, {90, true, 120}, {80, false, 80}, {80, false, 89}}) {
    const auto driver = device_of(capability, image_of(architecture, is_ptx));
    const Owner module(*driver, driver->load_module(0, kImage));
    driver->find_function(*module, "mix", 0);
  }
}

TEST(ImagesOfDevices, AreRefusedByOlderDevicesAndMachineCodeByOtherFamilies) {
  for (const auto& [architecture, capability] : {std::pair{100, 90}, {89, 86}}) {
    const auto driver = device_of(capability, image_of(architecture, true));
    expect_device_error(
        [&] { driver->load_module(0, kImage); },
        {"cuModuleLoadData: CUDA_ERROR_INVALID_PTX",
         fmt::format("the image is PTX for sm_{}, the device is sm_{}", architecture, capability).c_str()});
  }
  for (const auto& [architecture, capability] : {std::pair{80, 90}, {90, 80}, {89, 86}}) {
    const auto driver = device_of(capability, image_of(architecture, false));
    expect_device_error(
        [&] { driver->load_module(0, kImage); },
        {"cuModuleLoadData: CUDA_ERROR_NO_BINARY_FOR_GPU",
         fmt::format("the image is machine code for sm_{}, the device is sm_{}", architecture, capability).c_str()});
  }
}

// sm_90a runs on 9.0 and nowhere else, sm_100f on 10.0 and 10.3, as PTX and as machine code.
TEST(ImagesOfDevices, OfOneArchitectureOrFamilyAreForThatAlone) {
  struct Case {
    int architecture;
    char suffix;
    int capability;
    bool is_taken;
  };
  const Case cases[] = {{90, 'a', 90, true},   {90, 'a', 100, false}, {90, 'a', 89, false},   {100, 'a', 103, false},
                        {100, 'f', 100, true}, {100, 'f', 103, true}, {100, 'f', 120, false}, {103, 'f', 100, false},
                        {120, 'f', 121, true}, {100, 'f', 90, false}};
  for (const bool is_ptx : {true, false})
    for (const auto& [architecture, suffix, capability, is_taken] : cases) {
      const auto driver = device_of(capability, image_of(architecture, is_ptx, suffix));
      if (is_taken) {
        const Owner module(*driver, driver->load_module(0, kImage));
        driver->find_function(*module, "mix", 0);
        continue;
      }
      expect_device_error(
          [&] { driver->load_module(0, kImage); },
          {is_ptx ? "cuModuleLoadData: CUDA_ERROR_INVALID_PTX" : "cuModuleLoadData: CUDA_ERROR_NO_BINARY_FOR_GPU",
           fmt::format("for sm_{}{}, the device is sm_{}", architecture, suffix, capability).c_str()});
    }
}

TEST(ImagesOfDevices, OfANewerPtxAreRefusedByTheDriver) {
  for (const auto& [ptx, driver_version] :
       {std::pair{84, 12040}, {85, 12050}, {85, 12060}, {86, 12080}, {90, 13000}, {91, 0}}) {
    const auto driver = device_of(90, image_of(90, true, 0, ptx), driver_version);
    const Owner module(*driver, driver->load_module(0, kImage));
    EXPECT_EQ(driver->facts(0).driver_version, driver_version);
  }
  for (const auto& [ptx, driver_version, known] :
       {std::tuple{85, 12040, "8.4"}, {86, 12060, "8.5"}, {90, 12090, "8.8"}, {91, 13000, "9.0"}}) {
    const auto driver = device_of(90, image_of(90, true, 'a', ptx), driver_version);
    const std::string ptx_text = fmt::format("{}.{}", ptx / 10, ptx % 10);
    const std::string image = fmt::format(".version {}\n.target sm_90a\n", ptx_text);
    expect_device_error([&] { driver->load_module(0, std::as_bytes(std::span(image))); },
                        {"[fake-cuda:0] cuModuleLoadData: CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
                         fmt::format("reads PTX {}", known).c_str(),
                         fmt::format("given PTX {} for sm_90a, the device is sm_90, its driver for CUDA {}", ptx_text,
                                     cuda_version_text(driver_version))
                             .c_str()});
    const auto takes_code = device_of(90, image_of(90, false, 'a', ptx), driver_version);
    const Owner module(*takes_code, takes_code->load_module(0, kImage));
  }
}

}  // namespace weft::cuda_images_test
