// Strides of tensors, found from the chain of their views when somebody asks.
#pragma once

#include <Python.h>

#include <cstdint>
#include <vector>

#include "tensor.h"

namespace twofold {

// Strides of a shape, interned: equal ones are one pointer.
struct Layout {
  std::vector<int64_t> strides;
  bool row_major;  // the elements lie side by side in row-major order
  bool repeats;    // an axis shows one element several times
};

const Layout* row_major_layout(Type* type);
// Null with a Python error set.
const Layout* layout_of(PyTensor* tensor);
// The layout of what the operation shows of an input of this type and layout; null where no strides show it.
// False with a Python error set.
bool viewed_layout(Operation* op, Attributes* attributes, Type* input, const Layout* source, size_t rest, Type* output,
                   const Layout** found);
// Attributes of the tensor type.
PyObject* get_strides(PyObject* self, void*);
PyObject* get_is_row_major(PyObject* self, void*);
PyObject* get_view(PyObject* self, void*);

}  // namespace twofold
