#pragma once

// A model compiled ahead of time, in one file: a zip archive of
//
//   weights/NAME      the model's own files, where they were asked for, to be mapped from here
//   manifest.json     what it was made of and for, and the size and hash of each other member
//   graphs/NN-STAGE.GRAPH.LO-HI.graph   each graph at the end of each stage, for each range, to be read by people
//   objects/HASH.o    the code of generated functions, each object once: for a device also HASH.cubin or HASH.ptx
//   plans/GRAPH.bin   the Plans of each graph and the functions that they call, which name their objects by their
//                     hash (compiler/plan_store.h)
//
// Otherwise the weights stay in the checkpoint's own files; the manifest has their names, sizes and hashes. Running one
// takes neither the passes, nor LLVM, nor a compile cache, and it is run only where everything is what it was: the
// build of the program, the device, the options that change code, the weights. It holds machine code, like a shared
// library: checks tell damage and mistakes, not malice.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/environment.h"
#include "engine/model_compiler.h"

namespace weft {

// Raised when the members or the manifest change their meaning.
inline constexpr std::int64_t kArtifactFormat = 3;

struct ArtifactMember {
  std::string name;
  std::int64_t bytes = 0;
  ContentHash hash;
};

struct ArtifactManifest {
  std::string weft;     // the version, for people
  std::string build;    // of the program that compiled it
  std::string emitter;  // of generated code, for people, and the LLVM that it used
  std::string llvm;
  std::string features;  // of the device
  std::int64_t threads = 0;
  std::string fp8;
  std::string gpu;                                           // sm_90; "" where Plans run on the host
  std::vector<std::pair<std::string, std::string>> options;  // that change code, but for those of the device
  std::string architecture;
  std::string model;       // the built-in name; "" where it was none
  std::string checkpoint;  // the name of the file or folder
  std::vector<CheckpointFile> files;
  std::vector<StoredPlans> graphs;  // bytes and objects are in the members
  std::vector<ArtifactMember> members;
};

// Whether a model's name or path leads to an artifact: it ends in .weft, or its file begins as a zip archive does.
bool is_artifact(const std::string& path);

struct ArtifactSettings {
  std::string path;
  std::string model;          // the name that the user gave
  bool with_weights = false;  // inside, too
};

// Writes what was compiled; equal models, options and programs give equal bytes. What was written. UserError
// where there is nothing to keep, or no place for it.
ArtifactManifest write_artifact(const ArtifactSettings& settings, ModelCompiler& model);

class Artifact {
 public:
  // Reads all of it but weights and holds every member against the manifest. UserError, which begins with [path], for
  // whatever is wrong. No code is loaded.
  static Artifact open(const std::string& path);

  const std::string& path() const { return path_; }
  const ArtifactManifest& manifest() const { return manifest_; }

  // What was not asked for becomes as it was when this was compiled: the options that change code, the instruction
  // sets, and the threads where this host has as many. UserError where this program is another build.
  void take_options(Options& options) const;
  // The checkpoint: `given` if there is one, a path or built-in name; else that inside, else one beside the artifact,
  // else the built-in model. UserError where it is nowhere, or is none.
  Checkpoint open_checkpoint(const std::string& given, const Options& options,
                             const EnvironmentLookup& environment) const;
  // UserError, with both values, unless the Context and the checkpoint are those that this was compiled for.
  void check(const Context& context, const Checkpoint& checkpoint) const;
  // For the Context that passed.
  std::shared_ptr<const PlanSource> plans() const;

 private:
  std::string path_;
  ArtifactManifest manifest_;
  std::map<std::string, FilePart> weights_;  // by the names of the model's files
};

}  // namespace weft
