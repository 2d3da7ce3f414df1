#pragma once

// A Plan is a fully compiled graph: flat steps over numbered slots, run in order. It knows no graph and no op meanings,
// and can be replayed without the compiler.
//
// A slot is one piece of storage: an input that is bound for every run, a param that is bound once, a scalar that a
// generated function reads from memory instead of as a constant, or a part of the arena. Operands are views of a slot:
// an offset and a type whose dims may hold symbols. Each write into a slot makes its next version. A step reads (slot,
// version), which is valid until a later version overwrites that part.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/kernel.h"

namespace weft {

enum class SlotKind : std::uint8_t { input, param, arena, scalar };

struct PlanSlot {
  SlotKind kind = SlotKind::arena;
  std::string name = {};    // inputs and params
  std::string key = {};     // params: the checkpoint key
  Meta meta = {};           // inputs and params: what must be bound
  bool donated = false;     // inputs: steps may overwrite it
  float scalar = 0;         // scalars: the value, of type f32[]
  Dim bytes = 0;            // arena
  std::int64_t offset = 0;  // arena: set by plan_memory
  // Arena: the first and the last step that use it; set by plan_memory.
  int first_step = -1;
  int last_step = -1;
};

struct PlanView {
  int slot = -1;  // -1: an absent optional tensor
  int version = 0;
  Dim byte_offset = 0;
  Meta meta = {};
};

struct PlanStep {
  std::string op;
  const Kernel* kernel = nullptr;
  Attributes attributes = {};
  std::vector<PlanView> operands = {};
  std::vector<PlanView> results = {};
  Dim scratch_bytes = 0;
  std::int64_t scratch_offset = 0;  // in the arena: set by plan_memory
  std::string piece = {};           // the piece it came from
  std::string layer = {};           // "" outside layers
  bool is_splitting = false;        // the graph was cut at it
};

struct Plan {
  std::string name;
  std::vector<PlanSlot> slots;
  std::vector<int> inputs;  // slots in order of the graph's inputs, params among them
  std::vector<PlanStep> steps;
  std::vector<PlanView> results;
  Bounds bounds;
  std::int64_t arena_bytes = 0;     // for the largest run
  std::int64_t unshared_bytes = 0;  // what the arena would take without reuse
};

// The text form, one line per slot and step:
//   slot 12 arena 1179648 bytes at 0, steps 3-9
//   slot 13 scalar 1e-05
//   3 rms_norm@cpu(%4:0 f32[s0, 576], %7:0 f32[576], epsilon=1e-05) -> %12:0 f32[s0, 576]
std::string plan_text(const Plan& plan);

// InternalError for a Plan with a step that reads a slot that was never written, a version that does not exist yet, or
// a part that a later version overwrote; for a Plan that overwrites a param or over an input that is not donated; and
// for a Plan that returns KV pages in another slot than the donated input that held them.
void verify_plan(const Plan& plan);

// Assigns an offset to every arena slot and to the scratch of every step, so that memory with overlapping lifetimes
// does not overlap. Sizes are taken at the upper bounds of the symbols. It tries several orders and keeps the smallest
// arena. Sets arena_bytes.
void plan_memory(Plan& plan);

}  // namespace weft
