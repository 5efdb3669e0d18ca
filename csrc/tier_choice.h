// Tier choice: when a trace is compiled as one program, and whether that program is kept. Results do not depend on it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <memory>

namespace twofold {

// Fused programs that were slower than op-by-op execution.
uint64_t dropped_programs();

// Nanoseconds of this thread's processor, which waits for other threads of a run but not while other programs have it.
inline int64_t processor_time() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

class TraceFamily;

// What was measured of programs by one plan for symbolic sizes.
enum class Verdict : uint8_t { kUnknown, kFaster, kSlower };

class TierChoice {
 public:
  // After a run: whether the compiler is to be asked for one program now. It is when the trace comes back, unless other
  // sizes of it have been compiled, or it runs in batches, which are fast already; then only once its runs took twice as
  // long as compiling takes, which is estimated from its operations. `batched`: how many these are, 0 if it does not run in batches.
  bool should_compile(const TraceFamily* family, size_t batched) const;
  // Whether that may be so after this run.
  bool is_due() const { return state_ == State::kSingle && ended_ >= next_ask_; }
  void asked(TraceFamily* family);
  // Ask again later: there was no memory or thread.
  void ask_again(TraceFamily* family);
  // The program of so many operations is there, which took so long to make.
  void compiled(int64_t nanoseconds, size_t operations, TraceFamily* family);
  // A program by a plan for symbolic sizes is there, which shares what is measured with others by that plan.
  void planned(std::shared_ptr<Verdict> verdict);

  // Whether the next run uses the fused program. If that is not clearly faster than op by op
  // was, some runs alternate to decide.
  bool runs_program() const { return state_ == State::kKept || (state_ == State::kTried && runs_[kFused] <= runs_[kSingle] + 1); }
  // The trace ran before this was made.
  void has_run_before() { ended_ = std::max(ended_, 1u); }
  // Use the program from now on, as it was compiled ahead of time.
  void keep() {
    state_ = State::kKept;
    verdict_ = nullptr;  // nothing was measured for the plan
  }
  bool is_rejected() const { return state_ == State::kRejected; }

  // A run op by op, or in batches, took so long.
  void ran_single(int64_t nanoseconds) {
    if (state_ < State::kKept) took(false, nanoseconds);
  }

  // Times a run, by whichever tier, until it is known which to use; not where there is no choice, as asking for the time
  // takes as long as a small kernel.
  class Run {
   public:
    Run(TierChoice& choice, bool fused, bool has_choice)
        : choice_(choice), fused_(fused), measures_(has_choice && choice.state_ < State::kKept) {
      if (measures_) start_ = processor_time();
    }
    // The run succeeded.
    void done() {
      if (measures_) choice_.took(fused_, processor_time() - start_);
    }

   private:
    TierChoice& choice_;
    bool fused_, measures_;
    int64_t start_ = 0;
  };

 private:
  enum class State : uint8_t { kSingle, kAsked, kTried, kKept, kRejected };
  enum Tier { kSingle, kFused };

  void took(bool fused, int64_t nanoseconds);
  void compare(Tier tier, int64_t nanoseconds);
  void decide(bool faster);

  State state_ = State::kSingle;
  std::shared_ptr<Verdict> verdict_;  // of the plan of the program, if that was made by one
  uint32_t ended_ = 0, next_ask_ = 2;  // runs op by op
  uint32_t runs_[2] = {0, 0};                    // of the comparison, by tier
  int64_t fastest_[2] = {INT64_MAX, INT64_MAX};  // of these
  int64_t spent_ = 0;                            // on runs op by op but the first, before the program was there
  int64_t before_ = 0;                           // the fastest of these
};

}  // namespace twofold
