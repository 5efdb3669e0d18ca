#include "tensor.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "autocast.h"
#include "background_run.h"
#include "call_memo.h"
#include "collection_pause.h"
#include "declared.h"
#include "free_blocks.h"
#include "guard.h"
#include "layout.h"
#include "location.h"
#include "owned.h"
#include "purity.h"

namespace twofold {

PyTypeObject* tensor_type = nullptr;

namespace {

constexpr int kMostFree = kKeepsFreed ? 256 : 0;
PyTensor* free_list[256];
int free_count = 0;

constexpr size_t kMostOperands = 16;

// The handle with the storage of the tensor in an epoch: itself, or a former handle.
PyTensor* holder(PyTensor* tensor, uint32_t epoch) {
  while (tensor->epoch != epoch) tensor = tensor->former;
  return tensor;
}

}  // namespace

void release_view(View* view) {
  if (--view->references > 0) return;
  --holder(view->root, view->epoch)->views;
  --holder(view->parent, view->parent_epoch)->views;
  Py_XDECREF(view->inputs);
  Py_DECREF(reinterpret_cast<PyObject*>(view->root));
  Py_DECREF(reinterpret_cast<PyObject*>(view->parent));
  delete view;
}

namespace {

void destroy_tensor(PyTensor* tensor) {
  auto* self = reinterpret_cast<PyObject*>(tensor);
  Py_CLEAR(tensor->dict);
  if (Value* value = std::exchange(tensor->value, nullptr)) release(value);
  Py_CLEAR(tensor->former);
  if (Storage* storage = std::exchange(tensor->storage, nullptr)) release_storage(storage);
  if (View* view = std::exchange(tensor->view, nullptr)) release_view(view);
  PyTypeObject* type = Py_TYPE(self);
  if (type == tensor_type && free_count < kMostFree) {
    free_list[free_count++] = tensor;
    return;
  }
  type->tp_free(self);
  Py_DECREF(type);
}

}  // namespace

void tensor_dealloc(PyObject* self) {
  static PyTensor* waiting = nullptr;
  static bool destroying = false;
  auto* tensor = reinterpret_cast<PyTensor*>(self);
  PyObject_GC_UnTrack(self);
  if (tensor->weak_references) PyObject_ClearWeakRefs(self);
  // Parents of a view are destroyed iteratively, through an intrusive list.
  tensor->weak_references = reinterpret_cast<PyObject*>(std::exchange(waiting, tensor));
  if (destroying) return;
  destroying = true;
  while (waiting) {
    PyTensor* next = waiting;
    waiting = reinterpret_cast<PyTensor*>(std::exchange(next->weak_references, nullptr));
    destroy_tensor(next);
  }
  destroying = false;
}

// Dicts and lists let go of their items in a cycle. Those of a slot belong to the handle if nothing else leads to them.
int tensor_traverse(PyObject* self, visitproc visit, void* arg) {
  auto* tensor = reinterpret_cast<PyTensor*>(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(tensor->dict);
  const Value* value = tensor->value;
  const GradientSlot* slot = value && value->references == 1 ? value->slot : nullptr;
  if (!slot || slot->references != 1) return 0;
  Py_VISIT(slot->hooks);
  Py_VISIT(slot->call_hooks);
  Py_VISIT(slot->metadata);
  Py_VISIT(slot->after);
  return 0;
}

void track(PyTensor* tensor) {
  auto* self = reinterpret_cast<PyObject*>(tensor);
  if (!PyObject_GC_IsTracked(self)) PyObject_GC_Track(self);
}

View* new_view(PyTensor* parent, Operation* op, Attributes* attributes, PyObject* inputs, bool data) {
  PyTensor* root = parent->view ? parent->view->root : parent;
  Py_INCREF(reinterpret_cast<PyObject*>(parent));
  Py_INCREF(reinterpret_cast<PyObject*>(root));
  ++root->views;
  ++parent->views;
  auto* view = new View{1, parent, root, op, attributes, inputs, root->version, root->epoch, parent->epoch, Recorder::current().grad_enabled,
                        data, data || (parent->view && parent->view->within_data)};
  note_read(view);
  return view;
}

void follow_storage(View* view) {
  if (!is_left_behind(view)) return;
  const UsedView held(view);  // freeing a former handle may run Python code
  PyTensor* root = holder(view->root, view->epoch);
  PyTensor* parent = holder(view->parent, view->parent_epoch);
  Py_INCREF(reinterpret_cast<PyObject*>(root));
  Py_INCREF(reinterpret_cast<PyObject*>(parent));
  Py_DECREF(reinterpret_cast<PyObject*>(std::exchange(view->root, root)));
  Py_DECREF(reinterpret_cast<PyObject*>(std::exchange(view->parent, parent)));
}

namespace {

// Keeps what `record` needs about a view: operation, parent and further inputs.
bool attach_view(PyTensor* result, PyTensor* parent, Operation* op, Attributes* attributes, PyObject* const* rest, size_t count) {
  const Layout* layout = nullptr;
  if (op->may_copy && parent->view) {
    Type* const shown = parent->value->type;
    const uint32_t epoch = parent->epoch;
    const Layout* source = layout_of(parent);
    if (!source || parent->epoch != epoch) return source != nullptr;  // in the second case the result is of what the parent showed before
    const ViewedLayout* viewed = viewed_layout(op, attributes, shown, source, count, result->value->type);
    if (!viewed || !viewed->layout || parent->epoch != epoch) return viewed != nullptr;
    layout = viewed->layout;
  }
  PyObject* inputs = PyTuple_New(static_cast<Py_ssize_t>(count));
  for (size_t i = 0; i < count && inputs; ++i) {
    Py_INCREF(rest[i]);
    PyTuple_SET_ITEM(inputs, static_cast<Py_ssize_t>(i), rest[i]);
  }
  if (!inputs) return false;
  result->view = new_view(parent, op, attributes, inputs);
  result->view->layout = layout;
  return true;
}

// A Python complex number as a handle on a weak value, as it does not fit into a scalar input of eight bytes.
PyObject* complex_scalar(PyObject* object) {
  static Type* const type = type_of(kComplex128, nullptr, 0, true);
  ValueRef value(new_value(type));
  const double parts[2] = {PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object)};
  value->buffer = BufferRef(new_buffer(sizeof parts));
  std::memcpy(value->buffer->data, parts, sizeof parts);
  value->location = capture_location();
  return wrap(std::move(value));
}

}  // namespace

PyObject* wrap(ValueRef value, PyTypeObject* type) {
  if (!value) return nullptr;
  PyTensor* tensor;
  if (!type && free_count > 0) {
    tensor = free_list[--free_count];
    PyObject_Init(reinterpret_cast<PyObject*>(tensor), tensor_type);
    Py_DECREF(tensor_type);  // a block from the free list still holds its reference to the type
  } else {
    const CollectionPause pause;  // its caller may be in the middle of a trace
    PyTypeObject* const made = type ? type : tensor_type;
    tensor = reinterpret_cast<PyTensor*>(made->tp_alloc(made, 0));
    if (!tensor) return nullptr;
    if (made == tensor_type) PyObject_GC_UnTrack(tensor);
  }
  tensor->value = value.take();
  tensor->view = nullptr;
  tensor->weak_references = nullptr;
  tensor->dict = nullptr;
  tensor->version = tensor->epoch = tensor->views = tensor->silent = 0;
  tensor->storage = nullptr;
  tensor->former = nullptr;
  tensor->detached = tensor->standard = false;
  return reinterpret_cast<PyObject*>(tensor);
}

// A handle of another class takes the value and the view of this one, which nothing else refers to.
PyObject* as_class(PyObject* self, PyObject* cls) {
  auto* type = reinterpret_cast<PyTypeObject*>(cls);
  if (!PyType_Check(cls) || !PyType_IsSubtype(type, tensor_type)) {
    return PyErr_Format(PyExc_TypeError, "as_subclass: %R is no class of tensors. Give one that inherits from Tensor.", cls);
  }
  auto* tensor = reinterpret_cast<PyTensor*>(self);
  PyObject* object = wrap(share(tensor->value), type);
  if (!object) return nullptr;
  auto* made = reinterpret_cast<PyTensor*>(object);
  std::swap(made->view, tensor->view);
  made->detached = tensor->detached;
  made->standard = tensor->standard;
  return object;
}

// `.grad` as it is kept: a tensor also of a table.
PyObject* get_dense_grad(PyObject* self, void*) {
  auto* tensor = reinterpret_cast<PyTensor*>(self);
  const GradientSlot* slot = tensor->detached ? nullptr : tensor->value->slot;
  PyObject* gradient = slot && slot->gradient ? slot->gradient : Py_None;
  Py_INCREF(gradient);
  return gradient;
}

PyObject* get_sparse_grad(PyObject* self, void*) {
  auto* tensor = reinterpret_cast<PyTensor*>(self);
  const GradientSlot* slot = tensor->detached ? nullptr : tensor->value->slot;
  return PyBool_FromLong(slot && slot->sparse);
}

int set_sparse_grad(PyObject* self, PyObject* wanted, void*) {
  const int sparse = wanted ? PyObject_IsTrue(wanted) : 0;
  auto* tensor = reinterpret_cast<PyTensor*>(self);
  const bool leaf = tensor->value->is_leaf && tensor->value->requires_grad && !tensor->detached;
  if (sparse >= 0 && leaf && (sparse || tensor->value->slot)) slot_of(tensor->value)->sparse = sparse;
  return sparse < 0 ? -1 : 0;
}

namespace {

bool shows_whole(const PyTensor* tensor) {
  for (; tensor->view; tensor = tensor->view->parent) {
    if (tensor->view->operation) return false;
  }
  return true;
}

// The value of a view has been computed, so that the graph does not have its base.
void show(PyTensor* tensor) {
  Storage* storage = storage_of(tensor);
  if (storage->current.get() == tensor->value) storage->hold(tensor->value);  // it was pending
  tensor->value->shown = std::make_unique<Snapshot>(storage, shows_whole(tensor));
}

// Whether the value of a view may stay, as it has what was read again. The value of an alias lies in the shared memory itself.
bool is_kept(const View* view, const Value* value, const Value* other) {
  if (!value->buffer || !other->buffer || value->type != other->type) return false;
  if (value->shown && value->shown->state() != Snapshot::kSame) return false;  // its readers from before see what was overwritten
  while (view && !view->operation) view = view->parent->view;
  if (!view) return value->buffer.get() == other->buffer.get();
  return std::memcmp(value->buffer->data, other->buffer->data, static_cast<size_t>(value->type->nbytes)) == 0;
}

bool at_once(const PyTensor* tensor) {
  return tensor->view->operation && reads_at_once(tensor->view->parent, tensor->value->type, tensor->view->tracked);
}

// Whether a view has a position in the graph that its readers and hooks share, and nobody but foreign code can have written to it.
bool keeps_position(const PyTensor* tensor) {
  const View* view = tensor->view;
  return view->operation && flows(tensor) && !tensor->value->is_leaf && view->seen == view->root->version;
}

// Whether memory holds the elements of a value.
bool holds(const char* memory, const Layout& layout, const Value* value) {
  const auto nbytes = static_cast<size_t>(value->type->nbytes);
  if (layout.row_major) return std::memcmp(memory, value->buffer->data, nbytes) == 0;
  const ValueRef copy = value_in_memory(value->type, memory, layout);
  if (!copy) PyErr_Clear();
  return copy && std::memcmp(copy->buffer->data, value->buffer->data, nbytes) == 0;
}

// Whether shared memory still holds the elements of a view's value, which stays.
bool holds_shared(PyTensor* tensor) {
  const UsedView view(tensor->view);
  const ValueRef value = share(tensor->value);
  if (!value->buffer || (value->shown && value->shown->state() != Snapshot::kSame)) return false;
  const bool stays = keeps_position(tensor);
  if (!stays && !(view->layout && view->layout->row_major && at_once(tensor))) return false;
  const Layout* layout = layout_of(tensor);
  if (!layout) PyErr_Clear();
  const char* now = layout ? memory_of_view(tensor) : nullptr;
  if (!now || view != tensor->view || value.get() != tensor->value) return false;
  if (!holds(now, *layout, value.get())) return false;
  note_read(view);
  return true;
}

// Reads the view again through its parent.
Value* read_again(PyTensor* tensor) {
  const UsedView view(tensor->view);
  if (!view) return tensor->value;
  const Owned held(Py_NewRef(reinterpret_cast<PyObject*>(view->parent)));
  bool own = view->operation ? is_tracked_leaf(tensor) : !tensor->detached;  // another position in the graph than the parent's
  const bool eager = view->operation && at_once(tensor);
  ValueRef fresh;
  if (eager) {
    if (!(fresh = read_storage(tensor))) return nullptr;
  } else if (!view->operation) {
    Value* parent = current_value(view->parent);
    if (!parent) return nullptr;
    fresh = share(parent);
  } else {
    const size_t count = static_cast<size_t>(PyTuple_GET_SIZE(view->inputs)) + 1;  // one for each axis of an index, and the parent
    PyObject* on_stack[kMostOperands];
    std::vector<PyObject*> on_heap(count > kMostOperands ? count : 0);
    PyObject** const arguments = count > kMostOperands ? on_heap.data() : on_stack;
    arguments[0] = held.object;
    for (size_t i = 1; i < count; ++i) arguments[i] = PyTuple_GET_ITEM(view->inputs, static_cast<Py_ssize_t>(i - 1));
    GradientScope scoped(view->tracked);
    PyObject* made = call_operation(view->operation, view->attributes, arguments, count);
    if (!made) return nullptr;
    fresh = share(reinterpret_cast<PyTensor*>(made)->value);
    Py_DECREF(made);
  }
  if (own && !(fresh = with_data(tensor->value, fresh.get()))) return nullptr;
  if (tensor->view != view) return current_value(tensor);  // it was given other storage meanwhile
  note_read(view);
  // Operands of one call may be this view: the value of the first stays while the memory holds the same elements.
  if ((own || eager) && is_kept(view, tensor->value, fresh.get())) return tensor->value;
  retain_further(tensor->value, fresh.get());
  Value* old = std::exchange(tensor->value, fresh.take());
  release(old);
  return tensor->value;
}

}  // namespace

Value* value_of_view(PyTensor* tensor) {
  const UsedView view(tensor->view);
  follow_storage(view);
  if (is_current(view) || holds_shared(tensor)) return tensor->value;
  if (tensor->view != view) return current_value(tensor);  // it was given other storage meanwhile
  Recursion level(" in a view of views");
  if (!level) return nullptr;
  // From the root, so that a long chain of views does not recurse.
  std::vector<Owned> stale;
  bool walks = !is_shared_outside(view->root->value) && !at_once(tensor);
  for (PyTensor* above = view->parent; walks && above->view;) {
    Owned held(Py_NewRef(reinterpret_cast<PyObject*>(above)));
    const UsedView link(above->view);
    follow_storage(link);
    if (above->view != link || is_current(link)) break;
    stale.push_back(std::move(held));
    above = link->parent;
  }
  while (!stale.empty() && read_again(reinterpret_cast<PyTensor*>(stale.back().object))) stale.pop_back();
  return stale.empty() ? read_again(tensor) : nullptr;
}

ValueRef held_value(PyTensor* tensor) {
  Value* value = current_value(tensor);
  return value ? share(value) : ValueRef();
}

Storage* storage_of(PyTensor* tensor) {
  PyTensor* root = tensor->view ? tensor->view->root : tensor;
  if (!root->storage) root->storage = new Storage();
  return root->storage;
}

int to_operand(PyObject* object, Operand* operand, PyObject** held) {
  *held = nullptr;
  if (is_tensor(object)) {
    auto* tensor = reinterpret_cast<PyTensor*>(object);
    operand->value = current_value(tensor);
    operand->detached = tensor->detached;
    if (tensor->view && !flows(tensor)) note_use(tensor);
    if (operand->value && !is_symbolic(operand->value) && Purity::is_broken_by(operand->value)) return -1;
    if (tensor->view && operand->value && !operand->value->pending && !operand->value->shown) show(tensor);
    return operand->value ? 1 : -1;
  }
  operand->value = nullptr;
  operand->scalar = 0;
  if (PyBool_Check(object)) {
    static Type* const type = type_of(kBool, nullptr, 0, true);
    operand->scalar_type = type;
    operand->scalar = object == Py_True;
    return 1;
  }
  if (PyFloat_Check(object)) {
    double number = PyFloat_AS_DOUBLE(object);
    operand->scalar_type = float_scalar_type();
    std::memcpy(&operand->scalar, &number, sizeof number);
    return 1;
  }
  if (PyLong_Check(object)) {
    operand->scalar_type = integer_scalar_type();
    int64_t number = PyLong_AsLongLong(object);
    if (number == -1 && PyErr_Occurred()) return -1;
    std::memcpy(&operand->scalar, &number, sizeof number);
    return 1;
  }
  if (PyComplex_Check(object)) {
    *held = complex_scalar(object);
    if (!*held) return -1;
    operand->value = reinterpret_cast<PyTensor*>(*held)->value;
    operand->detached = true;
    return 1;
  }
  PyObject* converted = PyObject_CallFunctionObjArgs(hooks.as_operand, object, nullptr);
  if (!converted) return -1;
  if (converted == Py_NotImplemented || converted == object) {
    Py_DECREF(converted);
    return 0;
  }
  PyObject* inner = nullptr;
  int status = to_operand(converted, operand, &inner);
  *held = converted;
  return status;
}

namespace {

// A view of memory that is shared with foreign code, if it is read eagerly; null if it is recorded. False with an
// error set.
bool view_of_shared(Operation* op, Attributes* attributes, PyObject* const* arguments, size_t count, PyObject** shown) {
  auto* parent = reinterpret_cast<PyTensor*>(arguments[0]);
  const PyTensor* root = parent->view ? parent->view->root : parent;
  if (!is_shared_outside(root->value) || count > kMostOperands) return true;
  Type* types[kMostOperands];
  for (size_t i = 0; i < count; ++i) {
    Operand operand;
    PyObject* held = nullptr;
    if (i && is_tensor(arguments[i])) return true;
    if (i && to_operand(arguments[i], &operand, &held) != 1) return !PyErr_Occurred();
    Py_XDECREF(held);
    types[i] = i ? operand.scalar_type : parent->value->type;
    if (!types[i]) return true;
  }
  OpInstanceRef instance = op_instance_of(op, attributes, types, count, arguments);
  if (!instance) return false;
  if (!reads_at_once(parent, instance->output, Recorder::current().grad_enabled)) return true;
  ValueRef empty(new_value(instance->output));
  PyObject* made = wrap(std::move(empty));
  auto* result = reinterpret_cast<PyTensor*>(made);
  if (!made || !attach_view(result, parent, op, attributes, arguments + 1, count - 1)) {
    Py_XDECREF(made);
    return false;
  }
  ValueRef value = result->view ? read_storage(result) : ValueRef();
  if (value) {
    release(std::exchange(result->value, value.take()));
    *shown = made;
    return true;
  }
  bool copies = !result->view;
  Py_DECREF(made);
  return copies;
}

}  // namespace

namespace {

// The operands of a call: on the stack, unless there are many.
class Operands {
 public:
  explicit Operands(size_t count) : on_stack_(count <= kMostOperands ? count : 0), on_heap_(count - on_stack_) {
    std::uninitialized_value_construct_n(first(), on_stack_);  // only those of the call are made
  }
  ~Operands() { std::destroy_n(first(), on_stack_); }
  Operands(const Operands&) = delete;
  Operand* get() { return on_heap_.empty() ? first() : on_heap_.data(); }

 private:
  Operand* first() { return reinterpret_cast<Operand*>(memory_); }

  const size_t on_stack_;
  std::vector<Operand> on_heap_;
  alignas(Operand) std::byte memory_[kMostOperands * sizeof(Operand)];
};

// The result of a call; null with a Python error set.
ValueRef bind_arguments(Operation* op, Attributes* attributes, PyObject* const* arguments, size_t count, uint32_t location) {
  Operands made(count);
  Operand* const operands = made.get();
  PyObject* held_on_stack[kMostOperands];
  std::vector<PyObject*> held_on_heap(count > kMostOperands ? count : 0);
  PyObject** const held = count > kMostOperands ? held_on_heap.data() : held_on_stack;
  size_t done = 0;
  int status = 1;
  for (; done < count && status == 1; ++done) status = to_operand(arguments[done], &operands[done], &held[done]);
  ValueRef value;
  if (status == 1) {
    value = bind_operands(op, attributes, operands, count, arguments, location);
  } else if (status == 0) {
    PyErr_Format(PyExc_TypeError, "%s: operand %zu is of type %s. Give a tensor or a number.", op->name.c_str(), done,
                 Py_TYPE(arguments[done - 1])->tp_name);
  }
  for (size_t i = 0; i < done; ++i) Py_XDECREF(held[i]);
  return value;
}

PyObject* call_unwatched(Operation* op, Attributes* attributes, PyObject* const* arguments, size_t count) {
  CallWatch::Pause pause;
  if (Autocast::applies(op->autocast)) return call_in_region(op, attributes, arguments, count);
  const uint32_t location = declaring_location();
  const bool shows = op->is_view && count > 0 && is_tensor(arguments[0]);
  if (shows) {
    PyObject* shown = nullptr;
    if (!view_of_shared(op, attributes, arguments, count, &shown)) return nullptr;
    if (shown) return shown;
  }
  ValueRef value = repeat_call(op, attributes, arguments, count, location);
  if (!value) value = bind_arguments(op, attributes, arguments, count, location);
  PyObject* result = value ? wrap(std::move(value)) : nullptr;
  auto* made = reinterpret_cast<PyTensor*>(result);
  if (made) made->standard = is_standard(arguments, count);
  // In a graph with symbolic sizes nothing is written in place.
  if (made && shows && !made->value->type->unknown &&
      !attach_view(made, reinterpret_cast<PyTensor*>(arguments[0]), op, attributes, arguments + 1, count - 1)) {
    Py_CLEAR(result);
  }
  return result;
}

}  // namespace

PyObject* call_operation(Operation* op, Attributes* attributes, PyObject* const* arguments, size_t count) {
  PyObject* result = call_unwatched(op, attributes, arguments, count);
  CallWatch::note(op, attributes, arguments, count, result);
  return result;
}

GradientSlot* slot_of(Value* value) {
  if (!value->slot) value->slot = new GradientSlot();
  return value->slot;
}

bool may_be_observed(PyTensor* tensor, const char* what) {
  CallWatch::spoil();
  Value* value = current_value(tensor);
  if (!value || Purity::is_broken()) return false;
  if (is_symbolic(value)) {
    PyObject* result = PyObject_CallFunction(hooks.symbolic_observed, "Os", reinterpret_cast<PyObject*>(tensor), what);
    Py_XDECREF(result);
    return false;
  }
  return true;
}

namespace {

// Computes what a handle holds, also where another thread gives it another value meanwhile.
bool realise_held(PyTensor* tensor) {
  for (;;) {
    const UsedValue value(tensor->value);
    if (!realise(value)) return false;
    if (value == tensor->value) return true;
  }
}

}  // namespace

bool observe(PyTensor* tensor, const char* what) { return may_be_observed(tensor, what) && realise_held(tensor); }

PyObject* number_of(PyTensor* tensor) {
  alignas(16) char element[16];
  bool found = false;
  const UsedValue value(tensor->value);
  if (!read_in_background(value, element, &found)) return nullptr;
  if (found) return scalar_item(value->type, element, 0);
  return realise_held(tensor) ? scalar_item(tensor->value->type, tensor->value->buffer->data, 0) : nullptr;
}

}  // namespace twofold
