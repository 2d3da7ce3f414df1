#pragma once

// Every function that was generated in a Context, by its name, which stands for the text of its row program: equal
// programs, of whatever layer, range or graph, are one function.

#include <cstddef>
#include <iosfwd>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "codegen/row_program.h"
#include "compiler/device_functions.h"
#include "kernels/kernel.h"
#include "runtime/generated_kernel.h"

namespace weft {

class DeviceRows;
class Graph;
struct Context;

struct GeneratedObject {
  GeneratedFunction function;
  std::vector<std::byte> code;   // an object file
  std::vector<std::byte> image;  // the device's; empty where it has none of this function
};

class GeneratedKernels {
 public:
  // Those that are not there yet, found in the compile cache or compiled and stored there, on all threads of the
  // Context. "" or why there is no code for one of them. graphs[i], where there are any, is what programs[i] was made
  // from, for people, where LLVM ends the process.
  std::string compile(std::span<const RowProgram* const> programs, const Context& context,
                      std::span<const Graph* const> graphs = {});
  // The same for a function of which there is an object, and an image or none; where the device does not take the
  // image, the host computes it. InternalError when it is no object, DeviceError when the system makes no code of
  // memory.
  void load(const GeneratedFunction& function, std::span<const std::byte> code, std::span<const std::byte> image,
            const Context& context);

  // Before there is any function: each is to be made for the Context's stream_device as well, whose queue then launches
  // it; the host's code is for calls without a queue. Where `rows` are null the device takes no such code, for this
  // reason, and the host computes what is queued; so it does with functions of which there is no image.
  void make_for_device(std::shared_ptr<const DeviceRows> rows, std::string reason);
  // Null where functions are the host's alone.
  const DeviceRows* device_rows() const { return device_rows_.get(); }
  // Nothing where nobody spoke of a device, or nothing was generated.
  std::optional<DeviceFunctions> device_functions() const;

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
  std::string host_reason_;  // why there are none; "" before anybody spoke of a device
  bool lacks_images_ = false;
  std::map<std::string, std::string> without_image_;  // functions that the device has not, and why
  std::set<std::string> loaded_symbols_;              // whose image the device has
  std::vector<std::string> image_compilers_;          // DeviceRows::compilers; asked again while there are none
};

}  // namespace weft
