// A thread beside the program's for one run at a time, which never needs the GIL.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace twofold::background {

// Whether a run could go on beside the program: with one thread it would only take the processor from it.
bool is_possible();
// The progress of a work, by steps; it is over at kOver.
using Progress = std::atomic<uint32_t>;
constexpr uint32_t kOver = UINT32_MAX;

// Begins to work; false if there is no thread. The work before has ended. The progress outlives the work.
bool begin(std::function<void()> work, Progress& progress);
// Works at it, too, until the progress has reached a number, for at most about so many nanoseconds, without the GIL.
void help(const Progress& progress, uint32_t reached, int64_t nanoseconds);

}  // namespace twofold::background
