#include "layout.h"

#include <algorithm>
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
    repeats = repeats && std::find(shape.begin(), shape.end(), 0) == shape.end();  // of an empty tensor nothing occurs twice
    bool row_major = lies_row_major(shape, strides);
    slot = std::make_unique<Layout>(Layout{std::move(strides), row_major, repeats});
  }
  return slot.get();
}

bool to_integers(PyObject* tuple, std::vector<int64_t>* numbers) {
  for (Py_ssize_t i = 0; PyTuple_Check(tuple) && i < PyTuple_GET_SIZE(tuple); ++i) numbers->push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i)));
  return !PyErr_Occurred();
}

// As viewed_layout, by the layout rule of the operation.
bool asked_layout(Operation* op, Attributes* attributes, Type* input, const Layout* source, size_t rest, Type* output, ViewedLayout* found) {
  PyObject* type = python_type(input);
  Owned strides(type ? integer_tuple(source->strides) : nullptr);
  Owned made(strides ? PyObject_CallFunction(hooks.view_layout, "OOOOn", op->python, attributes->tuple, type, strides.object,
                                             static_cast<Py_ssize_t>(rest))
                     : nullptr);
  if (!made) return false;
  if (made.object == Py_None) return true;
  PyObject *steps, *offset;
  std::vector<int64_t> numbers, begin;
  if (!PyArg_ParseTuple(made.object, "OO", &steps, &offset) || !to_integers(steps, &numbers)) return false;
  if (numbers.size() != output->shape.size()) {
    PyErr_Format(PyExc_SystemError, "%s: the strides of a view do not fit its shape", op->name.c_str());
    return false;
  }
  found->layout = interned(output->shape, std::move(numbers));
  if (offset == Py_None) return true;
  if (!to_integers(offset, &begin)) return false;
  found->knows_offset = true;
  found->offset = begin.at(0);
  for (size_t i = 0; i < rest; ++i) found->starts.push_back({begin.at(1 + 2 * i), begin.at(2 + 2 * i)});
  return true;
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

const ViewedLayout* viewed_layout(Operation* op, Attributes* attributes, Type* input, const Layout* source, size_t rest, Type* output) {
  constexpr size_t kMost = 1 << 15;  // about 8 MiB
  static auto& known = *new std::map<std::tuple<uint32_t, uint32_t, uint32_t, const Layout*>, ViewedLayout>();
  std::tuple key(op->id, attributes->id, input->id, source);
  auto position = known.find(key);
  if (position == known.end()) {
    ViewedLayout found;
    if (!asked_layout(op, attributes, input, source, rest, output, &found)) return nullptr;
    if (known.size() >= kMost) known.clear();
    position = known.emplace(key, std::move(found)).first;
  }
  return &position->second;
}

namespace {

// The next step to the root: the parent of a view, which rules of Python may meanwhile replace.
class Step {
 public:
  explicit Step(PyTensor* tensor)
      : view_(tensor->view), tensor_(tensor), type_(tensor->value->type), held_(parent_of(view_)), source_type_(parent()->value->type) {}

  // How the view shows its parent, of the layout `source`; null with an error set, or if its handle or its parent was given other
  // storage meanwhile.
  const ViewedLayout* viewed(const Layout* source) {
    if (!source || !is_valid()) return nullptr;
    return viewed_layout(view_->operation, view_->attributes, source_type_, source, rest(), type_);
  }

  bool is_valid() const { return tensor_->view == view_ && !is_left_behind(view_); }
  View* view() const { return view_; }
  PyTensor* parent() const { return reinterpret_cast<PyTensor*>(held_.object); }
  size_t rest() const { return static_cast<size_t>(PyTuple_GET_SIZE(view_->inputs)); }

 private:
  static PyObject* parent_of(View* view) {
    follow_storage(view);
    return Py_NewRef(reinterpret_cast<PyObject*>(view->parent));
  }

  const UsedView view_;
  PyTensor* const tensor_;
  Type* const type_;
  Owned held_;
  Type* const source_type_;
};

}  // namespace

const Layout* layout_of(PyTensor* tensor) {
  // From the root, so that a long chain of views does not recurse.
  for (std::vector<Step> steps;;) {
    PyTensor* const at = steps.empty() ? tensor : steps.back().parent();
    if (at->view && !at->view->layout) {
      steps.emplace_back(at);
      continue;
    }
    const Layout* layout = at->view ? at->view->layout : row_major_layout(at->value->type);
    if (steps.empty()) return layout;
    Step& step = steps.back();
    if (const Operation* op = step.view()->operation) {
      const ViewedLayout* found = step.viewed(layout);
      if (!found && PyErr_Occurred()) return nullptr;
      layout = found ? found->layout : nullptr;
      if (found && !layout) {
        PyErr_Format(PyExc_SystemError, "%s: a view has no strides", op->name.c_str());
        return nullptr;
      }
    }
    step.view()->layout = layout;
    if (step.is_valid()) steps.pop_back();
    else steps.clear();  // begins again
  }
}

bool is_offset_known(PyTensor* tensor, int64_t* offset) {
  *offset = 0;
  for (std::vector<Step> steps; tensor->view; tensor = steps.back().parent()) {
    Step& step = steps.emplace_back(tensor);
    if (!step.view()->operation) continue;
    const ViewedLayout* own = step.viewed(layout_of(step.parent()));
    if (!own || !own->knows_offset || !step.is_valid()) return false;
    *offset += own->offset;
    for (size_t i = 0; i < step.rest(); ++i) {
      PyObject* start = PyTuple_GET_ITEM(step.view()->inputs, static_cast<Py_ssize_t>(i));
      int overflow = 0;
      const int64_t index = PyLong_Check(start) ? PyLong_AsLongLongAndOverflow(start, &overflow) : 0;
      if (!PyLong_Check(start) || overflow) return false;
      *offset += own->starts[i].step * std::clamp(index, int64_t{0}, own->starts[i].highest);
    }
  }
  return true;
}

PyObject* get_strides(PyObject* self, void*) {
  const Layout* layout = layout_of(reinterpret_cast<PyTensor*>(self));
  return layout ? integer_tuple(layout->strides) : nullptr;
}

PyObject* get_is_row_major(PyObject* self, void*) {
  const Layout* layout = layout_of(reinterpret_cast<PyTensor*>(self));
  return layout ? PyBool_FromLong(layout->row_major) : nullptr;
}

// (parent, op or None, attributes, further inputs), or None
PyObject* get_view(PyObject* self, void*) {
  const UsedView view(reinterpret_cast<PyTensor*>(self)->view);
  if (!view) Py_RETURN_NONE;
  follow_storage(view);
  const Owned parent(Py_NewRef(reinterpret_cast<PyObject*>(view->parent)));
  return Py_BuildValue("OOOO", parent.object, view->operation ? view->operation->python : Py_None,
                       view->operation ? view->attributes->tuple : Py_None, view->inputs);
}

}  // namespace twofold
