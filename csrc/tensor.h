// The tensor handle: a mutable Python object on an immutable value.
#pragma once

#include <Python.h>

#include <optional>

#include "owned.h"
#include "recorder.h"

namespace twofold {

struct PyTensor;
struct Layout;

// The view of a handle: in-place writes go through to the parent, reads follow the version of the root.
struct View {
  int32_t references = 1;  // of the handle, and of those that are reading or writing the view, see UsedView
  PyTensor* parent;
  PyTensor* root;
  Operation* operation;    // null: an identity view (detach)
  AttributesRef attributes;
  PyObject* inputs;        // further inputs of the operation, a tuple
  uint32_t seen;           // version of the root when the value was read
  uint32_t epoch, parent_epoch;  // of the root and of the parent when the view was made
  bool tracked;            // made while gradients were recorded
  bool data;               // of `.data`: writes do not count in the parent's version
  bool within_data;        // it, or a parent, is a view by `.data`
  bool used = false;       // of `.data`: it, or a view of it, has been an operand
  bool shared = false;     // foreign code could write to the memory when the value was read
  uint32_t handovers = 0;  // of the root's memory when the value was read
  const Layout* layout = nullptr;  // computed on demand
  std::optional<int64_t> offset = std::nullopt;  // elements behind the first one of the root, if asked for; negative where only rules of Python know
};

struct PyTensor {
  PyObject_HEAD
  Value* value;            // owned
  View* view;              // owned; null for a handle with storage of its own
  PyObject* weak_references;
  PyObject* dict;          // owned; attributes that programs set
  uint32_t version;
  uint32_t epoch;          // how often the handle was given other storage (`tensor.data = other`)
  uint32_t views;          // the number of live views of this epoch whose root or parent is the handle
  PyTensor* former;        // owned; the previous storage if views of it are live, in a handle of an earlier epoch
  uint32_t silent;         // versions that `_version` does not count, such as writes through `.data`, less changes that are no versions
  Storage* storage;        // owned; null until a write outside of a graph, or a view, needs it
  bool detached;           // no gradient flows through this handle
  bool standard;           // promotes by the array API standard, and so do results computed from it
};

void release_view(View* view);

// A view that is being read or written: what rules of Python do meanwhile may give its handle other storage.
class UsedView {
 public:
  explicit UsedView(View* view) : view_(view) { if (view) ++view->references; }
  UsedView(const UsedView& other) : UsedView(other.view_) {}
  UsedView& operator=(const UsedView&) = delete;
  ~UsedView() { if (view_) release_view(view_); }
  View* operator->() const { return view_; }
  operator View*() const { return view_; }

 private:
  View* const view_;
};

extern PyTypeObject* tensor_type;

inline bool is_tensor(PyObject* o) {
  return Py_TYPE(o) == tensor_type || PyType_IsSubtype(Py_TYPE(o), tensor_type);
}

// The root of a view; the handle itself if it is no view.
inline const PyTensor* root_of(const PyTensor* tensor) { return tensor->view ? tensor->view->root : tensor; }
// The value now, re-read through the view if its storage has changed; borrowed; null with an error set.
Value* value_of_view(PyTensor* tensor);
inline Value* current_value(PyTensor* tensor) { return tensor->view ? value_of_view(tensor) : tensor->value; }
// The same, held, as the handle may get another one.
ValueRef held_value(PyTensor* tensor);
PyObject* wrap(ValueRef value, PyTypeObject* type = nullptr);
PyObject* as_class(PyObject* self, PyObject* cls);
// Attributes of a leaf: its gradient as a tensor, and whether `.grad` shows it by its rows.
PyObject* get_dense_grad(PyObject* self, void*);
PyObject* get_sparse_grad(PyObject* self, void*);
int set_sparse_grad(PyObject* self, PyObject* wanted, void*);
// A view of the parent, in its root's epoch; takes the reference to inputs.
View* new_view(PyTensor* parent, Operation* op, Attributes* attributes, PyObject* inputs, bool data = false);
// Moves the view to the handles that took over the storage of its root and parent, if they were given other storage.
void follow_storage(View* view);
// Whether there is another parent to follow.
inline bool is_left_behind(const View* view) { return view->epoch != view->root->epoch || view->parent_epoch != view->parent->epoch; }
// The handle at the end of a chain of aliases, perhaps the handle itself.
Owned shown_by(PyTensor* tensor);
// Detaches the views of the current storage before the handle is given other storage.
bool leave_storage(PyTensor* tensor);
// The tensor takes the values of the other, type and all, and shares its storage from now on; a leaf stays the leaf it was.
// With `data` the writes of one do not count in the version of the other.
bool share_storage(PyTensor* tensor, PyTensor* other, bool data);
// The handle becomes its view `other`; `other` takes over the storage of the handle.
PyObject* become(PyObject* self, PyObject* other);
// The handle whose version counts the in-place changes of this one.
PyTensor* counting(PyTensor* tensor);
// Counts a change that leaves the elements as they are, so that views need not be read again.
void count_change(PyTensor* tensor);
// Whether a view of memory that is shared outside is read from there at once: recording would copy the whole memory.
bool reads_at_once(const PyTensor* parent, const Type* shown, bool tracked);
// The first element of a view in the memory of its root; null, without an error, where only rules of Python know where it lies.
const char* memory_of_view(PyTensor* tensor);
// Reads the view from its storage.
ValueRef read_storage(PyTensor* tensor);
// A copy of the elements of a layout in memory of somebody else; null with a Python error set.
ValueRef value_in_memory(Type* type, const char* from, const Layout& layout);
// The types of Python numbers as operands.
inline Type* float_scalar_type() {
  static Type* const type = type_of(kFloat64, nullptr, 0, true);
  return type;
}
inline Type* integer_scalar_type() {
  static Type* const type = type_of(kInt64, nullptr, 0, true);
  return type;
}
// 1: filled; 0: not an operand; -1: error set. Objects made on the way are kept alive by *held.
int to_operand(PyObject* object, Operand* operand, PyObject** held);
// Records op on Python operands (tensors and scalars).
PyObject* call_operation(Operation* op, Attributes* attributes, PyObject* const* arguments, size_t count);
// Moves a retained gradient to the value after an in-place operation.
void retain_further(Value* old, Value* fresh);
// In-place: gives tensor the value, cast to its dtype; silently through `.data`, but where the graph of the value may have read there what
// it replaces: `apart` says that it has not.
bool assign(PyTensor* tensor, ValueRef value, bool silent = false, bool apart = false);
// Lets a backward pass that reads what the storage held find out that it does not hold it any more.
void note_written(PyTensor* tensor, const ValueRef& old, bool silent);
// The counter of the writes to the storage that the handle shows.
Storage* storage_of(PyTensor* tensor);
// Whether gradients flow through the handle.
inline bool flows(const PyTensor* tensor) { return tensor->value->requires_grad && !tensor->detached; }
// An operand of an in-place operation whose result has a graph. What shows the storage of the target through a detach() is copied: its memory
// is that of a value of the graph, and gradients read the elements from before the write. A new reference, or null with an error set.
PyObject* apart_from(PyTensor* target, PyObject* object);
// Whether an operand has no graph that may have read the elements of the target.
inline bool has_no_graph(PyObject* object) {
  const auto* tensor = is_tensor(object) ? reinterpret_cast<const PyTensor*>(object) : nullptr;
  return !tensor || !flows(tensor) || root_of(tensor)->value->is_leaf;
}
inline bool is_tracked_leaf(const PyTensor* tensor) { return flows(tensor) && tensor->value->is_leaf; }
GradientSlot* slot_of(Value* value);
// Whether a handle whose memory changes keeps its gradient: a leaf does, also one that requires no gradient any more.
inline bool keeps_gradient(const PyTensor* tensor) { return !tensor->detached && (tensor->value->is_leaf || !tensor->value->requires_grad); }
inline void keep_gradient(const Value* old, Value* fresh) {
  if (old->slot && !fresh->slot) ++(fresh->slot = old->slot)->references;
}
// Whether foreign code may change the value's memory.
inline bool is_shared_outside(const Value* value) { return value->buffer && value->buffer->shared_outside(); }

// Notes that the value of a view has just been read from, or written to, its root.
inline void note_read(View* view) {
  const Value* root = view->root->value;
  view->seen = view->root->version;
  view->shared = is_shared_outside(root);
  view->handovers = root->buffer ? root->buffer->handover_count() : 0;
}
// `.data` that an operand shows: gradients may read its elements from now on.
inline void note_use(const PyTensor* tensor) {
  for (; tensor->view && tensor->view->within_data; tensor = tensor->view->parent) {
    if (tensor->view->data) tensor->view->used = true;
  }
}
// Whether the value of a view is what its root holds.
inline bool is_current(const View* view) {
  const Value* root = view->root->value;
  if (view->seen != view->root->version || view->shared || is_shared_outside(root)) return false;
  return view->handovers == (root->buffer ? root->buffer->handover_count() : 0);  // an array may have been written to, and be gone
}
bool observe(PyTensor* tensor, const char* what);  // realises; false with an error set
bool may_be_observed(PyTensor* tensor, const char* what);  // false with an error set
// The number of a tensor of one element that may be observed; null with an error set.
PyObject* number_of(PyTensor* tensor);

void tensor_dealloc(PyObject* self);
int tensor_traverse(PyObject* self, visitproc visit, void* arg);
// Lets the garbage collector visit a handle, as what a program has given it may refer to it: attributes, hooks. It visits no others.
void track(PyTensor* tensor);
// The default floating dtype.
extern uint8_t default_float;
extern bool any_standard;  // whether any tensor is or was
bool any_is_standard(PyObject* const* arguments, size_t count);
inline bool is_standard(PyObject* const* arguments, size_t count) { return any_standard && any_is_standard(arguments, count); }
// A call that repeats the one which the last step made here, with operands that are at hand; else null without an error. Runs no Python code.
ValueRef repeat_call(Operation* op, Attributes* attributes, PyObject* const* arguments, size_t count, uint32_t location);
ValueRef bind_operands(Operation* op, Attributes* attributes, Operand* operands, size_t count, PyObject* const* arguments, uint32_t location);
int add_tensor_type(PyObject* module);
extern PyGetSetDef tensor_attributes[];
extern PyMethodDef tensor_methods[];
int add_operation_type(PyObject* module);
// Operator slots by special-method name, such as "__add__".
bool set_operator(const char* name, Operation* op);

// Arrays.
int import_numpy();
PyObject* array_of(PyTensor* tensor, bool copy);
// A Python number, or a list of numbers of one kind: integers become int64, floats `float_code`, which is float32 or float64.
// Null without an error for anything else, also for integers beyond int64.
ValueRef value_from_numbers(PyObject* data, uint8_t float_code);
ValueRef value_from_array(PyObject* array, bool share_memory, int dtype_code);
// The memory from the first to the last element of an array of strides that are not negative, as a vector.
ValueRef value_from_span(PyObject* array);
// A new reference to a Python integer, or to that of an integer of NumPy; null, without an error, for anything else.
PyObject* python_integer(PyObject* object);
PyObject* scalar_item(const Type* type, const void* data, size_t offset);

// Define-then-run.
ValueRef declare_placeholder(Type* type);
ValueRef declare_call(Operation* op, Attributes* attributes, Operand* inputs, size_t count, PyObject* const* arguments,
                      bool grad_enabled);
bool is_symbolic(const Value* value);
int add_function_type(PyObject* module);
PyObject* gradients_of(PyObject* self, PyObject* arguments);
PyObject* backward_of(PyObject* self, PyObject* arguments);
int add_call_functions(PyObject* module);
int add_grad_fn_functions(PyObject* module);
// A Python scalar as it was given: 2, 2.0 or True.
PyObject* scalar_object(const Type* type, uint64_t bits);

}  // namespace twofold
