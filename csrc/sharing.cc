// Aliasing of handles: `w.data = other`, `set_`, `Parameter(other)`.
#include "layout.h"
#include "location.h"
#include "tensor.h"

namespace twofold {
namespace {

// The handle at the end of a chain of aliases.
PyTensor* shown_by(PyTensor* tensor) {
  while (tensor->view && !tensor->view->operation) {
    follow_storage(tensor->view);
    tensor = tensor->view->parent;
  }
  return tensor;
}

// Whether the handle is the only one of its storage, and covers it in order. Temporary handles, such as
// the first one of `zeros(6).reshape(2, 3)`, are held by the chain of views only.
bool owns_alone(PyTensor* tensor) {
  Py_ssize_t links = 0;
  PyTensor* at = tensor;
  for (; at->view; at = at->view->parent) {
    follow_storage(at->view);
    if (at != tensor && Py_REFCNT(reinterpret_cast<PyObject*>(at)) > 1) return false;
    ++links;
  }
  if (Py_REFCNT(reinterpret_cast<PyObject*>(at)) > links + 1 || is_shared_outside(at->value)) return false;
  const Layout* layout = layout_of(tensor);
  if (!layout) PyErr_Clear();
  return layout && layout->row_major && at->value->type->size == tensor->value->type->size &&
         at->value->type->dtype == tensor->value->type->dtype;
}

// What the handle holds once it takes the memory of `value`; it keeps its place in the graph.
ValueRef in_memory_of(PyTensor* tensor, Value* value, bool data) {
  Value* old = tensor->value;
  if (data && flows(tensor) && !old->is_leaf) {
    if (value->type == old->type) return with_data(old, value);
    PyErr_Format(PyExc_RuntimeError,
                 "data: %s for a computed tensor %s (%s) to which gradients flow. Give a tensor of its shape and dtype, or detach() it first.",
                 value->type->text().c_str(), old->type->text().c_str(), line_text(old->location).c_str());
    return ValueRef();
  }
  ValueRef own(new_value(value->type));
  own->buffer = value->buffer;
  own->location = value->location;
  own->requires_grad = old->requires_grad && old->is_leaf;
  if (keeps_gradient(tensor)) keep_gradient(old, own.get());
  return own;
}

void make_alias(PyTensor* tensor, PyTensor* shown, bool data) {
  tensor->view = new_view(shown, nullptr, nullptr, PyTuple_New(0));
  tensor->view->data = data;
}

}  // namespace

bool reads_at_once(const PyTensor* parent, const Type* shown, bool tracked) {
  const PyTensor* root = parent->view ? parent->view->root : parent;
  if (!is_shared_outside(root->value) || (tracked && flows(parent))) return false;
  constexpr int64_t kFewBytes = 4096;
  int64_t nbytes = root->value->type->nbytes;
  return nbytes > kFewBytes && shown->nbytes * 2 <= nbytes;
}

ValueRef read_storage(PyTensor* tensor) {
  PyObject* array = PyObject_CallOneArg(hooks.view_array, reinterpret_cast<PyObject*>(tensor));
  if (!array) return ValueRef();
  ValueRef value = value_from_array(array, false, tensor->value->type->dtype);
  Py_DECREF(array);
  return value;
}

bool share_storage(PyTensor* tensor, PyTensor* other, bool data) {
  Value* value = current_value(other);
  if (!value || is_symbolic(value) || !realise(value)) return value && is_symbolic(value);
  PyTensor* shown = shown_by(other);
  if (shown == tensor) return true;
  ValueRef own = in_memory_of(tensor, value, data), old = share(tensor->value);
  if (!own) return false;
  PyObject* held = reinterpret_cast<PyObject*>(shown);
  Py_INCREF(held);
  // Of two live handles, a leaf keeps its storage.
  bool lonely = !other->views && !(data && flows(other)) && (!other->view || owns_alone(other));
  const bool read_again = data && !tensor->view && !tensor->views && own->type == old->type;
  if (read_again) {
    release(std::exchange(tensor->value, share(own.get()).take()));
    note_written(tensor, old, true);
  }
  bool done = leave_storage(tensor);
  if (done) {
    release(std::exchange(tensor->value, own.take()));
    if (lonely) {
      // The tensor owns the storage, so that its operations go through no view; the other becomes the alias.
      if (other->view) leave_storage(other);
      tensor->storage = std::exchange(other->storage, nullptr);
      other->detached = !flows(other);
      make_alias(other, tensor, data);
    } else {
      make_alias(tensor, shown, data);
    }
  }
  Py_DECREF(held);
  return done;
}

}  // namespace twofold
