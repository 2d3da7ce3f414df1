#pragma once

// A model compiled ahead of time, in one file: a zip archive of
//
//   weights/NAME      the model's own files, if requested; they are mapped from here
//   manifest.json     its sources and its target, and the size and hash of each other member
//   graphs/NN-STAGE.GRAPH.LO-HI.graph   each graph after each stage, for each range, for human readers
//   objects/HASH.o    the code of generated functions, each object once: for a device also HASH.cubin or HASH.ptx
//   plans/GRAPH.bin   the Plans of each graph and the functions that they call, which name their objects by their
//                     hash (compiler/store/plan_store.h)
//
// Without weights/ the weights stay in the checkpoint's own files, and the manifest has their names, sizes and hashes.
// Running an artifact needs neither the passes, nor LLVM, nor a compile cache. It runs only where the build of the
// program, the device, the options that change code, and the weights are those that it was compiled for. It holds
// machine code, like a shared library: the checks detect damage and mistakes, not malice.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "engine/compile/model_compilation.h"

namespace weft {

// Raise it when the members or the manifest change their meaning.
inline constexpr std::int64_t kArtifactFormat = 3;

struct ArtifactMember {
  std::string name;
  std::int64_t bytes = 0;
  ContentHash hash;
};

struct ArtifactManifest {
  std::string weft;     // the version, for display
  std::string build;    // of the program that compiled it
  std::string emitter;  // the emitter of generated code, for display
  std::string llvm;
  std::string features;  // of the device
  std::int64_t threads = 0;
  std::string fp8;
  std::string gpu;                                           // sm_90; "" where Plans run on the host
  std::vector<std::pair<std::string, std::string>> options;  // those that change code, without those of the device
  std::string architecture;
  std::string model;       // the built-in name; "" for another model
  std::string checkpoint;  // the name of the file or folder
  std::vector<CheckpointFile> files;
  std::vector<StoredPlans> graphs;  // without bytes and objects, which are in the members
  std::vector<ArtifactMember> members;
};

// Whether a model's name or path is an artifact's: it ends in .weft, or the file begins as a zip archive does.
bool is_artifact(const std::string& path);

struct ArtifactSettings {
  std::string path;
  std::string model;          // the name that the user passed
  bool with_weights = false;  // whether to include the weights
};

// Writes the compiled model and returns the manifest that was written. Equal models, options and programs give equal
// bytes. UserError where there is nothing to write, or where the path is a file of the model or cannot be written.
ArtifactManifest write_artifact(const ArtifactSettings& settings, ModelCompilation& model);

class Artifact {
 public:
  // Reads everything but the weights and checks every member against the manifest. UserError, which begins with [path],
  // for any problem. Loads no code.
  static Artifact open(const std::string& path);

  const std::string& path() const { return path_; }
  const ArtifactManifest& manifest() const { return manifest_; }

  // Sets the options that the user did not set to their values at compile time: the options that change code, the
  // instruction sets, and the threads where this host has as many. UserError where this program is another build.
  void take_options(Options& options) const;
  // Opens the checkpoint: `given` (a path or built-in name) unless it is empty; else the one inside the artifact; else
  // one in the artifact's folder; else the built-in model. UserError where none is found, or where it is no checkpoint.
  Checkpoint open_checkpoint(const std::string& given, const Options& options,
                             const EnvironmentLookup& environment) const;
  // Sets the Context's Plans. UserError, with both values, unless the Context and the checkpoint are those that the
  // artifact was compiled for.
  void load_plans(Context& context, const Checkpoint& checkpoint) const;

 private:
  void check(const Context& context, const Checkpoint& checkpoint) const;

  std::string path_;
  ArtifactManifest manifest_;
  std::map<std::string, FilePart> weights_;  // by file name
};

}  // namespace weft
