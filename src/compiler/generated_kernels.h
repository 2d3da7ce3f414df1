#pragma once

// Every function that was generated in a Context, by its name, which stands for the text of its row program: equal
// programs, of whatever layer, range or graph, are one function.

#include <cstddef>
#include <iosfwd>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "codegen/row_program.h"
#include "kernels/kernel.h"
#include "runtime/generated_kernel.h"

namespace weft {

class DeviceRows;
struct Context;

struct GeneratedObject {
  GeneratedFunction function;
  std::vector<std::byte> code;   // an object file
  std::vector<std::byte> image;  // the device's; empty where it has none of this function
};

class GeneratedKernels {
 public:
  // Those that are not there yet, found in the compile cache or compiled and stored there, on all threads of the
  // Context. "" or why there is no code for one of them.
  std::string compile(std::span<const RowProgram* const> programs, const Context& context);
  // The same for a function of which there is an object, and an image or none. InternalError when it is no object,
  // DeviceError when the system makes no code of memory or the device does not take the image.
  void load(const GeneratedFunction& function, std::span<const std::byte> code, std::span<const std::byte> image,
            const Context& context);

  // Before there is any function: each is to be made for the Context's stream_device as well, whose queue then launches
  // it; the host's code is for calls without a queue. Else, for this reason, the host computes what is queued.
  void make_for_device(std::shared_ptr<const DeviceRows> rows, std::string reason);
  // Null where functions are the host's alone.
  const DeviceRows* device_rows() const { return device_rows_.get(); }
  // Who runs what of the functions on the Context's device, and why; "" where nothing was said of one.
  std::string device_text() const;

  // Whether a function has no image for a reason that may be gone the next time.
  bool lacks_images() const;

  // Null where it is not here. Lives as long as this.
  const Kernel* find(const std::string& name) const;
  // InternalError where it is not here. Valid as long as this lives.
  const GeneratedObject& object(const std::string& name) const;
  std::size_t size() const;

  // Says, once, that no code can be generated, and why.
  void warn_once(std::ostream& to, const std::string& problem);
  // Whether that was said.
  bool has_failed() const;

 private:
  struct Entry {
    GeneratedObject object;
    std::unique_ptr<const Kernel> kernel;
  };

  void add(GeneratedObject object, std::shared_ptr<const LoadedCode> code, const Context& context);

  mutable std::mutex lock_;
  std::map<std::string, Entry> entries_;  // by name
  bool has_failed_ = false;
  std::shared_ptr<const DeviceRows> device_rows_;
  std::string host_reason_;  // why there are none
  bool lacks_images_ = false;
  std::map<std::string, std::string> without_image_;  // functions that the device has not, and why
};

}  // namespace weft
