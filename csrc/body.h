// Bodies: pieces of traces that come again, each a few calls on each other's results. Calls of one body may run as one, by a
// program over a new leading axis: what they read is gathered once, and what stays inside never leaves the program.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "batch_program.h"
#include "location.h"
#include "trace.h"

namespace twofold {

// What a body consists of, the same for all of its calls.
struct Body {
  struct Member {
    SignatureRef signature;
    std::vector<Ref> operands;  // an earlier member, or ~number of an input
  };

  explicit Body(uint64_t varying) : family(std::make_shared<BatchFamily>(varying)) {}
  uint64_t mask() const { return family->mask; }  // the inputs that differ between calls
  size_t memory() const;

  std::vector<Member> members;
  std::vector<Type*> inputs;
  std::vector<uint32_t> outputs;   // the members that something outside reads
  std::vector<int64_t> at;         // by output: the bytes of those before it, of one call
  int64_t nbytes = 0;              // of all outputs of one call
  std::shared_ptr<BatchFamily> family;
  uint64_t used = 0;               // when, see Cache
};
using BodyRef = std::shared_ptr<Body>;

// A call of a body: consecutive entries of a trace.
struct BodyCall {
  const Body* body;
  uint32_t first;          // entry; as many as the body has members
  uint32_t first_operand;  // of FoundBodies::operands
};

struct FoundBodies {
  std::vector<BodyCall> calls;  // in order
  std::vector<Ref> operands;    // of one call after the other, by input
  std::vector<BodyRef> bodies;  // of the calls, each once
};

// The calls of bodies that have programs in a trace. A body is what one pass of one function of the user's recorded, or what
// differentiates that. `refs` are those of the trace, with equal numbers made one. False with a Python error set.
bool find_bodies(const CanonicalTrace& canonical, const std::vector<Ref>& refs, RunProvenance provenance, FoundBodies& found);

// The program of so many calls, null where there is none; false with a Python error set.
bool body_program(const Body& body, int64_t count, ProgramRef* out);

}  // namespace twofold
