// Profiler: times of kernels and runs. While no profile is recorded it costs a predicted branch.
#pragma once

#include <Python.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace twofold {

class BatchPlan;
class Executable;
struct RunProvenance;

struct ProfileEvent {
  enum Kind : uint8_t {
    kKernel,  // an instruction of a program
    kPiece,   // the part of one that a thread took
    kRun,     // of an executable
  };
  static constexpr int32_t kWhole = -1;  // in place of an entry: the program of the whole trace

  int64_t start, end;  // ticks
  uint32_t run;        // the number of the record of the executable
  int32_t entry;       // of the trace, kWhole, or kWhole - 1 - launch of several entries
  uint32_t instruction;
  uint16_t thread;     // of the pool, 0 the one that runs the program
  uint8_t kind;
  uint8_t depth;       // in how many other instructions
};
static_assert(sizeof(ProfileEvent) == 32);

// What the running kernels belong to.
struct ProfileContext {
  uint32_t run = 0;  // 0: nothing that is known
  int32_t entry = ProfileEvent::kWhole;
  uint8_t depth = 0;
};

namespace profile {

inline std::atomic<bool> recording{false};
inline thread_local ProfileContext context;

inline bool is_on() { return recording.load(std::memory_order_relaxed); }

inline int64_t ticks() {
#if defined(__x86_64__)
  return static_cast<int64_t>(__rdtsc());
#else
  return std::chrono::steady_clock::now().time_since_epoch().count();
#endif
}

// Of the thread that runs a program.
void note(const ProfileEvent& event);
// An instruction that began at `start` and has just ended; returns the time.
int64_t note_kernel(size_t instruction, int64_t start);

void start();
// (records, events as bytes, events dropped, (ticks, nanoseconds) at the start, the same now); a new reference.
PyObject* stop();

// Around an instruction; its nested instructions are parts of it.
class Inside {
 public:
  explicit Inside(bool timed) : timed_(timed) {
    if (timed_) ++context.depth;
  }
  ~Inside() {
    if (timed_) --context.depth;
  }
  Inside(const Inside&) = delete;

 private:
  const bool timed_;
};

// Around the run of an executable, under the GIL at both ends.
class Run {
 public:
  Run(Executable& executable, RunProvenance provenance);
  ~Run();
  Run(const Run&) = delete;

 private:
  const ProfileContext before_;
  const uint64_t recording_;  // its number, 0 for none
  int64_t start_;
};

// Sets the batch plan of the running executable, or null for op by op.
void runs_apart(Executable& executable, RunProvenance provenance, const std::shared_ptr<const BatchPlan>& plan);

}  // namespace profile

}  // namespace twofold
