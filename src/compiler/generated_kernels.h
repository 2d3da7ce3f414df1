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

class CompileCache;
class DeviceRows;
class Graph;
struct Context;

// A function is compiled for the machine that runs it, so that a device's functions do not need LLVM.
struct GeneratedObject {
  GeneratedFunction function;
  std::vector<std::byte> code;   // the host's, an object file; empty where the device runs the function
  std::vector<std::byte> image;  // the device's; empty where the host runs it
};

class GeneratedKernels {
 public:
  // Those that are not there yet, found in the compile cache or compiled and stored there, on all threads of the
  // Context: for the device where it takes them, else for the host. "" or why there is no code for one of them.
  // graphs[i], where there are any, is what programs[i] was made from, for people, where LLVM ends the process.
  std::string compile(std::span<const RowProgram* const> programs, const Context& context,
                      std::span<const Graph* const> graphs = {});
  // The same for a function of which there is an object or an image, or both; where the device does not take the
  // image, the host runs the object. InternalError when it is no object, DeviceError when the system makes no code of
  // memory, or the device does not take the image and there is no object.
  void load(const GeneratedFunction& function, std::span<const std::byte> code, std::span<const std::byte> image,
            const Context& context);

  // Before there is any function: each is to be made for the Context's stream_device, whose queue then launches it.
  // Where `rows` are null the device takes no such code, for this reason, and the host computes what is queued; so it
  // does with functions of which there is no image.
  void make_for_device(std::shared_ptr<const DeviceRows> rows, std::string reason);
  // The host compiles nothing, for this reason, as where libweft_llvm.so is missing. For tests.
  void leave_out_host(std::string reason);
  // Why neither the host nor the device can compile functions; "" where one can. The library is not opened for that. A
  // device without a compiler takes the images that there are in the cache, which are looked for until there are any.
  std::string problem(const CompileCache& cache);
  // Null where the host runs all functions.
  const DeviceRows* device_rows() const { return device_rows_.get(); }
  // Nothing without make_for_device, or where nothing was generated.
  std::optional<DeviceFunctions> device_functions() const;
  // "NVRTC 13.0, machine code for sm_90", or why there is none; "" without make_for_device.
  std::string device_compiler_text() const;

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

  const std::vector<std::string>& image_compilers(const CompileCache& cache);
  std::string host_problem() const;
  // "" or why the device does not take the image: its driver is older than the compiler.
  std::string load_image(const GeneratedFunction& function, std::span<const std::byte> image, const Context& context);
  // With an image that is loaded, or else with code.
  void add(GeneratedObject object, std::shared_ptr<const LoadedCode> code, const Context& context);

  mutable std::mutex lock_;
  std::map<std::string, Entry> entries_;  // by name
  bool has_failed_ = false;
  std::optional<std::string> host_left_out_;  // the reason of leave_out_host
  std::shared_ptr<const DeviceRows> device_rows_;
  std::string host_reason_;  // why there are none; "" before make_for_device
  bool lacks_images_ = false;
  std::map<std::string, std::string> without_image_;  // functions that the device does not have, and why
  std::set<std::string> loaded_symbols_;              // whose image the device has
  std::vector<std::string> image_compilers_;          // DeviceRows::compilers; asked again while there are none
};

}  // namespace weft
