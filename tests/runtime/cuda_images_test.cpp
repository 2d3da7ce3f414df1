// Which images a fake device takes: those that the driver takes on a device of its architecture.

#include <gtest/gtest.h>

#include "runtime/cuda/fake_device.h"
#include "tests/runtime/cuda_test_device.h"

namespace weft::cuda_images_test {

using namespace weft::cuda;

// A device of that capability, to which every image is this one.
std::unique_ptr<Driver> device_of(int capability, const FakeImage& image) {
  return open_fake_device(
      {.compute_capability = capability, .read_image = [image](std::span<const std::byte>) { return image; }});
}

FakeImage image_of(int architecture, bool is_ptx) {
  return {.architecture = architecture, .is_ptx = is_ptx, .kernels = {{.name = "mix", .run = {}}}};
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

}  // namespace weft::cuda_images_test
