#include <Python.h>

#include "run_behind.h"

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>

#include "interrupts.h"
#include "threads.h"

namespace twofold {

// The thread, and the run that it has been given.
class Follower {
 public:
  bool give(RunBehind* run) {
    std::lock_guard lock(mutex_);
    if (!thread_.joinable()) {
      try {
        const NoSignals blocked;
        thread_ = std::thread([this] { follow(); });
      } catch (const std::system_error&) {
        return false;
      }
    }
    given_ = run;
    changed_.notify_all();
    return true;
  }

  // Whether it is past the step, or has ended, in the end, or by then.
  bool wait(const RunBehind& run, uint32_t step, std::chrono::milliseconds most) {
    if (run.is_past(step)) return true;
    awaited_.fetch_add(1);
    std::unique_lock lock(mutex_);
    const bool past = changed_.wait_for(lock, most, [&] { return run.is_past(step); });
    awaited_.fetch_sub(1);
    return past;
  }

  void tell() {
    if (awaited_.load() == 0) return;
    std::lock_guard lock(mutex_);
    changed_.notify_all();
  }

 private:
  void follow() {
    leave_processor_unless(&awaited_);
    for (;;) {
      RunBehind* run;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return given_ != nullptr; });
        run = std::exchange(given_, nullptr);
      }
      try {
        run->compute();
      } catch (...) {
        run->failed_ = true;
      }
      // Under the lock, so that nobody who waits lets go of the run before it has been told.
      std::lock_guard lock(mutex_);
      run->ended_.store(true, std::memory_order_release);
      changed_.notify_all();
    }
  }

  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<int> awaited_{0};
  RunBehind* given_ = nullptr;
};

namespace {

constexpr std::chrono::milliseconds kBetweenSignals{20};

// Never freed: the thread may outlive the interpreter.
Follower*& follower() {
  static Follower* found = new Follower();
  return found;
}

// Changes under the interpreter lock only.
std::shared_ptr<RunBehind>& ongoing() {
  static auto& run = *new std::shared_ptr<RunBehind>();
  return run;
}

// Before the process forks, as the child has the thread no more, and before it ends.
void end_run() {
  if (const RunBehind* run = ongoing().get()) {
    while (!follower()->wait(*run, UINT32_MAX, kBetweenSignals)) {}
  }
}

// Waits without the interpreter lock; false with a Python error set where a signal's handler raised.
bool wait_for(const RunBehind& run, uint32_t step) {
  bool past = follower()->wait(run, step, std::chrono::milliseconds(0));
  while (!past) {
    {
      const Unlocked unlocked;
      past = follower()->wait(run, step, kBetweenSignals);
    }
    if (PyErr_CheckSignals() != 0) return false;
  }
  return true;
}

}  // namespace

bool RunBehind::start(std::shared_ptr<RunBehind> run) {
  static const int once = pthread_atfork(end_run, nullptr, [] { follower() = new Follower(); }) + Py_AtExit(end_run);
  if (once != 0 || ongoing() || !follower()->give(run.get())) return false;
  ongoing() = std::move(run);
  return true;
}

void RunBehind::makes(std::vector<BufferRef> results, const std::vector<uint32_t>& steps) {
  results_ = std::move(results);
  for (size_t k = 0; k < results_.size(); ++k) {
    results_[k]->maker = this;
    results_[k]->step = steps[k];
  }
}

void RunBehind::took_step() {
  steps_.fetch_add(1);
  follower()->tell();
}

bool RunBehind::finish() {
  const std::shared_ptr<RunBehind> run = ongoing();
  if (!run) return true;
  if (!wait_for(*run, UINT32_MAX)) return false;
  if (ongoing() != run) return true;  // somebody else was faster
  ongoing() = nullptr;
  return run->conclude();
}

bool RunBehind::finish(const Buffer* buffer) {
  const std::shared_ptr<RunBehind> run = ongoing();
  if (!buffer->maker || buffer->maker != run.get()) return true;
  if (!wait_for(*run, buffer->step)) return false;
  return !run->ended_.load(std::memory_order_acquire) || finish();
}

bool RunBehind::settle() {
  const std::shared_ptr<RunBehind> run = ongoing();
  if (!run) return true;
  return wait_for(*run, UINT32_MAX) && (run->failed_ || finish());
}

bool RunBehind::conclude() {
  for (const BufferRef& result : results_) result->maker = nullptr;
  if (!failed_) return true;
  std::vector<BufferRef> made;
  const bool done = again_(made);
  made.resize(results_.size());
  for (size_t k = 0; k < results_.size(); ++k) {
    if (made[k]) std::memcpy(results_[k]->address, made[k]->address, results_[k]->nbytes);
    else results_[k]->failed = true;
  }
  return done;
}

void Buffer::wait() const {
  while (maker && !follower()->wait(*maker, step, kBetweenSignals)) {}
}

}  // namespace twofold
