#include <Python.h>

#include "background_run.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "background.h"
#include "batch_run.h"
#include "guard.h"
#include "threads.h"

namespace twofold {
namespace {

uint64_t runs = 0;
constexpr int64_t kBetweenLooks = 20'000'000;  // nanoseconds of waiting between two looks for signals

struct BackgroundRun {
  BackgroundRun(TraceRun begun, std::unique_ptr<BatchRun> prepared, uint64_t trace_stamp)
      : trace(std::move(begun)), batches(std::move(prepared)), stamp(trace_stamp) {}

  // On the other thread, without the GIL.
  void execute() {
    Interrupts interrupts;
    const Interrupts::Held whole(interrupts);
    const int64_t start = processor_time();
    try {
      batches->execute(interrupts, &progress);
    } catch (...) {
      failed = true;
    }
    nanoseconds = processor_time() - start;
  }

  // False with a Python error set.
  bool compute_results(Interrupts& interrupts) {
    if (!failed) {
      try {
        batches->finish(trace.cached->living, trace.results);
        return true;
      } catch (const std::bad_alloc&) {
        failed = true;
      }
    }
    trace.results.clear();
    return trace.run(interrupts);
  }

  TraceRun trace;
  const std::unique_ptr<BatchRun> batches;
  const uint64_t stamp;
  const Recorder* const recorder = &Recorder::current();
  background::Progress progress{0};  // in launches
  int64_t nanoseconds = 0;
  bool failed = false;  // it is repeated where it is waited for, which words the error
};

// The GIL guards it.
std::shared_ptr<BackgroundRun>& current_run() {
  static auto& run = *new std::shared_ptr<BackgroundRun>();
  return run;
}

// Until so many launches have ended; false with a Python error set.
bool wait_for(BackgroundRun& run, uint32_t launches) {
  while (run.progress.load(std::memory_order_acquire) < launches) {
    {
      const Unlocked unlocked;
      help_until(run.progress, launches, kBetweenLooks);
    }
    if (PyErr_CheckSignals() != 0) return false;
  }
  return true;
}

// A run that begins where the one in the background ends: the update of parameters, which overwrites them.
struct FollowingRun {
  TraceRun trace;
  uint64_t stamp;
};

std::unique_ptr<FollowingRun>& following() {
  static auto& run = *new std::unique_ptr<FollowingRun>();
  return run;
}

// False with a Python error set.
bool run_following() {
  std::unique_ptr<FollowingRun> run = std::move(following());
  const Running running(run->stamp);  // other threads wait meanwhile
  Interrupts interrupts;
  std::shared_ptr<SavedTrace> saved;
  if (run->trace.run(interrupts)) return run->trace.deliver(saved);
  if (interrupts.raised() || is_transient_error()) following() = std::move(run);
  else run->trace.deliver_rest();
  return false;
}

// False with a Python error set.
bool deliver(const std::shared_ptr<BackgroundRun>& run) {
  TraceRun& trace = run->trace;
  const Running running(run->stamp);
  Interrupts interrupts;
  if (!run->compute_results(interrupts)) {
    if (interrupts.raised() || is_transient_error()) {
      current_run() = run;
    } else {
      trace.deliver_rest();
      if (const std::unique_ptr<FollowingRun> next = std::move(following())) next->trace.deliver_rest();
    }
    return false;
  }
  std::shared_ptr<SavedTrace> saved;
  if (!trace.deliver(saved)) return false;
  const TraceRun::Lines lines(trace);
  const bool done = run->failed || trace.cached->executable->ran_apart(run->nanoseconds, lines.get(), interrupts);
  Recorder::current().recycle(std::move(trace.provenance));
  return done;
}

}  // namespace

bool begin_in_background(TraceRun& run, uint64_t stamp) try {
  // Deferred values have no memory when it ends.
  if (!background::is_possible() || has_background() || !run.cached->deferred.empty()) return false;
  std::vector<void*> inputs;
  inputs.reserve(run.cached->leaf_source.size());
  for (int32_t source : run.cached->leaf_source) {
    Leaf& leaf = run.leaves[static_cast<size_t>(source)];
    if (leaf.value && !leaf.value->buffer) return false;  // where it runs here it fails
    inputs.push_back(TraceRun::memory_of(leaf));
  }
  const TraceRun::Lines lines(run);
  bool is_long = false;
  std::unique_ptr<BatchRun> batches = run.cached->executable->prepare_apart(inputs.data(), lines.get(), &is_long);
  if (!batches) {
    if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) PyErr_SetInterrupt();
    PyErr_Clear();
    return false;
  }
  // Planning may have let another thread begin one.
  if (!is_long || has_background()) {
    run.prepared = std::move(batches);
    return false;
  }
  current_run() = std::make_shared<BackgroundRun>(std::move(run), std::move(batches), stamp);
  BackgroundRun* begun = current_run().get();
  background::begin([begun] { begun->execute(); }, begun->progress);
  for (const ValueRef& value : begun->trace.living) value->owner = &background_owner();
  ++runs;
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

bool can_follow() { return current_run() && current_run()->recorder == &Recorder::current() && !following(); }

bool follow_background(TraceRun& run, uint64_t stamp) {
  if (!can_follow()) return false;
  following() = std::make_unique<FollowingRun>(FollowingRun{std::move(run), stamp});
  for (const ValueRef& value : following()->trace.living) value->owner = &background_owner();
  return true;
}

uint64_t background_runs() { return runs; }

bool has_background() { return current_run() || following(); }

bool finish_background() {
  while (std::shared_ptr<BackgroundRun> run = current_run()) {
    if (!wait_for(*run, background::kOver)) return false;
    if (current_run() != run) continue;  // another thread has delivered it
    current_run() = nullptr;
    if (!deliver(run)) return false;
  }
  return !following() || run_following();
}

bool read_in_background(const Value* value, void* to, bool* found) {
  *found = false;
  const std::shared_ptr<BackgroundRun> run = value->owner == &background_owner() ? current_run() : nullptr;
  if (!run) return true;
  const std::vector<ValueRef>& living = run->trace.living;
  const auto held = std::find_if(living.begin(), living.end(), [value](const ValueRef& one) { return one.get() == value; });
  if (held == living.end()) return true;
  const auto [launches, data] = run->batches->location(static_cast<size_t>(held - living.begin()));
  if (!wait_for(*run, launches)) return false;
  if (current_run() != run || run->progress.load(std::memory_order_acquire) == background::kOver) return true;
  std::memcpy(to, data, static_cast<size_t>(value->type->nbytes));
  *found = true;
  return true;
}

Recorder& background_owner() {
  static Recorder& owner = *new Recorder();
  return owner;
}

}  // namespace twofold
