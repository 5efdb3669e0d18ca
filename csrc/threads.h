// A pool of worker threads that spin briefly and then park; it starts anew after fork.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

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

// std::memcpy, shared between threads where there is much to copy.
void copy_memory(void* to, const void* from, size_t nbytes);

// Runs a kernel that copies `count` parts, of `nbytes` bytes in all; the context is its only buffer.
void copy_parallel(Kernel copy, void* context, int64_t count, int64_t nbytes, Interrupts& interrupts);

// A part of what is copied together.
struct CopiedPart {
  char* to;
  const char* from;
  size_t nbytes;
};

// std::memcpy of each part, shared between threads where there is much to copy.
void copy_parts(const std::vector<CopiedPart>& parts, Interrupts& interrupts);

}  // namespace twofold
