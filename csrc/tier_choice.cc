#include "tier_choice.h"

#include <algorithm>

#include "trace_family.h"

namespace twofold {

namespace {

constexpr uint32_t kCompared = 3;            // runs of each tier
constexpr int64_t kUnknown = 1'000'000'000;  // estimated nanoseconds of compiling a program until one was measured
constexpr double kTie = 0.97;                // fraction of the program's time above which op by op does not win
constexpr double kClear = 0.7;               // fraction of the op-by-op time below which the program wins at once

uint64_t dropped = 0;
constexpr int64_t kRepaid = 2;     // multiple of the compile time that batched runs of a trace take before it is compiled
int64_t by_operation = 200'000;  // estimated nanoseconds of compiling, from recent compiles

}  // namespace

uint64_t dropped_programs() { return dropped; }

bool TierChoice::should_compile(const TraceFamily* family, size_t batched) const {
  if (!is_due() || spent_ < kRepaid * static_cast<int64_t>(batched) * by_operation) return false;
  if (!family) return true;
  if (family->planning) return false;
  return !family->asked || spent_ >= (family->nanoseconds ? family->nanoseconds : kUnknown);
}

void TierChoice::asked(TraceFamily* family) {
  state_ = State::kAsked;
  if (family) family->asked = true;
}

void TierChoice::ask_again(TraceFamily* family) {
  if (state_ != State::kAsked) return;
  state_ = State::kSingle;
  next_ask_ = 2 * std::max(ended_, 1u);
  if (family && !family->nanoseconds) family->asked = false;
}

void TierChoice::compiled(int64_t nanoseconds, size_t operations, TraceFamily* family) {
  if (operations) by_operation += (nanoseconds / static_cast<int64_t>(operations) - by_operation) / 4;
  state_ = State::kTried;
  verdict_ = nullptr;
  if (family && nanoseconds) family->nanoseconds = nanoseconds;
}

void TierChoice::planned(std::shared_ptr<Verdict> verdict) {
  verdict_ = std::move(verdict);
  state_ = *verdict_ == Verdict::kUnknown ? State::kTried : *verdict_ == Verdict::kFaster ? State::kKept : State::kRejected;
}

void TierChoice::took(bool fused, int64_t nanoseconds) {
  if (state_ == State::kTried) return compare(fused ? kFused : kSingle, nanoseconds);
  if (++ended_ == 1) return;  // that run planned
  spent_ += nanoseconds;
  if (state_ == State::kSingle) before_ = std::min(before_ ? before_ : nanoseconds, nanoseconds);
}

void TierChoice::compare(Tier tier, int64_t nanoseconds) {
  ++runs_[tier];
  fastest_[tier] = std::min(fastest_[tier], nanoseconds);
  const auto fused = static_cast<double>(fastest_[kFused]);
  if (runs_[kSingle] == 0 && fused < kClear * static_cast<double>(before_)) {
    decide(true);
  } else if (runs_[kFused] >= kCompared && runs_[kSingle] >= kCompared) {
    decide(static_cast<double>(fastest_[kSingle]) >= kTie * fused);
  }
}

void TierChoice::decide(bool faster) {
  state_ = faster ? State::kKept : State::kRejected;
  dropped += !faster;
  if (verdict_) *verdict_ = faster ? Verdict::kFaster : Verdict::kSlower;
}

}  // namespace twofold
