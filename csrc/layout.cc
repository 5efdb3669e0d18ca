#include "layout.h"

#include <map>
#include <memory>
#include <tuple>

#include "owned.h"

namespace twofold {
namespace {

bool lies_row_major(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides) {
  int64_t expected = 1;
  for (size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] == 0) return true;
  }
  for (size_t axis = shape.size(); axis-- > 0;) {
    if (shape[axis] == 1) continue;
    if (strides[axis] != expected) return false;
    expected *= shape[axis];
  }
  return true;
}

const Layout* interned(const std::vector<int64_t>& shape, std::vector<int64_t> strides) {
  static auto& known = *new std::map<std::pair<std::vector<int64_t>, std::vector<int64_t>>, std::unique_ptr<Layout>>();
  auto& slot = known[{shape, strides}];
  if (!slot) {
    bool repeats = false;
    for (size_t axis = 0; axis < shape.size(); ++axis) repeats = repeats || (strides[axis] == 0 && shape[axis] > 1);
    bool row_major = lies_row_major(shape, strides);
    slot = std::make_unique<Layout>(Layout{std::move(strides), row_major, repeats});
  }
  return slot.get();
}

// As viewed_layout, by the layout rule of the operation.
bool asked_layout(Operation* op, Attributes* attributes, Type* input, const Layout* source, size_t rest, Type* output, const Layout** found) {
  PyObject* type = python_type(input);
  PyObject* strides = type ? integer_tuple(source->strides) : nullptr;
  PyObject* made = strides ? PyObject_CallFunction(hooks.view_strides, "OOOOn", op->python, attributes->tuple, type, strides,
                                                   static_cast<Py_ssize_t>(rest))
                           : nullptr;
  Py_XDECREF(strides);
  if (!made) return false;
  *found = nullptr;
  if (made != Py_None) {
    std::vector<int64_t> numbers;
    for (Py_ssize_t i = 0; PyTuple_Check(made) && i < PyTuple_GET_SIZE(made); ++i) {
      numbers.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(made, i)));
    }
    if (!PyErr_Occurred() && numbers.size() == output->shape.size()) *found = interned(output->shape, std::move(numbers));
    else if (!PyErr_Occurred()) PyErr_Format(PyExc_SystemError, "%s: the strides of a view do not fit its shape", op->name.c_str());
  }
  Py_DECREF(made);
  return !PyErr_Occurred();
}

}  // namespace

const Layout* row_major_layout(Type* type) {
  if (type->row_major) return type->row_major;
  std::vector<int64_t> strides(type->shape.size());
  int64_t step = 1;
  for (size_t axis = strides.size(); axis-- > 0;) {
    strides[axis] = step;
    step *= type->shape[axis] > 1 ? type->shape[axis] : 1;
  }
  return type->row_major = interned(type->shape, std::move(strides));
}

bool viewed_layout(Operation* op, Attributes* attributes, Type* input, const Layout* source, size_t rest, Type* output,
                   const Layout** found) {
  static auto& known = *new std::map<std::tuple<uint32_t, uint32_t, uint32_t, const Layout*>, const Layout*>();
  std::tuple key(op->id, attributes->id, input->id, source);
  auto position = known.find(key);
  if (position == known.end()) {
    if (!asked_layout(op, attributes, input, source, rest, output, found)) return false;
    known.emplace(key, *found);
    return true;
  }
  *found = position->second;
  return true;
}

const Layout* layout_of(PyTensor* tensor) {
  View* view = tensor->view;
  if (!view) return row_major_layout(tensor->value->type);
  if (view->layout) return view->layout;
  follow_storage(view);
  const Layout* source = layout_of(view->parent);
  if (!source || !view->operation) return source;
  const Layout* found;
  auto rest = static_cast<size_t>(PyTuple_GET_SIZE(view->inputs));
  if (!viewed_layout(view->operation, view->attributes, view->parent->value->type, source, rest, tensor->value->type, &found)) return nullptr;
  if (!found) PyErr_Format(PyExc_SystemError, "%s: a view has no strides", view->operation->name.c_str());
  return view->layout = found;
}

PyObject* get_strides(PyObject* self, void*) {
  const Layout* layout = layout_of(reinterpret_cast<PyTensor*>(self));
  return layout ? integer_tuple(layout->strides) : nullptr;
}

PyObject* get_is_row_major(PyObject* self, void*) {
  auto* tensor = reinterpret_cast<PyTensor*>(self);
  const Layout* layout = tensor->view ? layout_of(tensor) : nullptr;
  if (tensor->view && !layout) return nullptr;
  return PyBool_FromLong(!layout || layout->row_major);
}

// (parent, op or None, attributes, further inputs), or None
PyObject* get_view(PyObject* self, void*) {
  View* view = reinterpret_cast<PyTensor*>(self)->view;
  if (!view) Py_RETURN_NONE;
  follow_storage(view);
  return Py_BuildValue("OOOO", reinterpret_cast<PyObject*>(view->parent), view->operation ? view->operation->python : Py_None,
                       view->operation ? view->attributes->tuple : Py_None, view->inputs);
}

}  // namespace twofold
