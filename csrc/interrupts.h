// The interpreter lock around long runs, and the signals that may end them.
#pragma once

#include <Python.h>

#include <cstdint>

namespace twofold {

// For a thread that the interpreter no longer lets run Python, as it is shutting down: it stays where it is, since
// unwinding would touch objects without the lock.
[[noreturn]] void stop_here();

// Releases the interpreter lock for its lifetime.
class Unlocked {
 public:
  explicit Unlocked(bool release = true) : state_(release ? PyEval_SaveThread() : nullptr) {}
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

// Looks for signals now and then during a run, which may hold the interpreter lock or not, so that an interrupt
// ends it. What is estimated to be short costs an addition.
class Interrupts {
 public:
  // Adds to the work done; throws PythonError where a handler of a signal raised.
  void after(int64_t nanoseconds) {
    estimated_ += nanoseconds;
    if (estimated_ >= kBetweenLooks && held_ == 0) look();
  }
  // As after, but false in place of the exception.
  bool goes_on_after(int64_t nanoseconds);
  // Whether a handler has raised; what was interrupted may be run again.
  bool raised() const { return raised_; }
  void note_raised() { raised_ = true; }

  // While this lives nothing is interrupted: what has begun to overwrite its inputs cannot be run again.
  class Held {
   public:
    explicit Held(Interrupts& interrupts) : interrupts_(interrupts) { ++interrupts_.held_; }
    ~Held() { --interrupts_.held_; }
    Held(const Held&) = delete;

   private:
    Interrupts& interrupts_;
  };
  // No stretch of work that looks for signals only at its end should be longer.
  static constexpr int64_t kStretch = 20'000'000;

 private:
  static constexpr int64_t kBetweenLooks = 1'000'000;  // estimated nanoseconds between two looks at the clock
  void look();

  int64_t estimated_ = 0, checked_ = 0;
  int held_ = 0;
  bool raised_ = false;
};

}  // namespace twofold
