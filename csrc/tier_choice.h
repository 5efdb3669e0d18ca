// When a trace is worth compiling as one program, and whether that program is kept. Neither changes a bit of a result.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>

namespace twofold {

// Programs of traces that were slower than operations one by one.
uint64_t dropped_programs();

class TraceFamily;

class TierChoice {
 public:
  // After a run: whether the compiler is to be asked for one program now. It is when the trace comes back, unless other
  // sizes of it have been compiled, or it runs in batches, which are fast already; then only once its runs took twice as
  // long as compiling takes, which is estimated from its operations. `batched`: how many these are, 0 if it does not run in batches.
  bool should_compile(const TraceFamily* family, size_t batched) const;
  void asked(TraceFamily* family);
  // There may be memory, or a thread, later.
  void ask_again(TraceFamily* family);
  // The program of so many operations is there, which took so long to make; both 0 for one by a plan made before.
  void compiled(int64_t nanoseconds, size_t operations, TraceFamily* family);

  // Of a trace that has a program: whether the next run uses it. Where that is not clearly faster than operations one by
  // one were, some runs in turn decide.
  bool runs_program() const { return state_ == State::kKept || (state_ == State::kTried && runs_[kFused] <= runs_[kSingle] + 1); }
  // What was measured of a program by plan holds for all members of the family.
  void tell(TraceFamily* family) const;
  // It ran, and planned, before this was made.
  void has_run_before() { ended_ = std::max(ended_, 1u); }
  // The program is used from now on, as it was asked for before any run.
  void keep() {
    state_ = State::kKept;
    by_plan_ = false;  // nothing was measured that the family could go by
  }
  bool is_rejected() const { return state_ == State::kRejected; }

  // Times a run, by whichever tier, until it is known which to use: of this thread's processor, which waits for other
  // threads of the run but not while other programs have it.
  class Run {
   public:
    Run(TierChoice& choice, bool fused) : choice_(choice), fused_(fused), measures_(choice.state_ < State::kKept) {
      if (measures_) start_ = now();
    }
    // It ended as it should.
    void done() {
      if (measures_) choice_.took(fused_, now() - start_);
    }

   private:
    static int64_t now() {
      timespec time;
      clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
      return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
    }

    TierChoice& choice_;
    bool fused_, measures_;
    int64_t start_ = 0;
  };

 private:
  enum class State : uint8_t { kSingle, kAsked, kTried, kKept, kRejected };
  enum Tier { kSingle, kFused };

  void took(bool fused, int64_t nanoseconds);
  void compare(Tier tier, int64_t nanoseconds);

  State state_ = State::kSingle;
  bool by_plan_ = false;
  uint32_t ended_ = 0, next_ask_ = 2;  // runs op by op
  uint32_t runs_[2] = {0, 0};                    // of the comparison, by tier
  int64_t fastest_[2] = {INT64_MAX, INT64_MAX};  // of these
  int64_t spent_ = 0;                            // on runs op by op but the first, before the program was there
  int64_t before_ = 0;                           // the fastest of these
};

}  // namespace twofold
