// The lifecycle of the process: forks, after which other threads are gone, and exit.
#pragma once

#include <cstdint>

namespace twofold {

// Incremented in every forked child: work that another thread began before the fork will never end.
uint64_t process_generation();
// Counts the threads that are inside a library whose destructors must not run meanwhile. If the process exits
// meanwhile, it does so at once, without destructors of libraries.
void at_work(bool begins);
// Once, when the module is loaded.
void watch_process();

}  // namespace twofold
