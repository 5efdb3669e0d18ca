// Declared graphs with symbolic sizes: for sizes that
// meet the guards the core evaluates what depends on them, without Python.
#pragma once

#include <memory>
#include <vector>

#include "declared.h"
#include "size_program.h"

typedef struct _object PyObject;

namespace twofold {

class OpenGraph {
 public:
  // From (inputs, outputs, size program, [(tensor, attributes of an example or None for a leaf, count of numbers)]), see
  // twofold.static.open_graph; null with a Python error set.
  static std::shared_ptr<const OpenGraph> read(PyObject* encoded);

  // Whether types fit the inputs and meet the guards.
  bool takes(const std::vector<Type*>& types) const;
  // The graph as one trace for inputs of given types; null, perhaps with a Python error set, if guards do not hold.
  std::unique_ptr<Specialisation> specialised(const std::vector<Type*>& types) const;

 private:
  // What depends on sizes: the attributes of a call, or an input.
  struct Part {
    ValueRef value;
    std::shared_ptr<PyObject> attributes;  // of the example; their integers are replaced in order. Null for a leaf.
    size_t numbers = 1;
  };
  bool read_parts(PyObject* parts);
  bool evaluate(const std::vector<Type*>& types, std::vector<int64_t>& numbers) const;

  std::vector<ValueRef> inputs_, outputs_;  // sizes that are not known are negative in the types of inputs
  SizeProgram sizes_;                       // of those, in order
  std::vector<Part> parts_;
};

struct DeclaredCounts {
  size_t graphs, open, uses;  // graphs that Python declared for a set of types; those for all sizes; what these served
  size_t bodies;              // bodies of operations that it ran for them
};
extern DeclaredCounts declared_counts;

// The values of tensors; false with a Python error set.
bool values_of(PyObject* tensors, std::vector<ValueRef>& out);

}  // namespace twofold
