#include "background.h"

#include <pthread.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "threads.h"

namespace twofold::background {
namespace {

// Signals are handled by the threads of the program.
class Runner {
 public:
  Runner() {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      std::thread([this] { loop(); }).detach();
      has_started = true;
    } catch (const std::system_error&) {
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void begin(std::function<void()> work, Progress& progress) {
    progress.store(0, std::memory_order_relaxed);
    {
      std::lock_guard lock(mutex_);
      is_idle.store(false, std::memory_order_relaxed);
      work_ = std::move(work);
      progress_ = &progress;
    }
    wake_.notify_one();
  }

  std::atomic<bool> is_idle{true};
  bool has_started = false;

 private:
  [[noreturn]] void loop() {
    for (;;) {
      std::function<void()> work;
      Progress* progress;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [this] { return static_cast<bool>(work_); });
        work = std::exchange(work_, nullptr);
        progress = progress_;
      }
      {
        const Helped helped;
        const Awake workers;
        work();
      }
      std::lock_guard lock(mutex_);  // who sees that the run is over may begin another one
      progress->store(kOver, std::memory_order_release);
      is_idle.store(true, std::memory_order_release);
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::function<void()> work_;
  Progress* progress_ = nullptr;
};

// Never freed, as its thread may outlive everything else. The child of a fork has no such thread.
std::atomic<Runner*> runner{nullptr};

void before_fork() {
  const Runner* found = runner.load();
  while (found && !found->is_idle.load(std::memory_order_acquire)) std::this_thread::sleep_for(std::chrono::microseconds(50));
}

void after_fork_in_child() { runner.store(nullptr); }

}  // namespace

bool is_possible() {
  if (thread_count() < 2) return false;
  static const int once = pthread_atfork(before_fork, nullptr, after_fork_in_child);
  static_cast<void>(once);
  if (!runner.load()) runner.store(new Runner());
  return runner.load()->has_started;
}

void begin(std::function<void()> work, Progress& progress) { runner.load()->begin(std::move(work), progress); }

}  // namespace twofold::background
