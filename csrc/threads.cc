#include "threads.h"

#include <pthread.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace twofold {
namespace {

constexpr int kSpins = 2000;  // about 50 us, then a worker parks
constexpr int64_t kPiecesPerThread = 4;

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
  int64_t work, piece;
  std::atomic<uint32_t> pieces{0};
  std::atomic<uint32_t> done{0};
  std::atomic<int64_t> error{0};
};

// A ticket is (generation << 32 | next piece). A claim is a compare-and-swap on it, so a worker that comes late
// cannot take a piece of a newer job, and the caller never waits for a worker that has not started. A job's
// slot is reused two generations later; its plain fields are read only after a claim has succeeded, and a claimed
// piece keeps the caller inside run() until it is done.
class Pool {
 public:
  explicit Pool(int workers) {
    for (int i = 0; i < workers; ++i) threads_.emplace_back([this] { work(); });
  }

  ~Pool() {
    stop_.store(true);
    generation_.fetch_add(1);
    generation_.notify_all();
    for (auto& thread : threads_) thread.join();
  }

  int64_t run(Kernel kernel, void** buffers, const int64_t* params, int64_t total, int64_t piece) {
    uint32_t generation = generation_.load(std::memory_order_relaxed) + 1;
    Job& job = jobs_[generation & 1];
    job.kernel = kernel;
    job.buffers = buffers;
    job.params = params;
    job.work = total;
    job.piece = piece;
    job.done.store(0, std::memory_order_relaxed);
    job.error.store(0, std::memory_order_relaxed);
    uint32_t pieces = static_cast<uint32_t>((total + piece - 1) / piece);
    job.pieces.store(pieces, std::memory_order_relaxed);
    ticket_.store(static_cast<uint64_t>(generation) << 32, std::memory_order_release);
    generation_.store(generation, std::memory_order_seq_cst);
    if (parked_.load(std::memory_order_seq_cst) > 0) generation_.notify_all();
    claim(generation);
    while (job.done.load(std::memory_order_acquire) < pieces) pause_briefly();
    return job.error.load(std::memory_order_relaxed);
  }

 private:
  void claim(uint32_t generation) {
    Job& job = jobs_[generation & 1];
    for (;;) {
      uint64_t ticket = ticket_.load(std::memory_order_acquire);
      if (static_cast<uint32_t>(ticket >> 32) != generation) return;
      uint32_t piece = static_cast<uint32_t>(ticket);
      if (piece >= job.pieces.load(std::memory_order_relaxed)) return;
      if (!ticket_.compare_exchange_weak(ticket, ticket + 1, std::memory_order_acq_rel)) continue;
      int64_t begin = piece * job.piece;
      int64_t error = job.kernel(job.buffers, job.params, begin, std::min(job.work, begin + job.piece));
      if (error) job.error.store(error, std::memory_order_relaxed);
      job.done.fetch_add(1, std::memory_order_release);
    }
  }

  void work() {
    uint32_t seen = 0;
    for (;;) {
      int spins = 0;
      uint32_t generation;
      while ((generation = generation_.load(std::memory_order_acquire)) == seen) {
        if (++spins < kSpins) {
          pause_briefly();
          continue;
        }
        parked_.fetch_add(1, std::memory_order_seq_cst);
        generation_.wait(seen, std::memory_order_seq_cst);
        parked_.fetch_sub(1, std::memory_order_seq_cst);
      }
      seen = generation;
      if (stop_.load()) return;
      claim(generation);
    }
  }

  std::vector<std::thread> threads_;
  alignas(64) std::atomic<uint64_t> ticket_{0};
  alignas(64) std::atomic<uint32_t> generation_{0};
  std::atomic<int> parked_{0};
  std::atomic<bool> stop_{false};
  Job jobs_[2];
};

std::mutex& pool_mutex() {
  static auto& mutex = *new std::mutex();
  return mutex;
}
std::unique_ptr<Pool>& pool() {
  static auto& instance = *new std::unique_ptr<Pool>();
  return instance;
}
std::atomic<int> wanted_threads{1};

// The child has none of the parent's threads; joining them would hang, so the old pool is abandoned.
void after_fork_in_child() {
  static_cast<void>(pool().release());
  new (&pool_mutex()) std::mutex();
}

}  // namespace

void set_thread_count(int count) {
  static std::once_flag once;
  std::call_once(once, [] { pthread_atfork(nullptr, nullptr, after_fork_in_child); });
  std::lock_guard lock(pool_mutex());
  if (count != wanted_threads.load()) pool().reset();
  wanted_threads.store(std::max(1, count));
}

int thread_count() { return wanted_threads.load(); }

int64_t run_parallel(Kernel kernel, void** buffers, const int64_t* params, int64_t work, int64_t grain) {
  int threads = wanted_threads.load(std::memory_order_relaxed);
  if (work <= 0) return 0;
  int64_t pieces = std::min(threads * kPiecesPerThread, work / std::max<int64_t>(1, grain));
  if (threads == 1 || pieces <= 1) return kernel(buffers, params, 0, work);
  int64_t piece = ((work + pieces - 1) / pieces + grain - 1) / grain * grain;
  if (piece >= work) return kernel(buffers, params, 0, work);
  std::unique_lock lock(pool_mutex(), std::try_to_lock);
  if (!lock.owns_lock()) return kernel(buffers, params, 0, work);
  if (!pool()) pool() = std::make_unique<Pool>(threads - 1);
  return pool()->run(kernel, buffers, params, work, piece);
}

}  // namespace twofold
