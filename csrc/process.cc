#include "process.h"

#include <Python.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <iostream>

namespace twofold {
namespace {

std::atomic<uint64_t> generation{0};
std::atomic<int> working{0};

void after_fork_in_child() {
  generation.fetch_add(1);
  working.store(0);
}

#if defined(__GLIBC__)
void end_at_once(int status, void*) {
  if (working.load() <= 0) return;
  std::cout.flush();
  std::fflush(nullptr);
  _exit(status);
}

// Handlers run in reverse order of registration, so this one is before the destructors of all libraries.
void after_python() { on_exit(end_at_once, nullptr); }
#else
void after_python() {}
#endif

}  // namespace

uint64_t process_generation() { return generation.load(std::memory_order_relaxed); }

void at_work(bool begins) { working.fetch_add(begins ? 1 : -1); }

void watch_process() {
  pthread_atfork(nullptr, nullptr, after_fork_in_child);
  Py_AtExit(after_python);
}

}  // namespace twofold
