// A canonical trace that can run: operation by operation the first time, as one fused program when seen again.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "batch_plan.h"
#include "buffer.h"
#include "location.h"
#include "tier_choice.h"
#include "trace.h"
#include "trace_family.h"
#include "unfused_run.h"

namespace twofold {

enum class Tier : uint8_t { kAuto, kUnfused, kFused };

// kAtOnce runs every trace in batches that can be, and plans each launch when first met, for tests.
enum class Batching : uint8_t { kOff, kAuto, kAtOnce };

// Whether results are looked over for what is not finite: all, or what backward passes make, for NaN alone.
enum class Anomaly : uint8_t { kOff, kAll, kBackward };

struct Settings {
  Tier tier = Tier::kAuto;
  int64_t node_budget = 250000;
  Batching batching = Batching::kAuto;
  Anomaly anomaly = Anomaly::kOff;
  bool tells_finite = false;  // what is compiled tells what is not finite, as that has been searched for
};
extern Settings settings;

class Executable : public std::enable_shared_from_this<Executable> {
 public:
  explicit Executable(CanonicalTrace canonical);
  ~Executable();

  const CanonicalTrace canonical;
  uint64_t used = 0;  // when, see Cache
  size_t memory() const;

  // Inputs: one pointer for each canonical leaf. Outputs: filled with new buffers, one for each output, or with
  // `spare[k]`, the buffer of leaf k, which the caller has no further use for (null where it has; spare may be null).
  // Those behind the first `apart` ones may be parts of one buffer, as they are let go of together.
  // Returns false with a Python error set; then the inputs are as they were, but for spare ones where the error is that of
  // an operation.
  bool run(void* const* inputs, Buffer* const* spare, size_t apart, std::vector<BufferRef>& outputs, RunProvenance provenance,
           Interrupts& interrupts);
  // Makes the fused program before any run, and keeps it; false with a Python error set.
  bool prepare(RunProvenance provenance, Interrupts& interrupts);
  // Called under the interpreter lock, from any thread, with the nanoseconds that it took to make the program.
  void set_fused(ProgramRef program, int64_t nanoseconds);
  bool is_fused() const { return fused_ != nullptr; }
  // Its trace ran when it was met first, by an executable that was not kept.
  void has_run_before();
  // The program that was asked for does not come.
  void ask_again() { choice_.ask_again(family_.lock().get()); }
  // What Python planned for the symbols it was asked for, or None; false with a Python error set.
  bool add_plan(PyObject* encoded);

 private:
  bool run_tiers(void* const* inputs, Buffer* const* spare, size_t apart, std::vector<BufferRef>& outputs, RunProvenance provenance,
                 Interrupts& interrupts, FiniteWatch* watch);
  // The program once more, with kernels that tell what is not finite; until it is there results are looked over.
  bool ask_to_tell(bool wait, RunProvenance provenance, Interrupts& interrupts);
  void note_harmless(const FiniteWatch& watch);
  // False with a Python error set where a result is not finite and the call that made it so is found.
  bool check_finite(void* const* inputs, const std::vector<BufferRef>& outputs, RunProvenance provenance, Anomaly anomaly, Interrupts& interrupts);
  // `alone` is set where operations had to run one by one after all.
  bool run_fused(Program& program, bool& alone, void* const* inputs, Buffer* const* spare, std::vector<BufferRef>& outputs,
                 RunProvenance provenance, Interrupts& interrupts, FiniteWatch* watch);
  // In batches where that is worth it, else one operation after the other.
  bool run_apart(void* const* inputs, Buffer* const* spare, size_t apart, std::vector<BufferRef>& outputs, RunProvenance provenance,
                 Interrupts& interrupts);
  // The locations of the first and the last entry.
  std::pair<uint32_t, uint32_t> lines(RunProvenance provenance) const;
  bool log_batches(const BatchPlan& plan, RunProvenance provenance) const;
  bool run_unfused(void* const* inputs, Buffer* const* spare, std::vector<BufferRef>& outputs, RunProvenance provenance,
                   Interrupts& interrupts);
  // Takes a program that was planned for traces like this one, or asks for a plan; false with a Python error set.
  bool find_program(bool wait, RunProvenance provenance, Interrupts& interrupts);
  bool ask_for_plan(TraceFamily& family, bool wait, RunProvenance provenance, Interrupts& interrupts);
  // Repetitions are planned once.
  size_t entries_to_plan();
  bool worth_fusing();
  bool ask_for_fused(bool wait, RunProvenance provenance, Interrupts& interrupts);

  ProgramRef fused_;
  TierChoice choice_;
  std::weak_ptr<TraceFamily> family_;
  std::shared_ptr<const BatchPlan> batches_;  // of a trace that comes back
  bool stands_alone_ = false;  // its calls hardly stand together
  size_t to_plan_ = 0;         // entries; 0: not counted yet
  bool comes_back_ = false;    // it has run apart before
  bool met_ = false;  // its family has been looked for
  std::vector<bool> given_infinite_;  // by output: held infinity that was given, as masks do; NaN alone counts from then on
  bool asked_to_tell_ = false;
  std::shared_ptr<const std::vector<Finite>> harmless_;  // by instruction of the program, where a search found nothing
  std::unique_ptr<const UnfusedPlan> unfused_;
};

using ExecutableRef = std::shared_ptr<Executable>;

// An executable as a Python object; null with an error set.
constexpr const char* kExecutableCapsule = "twofold.executable";
PyObject* executable_capsule(ExecutableRef executable);
// The executable of this canonical trace: one for all where it `stays`, else one that nobody else finds.
ExecutableRef executable_of(CanonicalTrace canonical, bool stays = true);
// The call that failed: what was called, where, and a tuple of the values it was called on.
struct FailedCall {
  const Signature* called = nullptr;
  Provenance provenance = {};
  PyObject* operands = nullptr;
};
// Sets the Python error for a kernel's error code.
void raise_kernel_error(const Program& program, const KernelError& error, const FailedCall& call);
// Whether the Python error that is set is one that an operation raised on purpose.
bool is_worded_error();
// Replaces the error that a host function raised on purpose by one that tells the user's line.
void locate_host_error(const FailedCall& call);
void clear_executables();

}  // namespace twofold
