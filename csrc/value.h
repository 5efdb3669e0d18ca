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
#include "location.h"
#include "trace.h"

namespace twofold {

class Recorder;
struct Value;
struct CachedTrace;
class FreedTrace;

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

// The gradient slot of a leaf; passed on when an in-place operation gives the leaf a new value.
struct GradientSlot {
  static inline uint64_t made = 0;
  const uint64_t number = ++made;
  int32_t references = 1;
  PyObject* gradient = nullptr;
  PyObject* hooks = nullptr;  // a list of callables, or null
  PyObject* call_hooks = nullptr;  // of the call that made the value: a list of what is given the gradients of its inputs, or null
  PyObject* metadata = nullptr;    // of that call: a dict of the program's, or null
  PyObject* handle = nullptr;  // of a leaf: a weak reference to its tensor
  PyObject* after = nullptr;  // of a leaf: called without arguments after its gradient was accumulated
  bool intermediate = false;  // of a value that is no leaf: its hooks run during the pass
  bool retains = false;       // of such a value: retain_grad
  bool sparse = false;        // of a table that was looked up so: `.grad` is shown by its rows
  bool has_call_hooks() const { return call_hooks && PyList_GET_SIZE(call_hooks) > 0; }
  bool has_hooks() const { return (hooks && PyList_GET_SIZE(hooks) > 0) || has_call_hooks(); }
  bool calls_python() const { return has_hooks() || (after && PyList_GET_SIZE(after) > 0); }
};
void release_slot(GradientSlot* slot) noexcept;

// The hooks and slots of an entry's gradient, whether or not a handle of its value is live.
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

// The version counter of a storage, which all its handles share, so that a backward pass detects overwritten values.
struct Storage {
  int32_t references = 1;
  uint32_t writes = 0;  // in-place writes outside of graphs
  uint32_t silent = 0;  // writes through `.data`
  ValueRef current;     // after such a write: what the storage holds
  // After the handle was given other memory, where its views did not follow: the storage that it has now, and its writes then.
  Storage* next = nullptr;
  uint32_t next_writes = 0;

  // Of a computed value its elements alone: a graph with a snapshot of the storage and this would keep each other alive.
  void hold(Value* value);
  // The handle of `before` leaves this storage for another.
  void leave_for(Storage* storage, Value* before);
  const Storage* last() const { return next ? next->last() : this; }
  bool is_written_since() const { return next && (next->writes != next_writes || next->is_written_since()); }
};
void release_storage(Storage* storage) noexcept;

// The storage of a value, and its version at that time.
class Snapshot {
 public:
  Snapshot(Storage* storage, bool whole) : whole(whole), storage_(storage), writes_(storage->writes), silent_(storage->silent) {
    ++storage->references;
  }
  Snapshot(const Snapshot& other) : whole(other.whole), storage_(other.storage_), writes_(other.writes_), silent_(other.silent_) {
    ++storage_->references;
  }
  Snapshot(Snapshot&& other) noexcept
      : whole(other.whole), storage_(std::exchange(other.storage_, nullptr)), writes_(other.writes_), silent_(other.silent_) {}
  Snapshot& operator=(Snapshot other) noexcept {
    std::swap(whole, other.whole);
    std::swap(storage_, other.storage_);
    std::swap(writes_, other.writes_);
    std::swap(silent_, other.silent_);
    return *this;
  }
  ~Snapshot() { if (storage_) release_storage(storage_); }

  enum State : uint8_t { kSame, kReplaced, kWritten };  // kReplaced: read `now()` instead
  // `viewed`: as a view of the value sees it.
  State state(bool viewed = false) const {
    if (storage_->writes != writes_) return kWritten;
    if (storage_->silent == silent_) return kSame;
    if (storage_->next && (viewed || !whole) && storage_->silent == silent_ + 1) return kSame;
    return whole && now(viewed) && (viewed || !storage_->is_written_since()) ? kReplaced : kWritten;
  }
  Value* now(bool viewed = false) const { return (viewed ? storage_ : storage_->last())->current.get(); }
  uint32_t written() const { return storage_->writes - writes_ + storage_->silent - silent_; }

  bool whole;  // the whole storage, not a view of a part

 private:
  Storage* storage_;
  uint32_t writes_, silent_;
};

// Snapshots of entries and inputs of a trace; of several of one value the first counts.
class Snapshots {
 public:
  void add(int32_t ref, Snapshot snapshot);
  const Snapshot* find(int32_t ref);
  bool empty() const { return found_.empty(); }
  void clear() { if (!found_.empty()) found_.clear(); sorted_ = true; }
  // Whether one of the sorted references was overwritten.
  bool changed_among(const std::vector<int32_t>& references) const;

 private:
  std::vector<std::pair<int32_t, Snapshot>> found_;
  bool sorted_ = true;
};

// An input of a trace: a value, or a Python scalar as eight bytes.
struct Leaf {
  ValueRef value;
  uint64_t scalar = 0;
};

// The result of a pack hook for a saved value, and the unpack hook.
struct Packed {
  Packed(int32_t entry, int32_t used, PyObject* object, PyObject* unpack) : entry(entry), used(used), object(object), unpack(unpack) {}
  Packed(Packed&& other) noexcept
      : entry(other.entry), used(other.used), object(std::exchange(other.object, nullptr)), unpack(std::exchange(other.unpack, nullptr)) {}
  ~Packed() {
    Py_XDECREF(object);
    Py_XDECREF(unpack);
  }

  int32_t entry, used;  // used: number of an input, or -2 for the output
  PyObject *object, *unpack;
};

// A trace that ran, as long as it may be differentiated.
struct SavedTrace {
  uint64_t order;
  std::shared_ptr<const CachedTrace> trace;
  std::vector<Leaf> leaves;
  std::vector<BufferRef> kept;  // by entry: saved values; empty if no gradient reads them
  std::vector<Provenance> provenance;  // by entry, of that run
  std::vector<uint8_t> consumed;  // by entry: its saved values were freed by a backward pass
  std::vector<Watch> watched;
  Snapshots shown;                // storages that may have been overwritten since
  std::vector<Packed> packed;     // by entry, if hooks for saved tensors were set
};

// A declared, not yet bound operation or placeholder of define-then-run.
struct Declared {
  bool is_gradient = false;         // inputs are then root, target and perhaps the cotangent of the root
  uint64_t group = 0;               // the number of the call of gradients
  Operation* operation = nullptr;   // null for a placeholder or variable
  AttributesRef attributes;
  std::vector<Leaf> inputs;
  std::vector<Type*> input_types;
  uint64_t number = 0;              // of the operation of the program that it belongs to, see declare_as
  uint64_t order = 0;               // of all declarations
  uint64_t gradient_mask = 0;
};

// The calls that rematerialise a deferred value, on values that are computed.
struct Deferred {
  struct Call {
    OpInstanceRef instance;
    Provenance provenance;
    std::vector<Ref> inputs;  // the number of an earlier call, or ~k for input k
  };
  std::vector<Call> calls;
  std::vector<Leaf> leaves;
  std::vector<Type*> leaf_types;
};

struct Value {
  int32_t references = 1;
  int32_t uses = 0;            // the references of calls that are being recorded, see UsedValue
  bool pending = false;
  bool requires_grad = false;
  bool is_leaf = true;
  bool failed = false;         // the run that should have computed it failed
  int32_t index = 0;           // entry, while pending or with a saved trace
  uint32_t location = 0;
  Type* type = nullptr;
  BufferRef buffer;
  Recorder* owner = nullptr;   // while pending
  uint64_t stamp = 0;          // of the trace in which index is valid, while pending
  uint64_t leaf_stamp = 0;     // of the trace in which leaf_number is valid
  int32_t leaf_number = 0;
  Value* next_dying = nullptr;  // in the list of values to destroy
  ValueRef before;              // what its handle held before an in-place operation: what it holds after all if the run fails
  std::shared_ptr<const FreedTrace> freed;  // if a backward pass has freed its graph
  OpInstanceRef made_by;        // then the call that made it, or null
  GradientSlot* slot = nullptr;
  std::shared_ptr<SavedTrace> saved;
  std::unique_ptr<Declared> declared;
  std::unique_ptr<Deferred> deferred;  // of a value that is deferred
  std::unique_ptr<Snapshot> shown;  // if the handle is a view, or the value was overwritten
};

Value* new_value(Type* type);
inline void retain(Value* value) { ++value->references; }
inline void release(Value* value) { if (--value->references == 0) destroy_value(value); }
inline ValueRef::ValueRef(const ValueRef& other) : value_(other.value_) { if (value_) twofold::retain(value_); }
inline ValueRef::~ValueRef() { if (value_) twofold::release(value_); }
inline ValueRef share(Value* value) { retain(value); return ValueRef(value); }

// The value of an operand. It lives until the call is recorded, as its handle may get another one before: reading another operand, or a
// type rule, runs Python code, and other threads.
class UsedValue {
 public:
  UsedValue() = default;
  UsedValue(Value* value) : value_(value) {
    if (!value) return;
    retain(value);
    ++value->uses;
  }
  UsedValue(const UsedValue& other) : UsedValue(other.value_) {}
  UsedValue& operator=(UsedValue other) noexcept { std::swap(value_, other.value_); return *this; }
  ~UsedValue() {
    if (!value_) return;
    --value_->uses;
    release(value_);
  }
  Value* operator->() const { return value_; }
  operator Value*() const { return value_; }

 private:
  Value* value_ = nullptr;
};

}  // namespace twofold
