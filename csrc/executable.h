// Executables: canonical traces that run op by op or in batches at first, and as one fused program when they repeat.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "batch_plan.h"
#include "batch_run.h"
#include "buffer.h"
#include "location.h"
#include "tier_choice.h"
#include "trace.h"
#include "trace_family.h"
#include "unfused_run.h"

namespace twofold {

enum class Tier : uint8_t { kAuto, kUnfused, kFused };

// kAtOnce runs every trace in batches if possible, and plans each launch at first sight, for tests; kCallsAtOnce knows no bodies.
enum class Batching : uint8_t { kOff, kAuto, kAtOnce, kCallsAtOnce };

// Anomaly detection: of all results, or of those of backward passes, for NaN only.
enum class Anomaly : uint8_t { kOff, kAll, kBackward };

struct Settings {
  Tier tier = Tier::kAuto;
  int64_t node_budget = 250000;
  Batching batching = Batching::kAuto;
  Anomaly anomaly = Anomaly::kOff;
  bool tells_finite = false;  // compiled kernels report values that are not finite, as anomaly detection has been on
};
extern Settings settings;

// Entries from which a trace, and its executable, are kept after a first run only where there is room.
constexpr size_t kLongTrace = 4096;
// The first run of a trace; that of one that has run before by an executable that was not kept; or one that is not to be cached.
enum class Coming : uint8_t { kFirst, kAgain, kOnly };

class Executable : public std::enable_shared_from_this<Executable> {
 public:
  explicit Executable(CanonicalTrace canonical);
  ~Executable();

  const CanonicalTrace canonical;
  uint64_t used = 0;  // when, see Cache
  size_t memory() const;

  // Inputs: one pointer for each canonical leaf. Outputs: filled with new buffers, one for each output, or with
  // `spare[k]`, the buffer of leaf k, which the caller has no further use for (null where it has; spare may be null).
  // Those behind the first `apart` ones may be slices of one buffer, as they die together.
  // Returns false with a Python error set; then the inputs are as they were, but for spare ones where the error is that of
  // an operation. `prepared`: by `prepare_apart`, for these inputs.
  // `values`: those of the inputs; then results that depend on weights alone may be kept for the next run.
  bool run(void* const* inputs, Buffer* const* spare, size_t apart, std::vector<BufferRef>& outputs, RunProvenance provenance,
           Interrupts& interrupts, std::unique_ptr<BatchRun> prepared = nullptr, const InputValues* values = nullptr);
  // The run in batches of calls, to be executed by another thread if it `is_long` and does without Python, else by `run`. Null if there is
  // none, or it was short before, perhaps with a Python error set.
  std::unique_ptr<BatchRun> prepare_apart(void* const* inputs, RunProvenance provenance, bool* is_long);
  // After a run by another thread, which it took so long; false with a Python error set.
  bool ran_apart(int64_t nanoseconds, RunProvenance provenance, Interrupts& interrupts);
  // Compiles the fused program ahead of time; false with a Python error set.
  bool prepare(RunProvenance provenance, Interrupts& interrupts);
  // Called under the GIL, from any thread, with the nanoseconds that it took to compile the program.
  void set_fused(ProgramRef program, int64_t nanoseconds);
  bool is_fused() const { return fused_ != nullptr; }
  // The program that was asked for will not come.
  void ask_again() { choice_.ask_again(family_.lock().get()); }
  // Adds the symbolic plan of Python, or None; false with a Python error set. `varies`: as it was asked for, a tuple.
  bool add_plan(PyObject* varies, PyObject* encoded);

 private:
  friend std::shared_ptr<Executable> executable_of(CanonicalTrace canonical, Coming coming);

  void has_run_before();
  bool run_tiers(void* const* inputs, Buffer* const* spare, size_t apart, std::vector<BufferRef>& outputs, RunProvenance provenance,
                 Interrupts& interrupts, std::unique_ptr<BatchRun> prepared, const InputValues* values, FiniteWatch* watch);
  // Asks for the program with kernels that report values that are not finite; until then results are checked.
  bool ask_to_tell(bool wait, RunProvenance provenance, Interrupts& interrupts);
  void note_harmless(const FiniteWatch& watch);
  // False with a Python error set if a result is not finite and the call that made it is found.
  bool check_finite(void* const* inputs, const std::vector<BufferRef>& outputs, RunProvenance provenance, Anomaly anomaly, Interrupts& interrupts);
  // `alone` is set if operations had to run one by one after all.
  bool run_fused(const ProgramRef& ref, bool& alone, void* const* inputs, Buffer* const* spare, std::vector<BufferRef>& outputs,
                 RunProvenance provenance, Interrupts& interrupts, const InputValues* values, FiniteWatch* watch);
  bool find_batches(void* const* inputs, RunProvenance provenance, std::shared_ptr<const BatchPlan>* out);
  // Asks for the fused program where that is worth it; false with a Python error set.
  bool ask_if_due(RunProvenance provenance, Interrupts& interrupts);
  // In batches if that is worth it, else op by op.
  bool run_apart(void* const* inputs, Buffer* const* spare, size_t apart, std::vector<BufferRef>& outputs, RunProvenance provenance,
                 Interrupts& interrupts, std::unique_ptr<BatchRun> prepared);
  // The locations of the first and the last entry.
  std::pair<uint32_t, uint32_t> lines(RunProvenance provenance) const;
  bool log_batches(const BatchPlan& plan, RunProvenance provenance) const;
  bool run_unfused(void* const* inputs, Buffer* const* spare, std::vector<BufferRef>& outputs, RunProvenance provenance,
                   Interrupts& interrupts);
  // Instantiates a symbolic plan of its family, or asks for one; false with a Python error set.
  bool find_program(bool wait, RunProvenance provenance, Interrupts& interrupts);
  // Whether a plan of the family gave the program.
  bool use_plan(TraceFamily& family);
  // Whether that is a program whose speed is not known yet.
  bool keep_fused(ProgramRef program);
  bool ask_for_plan(TraceFamily& family, bool wait, RunProvenance provenance, Interrupts& interrupts);
  // The number of entries to plan, repetitions counted once.
  size_t entries_to_plan();
  bool worth_fusing();
  bool is_one_call() const { return canonical.trace.entries.size() <= 1; }
  bool ask_for_fused(bool wait, RunProvenance provenance, Interrupts& interrupts);

  // So many bytes more are held, or fewer.
  void charge(ptrdiff_t bytes) const;
  // Takes budget from other caches for what is needed again, or, if the trace is long, may be.
  void borrow(bool is_needed) const;
  bool is_long() const { return canonical.trace.entries.size() >= kLongTrace; }

  ProgramRef fused_;
  TierChoice choice_;
  std::weak_ptr<TraceFamily> family_;
  std::shared_ptr<const BatchPlan> batches_;  // of a trace that repeats
  bool stands_alone_ = false;  // few of its calls can be batched
  bool is_short_ = false;      // its run in batches is too short for another thread, or needs Python
  size_t to_plan_ = 0;         // entries; 0: not counted yet
  bool is_cached_ = false;
  bool comes_back_ = false;    // it has run op by op before
  bool met_ = false;  // its family has been looked up
  std::vector<bool> given_infinite_;  // by output: has infinities of inputs, as masks do; only NaN is reported from then on
  bool asked_to_tell_ = false;
  std::shared_ptr<const std::vector<Finite>> harmless_;  // by instruction of the program: values that detection found harmless
  std::unique_ptr<const UnfusedPlan> unfused_;
  std::unique_ptr<InputWatch> inputs_;  // of a program with results that depend on weights alone
};

using ExecutableRef = std::shared_ptr<Executable>;

// An executable as a Python object; null with an error set.
constexpr const char* kExecutableCapsule = "twofold.executable";
PyObject* executable_capsule(ExecutableRef executable);
ExecutableRef executable_of(CanonicalTrace canonical, Coming coming = Coming::kFirst);
// Whether there is room for the executable of a trace of so many entries.
bool has_room_for_executable(size_t entries);
// The call that failed: what was called, where, and a tuple of the values it was called on.
struct FailedCall {
  const OpInstance* called = nullptr;
  Provenance provenance = {};
  PyObject* operands = nullptr;
};
// Sets the Python error for a kernel's error code.
void raise_kernel_error(const Program& program, const KernelError& error, const FailedCall& call);
// Whether the Python error that is set is of the error class of operations.
bool is_worded_error();
// Adds the user's line to the error that a host function raised.
void locate_host_error(const FailedCall& call);
void clear_executables();

}  // namespace twofold
