// In-place operations: a handle takes a new value, and writes to views go through to the storage.
#include "tensor.h"

#include <cstring>
#include <utility>

#include "background_run.h"
#include "call_memo.h"
#include "copies.h"
#include "guard.h"
#include "layout.h"
#include "location.h"
#include "owned.h"
#include "purity.h"

namespace twofold {

void retain_further(Value* old, Value* fresh) {
  if (!old->slot || !old->slot->retains || old->is_leaf || old == fresh || fresh->slot == old->slot) return;
  if (!fresh->requires_grad || fresh->is_leaf) return;
  GradientSlot* slot = slot_of(fresh);
  slot->intermediate = slot->retains = true;
  slot->gradient = std::exchange(old->slot->gradient, nullptr);
  old->slot->retains = false;
  Recorder::watch(fresh);
  Recorder::current().forget_prediction();
}

void note_written(PyTensor* tensor, const ValueRef& old, bool silent) {
  const bool is_noted = tensor->storage && tensor->storage->references > 1;
  if (old->references == 1 && !old->pending && !old->saved && !is_noted) return;  // nobody else has it
  Storage* storage = storage_of(tensor);
  Recorder::note(old.get(), Snapshot(storage, true));
  if (silent) {
    ++storage->silent;
    storage->hold(tensor->value);
    Recorder::current().replaces = true;
  } else {
    ++storage->writes;
    storage->current = ValueRef();
  }
}

namespace {

// Copies a result, which is computed, into memory that is shared with foreign code.
bool write_into(PyTensor* tensor, ValueRef value) {
  Buffer* target = tensor->value->buffer.get();
  if (target->read_only) {
    PyErr_SetString(PyExc_RuntimeError, "an in-place operation on a tensor that shares read-only memory. Clone it first.");
    return false;
  }
  target->note_overwritten();
  copy_memory(target->data, value->buffer->data, target->nbytes);
  BufferRef storage = tensor->value->buffer;
  Value* old = tensor->value;
  bool leaf_gradient = old->is_leaf && old->requires_grad;
  ValueRef fresh(new_value(value->type));
  fresh->buffer = storage;
  fresh->requires_grad = leaf_gradient || value->requires_grad;
  fresh->is_leaf = leaf_gradient || value->is_leaf;
  fresh->index = value->index;
  fresh->freed = value->freed;
  fresh->made_by = value->made_by;
  fresh->saved = leaf_gradient ? nullptr : value->saved;
  if (!leaf_gradient) keep_gradient(value.get(), fresh.get());
  if (keeps_gradient(tensor) && (leaf_gradient || !value->requires_grad)) keep_gradient(old, fresh.get());
  tensor->value = fresh.take();
  release(old);
  ++tensor->version;
  return true;
}

ValueRef cast_to(ValueRef value, Type* type) {
  if (value->type->dtype == type->dtype && !value->type->weak) return value;
  PyObject* source = wrap(std::move(value));
  PyObject* target = python_type(type);
  PyObject* made = source && target ? PyObject_CallFunctionObjArgs(hooks.cast, source, target, nullptr) : nullptr;
  Py_XDECREF(source);
  if (!made) return ValueRef();
  ValueRef result = share(reinterpret_cast<PyTensor*>(made)->value);
  Py_DECREF(made);
  return result;
}

// The leaf that a write to the handle would change in the graph; null if there is none.
const PyTensor* written_leaf(const PyTensor* tensor) {
  for (; tensor; tensor = tensor->view && tensor->view->operation ? tensor->view->parent : nullptr) {
    if (is_tracked_leaf(tensor)) return tensor;
  }
  return nullptr;
}

bool check_assignable(PyTensor* tensor, const Value* value) {
  Value* old = tensor->value;
  const PyTensor* leaf = Recorder::current().grad_enabled ? written_leaf(tensor) : nullptr;
  if (leaf) {
    std::string where = location_text(capture_location());
    PyErr_Format(PyExc_RuntimeError,
                 "in-place: a %sleaf Variable that requires grad is being used in an in-place operation: %s (%s), at %s. "
                 "Do it under no_grad(), or on a copy.",
                 leaf == tensor ? "" : "view of a ", old->type->text().c_str(), line_text(leaf->value->location).c_str(), where.c_str());
    return false;
  }
  if (value->type->shape != old->type->shape) {
    std::string where = location_text(capture_location());
    PyErr_Format(PyExc_RuntimeError,
                 "in-place: the result %s does not have the shape of the tensor %s (%s), at %s. "
                 "Write the operation out of place.",
                 value->type->text().c_str(), old->type->text().c_str(), line_text(old->location).c_str(), where.c_str());
    return false;
  }
  return true;
}

// A run that fails leaves a handle without history what it held: parameters are not lost with a step.
void keep_before(ValueRef old, Value* fresh) {
  if (!fresh->pending || fresh->before || !fresh->is_leaf || !old->is_leaf || fresh->type != old->type) return;
  const bool is_recorded = old->pending && !is_future_input(old.get());
  fresh->before = is_recorded ? old->before : std::move(old);
}

// In-place operation on a handle that is no view.
bool store(PyTensor* tensor, ValueRef value, bool silent) {
  bool tracked = Recorder::current().grad_enabled;
  const auto is_shared = [tensor] { return is_shared_outside(tensor->value) && !tensor->value->buffer->read_only; };
  // First of all: what runs meanwhile may give the handle other memory.
  if (is_shared() && !(need_values(value.get()) && realise(value.get()))) return false;
  ValueRef old = share(tensor->value);
  if (!tracked && old->requires_grad && !old->is_leaf && !(value = with_data(old.get(), value.get()))) return false;
  if (is_shared()) {
    if (!write_into(tensor, std::move(value))) return false;
  } else {
    if (old->is_leaf && old->requires_grad) value->requires_grad = value->is_leaf = true;
    if (keeps_gradient(tensor) && (old->requires_grad || !value->requires_grad)) keep_gradient(old.get(), value.get());
    release(std::exchange(tensor->value, value.take()));
    ++tensor->version;
  }
  tensor->silent += silent;
  retain_further(old.get(), tensor->value);
  if (!tracked) {
    note_written(tensor, old, silent);
  } else if (Storage* storage = std::exchange(tensor->storage, nullptr)) {
    release_storage(storage);  // the write is part of the graph: values read before stay valid
  }
  keep_before(std::move(old), tensor->value);
  return true;
}

// The same value, detached from the graph.
ValueRef plain_value(const ValueRef& value) {
  if (!value->requires_grad) return value;
  if (!realise(value.get())) return ValueRef();
  ValueRef plain(new_value(value->type));
  plain->buffer = value->buffer;
  plain->location = value->location;
  return plain;
}

// In-place operation on a view: it is written through to the parent. No gradient flows beyond a detached handle.
bool write_through(PyTensor* tensor, ValueRef value, bool silent, bool apart) {
  const UsedView view(tensor->view);
  PyTensor* target = view->parent;
  const Owned parent(Py_NewRef(reinterpret_cast<PyObject*>(target)));
  bool has_graph = value->requires_grad;
  ValueRef written;
  if (view->operation) {
    const Layout *source = layout_of(view->parent), *shown = source ? layout_of(tensor) : nullptr;
    if (!shown) return false;
    PyObject* handle = wrap(value);
    PyObject* made = nullptr;
    if (handle && source->repeats && !shown->repeats) {
      // The parent is a broadcast, with several indices for one element: write to the root.
      target = view->root;
      made = PyObject_CallFunctionObjArgs(hooks.write_storage, reinterpret_cast<PyObject*>(tensor), handle, nullptr);
    } else if (handle) {
      made = PyObject_CallFunctionObjArgs(hooks.write_view, view->operation->python, view->attributes->tuple, view->inputs,
                                          parent.object, handle, nullptr);
    }
    Py_XDECREF(handle);
    if (!made) return false;
    written = share(reinterpret_cast<PyTensor*>(made)->value);
    Py_DECREF(made);
  } else {
    written = plain_value(value);
  }
  const bool before = Recorder::current().grad_enabled;
  {
    GradientScope scoped(before && view->operation);
    const bool unseen = view->data && (apart || !has_graph || !view->used);
    if (!written || !assign(target, std::move(written), silent || unseen, apart)) return false;
  }
  if (tensor->view != view) return true;  // it was given other storage meanwhile
  if (view->data) ++tensor->version;
  bool same_position = flows(tensor) ? tensor->value->is_leaf || !before : !view->operation && !tensor->detached && !has_graph;
  if (same_position) return true;  // read again when it is asked for
  if (view->operation && view->tracked && has_graph) {  // as a view of what the parent is now: hooks see what reads this handle alone
    tensor->detached = false;
    return true;
  }
  if (!view->operation && !has_graph) {
    Value* shown = current_value(view->parent);
    if (!shown) return false;
    value = share(shown);
  } else if (has_graph) {
    tensor->detached = false;
  }
  retain_further(tensor->value, value.get());
  release(std::exchange(tensor->value, value.take()));
  note_read(view);
  return true;
}

}  // namespace

PyObject* apart_from(PyTensor* target, PyObject* object) {
  const PyTensor* at = is_tensor(object) ? reinterpret_cast<PyTensor*>(object) : nullptr;
  if (!at || root_of(at) != root_of(target)) return Py_NewRef(object);
  while (at->view && at->view->operation) at = at->view->parent;
  if (!at->view) return Py_NewRef(object);
  static Operation* const copy = operation_of(hooks.copy);
  return copy ? call_operation(copy, no_attributes(), &object, 1) : nullptr;
}

bool assign(PyTensor* tensor, ValueRef value, bool silent, bool apart) {
  CallWatch::spoil();
  Recursion level(" in a write to a view of views");
  if (!level) return false;
  if (!current_value(tensor)) return false;
  if (!check_assignable(tensor, value.get())) {
    Recorder::current().refuse(value.get());
    return false;
  }
  if (!is_symbolic(tensor->value) && Purity::is_broken()) return false;
  uint8_t from = value->type->dtype, to = tensor->value->type->dtype;
  bool numbers = from != kBool && to == kBool;
  if (numbers || (is_differentiable(from) && !is_differentiable(to)) || (is_complex(from) && !is_complex(to))) {
    PyErr_Format(PyExc_RuntimeError, "in-place: a result of %s cannot be stored in %s. Convert the tensor first.",
                 value->type->text().c_str(), tensor->value->type->text().c_str());
    Recorder::current().refuse(value.get());
    return false;
  }
  value = cast_to(std::move(value), tensor->value->type);
  if (!value) return false;
  return tensor->view ? write_through(tensor, std::move(value), silent, apart) : store(tensor, std::move(value), silent);
}

}  // namespace twofold
