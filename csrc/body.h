// Bodies: repeated segments of traces, each of a few calls. Calls of one body are batched by a
// program over a batch axis: operands are gathered once, and intermediate values never leave the program. Calls of which
// each reads the one before it, as those of a cell in a loop, run one by one, by a program without that axis.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "batch_program.h"
#include "location.h"
#include "trace.h"

namespace twofold {

// A body, which all of its calls share.
struct Body {
  explicit Body(uint64_t varying) : family(std::make_shared<BatchFamily>(varying)), alone(std::make_shared<BatchFamily>(0)) {}
  uint64_t mask() const { return family->mask; }  // the inputs that have the batch axis
  size_t memory() const;

  std::vector<Member> members;
  std::vector<Type*> inputs;
  std::vector<uint32_t> outputs;   // the members that are live out
  std::vector<int64_t> at;         // by output: its offset in the outputs of one call, in bytes
  int64_t nbytes = 0;              // of all outputs of one call
  std::shared_ptr<BatchFamily> family;
  std::shared_ptr<BatchFamily> alone;  // the program of one call, without a batch axis
  uint64_t used = 0;               // when, see Cache
};
using BodyRef = std::shared_ptr<Body>;

// A call of a body: consecutive entries of a trace.
struct BodyCall {
  const Body* body;
  uint32_t first;          // entry; as many as the body has members
  uint32_t first_operand;  // of FoundBodies::operands
  bool alone = false;      // it runs by itself, as it can never be batched with others
};

struct FoundBodies {
  std::vector<BodyCall> calls;  // in order
  std::vector<Ref> operands;    // for one call after another, by input
  std::vector<BodyRef> bodies;  // the bodies of the calls, each once
  std::vector<std::shared_ptr<BatchFamily>> waiting;  // those of bodies left out, as they have no program yet
};

// Finds the calls of bodies that have programs in a trace. A body is what one activation of a user's function recorded, or what
// differentiates that. `refs` are those of the trace, with equal integers merged. False with a Python error set.
bool find_bodies(const CanonicalTrace& canonical, const std::vector<Ref>& refs, RunProvenance provenance, FoundBodies& found);

// The program for `count` calls, null if there is none; false with a Python error set.
bool body_program(const Body& body, int64_t count, ProgramRef* out);
// Whether there is a program for one call by itself, which else is asked for; false with a Python error set.
bool runs_alone(const Body& body, int64_t calls, bool* ready);

}  // namespace twofold
