#include "threads.h"

#include <pthread.h>
#include <signal.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "finite.h"
#include "profile.h"
#include "program.h"

namespace twofold {
namespace {

constexpr int kSpins = 2000;  // about 100 us, then a worker parks
constexpr int kSpinsAwake = 40'000;
constexpr int64_t kPiecesPerThread = 4;

std::atomic<int> runs_awake{0};
std::atomic<bool> last_rests{false};  // see Helped

void pause_briefly() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

struct Job {
  Kernel kernel;
  void** buffers;
  const int64_t* params;
  int64_t work, grain, grains;
  std::atomic<uint32_t> pieces{0};
  std::atomic<uint32_t> done{0};
  std::atomic<int64_t> error{0};
  std::atomic<bool> stop{false};  // interrupted by a signal: the rest is not computed
  std::vector<ProfileEvent> times;  // of the pieces, while a profile is recorded

  // Pieces are multiples of a grain and differ by one grain at most.
  int64_t begin_of(uint32_t piece) const { return std::min(work, grains * piece / pieces.load(std::memory_order_relaxed) * grain); }
};

constexpr int64_t kMostGrains = Interrupts::kStretch / kGrainNanoseconds;  // between two polls for signals

int64_t grains_in(int64_t work, int64_t grain) { return (work - 1) / grain + 1; }

int64_t nanoseconds_of(int64_t items, int64_t grain) {
  return static_cast<int64_t>(static_cast<double>(items) / static_cast<double>(grain) * kGrainNanoseconds) + 100;
}

// Worker threads block all signals.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

// Each thread has a share of the pieces, the same of equal jobs, so that what one job left in its cache is at hand in the
// next; then it takes from the shares of others. A ticket is (generation << 32 | next piece of a share). A claim is a
// compare-and-swap on it, so a worker that comes late cannot take a piece of a newer job, and the caller never waits for a
// worker that has not started. A job's slot is reused two generations later; its plain fields are read only after a claim
// has succeeded, and a claimed piece keeps the caller inside run() until it is done.
class Pool {
 public:
  // As many workers as the system allows; without workers the caller does all the work.
  explicit Pool(int workers) : tickets_(static_cast<size_t>(workers) + 1) {
    NoSignals blocked;
    threads_.reserve(static_cast<size_t>(workers));
    try {
      for (int i = 0; i < workers; ++i) threads_.emplace_back([this, i] { work(static_cast<uint16_t>(i + 1)); });
    } catch (const std::system_error&) {
    }
  }

  // Does the work of the last worker until a counter has reached a number, or for so many nanoseconds.
  void help(const std::atomic<uint32_t>& counter, uint32_t reached, int64_t nanoseconds) {
    constexpr int kBetweenLooks = 4096;
    const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(nanoseconds);
    uint32_t seen = generation_.load(std::memory_order_acquire) - 1;  // the current job may not be over
    for (int spins = 0; counter.load(std::memory_order_acquire) < reached;) {
      const uint32_t generation = generation_.load(std::memory_order_acquire);
      if (generation != seen) {
        seen = generation;
        claim(generation, static_cast<uint16_t>(tickets_.size() - 1), [] {});
        spins = 0;
      } else if (++spins % kBetweenLooks == 0 && std::chrono::steady_clock::now() > end) {
        return;
      } else if (spins > kSpinsAwake) {
        std::this_thread::sleep_for(std::chrono::microseconds(20));  // it is no work that is shared
      } else {
        pause_briefly();
      }
    }
  }

  ~Pool() {
    stop_.store(true);
    generation_.fetch_add(1);
    generation_.notify_all();
    for (auto& thread : threads_) thread.join();
  }

  int64_t run(Kernel kernel, void** buffers, const int64_t* params, int64_t work, int64_t grain, uint32_t pieces, Interrupts& interrupts) {
    uint32_t generation = generation_.load(std::memory_order_relaxed) + 1;
    Job& job = jobs_[generation & 1];
    job.kernel = kernel;
    job.buffers = buffers;
    job.params = params;
    job.work = work;
    job.grain = grain;
    job.grains = grains_in(work, grain);
    job.done.store(0, std::memory_order_relaxed);
    job.error.store(0, std::memory_order_relaxed);
    job.stop.store(false, std::memory_order_relaxed);
    job.pieces.store(pieces, std::memory_order_relaxed);
    job.times.resize(profile::is_on() ? pieces : 0);
    for (uint32_t share = 0; share < tickets_.size(); ++share) {
      tickets_[share].next.store(uint64_t{generation} << 32 | first_of(share, pieces), std::memory_order_release);
    }
    generation_.store(generation, std::memory_order_seq_cst);
    if (parked_.load(std::memory_order_seq_cst) > 0) generation_.notify_all();
    const int64_t piece_nanoseconds = nanoseconds_of(work / pieces, grain);
    claim(generation, 0, [&] {
      if (!job.stop.load(std::memory_order_relaxed) && !interrupts.goes_on_after(piece_nanoseconds)) {
        job.stop.store(true, std::memory_order_relaxed);
      }
    });
    while (job.done.load(std::memory_order_acquire) < pieces) pause_briefly();
    for (ProfileEvent& event : job.times) note_piece(event);
    if (interrupts.raised()) throw PythonError{};
    return job.error.load(std::memory_order_relaxed);
  }

 private:
  static void note_piece(ProfileEvent& event) {
    if (!event.end) return;
    event.run = profile::context.run;
    event.entry = profile::context.entry;
    event.depth = profile::context.depth;
    event.kind = ProfileEvent::kPiece;
    profile::note(event);
    event = {};
  }

  // The first piece of a share.
  uint32_t first_of(uint32_t share, uint32_t pieces) const {
    const auto shares = static_cast<uint32_t>(tickets_.size());
    return share * (pieces / shares) + std::min(share, pieces % shares);
  }

  template <class Between>
  void claim(uint32_t generation, uint16_t thread, Between between) {
    const auto shares = static_cast<uint32_t>(tickets_.size());
    for (uint32_t k = 0; k < shares; ++k) {
      if (!claim_of((thread + k) % shares, generation, thread, between)) return;
    }
  }

  // Claims all that is left of a share; false if the job is over.
  template <class Between>
  bool claim_of(uint32_t share, uint32_t generation, uint16_t thread, Between between) {
    Job& job = jobs_[generation & 1];
    std::atomic<uint64_t>& next = tickets_[share].next;
    for (;;) {
      uint64_t ticket = next.load(std::memory_order_acquire);
      if (static_cast<uint32_t>(ticket >> 32) != generation) return false;
      uint32_t piece = static_cast<uint32_t>(ticket);
      if (piece >= first_of(share + 1, job.pieces.load(std::memory_order_relaxed))) return true;
      if (!next.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel)) continue;
      bool wanted = !job.stop.load(std::memory_order_relaxed);
      const int64_t start = job.times.empty() ? 0 : profile::ticks();
      int64_t error = wanted ? job.kernel(job.buffers, job.params, job.begin_of(piece), job.begin_of(piece + 1)) : 0;
      int64_t before = job.error.load(std::memory_order_relaxed);
      while (error && !job.error.compare_exchange_weak(before, worse(before, error), std::memory_order_relaxed)) {
      }
      if (!job.times.empty()) job.times[piece] = {start, profile::ticks(), 0, 0, 0, thread, 0, 0};
      job.done.fetch_add(1, std::memory_order_release);
      between();
    }
  }

  void work(uint16_t thread) {
    uint32_t seen = 0;
    for (;;) {
      int spins = 0;
      uint32_t generation;
      while ((generation = generation_.load(std::memory_order_acquire)) == seen) {
        if (thread == tickets_.size() - 1 && last_rests.load(std::memory_order_relaxed)) {
          last_rests.wait(true);
          spins = kSpinsAwake;
        }
        if (++spins < (runs_awake.load(std::memory_order_relaxed) > 0 ? kSpinsAwake : kSpins)) {
          pause_briefly();
          continue;
        }
        parked_.fetch_add(1, std::memory_order_seq_cst);
        generation_.wait(seen, std::memory_order_seq_cst);
        parked_.fetch_sub(1, std::memory_order_seq_cst);
      }
      seen = generation;
      if (stop_.load()) return;
      claim(generation, thread, [] {});
    }
  }

  struct alignas(64) Ticket {
    std::atomic<uint64_t> next{0};
  };

  std::vector<Ticket> tickets_;  // by share
  std::vector<std::thread> threads_;
  alignas(64) std::atomic<uint32_t> generation_{0};
  std::atomic<int> parked_{0};
  std::atomic<bool> stop_{false};
  Job jobs_[2];
};

std::mutex& pool_mutex() {
  static auto& mutex = *new std::mutex();
  return mutex;
}
// Changes under both mutexes; jobs run under the first.
std::shared_ptr<Pool>& pool() {
  static auto& instance = *new std::shared_ptr<Pool>();
  return instance;
}
std::mutex& pointer_mutex() {
  static auto& mutex = *new std::mutex();
  return mutex;
}
std::shared_ptr<Pool> exchange_pool(std::shared_ptr<Pool> next) {
  std::lock_guard lock(pointer_mutex());
  return std::exchange(pool(), std::move(next));
}
std::atomic<int> wanted_threads{1};

// The child has none of the parent's threads; joining them would hang, so the old pool is abandoned.
void after_fork_in_child() {
  new std::shared_ptr<Pool>(std::move(pool()));
  new (&pool_mutex()) std::mutex();
  new (&pointer_mutex()) std::mutex();
  last_rests.store(false);
}

}  // namespace

Awake::Awake() { runs_awake.fetch_add(1, std::memory_order_relaxed); }
Awake::~Awake() { runs_awake.fetch_sub(1, std::memory_order_relaxed); }

void set_thread_count(int count) {
  std::lock_guard lock(pool_mutex());
  if (count != wanted_threads.load()) exchange_pool(nullptr);
  wanted_threads.store(std::max(1, count));
}

int thread_count() { return wanted_threads.load(); }

Helped::Helped() { last_rests.store(true); }

Helped::~Helped() {
  last_rests.store(false);
  last_rests.notify_all();
}

void help_until(const std::atomic<uint32_t>& counter, uint32_t reached, int64_t nanoseconds) {
  std::shared_ptr<Pool> found;
  {
    std::lock_guard lock(pointer_mutex());
    found = pool();
  }
  if (found) found->help(counter, reached, nanoseconds);
  else std::this_thread::sleep_for(std::chrono::microseconds(20));
}

namespace {

int64_t run_alone(Kernel kernel, void** buffers, const int64_t* params, int64_t work, int64_t grain, Interrupts& interrupts) {
  const int64_t stretch = grain > INT64_MAX / kMostGrains ? INT64_MAX : grain * kMostGrains;
  int64_t found = 0;
  for (int64_t begin = 0; begin < work;) {
    int64_t end = work - begin > stretch ? begin + stretch : work;
    found = worse(found, kernel(buffers, params, begin, end));
    if (found && !is_finite_code(found)) return found;
    interrupts.after(nanoseconds_of(end - begin, grain));
    begin = end;
  }
  return found;
}

}  // namespace

int64_t run_parallel(Kernel kernel, void** buffers, const int64_t* params, int64_t work, int64_t grain, Interrupts& interrupts) {
  int threads = wanted_threads.load(std::memory_order_relaxed);
  if (work <= 0) return 0;
  grain = std::max<int64_t>(1, grain);
  // A piece begins with what its kernel prepares, so there are several a thread only where there is much to do.
  const int64_t grains = work / grain, most = threads * kPiecesPerThread;
  int64_t pieces = grains < most ? std::min<int64_t>(threads, grains) : most;
  if (threads == 1 || pieces <= 1) return run_alone(kernel, buffers, params, work, grain, interrupts);
  std::unique_lock lock(pool_mutex(), std::try_to_lock);
  if (!lock.owns_lock()) return run_alone(kernel, buffers, params, work, grain, interrupts);
  if (!pool()) {
    static const int once = pthread_atfork(nullptr, nullptr, after_fork_in_child);
    static_cast<void>(once);
    exchange_pool(std::make_shared<Pool>(threads - 1));
  }
  pieces = std::max(pieces, grains_in(grains_in(work, grain), kMostGrains));
  return pool()->run(kernel, buffers, params, work, grain, static_cast<uint32_t>(pieces), interrupts);
}

}  // namespace twofold
