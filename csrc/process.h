// The life of the process: forks, after which other threads are gone, and its end.
#pragma once

#include <cstdint>

namespace twofold {

// Grows in every forked child: what an earlier process began in another thread will never end.
uint64_t process_generation();
// Counts the threads that are at work in a library which must not be torn down under them. If the process ends
// meanwhile, it does so at once, without the destructors of libraries.
void at_work(bool begins);
// Once, when the module is loaded.
void watch_process();

}  // namespace twofold
