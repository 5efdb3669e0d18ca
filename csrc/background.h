// A thread beside the program's for one run at a time, which never needs the GIL.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace twofold::background {

// Whether work can go on beside the program: there is a thread for it, and with one processor it would only take that from the program.
bool is_possible();
// The progress of a work, by steps; it is over at kOver.
using Progress = std::atomic<uint32_t>;
constexpr uint32_t kOver = UINT32_MAX;

// Begins to work, where that is possible and the work before has ended. The progress outlives the work.
void begin(std::function<void()> work, Progress& progress);

}  // namespace twofold::background
