#include "tier_choice.h"

#include <algorithm>
#include <string>

#include "cache.h"

namespace twofold {

struct TraceFamily {
  uint64_t used = 0;  // when, see Cache
  bool asked = false;
  int64_t nanoseconds = 0;  // that its last program took to make; 0: none is there yet

  size_t memory() const { return sizeof *this; }
};

namespace {

constexpr uint32_t kCompared = 3;            // runs of each tier
constexpr int64_t kUnknown = 1'000'000'000;  // nanoseconds that a program is taken to take to make until one is made
constexpr double kTie = 0.97;                // of the program's time, above which operations one by one do not win
constexpr double kClear = 0.7;               // of the time of operations one by one, below which the program wins at once

uint64_t dropped = 0;

auto& families = *new Cache<TraceFamily>("trace families", 1);

// What a trace computes, whatever the numbers in its types and attributes.
std::shared_ptr<TraceFamily> family_of(const CanonicalTrace& canonical) {
  std::string key;
  auto append = [&key](const void* data, size_t size) { key.append(static_cast<const char*>(data), size); };
  const Trace& trace = canonical.trace;
  for (const Type* type : trace.leaves) {
    key.push_back(static_cast<char>(type->dtype));
    key.push_back(static_cast<char>(type->weak));
    const auto rank = static_cast<uint32_t>(type->shape.size());
    append(&rank, sizeof rank);
  }
  for (const Entry& entry : trace.entries) {
    const std::string& skeleton = entry.signature->attributes->skeleton;
    const uint64_t hash = hash_bytes(skeleton.data(), skeleton.size());
    append(&entry.signature->operation->id, sizeof entry.signature->operation->id);
    append(&hash, sizeof hash);
    append(trace.inputs(entry), entry.count * sizeof(Ref));
  }
  append(canonical.outputs.data(), canonical.outputs.size() * sizeof(Ref));
  const uint64_t hashes[2] = {hash_bytes(key.data(), key.size()), trace.entries.size()};
  std::string short_key(reinterpret_cast<const char*>(hashes), sizeof hashes);
  if (auto found = families.find(short_key)) return found;
  auto made = std::make_shared<TraceFamily>();
  families.insert(std::move(short_key), made);
  families.bound();
  return made;
}

}  // namespace

uint64_t dropped_programs() { return dropped; }

bool TierChoice::should_compile(const CanonicalTrace& trace) {
  if (state_ != State::kSingle || ended_ < next_ask_) return false;
  if (!family_) family_ = family_of(trace);
  return !family_->asked || spent_ >= (family_->nanoseconds ? family_->nanoseconds : kUnknown);
}

void TierChoice::asked() {
  state_ = State::kAsked;
  if (family_) family_->asked = true;
}

void TierChoice::ask_again() {
  if (state_ != State::kAsked) return;
  state_ = State::kSingle;
  next_ask_ = 2 * std::max(ended_, 1u);
  if (family_ && !family_->nanoseconds) family_->asked = false;
}

void TierChoice::compiled(int64_t nanoseconds) {
  state_ = State::kTried;
  if (family_) family_->nanoseconds = std::max<int64_t>(nanoseconds, 1);
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
    state_ = State::kKept;
  } else if (runs_[kFused] >= kCompared && runs_[kSingle] >= kCompared) {
    state_ = static_cast<double>(fastest_[kSingle]) < kTie * fused ? State::kRejected : State::kKept;
    dropped += state_ == State::kRejected;
  }
}

}  // namespace twofold
