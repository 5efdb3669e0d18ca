// Traces that differ in numbers alone (sizes of leaves, integers in attributes): once two have been seen, Python plans
// them as a whole for symbols, and further ones only evaluate that plan.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "template.h"
#include "trace.h"

namespace twofold {

class TraceFamily {
 public:
  explicit TraceFamily(const CanonicalTrace& first);

  uint64_t used = 0;  // when, see Cache
  size_t memory() const;

  // Notes which numbers of a member differ from those of the first.
  void meet(const CanonicalTrace& member);
  // The fused program of a member by a plan made before; null where none holds.
  ProgramRef program_for(const CanonicalTrace& member);
  // Whether a plan for symbols is worth asking for, and which numbers they stand for: a new reference, or null with a
  // Python error set.
  bool wants_plan() const { return varies_any_ && !planning && plans_.may_add(); }
  PyObject* ask();
  // What Python planned for the numbers that varied when it was asked; false with a Python error set. None: it cannot be.
  bool add_plan(const CanonicalTrace& member, PyObject* encoded);

  bool is_like(const CanonicalTrace& other) const;
  bool planning = false;
  enum class Verdict : uint8_t { kUnknown, kFaster, kSlower } verdict = Verdict::kUnknown;  // of programs by plan, where measured
  bool asked = false;       // a program for the sizes of one member has been
  int64_t nanoseconds = 0;  // that the last such program took to make; 0: none is there yet

 private:
  struct Plan {
    std::vector<bool> varies;
    std::vector<int64_t> numbers;  // of the member that it was made for; what does not vary is part of the plan
    ProgramTemplate program;
  };

  const CanonicalTrace first_;
  std::vector<int64_t> numbers_;
  std::vector<bool> varies_, asked_;
  bool varies_any_ = false;
  Plans<std::shared_ptr<const Plan>> plans_;
};

using TraceFamilyRef = std::shared_ptr<TraceFamily>;

struct TraceFamilyCounts {
  size_t plans, uses;
};
extern TraceFamilyCounts trace_family_counts;

// The family of a trace, which meets it; null for a trace that is not to be planned as a whole.
TraceFamilyRef family_of(const CanonicalTrace& canonical);

}  // namespace twofold
