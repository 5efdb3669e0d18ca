// A run that goes on in a thread of its own while Python records what comes next. There is one at a time. It reads and writes
// memory alone: reference counts change under the interpreter lock, which the thread never takes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "buffer.h"

namespace twofold {

class RunBehind {
 public:
  virtual ~RunBehind() = default;
  RunBehind() = default;
  RunBehind(const RunBehind&) = delete;

  // Starts a run behind which there is none; false where there is no thread for it, and nothing has begun.
  static bool start(std::shared_ptr<RunBehind> run);
  // Waits for the run that goes on, if one does, and lets go of all that it held. False with a Python error set where it
  // failed, or a signal ended the wait.
  static bool finish();
  // Waits until the contents of the buffer are there. False with a Python error set, as finish.
  static bool finish(const Buffer* buffer);
  // As finish, but a run that failed stays, for those who look at values to be told. False where a signal ended the wait.
  static bool settle();

  // The results, which know until the end that they are still to come; a result is there after so many steps.
  void makes(std::vector<BufferRef> results, const std::vector<uint32_t>& steps);
  // What computes the results one operation after another where the run failed, and tells why. False with a Python error set;
  // then those are null that could not be computed. It holds what the run reads.
  void fails_over(std::function<bool(std::vector<BufferRef>&)> again) { again_ = std::move(again); }

 protected:
  // In the thread; throws where it fails.
  virtual void compute() = 0;
  void took_step();

 private:
  friend class Follower;
  bool is_past(uint32_t step) const { return ended_.load(std::memory_order_acquire) || steps_.load(std::memory_order_acquire) > step; }
  bool conclude();

  std::atomic<uint32_t> steps_{0};
  std::atomic<bool> ended_{false};
  bool failed_ = false;
  std::vector<BufferRef> results_;
  std::function<bool(std::vector<BufferRef>&)> again_;
};

}  // namespace twofold
