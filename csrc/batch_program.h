// Programs of batched calls of an op instance, for a batch axis of any length.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "template.h"

namespace twofold {

// The programs of an op instance whose operands in `mask` have the batch axis.
class BatchFamily {
 public:
  explicit BatchFamily(uint64_t operands) : mask(operands) {}

  const uint64_t mask;
  // The program for `count` calls; null if there is none, or none yet.
  ProgramRef program_for(int64_t count);
  // Whether Python should be asked for a program now: once there were `worth` calls, which outweigh planning.
  bool wants_plan(int64_t count, int64_t worth = kWorthPlanning);
  // Whether there is a program for some batch size.
  bool is_ready() const { return !plans_.list.empty(); }
  // Adds the plan of Python, or None if these calls cannot be batched; false with a Python error set.
  bool add_plan(PyObject* encoded);
  // The plan that was asked for will not come; it may be asked for again.
  void ask_again() { asked_ = false; }
  size_t memory() const;

 private:
  static constexpr size_t kRecent = 16;
  static constexpr int64_t kWorthPlanning = 256;  // calls of one operation: about what planning its program costs

  Plans<std::shared_ptr<const ProgramTemplate>> plans_;
  std::vector<std::pair<int64_t, ProgramRef>> recent_;  // the last programs, by number of calls
  int64_t calls_ = 0;
  bool asked_ = false;
};

constexpr const char* kBatchCapsule = "twofold.batch";
// The capsule of a family for Python; null with a Python error set.
PyObject* batch_capsule(std::shared_ptr<BatchFamily> family);

// The program of `count` calls of an op instance, null if there is none; false with a Python error set.
bool batch_program(Signature* signature, uint64_t mask, int64_t count, ProgramRef* out);
// The family of a capsule; null with a Python error set.
BatchFamily* batch_in(PyObject* capsule);

struct BatchCounts {
  uint64_t traces, launches, calls, plans;  // traces run in batches, launches of several calls, these calls, programs planned
};
extern BatchCounts batch_counts;

}  // namespace twofold
