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

const Layout* row_major_layout(Type* type);
// Null with a Python error set.
const Layout* layout_of(PyTensor* tensor);
// The layout of a view of an input of this type and layout; null if strides cannot express it.
// False with a Python error set.
bool viewed_layout(Operation* op, Attributes* attributes, Type* input, const Layout* source, size_t rest, Type* output,
                   const Layout** found);
// Attributes of the tensor type.
PyObject* get_strides(PyObject* self, void*);
PyObject* get_is_row_major(PyObject* self, void*);
PyObject* get_view(PyObject* self, void*);

}  // namespace twofold
