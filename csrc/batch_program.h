// Programs of batched calls of an op instance or a body, for a batch axis of any length.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "template.h"
#include "trace.h"

namespace twofold {

// A call in a body.
struct Member {
  OpInstanceRef instance;
  std::vector<Ref> operands;  // an earlier member, or ~k for input k
};

// The programs of members of which the inputs in `mask` have the batch axis.
class BatchFamily {
 public:
  explicit BatchFamily(uint64_t inputs) : mask(inputs) {}

  const uint64_t mask;
  // The program for `count` calls; null if there is none, or none yet.
  ProgramRef program_for(int64_t count);
  // What Python should be asked for now: a saved plan once calls outweigh looking for it, one that it makes once there were `worth` calls.
  enum class Wanted : uint8_t { kNothing, kSaved, kMade };
  Wanted wanted(int64_t count, int64_t worth = kWorthPlanning);
  // The integers that plans are for beside the batch size: sizes of the inputs, then those in attributes of the members.
  void set_numbers(std::vector<int64_t> numbers);
  // Whether there is a program for some batch size.
  bool is_ready() const { return !plans_.list.empty(); }
  // Adds the plan of Python, or None if these calls cannot be batched; false with a Python error set.
  bool add_plan(PyObject* encoded);
  // The plan that was asked for will not come; it may be asked for again.
  void ask_again() { asked_ = false; }
  size_t memory() const;

 private:
  static constexpr size_t kRecent = 64;
  static constexpr int64_t kWorthPlanning = 256;  // calls of one operation: about what planning its program costs
  static constexpr int64_t kLooksBefore = 8;  // looking for a saved plan costs about so much less

  Plans<std::shared_ptr<const ProgramTemplate>> plans_;
  std::vector<std::pair<int64_t, ProgramRef>> recent_;  // the last programs, by number of calls
  int64_t calls_ = 0;
  bool asked_ = false, looked_ = false;
  std::vector<int64_t> values_;  // what plans are for: a batch size, which is set for each, and the other integers
};

constexpr const char* kBatchCapsule = "twofold.batch";
// Asks Python for a plan of members that return `outputs`; false with a Python error set.
bool ask_for_batch(const std::shared_ptr<BatchFamily>& family, BatchFamily::Wanted wanted, const std::vector<Member>& members,
                   const std::vector<uint32_t>& outputs, const std::vector<Type*>& inputs, int64_t count);

// The program of `count` calls of an op instance, null if there is none; false with a Python error set.
bool batch_program(OpInstance* instance, uint64_t mask, int64_t count, ProgramRef* out);
// The family of a capsule; null with a Python error set.
BatchFamily* batch_in(PyObject* capsule);

struct BatchCounts {
  uint64_t traces, launches, calls, plans;  // traces run in batches, launches of several calls, these calls, programs planned
};
extern BatchCounts batch_counts;

}  // namespace twofold
