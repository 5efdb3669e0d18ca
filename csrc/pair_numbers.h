// A hash table from pairs of integers to consecutive numbers.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace twofold {

// Numbers pairs of integers in the order of their first look-up.
class PairNumbers {
 public:
  explicit PairNumbers(size_t expected) : slots_(std::bit_ceil(expected * 2 + 16), Slot{0, 0, kUnused}) {}

  // The number of a pair; `next` if it is new.
  uint32_t find(uint64_t a, uint64_t b, uint32_t next) {
    const size_t mask = slots_.size() - 1;
    uint64_t hash = (a ^ (b * 0x9E3779B97F4A7C15ull)) * 0xD6E8FEB86659FD93ull;
    for (size_t at = (hash ^ (hash >> 32)) & mask;; at = (at + 1) & mask) {
      Slot& slot = slots_[at];
      if (slot.number == kUnused) {
        slot = Slot{a, b, next};
        if (++count_ * 2 > slots_.size()) grow();
        return next;
      }
      if (slot.a == a && slot.b == b) return slot.number;
    }
  }

 private:
  static constexpr uint32_t kUnused = UINT32_MAX;

  struct Slot {
    uint64_t a, b;
    uint32_t number;
  };

  void grow() {
    std::vector<Slot> before(slots_.size() * 2, Slot{0, 0, kUnused});
    before.swap(slots_);
    count_ = 0;
    for (const Slot& slot : before) {
      if (slot.number != kUnused) find(slot.a, slot.b, slot.number);
    }
  }

  std::vector<Slot> slots_;
  size_t count_ = 0;
};

}  // namespace twofold
