// The immutable value behind a tensor handle: realised, pending in a trace, or symbolic.
#pragma once

#include <Python.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "buffer.h"
#include "executable.h"
#include "trace.h"

namespace twofold {

class Recorder;
struct Value;
struct CachedTrace;

void destroy_value(Value* value) noexcept;

class ValueRef {
 public:
  ValueRef() = default;
  explicit ValueRef(Value* owned) : value_(owned) {}
  inline ValueRef(const ValueRef& other);
  ValueRef(ValueRef&& other) noexcept : value_(std::exchange(other.value_, nullptr)) {}
  ValueRef& operator=(ValueRef other) noexcept { std::swap(value_, other.value_); return *this; }
  inline ~ValueRef();
  Value* get() const { return value_; }
  Value* operator->() const { return value_; }
  explicit operator bool() const { return value_ != nullptr; }
  Value* take() { return std::exchange(value_, nullptr); }

 private:
  Value* value_ = nullptr;
};

// Where a leaf's gradient gathers; handed on when an in-place operation gives the leaf a new value.
struct GradientSlot {
  int32_t references = 1;
  PyObject* gradient = nullptr;
  PyObject* hooks = nullptr;  // a list of callables, or null
  bool intermediate = false;  // of a value that is no leaf: its hooks run on the way, for all that stands above it
  bool retains = false;       // of such a value: keep its gradient
  bool has_hooks() const { return hooks && PyList_GET_SIZE(hooks) > 0; }
};
void release_slot(GradientSlot* slot) noexcept;

// What was asked of an entry's gradient, whether or not a handle of its value still lives.
struct Watch {
  Watch(int32_t index, GradientSlot* watched) : entry(index), slot(watched) { ++slot->references; }
  Watch(Watch&& other) noexcept : entry(other.entry), slot(std::exchange(other.slot, nullptr)) {}
  Watch& operator=(Watch&& other) noexcept {
    entry = other.entry;
    std::swap(slot, other.slot);
    return *this;
  }
  ~Watch() { if (slot) release_slot(slot); }

  int32_t entry;
  GradientSlot* slot;
};
GradientSlot* watched_at(const std::vector<Watch>& watched, size_t entry);

// A leaf of a trace: a value, or a Python scalar as eight bytes.
struct Leaf {
  ValueRef value;
  uint64_t scalar = 0;
};

// What remains of a trace that ran while a gradient through it may still be asked for.
struct History {
  uint64_t order;
  std::shared_ptr<const CachedTrace> trace;
  std::vector<Leaf> leaves;
  std::vector<BufferRef> kept;  // by entry; empty where no gradient reads the value
  std::vector<uint8_t> consumed;  // by entry: a backward pass has used it up
  std::vector<Watch> watched;
};

// A declared, not yet bound operation or placeholder of define-then-run.
struct Declared {
  bool is_gradient = false;         // inputs are then root, target and perhaps the cotangent of the root
  uint64_t group = 0;               // gradients taken in one call
  Operation* operation = nullptr;   // null for a placeholder or variable
  Attributes* attributes = nullptr;
  std::vector<Leaf> inputs;
  std::vector<Type*> input_types;
  uint64_t order = 0;
  uint64_t gradient_mask = 0;
};

// How to compute a value that was left out when its trace ran: calls on values that are there.
struct PutOff {
  struct Call {
    Signature* signature;
    uint32_t location;
    std::vector<Ref> inputs;  // number of an earlier call, or ~number of a leaf
  };
  std::vector<Call> calls;
  std::vector<Leaf> leaves;
  std::vector<Type*> leaf_types;
};

struct Value {
  int32_t references = 1;
  bool pending = false;
  bool requires_grad = false;
  bool is_leaf = true;
  bool consumed = false;       // backward has used up the graph above it
  bool failed = false;         // the run that was to compute it raised
  int32_t index = 0;           // entry, while pending or with a history
  uint32_t location = 0;
  Type* type = nullptr;
  BufferRef buffer;
  Recorder* owner = nullptr;   // while pending
  uint64_t stamp = 0;          // of the trace in which index (pending) or leaf_number holds
  int32_t leaf_number = 0;
  GradientSlot* slot = nullptr;
  std::shared_ptr<History> history;
  std::unique_ptr<Declared> declared;
  std::unique_ptr<PutOff> put_off;  // of a value that is neither pending nor in memory
};

Value* new_value(Type* type);
inline void retain(Value* value) { ++value->references; }
inline void release(Value* value) { if (--value->references == 0) destroy_value(value); }
inline ValueRef::ValueRef(const ValueRef& other) : value_(other.value_) { if (value_) twofold::retain(value_); }
inline ValueRef::~ValueRef() { if (value_) twofold::release(value_); }
inline ValueRef share(Value* value) { retain(value); return ValueRef(value); }

}  // namespace twofold
