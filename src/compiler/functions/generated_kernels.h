#pragma once

// All functions that were generated in a Context, by name. The name is derived from the text of the row program: equal
// programs are one function, whatever layer, range or graph they are from.

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "codegen/row_program.h"
#include "compiler/functions/device_functions.h"
#include "kernels/kernel.h"
#include "runtime/generated_kernel.h"

namespace weft {

class CompileCache;
class DeviceRows;
class Graph;
struct Context;

// A function is compiled for the machine that runs it, so functions of a device do not need LLVM.
struct GeneratedObject {
  GeneratedFunction function;
  std::vector<std::byte> code;   // an object file for the host; empty where the device runs the function
  std::vector<std::byte> image;  // for the device; empty where the host runs the function
};

class GeneratedKernels {
 public:
  // Adds the functions that are missing: each is loaded from the compile cache, or compiled and stored there, on all
  // threads of the Context. The target is the device where it takes such functions, else the host. Returns "", or why
  // one of them has no code. graphs[i], if given, is the graph of programs[i]; it is reported where LLVM ends the
  // process.
  std::string compile(std::span<const RowProgram* const> programs, const Context& context,
                      std::span<const Graph* const> graphs = {});
  // Adds a function from its object, its image, or both; where the device does not take the image, the host runs the
  // object. InternalError when the bytes are not an object; DeviceError when the system cannot make memory executable,
  // or when the device does not take the image and there is no object.
  void load(const GeneratedFunction& function, std::span<const std::byte> code, std::span<const std::byte> image,
            const Context& context);

  // Call this before any function exists. Functions are then compiled for the Context's stream_device, whose queue
  // launches them. Where `rows` is null the device takes no such code, for this reason, and the host computes each
  // queued function; the host also computes functions that have no image.
  void make_for_device(std::shared_ptr<const DeviceRows> rows, std::string reason);
  // The host compiles nothing, for this reason, as if libweft_llvm.so were missing. For tests.
  void leave_out_host(std::string reason);
  // Why neither the host nor the device can compile functions; "" where one can. This does not open the LLVM library. A
  // device without a compiler uses images from the cache; the cache is searched again until it has some.
  std::string problem(const CompileCache& cache);
  // Null where the host runs all functions.
  const DeviceRows* device_rows() const { return device_rows_.get(); }
  // nullopt without make_for_device, or where nothing was generated.
  std::optional<DeviceFunctions> device_functions() const;
  // "NVRTC 13.0, machine code for sm_90", or why there is no compiler; "" without make_for_device.
  std::string device_compiler_text() const;

  // Whether a function has no image for a reason that may not apply in a later run.
  bool lacks_images() const;

  // Null if unknown. Valid as long as this object.
  const Kernel* find(const std::string& name) const;
  // InternalError if unknown. Valid as long as this object.
  const GeneratedObject& object(const std::string& name) const;
  std::size_t size() const;

  // Records that no code can be generated. True for the first time.
  bool fail();
  bool has_failed() const;

 private:
  struct Entry {
    GeneratedObject object;
    std::unique_ptr<const Kernel> kernel;
  };

  const std::vector<std::string>& image_compilers(const CompileCache& cache);
  std::string host_problem() const;
  // Returns "", or why the device does not take the image: its driver is older than the compiler.
  std::string load_image(const GeneratedFunction& function, std::span<const std::byte> image, const Context& context);
  // Uses the image if the object has one (it must be loaded), else `code`.
  void add(GeneratedObject object, std::shared_ptr<const LoadedCode> code, const Context& context);

  mutable std::mutex lock_;
  std::map<std::string, Entry> entries_;  // by name
  bool has_failed_ = false;
  std::optional<std::string> host_left_out_;  // the reason of leave_out_host
  std::shared_ptr<const DeviceRows> device_rows_;
  std::string host_reason_;  // why device_rows_ is null; "" before make_for_device
  bool lacks_images_ = false;
  std::map<std::string, std::string> without_image_;  // functions that are not on the device, with the reason
  std::set<std::string> loaded_symbols_;              // functions whose image is loaded on the device
  std::vector<std::string> image_compilers_;          // DeviceRows::compilers; asked again while empty
};

}  // namespace weft
