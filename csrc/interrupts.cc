#include "interrupts.h"

#include <cxxabi.h>
#include <unistd.h>

#include <chrono>

#include "program.h"

namespace twofold {
namespace {

constexpr int64_t kBetweenChecks = 20'000'000;  // nanoseconds between two polls for signals

int64_t now() {
  auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

}  // namespace

void stop_here() {
  for (;;) pause();
}

Unlocked::~Unlocked() {
  if (!state_) return;
  try {
    PyEval_RestoreThread(state_);
  } catch (const abi::__forced_unwind&) {
    stop_here();
  }
}

void Interrupts::look() {
  estimated_ = 0;
  int64_t time = now();
  if (!checked_) checked_ = time;
  if (time - checked_ < kBetweenChecks) return;
  checked_ = time;
  PyGILState_STATE state;
  try {
    state = PyGILState_Ensure();
  } catch (const abi::__forced_unwind&) {
    stop_here();
  }
  raised_ = PyErr_CheckSignals() != 0;
  PyGILState_Release(state);
  if (raised_) throw PythonError{};
}

bool Interrupts::goes_on_after(int64_t nanoseconds) {
  try {
    after(nanoseconds);
  } catch (const PythonError&) {
    return false;
  }
  return true;
}

}  // namespace twofold
