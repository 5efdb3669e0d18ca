// Release of the GIL around long runs, and interruption of runs by signals.
#pragma once

#include <Python.h>

#include <cstdint>

namespace twofold {

// For a thread that can no longer acquire the GIL, as the interpreter is shutting down: it blocks forever, since
// unwinding would touch objects without the GIL.
[[noreturn]] void stop_here();

// Below this much work (estimated nanoseconds) releasing the GIL costs more than it gains.
constexpr int64_t kReleaseWork = 1 << 16;

// Releases the GIL for its lifetime.
class Unlocked {
 public:
  explicit Unlocked(bool release = true) : state_(release ? PyEval_SaveThread() : nullptr) {}
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

// Polls for signals during a run, which may hold the GIL or not, so that an interrupt
// ends it. For work that is estimated to be short this costs an addition.
class Interrupts {
 public:
  // Adds to the work done; throws PythonError if a signal handler raised.
  void after(int64_t nanoseconds) {
    estimated_ += nanoseconds;
    if (estimated_ >= kBetweenLooks && held_ == 0) look();
  }
  // As after, but returns false in place of the exception.
  bool goes_on_after(int64_t nanoseconds);
  // Whether a handler has raised; the run may be repeated.
  bool raised() const { return raised_; }
  void note_raised() { raised_ = true; }
  // Whether the run failed after it began to overwrite inputs.
  bool has_overwritten() const { return overwritten_; }
  void note_overwritten() { overwritten_ = true; }

  // While it lives nothing is interrupted: a run that overwrites its inputs cannot be repeated.
  class Held {
   public:
    explicit Held(Interrupts& interrupts) : interrupts_(interrupts) { ++interrupts_.held_; }
    ~Held() { --interrupts_.held_; }
    Held(const Held&) = delete;

   private:
    Interrupts& interrupts_;
  };
  // The longest work that should be done without polling.
  static constexpr int64_t kStretch = 20'000'000;

 private:
  static constexpr int64_t kBetweenLooks = 1'000'000;  // estimated nanoseconds between two readings of the clock
  void look();

  int64_t estimated_ = 0, checked_ = 0;
  int held_ = 0;
  bool raised_ = false, overwritten_ = false;
};

}  // namespace twofold
