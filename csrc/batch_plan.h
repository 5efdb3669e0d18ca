// Batching of a trace: calls of one op instance that are ready together and share their large operands are one launch. Which
// calls are batched changes no bit: a row of a batch has the bits that it has alone.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "body.h"
#include "trace.h"

namespace twofold {

// The source of the operands of a launch in one position.
struct LaunchOperand {
  enum Kind : uint8_t {
    kShared,  // one value for all calls
    kRows,    // consecutive rows of the result of one launch
    kEach,    // another value for each call: gathered
  };
  Kind kind;
  Ref first;  // the operand of the first call
};

struct Launch {
  OpInstance* instance;  // owned by the trace; of a body that of its first member
  const Body* body;      // owned by the plan; null for calls of one operation
  uint32_t first_member, members;  // see BatchPlan::members
  uint32_t first_operand;
  uint64_t mask;         // positions of operands that are not shared
  int32_t carried = -1;  // of a chain, the position that reads the preceding call; its calls run in turn, and only the last result is kept
  bool joins = false;    // each call concatenates its operands
  bool alone = false;    // one call of a body, by the program for one

  bool is_chain() const { return carried >= 0; }
  // Rows of each result: else a single call of a body runs twice, as its program is for two or more.
  int64_t rows() const { return is_chain() ? 1 : body && members == 1 && !alone ? 2 : members; }
  int64_t nbytes() const { return rows() * (body ? body->nbytes : instance->output->nbytes); }
  Type* input(uint32_t position) const { return (body ? body->inputs : instance->inputs)[position]; }
};

// Numbers of calls that are not batched, by reason: their operands are large, they are host functions, no other call of the
// trace is of their op instance, or those that are were not ready at the same time.
struct CallsAlone {
  uint32_t large = 0, host = 0, only = 0, waiting = 0;
};

// A slice of a result whose offset depends on a Python integer: `offset` bytes behind its `source`, and `step` bytes more
// for each one of the integer, if there is one.
struct MovingPart {
  uint32_t entry;
  Ref source;
  int64_t offset, step;
  int32_t number;  // the leaf, or -1
};

struct Edge;

class BatchPlan {
 public:
  // Null if few calls would be batched. `leaves` holds the memory of each input. False with a Python error set.
  static bool make(const CanonicalTrace& canonical, void* const* leaves, RunProvenance provenance, std::shared_ptr<const BatchPlan>* out);
  // Whether integers that decide which calls are batched are those for which the plan was made.
  bool holds(void* const* leaves) const;
  // Whether a body that was left out has a program by now.
  bool is_dated() const;
  size_t memory() const;

  CallsAlone alone;
  std::vector<Launch> launches;
  std::vector<uint32_t> members;          // entries, in the order of the launches
  std::vector<LaunchOperand> operands;    // by launch and position
  std::vector<Ref> refs;                  // those of the trace, with equal calls and integers merged; behind them those of bodies
  std::vector<uint32_t> first_ref;        // by entry: its first operand, or that of the body that begins there
  std::vector<int32_t> home;    // by entry: the launch whose results contain it, or ~input
  std::vector<int64_t> at;      // by entry: its offset there, in bytes
  std::vector<MovingPart> moving;  // in order: their offsets are computed when the plan runs
  std::vector<uint8_t> merged;  // by entry: a concatenation that only another concatenation reads; it has no offset of its own
  std::vector<int64_t> offsets;  // by launch: of its results in an arena, in bytes; -1 where some of them outlive the run
  int64_t arena_bytes = 0;

 private:
  friend class BatchPlanner;
  // Results in one arena, but for those that outlive the run.
  void lay_out(const std::vector<Edge>& edges, const std::vector<Ref>& trace_outputs);
  struct Number {
    uint32_t leaf, same_as, nbytes;
  };
  std::vector<Number> numbers_;
  std::vector<BodyRef> bodies_;
  std::vector<std::shared_ptr<BatchFamily>> waiting_;  // those of the bodies that were left out
};

}  // namespace twofold
