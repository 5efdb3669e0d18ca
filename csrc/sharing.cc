// Aliasing of handles: `w.data = other`, `set_`, `Parameter(other)`.
#include <cstring>
#include <vector>

#include "copies.h"
#include "declared.h"
#include "layout.h"
#include "location.h"
#include "out_of_memory.h"
#include "owned.h"
#include "tensor.h"

namespace twofold {
namespace {

// Whether the handle is the only one of its storage, and covers it in order. Temporary handles, such as
// the first one of `zeros(6).reshape(2, 3)`, are held by the chain of views only.
bool owns_alone(PyTensor* tensor) {
  std::vector<UsedView> links;  // they keep the handles alive if what is freed meanwhile gives one of them other storage
  PyTensor* at = tensor;
  while (at->view) {
    const UsedView& view = links.emplace_back(at->view);
    follow_storage(view);
    if (at->view != view || (at != tensor && Py_REFCNT(reinterpret_cast<PyObject*>(at)) > 1)) return false;
    at = view->parent;
  }
  if (Py_REFCNT(reinterpret_cast<PyObject*>(at)) > std::ssize(links) + 1 || is_shared_outside(at->value)) return false;
  const Owned held(Py_NewRef(reinterpret_cast<PyObject*>(at)));
  const uint32_t epoch = tensor->epoch;
  const Layout* layout = layout_of(tensor);
  if (!layout) PyErr_Clear();
  return layout && tensor->epoch == epoch && layout->row_major && at->value->type->size == tensor->value->type->size &&
         at->value->type->dtype == tensor->value->type->dtype;
}

// Copies elements that lie `strides` bytes apart, side by side; returns the end of the copy.
char* copy_elements(char* to, const char* from, const int64_t* shape, const int64_t* strides, size_t axes, size_t item) {
  if (axes == 0) return static_cast<char*>(std::memcpy(to, from, item)) + item;
  const bool runs = axes == 1 && *strides == static_cast<int64_t>(item);
  if (runs) {
    const size_t nbytes = static_cast<size_t>(*shape) * item;
    return static_cast<char*>(std::memcpy(to, from, nbytes)) + nbytes;
  }
  for (int64_t k = 0; k < *shape; ++k, from += *strides) to = copy_elements(to, from, shape + 1, strides + 1, axes - 1, item);
  return to;
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
  if (shown->view) follow_storage(shown->view);  // freeing what the tensor held may have run Python code
  View* const made = new_view(shown, nullptr, nullptr, PyTuple_New(0), data);
  if (View* const before = std::exchange(tensor->view, made)) release_view(before);
}

// Frees a chain of handles that hold storages which nothing shows any longer.
void release_former(PyTensor* former) {
  while (former) {
    PyTensor* const next = std::exchange(former->former, nullptr);
    Py_DECREF(reinterpret_cast<PyObject*>(former));
    former = next;
  }
}

}  // namespace

Owned shown_by(PyTensor* tensor) {
  Owned shown(Py_NewRef(reinterpret_cast<PyObject*>(tensor)));
  for (;;) {
    const auto* at = reinterpret_cast<PyTensor*>(shown.object);
    const UsedView view(at->view);
    if (!view || view->operation) return shown;
    follow_storage(view);
    if (at->view != view) continue;  // it was given other storage meanwhile
    Owned parent(Py_NewRef(reinterpret_cast<PyObject*>(view->parent)));
    std::swap(shown.object, parent.object);
  }
}

bool leave_storage(PyTensor* tensor) {
  PyTensor* unused = nullptr;  // freed last: what runs then, such as a finaliser of a hook, may have the tensor leave this storage, too
  for (PyTensor** link = &tensor->former; *link;) {
    PyTensor* const left = *link;
    if (left->views) {
      link = &left->former;
    } else {
      *link = std::exchange(left->former, unused);
      unused = left;
    }
  }
  View* view = nullptr;
  if (tensor->views) {
    auto* left = reinterpret_cast<PyTensor*>(wrap(share(tensor->value)));
    if (!left) {
      release_former(unused);
      return false;
    }
    left->version = tensor->version;
    left->epoch = tensor->epoch;
    left->views = std::exchange(tensor->views, 0);
    left->view = std::exchange(tensor->view, nullptr);
    left->silent = tensor->silent;
    left->storage = std::exchange(tensor->storage, nullptr);
    left->detached = tensor->detached;
    left->former = tensor->former;
    tensor->former = left;
  } else {
    view = std::exchange(tensor->view, nullptr);
  }
  Storage* const storage = std::exchange(tensor->storage, nullptr);
  ++tensor->epoch;
  ++tensor->version;
  ++tensor->silent;
  if (view) release_view(view);
  if (storage) release_storage(storage);
  release_former(unused);
  return true;
}

ValueRef value_in_memory(Type* type, const char* from, const Layout& layout) try {
  ValueRef value(new_value(type));
  value->buffer = BufferRef(new_buffer(static_cast<size_t>(type->nbytes)));
  const auto item = static_cast<size_t>(item_size(type->dtype));
  auto* to = static_cast<char*>(value->buffer->data);
  if (layout.row_major) {
    copy_memory(to, from, static_cast<size_t>(type->nbytes));
  } else {
    std::vector<int64_t> strides = layout.strides;
    for (int64_t& step : strides) step *= static_cast<int64_t>(item);
    copy_elements(to, from, type->shape.data(), strides.data(), strides.size(), item);
  }
  value->location = declaring_location();  // this may collect garbage, which may free the memory
  return value;
} catch (const std::bad_alloc&) {
  raise_out_of_memory(static_cast<size_t>(type->nbytes), "a copy of a view, " + type->text());
  return ValueRef();
}

bool reads_at_once(const PyTensor* parent, const Type* shown, bool tracked) {
  const PyTensor* root = parent->view ? parent->view->root : parent;
  if (!is_shared_outside(root->value) || (tracked && flows(parent))) return false;
  return shown->nbytes * 2 <= root->value->type->nbytes;
}

const char* memory_of_view(PyTensor* tensor) {
  const UsedView view(tensor->view);
  if (!view) return nullptr;  // it was given other storage while its layout was asked for
  if (!view->offset) {
    int64_t offset;
    const bool known = is_offset_known(tensor, &offset);
    PyErr_Clear();
    if (tensor->view != view) return nullptr;
    view->offset = known ? offset : -1;
  }
  follow_storage(view);
  const Value* root = view->root->value;
  if (*view->offset < 0 || !root->buffer) return nullptr;
  return static_cast<const char*>(root->buffer->data) + *view->offset * item_size(tensor->value->type->dtype);
}

ValueRef read_storage(PyTensor* tensor) {
  const UsedView view(tensor->view);
  const Layout* layout = layout_of(tensor);
  if (!layout) return ValueRef();
  const char* from = memory_of_view(tensor);
  if (tensor->view != view) return held_value(tensor);  // it was given other storage meanwhile
  if (from) return value_in_memory(tensor->value->type, from, *layout);
  PyObject* array = PyObject_CallOneArg(hooks.view_array, reinterpret_cast<PyObject*>(tensor));
  if (!array) return ValueRef();
  ValueRef value = value_from_array(array, false, tensor->value->type->dtype);
  Py_DECREF(array);
  return value;
}

bool share_storage(PyTensor* tensor, PyTensor* other, bool data) {
  const UsedValue value(current_value(other));
  if (!value || is_symbolic(value) || !realise(value)) return value && is_symbolic(value);
  const Owned held = shown_by(other);  // what runs meanwhile may give `other` other memory
  auto* const shown = reinterpret_cast<PyTensor*>(held.object);
  if (shown == tensor) return true;
  ValueRef own = in_memory_of(tensor, value, data), old = share(tensor->value);
  if (!own) return false;
  // Of two live handles, a leaf keeps its storage.
  bool lonely = !other->views && !(data && flows(other)) && (!other->view || owns_alone(other));
  Storage* left = nullptr;
  const bool read_again = data && !tensor->view && !tensor->views && own->type == old->type;
  if (read_again) {
    release(std::exchange(tensor->value, share(own.get()).take()));
    note_written(tensor, old, true);
    if ((left = tensor->storage)) ++left->references;
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
    if (left) {
      left->leave_for(storage_of(tensor), old.get());
      left->next->hold(tensor->value);
    }
  }
  if (left) release_storage(left);
  return done;
}

PyTensor* counting(PyTensor* tensor) {
  while (tensor->view && !tensor->view->data) tensor = tensor->view->parent;
  return tensor;
}

void count_change(PyTensor* tensor) { --counting(tensor)->silent; }

PyObject* become(PyObject* self, PyObject* other) {
  PyTensor* tensor = reinterpret_cast<PyTensor*>(self);
  Py_INCREF(self);
  if (self == other) {
    count_change(tensor);
    return self;
  }
  PyTensor* made = is_tensor(other) ? reinterpret_cast<PyTensor*>(other) : nullptr;
  if (!made || !made->view || made->view->root != (tensor->view ? tensor->view->root : tensor)) {
    Py_DECREF(self);
    return PyErr_Format(PyExc_TypeError, "in-place: the operation gave no view of the tensor");
  }
  if (is_tracked_leaf(tensor)) {
    Py_DECREF(self);
    return PyErr_Format(PyExc_RuntimeError,
                        "in-place: a leaf Variable that requires grad is being used in an in-place operation that changes its shape: %s. Use "
                        "the form that returns a new tensor.",
                        tensor->value->type->text().c_str());
  }
  std::swap(tensor->value, made->value);
  std::swap(tensor->view, made->view);
  made->version = tensor->version;
  made->detached = tensor->detached;
  made->silent = tensor->silent;
  made->storage = std::exchange(tensor->storage, nullptr);
  // All views of the handle, the new one too, refer to `made` instead.
  made->views = std::exchange(tensor->views, 0);
  made->epoch = tensor->epoch++;
  made->former = std::exchange(tensor->former, made);
  Py_INCREF(other);
  // At once, since a handle that is its own parent would never be freed.
  if (!current_value(tensor)) Py_CLEAR(self);
  if (self) count_change(tensor);
  return self;
}

}  // namespace twofold
