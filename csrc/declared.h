// Declared graphs (define-then-run): functions from placeholders to outputs, specialised for each set of input types.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "gradient.h"
#include "tensor.h"

namespace twofold {

// The source of an input of the executable.
struct LeafSource {
  int32_t input = -1;   // number of the function's input, or -1
  Leaf captured;        // a captured value or scalar
  uint32_t location = 0;  // where it was declared
};

// The source of an output: a result of the executable, or an input or captured value.
struct OutputSource {
  int32_t result = -1;
  int32_t input = -1;
  ValueRef bound;
};

struct Specialisation {
  std::vector<Type*> types;
  ExecutableRef executable;
  std::vector<Provenance> provenance;  // of the trace of the executable, before canonicalisation
  std::vector<int32_t> entry_source;   // entry of the executable -> entry of that trace
  std::vector<LeafSource> sources;
  std::vector<OutputSource> outputs;
  uint64_t used = 0;  // when, see next_use

  size_t memory() const;
  RunProvenance run_provenance() const;
};

// A trace as a function of inputs and captured values.
struct ClosedTrace {
  CanonicalTrace canonical;
  std::vector<Provenance> provenance;  // by entry
  std::vector<LeafSource> sources;
};

// The number of declarations so far.
uint64_t declaration_mark();
// Closure conversion: what `outputs` depend on that was declared after `mark`; older and bound values are captured. Gradients flow to
// all floating inputs, so that the gradient masks tell where the program stops them. Null with a Python error set.
std::unique_ptr<ClosedTrace> close_trace(const std::vector<ValueRef>& inputs, const std::vector<ValueRef>& outputs,
                                         uint64_t mark);
// A Python scalar as it was given: 2, 2.0 or True; a new reference.
PyObject* scalar_object(const Type* type, uint64_t bits);
// What depends on sizes in a graph with symbolic sizes.
struct Sized {
  std::unordered_map<const Value*, AttributesRef> attributes;  // of calls
  std::unordered_map<const Value*, int64_t> numbers;           // of inputs that are sizes
};

// The graph of `outputs` as one trace for inputs of the given types. Null with a Python error set.
std::unique_ptr<Specialisation> specialise(const std::vector<ValueRef>& inputs, const std::vector<ValueRef>& outputs,
                                           const std::vector<Type*>& types, const Sized& sized = {});
// A declared value: the gradient of `root` with respect to `target`.
ValueRef declare_gradient(Value* root, Value* seed, Value* target, uint64_t group);
// The location of later declarations of this thread is `location`; 0: the user's own again. Returns what it replaces.
uint32_t declare_at_location(uint32_t location);
// Later declarations of this thread belong to operation `number` of a program: traces have them in the order of these
// numbers, whenever they were declared. Returns what it replaces.
uint64_t declare_as(uint64_t number);
// The location of a declaration made now.
uint32_t declaring_location();
// The location that is set for declarations of this thread, or 0: the running line.
uint32_t forced_location();
// A Python callback for every tensor declared by a call, or null.
extern PyObject* declaration_listener;

}  // namespace twofold
