// A flat program: instructions over input, output and arena memory. It knows no operation.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "finite.h"
#include "interrupts.h"
#include "kept_results.h"
#include "nested.h"
#include "threads.h"

typedef struct _object PyObject;

namespace twofold {

// A kernel reported an error: the label of its instruction, and the error code.
struct KernelError {
  int32_t label;
  int64_t code;
};

// A Python exception is set.
struct PythonError {};

// Reports of kernels on values that are not finite, without those known to be harmless.
struct FiniteWatch {
  // Ends the run while its inputs are intact.
  struct Suspicion {};

  std::shared_ptr<const std::vector<Finite>> harmless;  // by instruction: the worst that may be; null: nothing
  bool nan_alone = false;
  std::vector<std::pair<size_t, Finite>> found = {};  // by instruction
  bool complete = false;                              // all stored values have been reported

  void note(size_t instruction, Finite stored) {
    if (stored <= (nan_alone ? Finite::kInfinite : Finite::kAll)) return;
    if (!harmless || stored > (*harmless)[instruction]) found.emplace_back(instruction, stored);
  }
};

struct BufferSlot {
  static constexpr uint8_t kInput = 0, kOutput = 1, kArena = 2;

  uint8_t kind;
  int64_t index;
};

struct Instruction {
  Kernel kernel;
  uint32_t first_slot, slots;
  uint32_t first_param;
  int64_t work, grain;
  int32_t label;
  PyObject* host;  // called with the GIL held, with the slots as arrays; null for machine code
  const Nested* nested;  // owned by the program; null for what runs no program of its own

  // Estimated.
  double nanoseconds() const { return static_cast<double>(work) / static_cast<double>(grain) * kGrainNanoseconds; }
};

// Keeps the machine code of instructions mapped.
struct CodeOwners {
  CodeOwners() = default;
  CodeOwners(const CodeOwners&) = delete;
  ~CodeOwners();
  void add(PyObject* kernel);  // the object that stands for its address

  std::vector<PyObject*> kernels;
};

class Program {
 public:
  std::shared_ptr<CodeOwners> code = std::make_shared<CodeOwners>();
  std::vector<Instruction> instructions;
  std::vector<BufferSlot> slots;
  std::vector<int64_t> params;
  std::vector<int64_t> output_nbytes;
  std::vector<std::pair<int32_t, int32_t>> donations;  // input whose buffer may be donated to an output
  int64_t arena_bytes = 0;
  int64_t total_work = 0;       // estimated nanoseconds; decides whether to release the GIL
  uint32_t most_slots = 0;
  bool has_host = false;
  bool tells_finite = false;    // its kernels report values that are not finite, and those of nested programs
  std::vector<std::shared_ptr<const Nested>> nested;
  PyObject* labels = nullptr;   // what Python needs for the message of a KernelError
  Derivable derivable;
  size_t overwrites_from = SIZE_MAX;  // first instruction that writes to an output named in donations

  ~Program();
  // Once the instructions are set: lays out the buffers in the arena, sums up the work, and decides what
  // may be donated. Slots of the arena hold the number of a buffer until then, and its offset from then on.
  void settle(const std::vector<int64_t>& buffer_sizes, bool reuse_memory);
  // Pointers must hold input and output memory of the planned sizes; from instruction `whole_from` on nothing
  // interrupts the run. Throws KernelError, PythonError or std::bad_alloc.
  // `scratch`: memory for the arena where the caller has it. With a `watch`, what it has found ends the run before whole_from.
  // `kept` are results to read, or to fill.
  void run(void* const* inputs, void* const* outputs, Interrupts& interrupts, size_t whole_from = SIZE_MAX, char* scratch = nullptr,
           FiniteWatch* watch = nullptr, const KeptResults* kept = nullptr) const;
  // As run, with scratch memory of the caller, without changing the GIL. Returns the worst report of kernels.
  Finite run_in(void* const* inputs, void* const* outputs, char* arena, Interrupts& interrupts, size_t whole_from = SIZE_MAX,
                FiniteWatch* watch = nullptr, const KeptResults* kept = nullptr) const;
  // Approximate bytes, nested programs included.
  size_t memory() const;

 private:
  void settle_donations();
};

}  // namespace twofold
