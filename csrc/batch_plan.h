// A trace as launches: calls of one op instance that are ready together and share their large operands run as one. Which
// calls stand together changes no bit: a row of a batch has the bits that it has alone.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "body.h"
#include "trace.h"

namespace twofold {

// Where the operands of a launch in one position come from.
struct LaunchOperand {
  enum Kind : uint8_t {
    kShared,  // one value for all calls
    kRows,    // consecutive rows of what one launch left
    kEach,    // another value for each call
  };
  Kind kind;
  Ref first;  // the operand of the first call
};

struct Launch {
  Signature* signature;  // held by the trace; of a body that of its first member
  const Body* body;      // held by the plan; null for calls of one operation
  uint32_t first_member, members;  // see BatchPlan::members
  uint32_t first_operand;
  uint64_t mask;         // positions that are not shared
  int32_t carried = -1;  // of a chain the position that reads the call before; its calls run in turn, and only the last stays
  bool joins = false;    // each call lays its operands behind each other

  bool is_chain() const { return carried >= 0; }
  // Rows of each result: the only call of a body runs as two equal ones, as programs are for several.
  int64_t rows() const { return is_chain() ? 1 : body && members == 1 ? 2 : members; }
  int64_t nbytes() const { return rows() * (body ? body->nbytes : signature->output->nbytes); }
  Type* input(uint32_t position) const { return (body ? body->inputs : signature->inputs)[position]; }
};

// How many calls stand alone, by why: their operands are large, they are functions of the host, no other call of the
// trace is like them, or those that are were not ready at the same time.
struct CallsAlone {
  uint32_t large = 0, host = 0, only = 0, waiting = 0;
};

// A value that is no call's result but part of one, whose position depends on a Python integer. Its part of the position that
// `source` has is `offset` bytes on, and `step` more for each one of the integer, if there is one.
struct MovingPart {
  uint32_t entry;
  Ref source;
  int64_t offset, step;
  int32_t number;  // the leaf, or -1
};

class BatchPlan {
 public:
  // Null where calls would hardly stand together. `leaves` holds the memory of each leaf. False with a Python error set.
  static bool make(const CanonicalTrace& canonical, void* const* leaves, RunProvenance provenance, std::shared_ptr<const BatchPlan>* out);
  // Numbers that decide which calls stand together are what they were when the plan was made.
  bool holds(void* const* leaves) const;
  // Whether more of it could run in bodies than when it was made.
  bool is_dated() const { return ready_ != batch_families_ready; }
  size_t memory() const;

  CallsAlone alone;
  std::vector<Launch> launches;
  std::vector<uint32_t> members;          // entries, in the order of the launches
  std::vector<LaunchOperand> operands;    // by launch and position
  std::vector<Ref> refs;                  // as those of the trace, equal calls and numbers made one; behind them those of bodies
  std::vector<uint32_t> first_ref;        // by entry: where its operands begin, or those of the body that begins there
  std::vector<int32_t> home;    // by entry: the launch whose results it lies among, or ~leaf
  std::vector<int64_t> at;      // by entry: where it begins there, in bytes
  std::vector<MovingPart> moving;  // in order: whose positions are found when the plan runs
  std::vector<uint8_t> merged;  // by entry: joined operands that only another call joins; they have no position of their own
  std::vector<uint32_t> dead, first_dead;   // the launches whose results nobody reads after a launch, one launch after another

 private:
  friend class BatchPlanner;
  struct Number {
    uint32_t leaf, same_as, nbytes;
  };
  std::vector<Number> numbers_;
  std::vector<BodyRef> bodies_;
  uint64_t ready_ = batch_families_ready;
};

}  // namespace twofold
