// One run of a recorded trace, from its inputs to the values of its results.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "batch_run.h"
#include "process.h"
#include "recorder.h"

namespace twofold {

// Marks a trace that is running, for this thread or another one. The GIL guards the list.
class Running {
 public:
  explicit Running(uint64_t stamp);
  ~Running();
  Running(const Running&) = delete;

  // The run of a trace, null if there is none.
  static const Running* find(uint64_t stamp);
  bool is_here() const { return thread_ == PyThread_get_thread_ident(); }
  // Whether its thread was left behind by a fork.
  bool is_orphaned() const { return generation_ != process_generation() && !is_here(); }

 private:
  const uint64_t stamp_, generation_ = process_generation();
  const unsigned long thread_ = PyThread_get_thread_ident();
};

struct TraceRun {
  std::shared_ptr<CachedTrace> cached;
  std::vector<ValueRef> living;  // live values of the trace, then deferred ones
  std::vector<BufferRef> results = {};
  std::vector<std::pair<size_t, ValueRef>> before = {};  // by living value: what its handle held before, see Value::before
  std::vector<Leaf> leaves = {};
  std::vector<Provenance> provenance = {};
  std::vector<Watch> watched = {};
  Snapshots shown = {};
  std::unique_ptr<BatchRun> prepared = {};  // the run in batches, if it is prepared but is to be executed here

  // The memory of an input that is computed.
  static void* memory_of(Leaf& leaf) { return leaf.value ? leaf.value->buffer->data : &leaf.scalar; }

  // The locations of the entries, and of the inputs, of the executable.
  class Lines {
   public:
    explicit Lines(const TraceRun& run) : run_(run) {}
    RunProvenance get() const { return {run_.provenance.data(), run_.cached->entry_source.data(), this, &Lines::location}; }

   private:
    static uint32_t location(const void* self, size_t leaf);
    const TraceRun& run_;
  };

  // Takes what handles held before from the living values. What is not needed goes to `unused`: the finaliser of memory that it shares
  // with an array may record calls.
  void take_before(std::vector<ValueRef>& unused);
  // After a run that is to be repeated.
  void give_before();
  // Computes the results; false with a Python error set.
  bool run(Interrupts& interrupts);
  // Gives values their results, those that there are: a missing one is that of a value that could not be computed. False with a Python
  // error set; then values without a result count as not computed.
  bool deliver(std::shared_ptr<SavedTrace>& saved);
  // After a run that failed with a Python error set: results that do not depend on the failed operation were computed all the same.
  void deliver_rest();
};

// Whether the Python error that is set is transient: the same work may succeed later.
bool is_transient_error();

}  // namespace twofold
