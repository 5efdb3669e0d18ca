// A lock that is held for a few instructions at a time.
#pragma once

#include <atomic>
#include <thread>

namespace twofold {

// Cheaper than std::mutex, whose functions are calls, where nobody else wants it. For std::lock_guard.
class SpinLock {
 public:
  void lock() noexcept {
    while (taken_.exchange(true, std::memory_order_acquire)) {
      // The thread that holds it may not be running.
      while (taken_.load(std::memory_order_relaxed)) std::this_thread::yield();
    }
  }
  void unlock() noexcept { taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> taken_{false};
};

}  // namespace twofold
