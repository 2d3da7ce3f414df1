#pragma once

// A Plan: what is left of a graph once everything is decided. Flat steps over numbered slots, run in order. It knows no
// graph and no op meanings; it can be replayed without the compiler.
//
// A slot is one piece of storage: an input given with every run, a param bound once, a number that a generated function
// takes instead of having it in its code, or a part of the arena. Operands are views of a slot: an offset and a type
// whose dims may hold symbols. Whatever writes into a slot makes its next version; a step reads (slot, version), which
// holds what it wants as long as no later version wrote to that part.

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
  bool donated = false;     // inputs: steps may write over it
  float scalar = 0;         // scalars, which are f32[]: what stands there
  Dim bytes = 0;            // arena
  std::int64_t offset = 0;  // arena: set by plan_memory
  // Arena: first and last step that touch it; set by plan_memory.
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

// InternalError for a Plan whose steps would read what is not there: a slot never written, a version that does not
// exist yet, a part that a later version wrote over; that writes over an input that was not donated, or a param; or
// that returns KV pages in another slot than the donated input they came in.
void verify_plan(const Plan& plan);

// Assigns every arena slot its offset, and the scratch of every step, so that what lives at the same time does not
// meet: sizes at the upper bounds of the symbols, in the smallest arena that several orders come to. Sets arena_bytes.
void plan_memory(Plan& plan);

}  // namespace weft
