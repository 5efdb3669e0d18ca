// Families of traces that differ in integers only (sizes of inputs, attributes): once two have been seen, Python plans
// the trace for symbols, and the plan is instantiated for further ones.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "template.h"
#include "tier_choice.h"
#include "trace.h"

namespace twofold {

class TraceFamily {
 public:
  explicit TraceFamily(const CanonicalTrace& first);

  uint64_t used = 0;  // when, see Cache
  size_t memory() const;

  // Updates which integers vary between members.
  void meet(const CanonicalTrace& member);
  // The fused program of a member by a plan whose guards hold, and what was measured of that plan; null if there is none.
  std::pair<ProgramRef, std::shared_ptr<Verdict>> program_for(const CanonicalTrace& member);
  // Whether a plan for symbols is worth asking for, and which numbers they stand for: a new reference, or null with a
  // Python error set.
  bool wants_plan() const { return varies_any_ && !planning && plans_.may_add(); }
  PyObject* ask();
  // Adds the plan of Python for the numbers that vary, as a mask, or None if the trace cannot be planned; false with a Python error set.
  bool add_plan(const CanonicalTrace& member, PyObject* varies, PyObject* encoded);

  bool is_like(const CanonicalTrace& other) const;
  bool planning = false;
  bool asked = false;       // a program for the sizes of one member was asked for
  int64_t nanoseconds = 0;  // that the last such program took to make; 0: none is there yet

 private:
  struct Plan {
    std::vector<bool> varies;
    std::vector<int64_t> numbers;  // of the member for which it was made; those that do not vary are constants of the plan
    ProgramTemplate program;
    const std::shared_ptr<Verdict> verdict = std::make_shared<Verdict>(Verdict::kUnknown);
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

// The family of a trace, which becomes a member; null for a trace that is not planned as a whole.
TraceFamilyRef family_of(const CanonicalTrace& canonical);

}  // namespace twofold
