#include <Python.h>

#include "program.h"

#include <algorithm>
#include <optional>

#include "arena.h"
#include "buffer.h"
#include "cache.h"
#include "profile.h"
#include "race_sanitizer.h"

namespace twofold {
namespace {

// A run that has begun to overwrite its inputs must not be interrupted, so little may be left then.
constexpr double kLongestWhole = 5e8;  // nanoseconds

void call_host(PyObject* host, void** pointers, uint32_t count) {
  PyObject* addresses = PyTuple_New(count);
  if (!addresses) throw PythonError{};
  for (uint32_t i = 0; i < count; ++i) {
    PyObject* address = PyLong_FromVoidPtr(pointers[i]);
    if (!address) {
      Py_DECREF(addresses);
      throw PythonError{};
    }
    PyTuple_SET_ITEM(addresses, i, address);
  }
  PyObject* result = PyObject_CallObject(host, addresses);
  Py_DECREF(addresses);
  if (!result) throw PythonError{};
  Py_DECREF(result);
}

// The memory of a run. Of inputs the first byte is enough: others write to all of it, or free it.
void note_accesses(const Program& program, void* const* inputs, void* const* outputs, char* arena) {
  for (const BufferSlot& slot : program.slots) {
    if (slot.kind == BufferSlot::kInput && inputs[slot.index]) race_sanitizer::note_read(inputs[slot.index], 1);
  }
  for (size_t k = 0; k < program.output_nbytes.size(); ++k) race_sanitizer::note_written(outputs[k], static_cast<size_t>(program.output_nbytes[k]));
  if (arena) race_sanitizer::note_written(arena, static_cast<size_t>(program.arena_bytes));
}

}  // namespace

CodeOwners::~CodeOwners() {
  for (PyObject* kernel : kernels) Py_DECREF(kernel);
}

void CodeOwners::add(PyObject* kernel) { kernels.push_back(Py_NewRef(kernel)); }

Program::~Program() {
  for (auto& instruction : instructions) Py_XDECREF(instruction.host);
  Py_XDECREF(labels);
}

void Program::settle(const std::vector<int64_t>& buffer_sizes, bool reuse_memory) {
  std::vector<std::vector<int32_t>> uses;
  for (const Instruction& instruction : instructions) {
    auto& used = uses.emplace_back();
    for (uint32_t i = 0; i < instruction.slots; ++i) {
      const BufferSlot& slot = slots[instruction.first_slot + i];
      if (slot.kind == BufferSlot::kArena) used.push_back(static_cast<int32_t>(slot.index));
    }
    most_slots = std::max(most_slots, instruction.slots);
    total_work += instruction.work * kGrainNanoseconds / instruction.grain;
  }
  derivable = Derivable(instructions, slots, buffer_sizes);
  ArenaPlan plan = plan_arena(uses, buffer_sizes, reuse_memory);
  for (BufferSlot& slot : slots) {
    if (slot.kind == BufferSlot::kArena) slot.index = plan.offsets[static_cast<size_t>(slot.index)];
  }
  arena_bytes = plan.bytes;
  settle_donations();
}

size_t Program::memory() const {
  constexpr size_t kLabel = 256;  // in Python
  size_t total = sizeof *this + memory_of(instructions) + memory_of(slots) + memory_of(params) + memory_of(output_nbytes) +
                 derivable.memory();
  if (labels) total += instructions.size() * kLabel;
  for (const auto& inner : nested) total += inner->memory();
  return total;
}

void Program::settle_donations() {
  for (size_t i = 0; i < instructions.size() && overwrites_from == SIZE_MAX; ++i) {
    const BufferSlot* slot = slots.data() + instructions[i].first_slot;
    for (auto [input, output] : donations) {
      for (uint32_t k = 0; k < instructions[i].slots; ++k) {
        if (slot[k].kind == BufferSlot::kOutput && slot[k].index == output) overwrites_from = i;
      }
    }
  }
  double left = 0;
  for (size_t i = overwrites_from; i < instructions.size(); ++i) left += instructions[i].nanoseconds();
  if (left > kLongestWhole) donations.clear();
}

void Program::run(void* const* inputs, void* const* outputs, Interrupts& interrupts, size_t whole_from, char* scratch,
                  FiniteWatch* watch, const KeptResults* kept) const {
  const PoolMemory arena(scratch ? 0 : static_cast<size_t>(arena_bytes));
  const Unlocked unlocked(!has_host && total_work > kReleaseWork);
  run_in(inputs, outputs, scratch ? scratch : arena.data(), interrupts, whole_from, watch, kept);
}

Finite Program::run_in(void* const* inputs, void* const* outputs, char* arena, Interrupts& interrupts, size_t whole_from,
                       FiniteWatch* watch, const KeptResults* kept) const {
  if constexpr (race_sanitizer::kIsOn) note_accesses(*this, inputs, outputs, arena);
  constexpr uint32_t kOnStack = 64;
  void* on_stack[kOnStack];
  std::vector<void*> on_heap;
  void** pointers = on_stack;
  if (most_slots > kOnStack) {
    on_heap.resize(most_slots);
    pointers = on_heap.data();
  }
  std::optional<Interrupts::Held> held;
  const bool timed = profile::is_on();
  int64_t time = timed ? profile::ticks() : 0;
  Finite worst = Finite::kAll;
  for (size_t number = 0; number < instructions.size(); ++number) {
    if (number == whole_from) {
      if (watch && !watch->found.empty()) throw FiniteWatch::Suspicion{};
      held.emplace(interrupts);
    }
    if (kept && kept->skips(number)) continue;
    Finite stored = Finite::kAll;
    const Instruction& instruction = instructions[number];
    const BufferSlot* slot = slots.data() + instruction.first_slot;
    for (uint32_t i = 0; i < instruction.slots; ++i) {
      switch (slot[i].kind) {
        case BufferSlot::kInput: pointers[i] = inputs[slot[i].index]; break;
        case BufferSlot::kOutput: pointers[i] = outputs[slot[i].index]; break;
        default: pointers[i] = arena + slot[i].index; break;
      }
      if (void* at = kept ? kept->at(instruction.first_slot + i) : nullptr) pointers[i] = at;
    }
    {
      const profile::Inside inside(timed);
      if (instruction.host) {
        call_host(instruction.host, pointers, instruction.slots);
      } else if (instruction.nested) {
        stored = instruction.nested->run(pointers, interrupts);
      } else {
        const int64_t* numbers = params.data() + instruction.first_param;
        int64_t code = run_parallel(instruction.kernel, pointers, numbers, instruction.work, instruction.grain, interrupts);
        stored = finite_of(code);
        if (code && stored == Finite::kAll) {
          if (held) interrupts.note_overwritten();
          throw KernelError{instruction.label, code};
        }
      }
    }
    worst = std::max(worst, stored);
    if (watch) watch->note(number, stored);
    if (timed) time = profile::note_kernel(number, time);
  }
  return worst;
}

}  // namespace twofold
