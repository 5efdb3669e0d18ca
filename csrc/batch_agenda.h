// The order of launches in batches, see docs/batches.md.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "batch_scratch.h"

namespace twofold {

// The calls that are ready, by key. The key that comes before others is launched next, with all its ready calls. To wait for more calls is
// of no use where a key is complete: it goes first, so that what the program reads, such as the loss, is there early.
class Agenda {
  auto goes_later() const {
    return [this](uint32_t a, uint32_t b) { return keys_[b].comes_before(keys_[a]); };
  }

 public:
  explicit Agenda(std::vector<Key>& keys) : keys_(keys) {}

  void add(uint32_t number, uint32_t call) {
    Key& key = keys_[number];
    key.ready.push_back(call);
    if (key.is_complete()) complete_.push_back(number);
    if (std::exchange(key.is_queued, true)) return;
    available_.push_back(number);
    std::push_heap(available_.begin(), available_.end(), goes_later());
  }

  // The calls of the next launch; none if nothing is ready.
  std::vector<uint32_t> take() {
    while (!complete_.empty() || !available_.empty()) {
      Key& key = keys_[complete_.empty() ? take_first() : take_complete()];
      key.launched += static_cast<uint32_t>(key.ready.size());
      if (!key.ready.empty()) return std::exchange(key.ready, {});
    }
    return {};
  }

 private:
  uint32_t take_complete() {
    const uint32_t number = complete_.back();
    complete_.pop_back();
    return number;
  }

  uint32_t take_first() {
    std::pop_heap(available_.begin(), available_.end(), goes_later());
    const uint32_t number = available_.back();
    available_.pop_back();
    keys_[number].is_queued = false;
    return number;
  }

  std::vector<Key>& keys_;
  std::vector<uint32_t> available_, complete_;
};

}  // namespace twofold
