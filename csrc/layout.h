// Strided layouts of tensors, computed on demand from their chains of views.
#pragma once

#include <Python.h>

#include <cstdint>
#include <vector>

#include "tensor.h"

namespace twofold {

// Strides of a shape, interned: equal ones are one pointer.
struct Layout {
  std::vector<int64_t> strides;
  bool row_major;  // dense in row-major order
  bool repeats;    // an axis is broadcast with stride 0
};

// A view of an input of some type and layout.
struct ViewedLayout {
  // A further input that says where the view begins: `step` elements behind for each, `highest` at most.
  struct Start {
    int64_t step, highest;
  };
  const Layout* layout = nullptr;  // null if strides cannot express it
  bool knows_offset = false;       // false for elements of another size, and wherever only the rule says where they begin
  int64_t offset = 0;              // elements behind the first one of the input, with starts of 0
  std::vector<Start> starts;
};

const Layout* row_major_layout(Type* type);
// Null with a Python error set.
const Layout* layout_of(PyTensor* tensor);
// How many elements behind the first one of its root a tensor begins; false, perhaps with an error set, where only rules of Python say so.
bool is_offset_known(PyTensor* tensor, int64_t* offset);
// Null with a Python error set. Valid until the next call.
const ViewedLayout* viewed_layout(Operation* op, Attributes* attributes, Type* input, const Layout* source, size_t rest, Type* output);
// Attributes of the tensor type.
PyObject* get_strides(PyObject* self, void*);
PyObject* get_is_row_major(PyObject* self, void*);
PyObject* get_view(PyObject* self, void*);

}  // namespace twofold
