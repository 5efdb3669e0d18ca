// Runs that go on in the background while the program records the next trace. Its values are pending meanwhile, and may be inputs of
// that trace. There is one such run at a time.
#pragma once

#include <cstdint>

#include "trace_run.h"

namespace twofold {

// Begins a run, which is taken over, unless it does not go on without Python, or is too short to be worth it.
bool begin_in_background(TraceRun& run, uint64_t stamp);
// Whether another one of this thread can begin where it ends; it is taken over then.
bool can_follow();
bool follow_background(TraceRun& run, uint64_t stamp);
// Whether there is such a run.
bool has_background();
uint64_t background_runs();  // how many there have been
// Waits for it, if there is one, and delivers its results; false with a Python error set.
bool finish_background();
// Copies the elements of a value that the run computes, without waiting for the rest of it, if they are `found` there; false with a
// Python error set.
bool read_in_background(const Value* value, void* to, bool* found);
// The owner of its values: no thread records into that.
Recorder& background_owner();
// Whether a value can be the input of a trace before its run has ended.
inline bool is_future_input(const Value* value) { return value->is_leaf && value->owner == &background_owner(); }

}  // namespace twofold
