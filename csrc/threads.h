// A pool of worker threads that spin briefly and then park; it starts anew after fork.
#pragma once

#include <atomic>
#include <cstdint>

#include "interrupts.h"

namespace twofold {

// Handles work items [begin, end); a value other than 0 is a run-time error, or tells what it stored (finite.h).
using Kernel = int64_t (*)(void** buffers, const int64_t* params, int64_t begin, int64_t end);

void set_thread_count(int count);
int thread_count();

// A grain of work should take about this many nanoseconds.
constexpr int64_t kGrainNanoseconds = 15'000;

// Runs kernel over [0, work), shared between threads in pieces that are multiples of grain. Throws PythonError where
// a signal handler raised.
int64_t run_parallel(Kernel kernel, void** buffers, const int64_t* params, int64_t work, int64_t grain, Interrupts& interrupts);

// While one lives, workers wait for milliseconds before they park: more work is likely to come, and to wake one takes tens
// of microseconds in a virtual machine.
class Awake {
 public:
  Awake();
  ~Awake();
  Awake(const Awake&) = delete;
};

// While one lives the last worker rests: its processor is that of a thread that records, and helps as soon as it waits.
class Helped {
 public:
  Helped();
  ~Helped();
  Helped(const Helped&) = delete;
};

// Does the work of the last worker until a counter has reached a number, for at most about so many nanoseconds.
void help_until(const std::atomic<uint32_t>& counter, uint32_t reached, int64_t nanoseconds);

}  // namespace twofold
