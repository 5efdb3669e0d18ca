#include <Python.h>

#include "recorder.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <unordered_map>

#include "background_run.h"
#include "shared_copies.h"

namespace twofold {

bool rest_without_lock() {
  {
    const Unlocked unlocked;  // a daemon thread may not get the lock again: nothing is unwound then
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  return PyErr_CheckSignals() == 0;
}

namespace {

constexpr size_t kMostInputs = 16;
constexpr const char* kOrphaned =
    "a value belongs to a thread that was at work on it when this process was forked. Compute it before forking.";

}  // namespace

Recorder& Recorder::current() {
  // Never freed: values that outlive their thread still refer to it.
  thread_local Recorder* const recorder = new Recorder();
  return *recorder;
}

bool Recorder::tracing_possible = false;

namespace {

// Whether a function returns something else than None; an error counts as None.
bool gives_something(PyObject* made) {
  bool something = made && made != Py_None;
  Py_XDECREF(made);
  PyErr_Clear();
  return something;
}

// Whether a debugger has registered with sys.monitoring (Python 3.12).
bool is_monitored() {
  PyObject* monitoring = PySys_GetObject("monitoring");
  PyObject* id = monitoring ? PyObject_GetAttrString(monitoring, "DEBUGGER_ID") : nullptr;
  bool found = id && gives_something(PyObject_CallMethod(monitoring, "get_tool", "O", id));
  Py_XDECREF(id);
  PyErr_Clear();
  return found;
}

}  // namespace

bool Recorder::is_traced() {
  static PyObject* const gettrace = Py_XNewRef(PySys_GetObject("gettrace"));  // a program may replace it
  return (gettrace && gives_something(PyObject_CallNoArgs(gettrace))) || is_monitored();
}

Recorder::Recorder() { reset(nullptr); }

Recorder::Busy::Busy(Recorder& recorder) : recorder_(recorder) {
  if (recorder_.busy_++ == 0) recorder_.busy_thread_ = PyThread_get_thread_ident();
}

void Recorder::watch_forks() {
  pthread_atfork(nullptr, nullptr, [] { current().generation_ = process_generation(); });
}

bool Recorder::wait_until_free() {
  while (busy_ && busy_thread_ != PyThread_get_thread_ident()) {
    if (is_orphaned()) {
      PyErr_SetString(PyExc_RuntimeError, kOrphaned);
      return false;
    }
    if (!rest_without_lock()) return false;
  }
  return true;
}

Ref Recorder::new_leaf(Type* type, Leaf leaf) {
  size_t number = leaves_.size();
  if (predicted_) {
    const auto& expected = predicted_->trace.leaves;
    if (number >= expected.size() || expected[number] != type) leaf_mismatch_ = true;
  }
  make_room(leaves_);
  if (!predicted_ || leaf_mismatch_) {
    if (predicted_) leave_prediction();
    trace_.leaves.push_back(type);
  }
  leaves_.push_back(std::move(leaf));
  return ~static_cast<Ref>(number);
}

bool Recorder::flush_readers(const Buffer* buffer) {
  if (!finish_background()) return false;
  bool reads = std::any_of(leaves_.begin(), leaves_.end(), [&](const Leaf& leaf) { return leaf.value && leaf.value->buffer.get() == buffer; });
  return !reads || flush();
}

bool Recorder::holds_elements(const Value* value) const {
  const Value* leaf = leaf_of(value);
  if (leaf == value || is_current_copy(value->buffer.get(), leaf->buffer.get())) return true;
  return std::memcmp(leaf->buffer->data, value->buffer->data, value->buffer->nbytes) == 0;
}

Ref Recorder::leaf_reference(Value* value) {
  if (value->deferred) return rematerialise(value);
  if (value->leaf_stamp == stamp_ && holds_elements(value)) return ~value->leaf_number;
  // Foreign memory may change before this trace runs, and after: it is read eagerly.
  ValueRef read = value->buffer && value->buffer->shared_outside() ? stable_value(value) : share(value);
  if (!read) return 0;
  Ref made = new_leaf(value->type, Leaf{std::move(read), 0});
  value->leaf_stamp = stamp_;
  value->leaf_number = ~made;
  if (value->shown) shown_.add(made, *value->shown);
  return made;
}

Ref Recorder::scalar_reference(Type* type, uint64_t bits) { return new_leaf(type, Leaf{ValueRef(), bits}); }

void Recorder::leave_prediction() {
  const Trace& old = predicted_->trace;
  trace_.clear();
  trace_.entries.assign(old.entries.begin(), old.entries.begin() + position_);
  size_t refs = position_ == old.entries.size() ? old.refs.size() : old.entries[position_].first_ref;
  trace_.refs.assign(old.refs.begin(), old.refs.begin() + static_cast<ptrdiff_t>(refs));
  trace_.leaves.assign(old.leaves.begin(), old.leaves.begin() + static_cast<ptrdiff_t>(leaves_.size()));
  events_.clear();
  for (const auto& event : predicted_->events) {
    if (event.end > position_) break;
    events_.push_back(event);
  }
  predicted_.reset();
  leaf_mismatch_ = false;
}

bool Recorder::references(Operand* inputs, size_t count, Ref* out, uint64_t* mask, bool* again) {
  *again = false;
  *mask = 0;
  for (size_t i = 0; i < count; ++i) {
    Value* value = inputs[i].value;
    if (!value) continue;
    if (value->failed) return realise(value);
    if (!value->pending || is_future_input(value)) continue;
    if (ends_step(value)) {
      *again = true;
      return realise(value);
    }
  }
  for (size_t i = 0; i < count; ++i) {
    Value* value = inputs[i].value;
    if (!value) {
      out[i] = scalar_reference(inputs[i].scalar_type, inputs[i].scalar);
      continue;
    }
    if (grad_enabled && value->requires_grad && !inputs[i].detached) *mask |= Entry::mask_bit(i);
    if (value->pending && value->owner == this) {
      out[i] = value->index;
    } else {
      out[i] = leaf_reference(value);
      if (PyErr_Occurred()) return false;
    }
  }
  return true;
}

bool Recorder::predicted_matches(Operation* op, Attributes* a, const Ref* in, size_t count, uint64_t mask) const {
  if (position_ >= predicted_->trace.entries.size()) return false;
  const Entry& e = predicted_->trace.entries[position_];
  if (e.instance->operation != op || e.instance->attributes != a || e.count != count || e.gradient_mask != mask) return false;
  const Ref* expected = predicted_->trace.inputs(e);
  for (size_t i = 0; i < count; ++i) {
    if (expected[i] != in[i]) return false;
  }
  return true;
}

void Recorder::ensure_room(size_t entries) {
  if (entries <= live_.size()) return;
  // live_ last: its size is that for which there is capacity
  const size_t room = std::max<size_t>({256, live_.size() * 2, entries});
  alive_.resize(room);
  provenance_.resize(room);
  consumed_.resize(room);
  live_.resize(room);
}

ValueRef Recorder::make_value(uint32_t index, OpInstance* instance, bool requires_grad, Provenance provenance) {
  ensure_room(index + size_t{1});
  Value* value = new_value(instance->output);
  value->pending = true;
  value->owner = this;
  value->stamp = stamp_;
  value->index = static_cast<int32_t>(index);
  value->requires_grad = requires_grad;
  value->is_leaf = !requires_grad;
  value->location = provenance.location;
  live_[index] = value;
  provenance_[index] = provenance;
  alive_[index] = 1;
  consumed_[index] = 0;
  return ValueRef(value);
}

ValueRef Recorder::record_expected(const Entry& next, const uint64_t* numbers, size_t count, uint32_t location) {
  for (size_t i = 0; i < count; ++i) {
    make_room(leaves_);
    leaves_.push_back(Leaf{ValueRef(), numbers[i]});
  }
  ++recorded;
  ValueRef made = make_value(position_, next.instance, next.requires_grad(), {location, differentiated});
  ++position_;
  return made;
}

ValueRef Recorder::record(Operation* op, Attributes* attributes, Operand* inputs, size_t count, PyObject* const* arguments,
                          uint32_t location) {
  Ref on_stack[kMostInputs];
  std::vector<Ref> on_heap;
  Ref* refs = on_stack;
  if (count > kMostInputs) {
    on_heap.resize(count);
    refs = on_heap.data();
  }
  uint64_t mask;
  for (bool again = true;;) {
    while (again) {
      if (busy_ && !wait_until_free()) return ValueRef();
      if (!references(inputs, count, refs, &mask, &again)) return ValueRef();
    }
    ValueRef made = append(op, attributes, refs, count, mask, arguments, location, &again);
    if (!again) return made;
  }
}

ValueRef Recorder::record_tracked(Operation* op, Operand* input, PyObject* const* arguments, uint32_t location) {
  Ref ref;
  uint64_t mask;
  for (bool again = true;;) {
    while (again) {
      if (busy_ && !wait_until_free()) return ValueRef();
      if (!references(input, 1, &ref, &mask, &again)) return ValueRef();
    }
    ValueRef made = append(op, no_attributes(), &ref, 1, Entry::mask_bit(0), arguments, location, &again);
    if (!again) return made;
  }
}

ValueRef Recorder::append(Operation* op, Attributes* attributes, const Ref* refs, size_t count, uint64_t mask,
                          PyObject* const* arguments, uint32_t location, bool* again) {
  *again = false;
  ++recorded;
  if (predicted_) {
    if (predicted_matches(op, attributes, refs, count, mask)) {
      const Entry& e = predicted_->trace.entries[position_];
      ValueRef made = make_value(position_, e.instance, e.requires_grad(), {location, differentiated});
      ++position_;
      if (runs_at_once() && !flush()) return ValueRef();
      return made;
    }
    leave_prediction();
  }
  Type* on_stack[kMostInputs];
  std::vector<Type*> on_heap(count > kMostInputs ? count : 0);
  Type** types = count > kMostInputs ? on_heap.data() : on_stack;
  for (size_t i = 0; i < count; ++i) types[i] = trace_.type_of_ref(refs[i]);
  Busy busy(*this);
  const uint64_t stamp = stamp_;
  OpInstanceRef instance = op_instance_of(op, attributes, types, count, arguments);
  if (!instance) return ValueRef();
  *again = stamp_ != stamp;  // the type rule is Python, where an import or a debugger may have run the trace
  if (*again) return ValueRef();
  Entry entry{instance, 0, static_cast<uint32_t>(count), mask};
  ValueRef made = make_value(position_, instance, entry.requires_grad(), {location, differentiated});
  trace_.append(entry, refs);
  ++position_;
  if ((runs_at_once() || position_ >= static_cast<uint64_t>(settings.node_budget)) && !flush()) return ValueRef();
  return made;
}

bool Recorder::record_known(OpInstance* s, const Ref* inputs, size_t count, uint64_t mask, Provenance provenance, Ref* out) {
  *out = static_cast<Ref>(position_);
  if (predicted_ && !predicted_matches(s->operation, s->attributes, inputs, count, mask)) leave_prediction();
  ensure_room(position_ + size_t{1});
  if (!predicted_) trace_.append(Entry{s, 0, static_cast<uint32_t>(count), mask}, inputs);
  provenance_[position_] = provenance;
  live_[position_] = nullptr;
  alive_[position_] = 0;
  consumed_[position_] = 0;
  ++position_;
  return true;
}

ValueRef Recorder::value_of_entry(Ref ref, bool requires_grad) {
  size_t index = static_cast<size_t>(ref);
  if (live_[index]) return share(live_[index]);
  const Entry& e = entry(index);
  uint8_t consumed = consumed_[index];
  ValueRef made = make_value(static_cast<uint32_t>(index), e.instance, requires_grad && e.requires_grad(), provenance_[index]);
  consumed_[index] = consumed;
  return made;
}

// Whether the leaves of the event are still leaves that require gradients.
bool Recorder::ends_at_leaves(const BackwardEvent& event) const {
  return std::all_of(event.targets.begin(), event.targets.end(), [this](const BackwardEvent::Target& target) {
    if (target.value >= 0) return true;
    const Value* value = leaves_[static_cast<size_t>(~target.value)].value.get();
    return value && value->is_leaf && value->requires_grad;
  });
}

const BackwardEvent* Recorder::predicted_backward(Ref root, Ref seed, bool retain, bool create) {
  if (!predicted_) return nullptr;
  for (const auto& event : predicted_->events) {
    if (event.begin != position_) continue;
    if (event.over || event.root != root || event.seed != seed || event.retain != retain || event.create != create) return nullptr;
    if (!ends_at_leaves(event)) return nullptr;
    if (std::any_of(event.reading.begin(), event.reading.end(), [this](uint32_t i) { return is_consumed(i); })) return nullptr;
    return shown_.empty() || !shown_.changed_among(event.read) ? &event : nullptr;
  }
  return nullptr;
}

const BackwardEvent* Recorder::predicted_pass(uint64_t over, Ref root, bool retain) const {
  if (!predicted_ || predicted_->events.empty() || leaf_mismatch_) return nullptr;
  const BackwardEvent& first = predicted_->events.front();
  return first.over == over && first.begin == position_ && first.root == root && first.retain == retain ? &first : nullptr;
}

void Recorder::skip(const BackwardEvent& event, const std::vector<Provenance>& provenance, uint32_t location) {
  ensure_room(event.end);
  std::fill(live_.begin() + event.begin, live_.begin() + event.end, nullptr);
  std::fill(alive_.begin() + event.begin, alive_.begin() + event.end, uint8_t{0});
  std::fill(consumed_.begin() + event.begin, consumed_.begin() + event.end, uint8_t{0});
  for (size_t k = 0; k < event.forward.size(); ++k) {
    Ref source = event.forward[k];
    provenance_[event.begin + k] = {location, source == kNoRef ? 0 : provenance[static_cast<size_t>(source)].origin()};
  }
  position_ = event.end;
  ++replayed_passes;
}

void Recorder::replay(const BackwardEvent& event, uint32_t location) {
  skip(event, provenance_, location);
  for (uint32_t i : event.reading) if (!event.retain) mark_consumed(i);
}

void Recorder::note(Value* value, const Snapshot& snapshot) {
  // References of a trace that runs, here in the background or in another thread, are not those of its recorder's open one.
  if (value->pending && !value->owner->in_flight(value)) {
    value->owner->shown_.add(value->index, snapshot);
    return;
  }
  if (!value->shown) value->shown = std::make_unique<Snapshot>(snapshot);
  if (value->leaf_stamp == current().stamp_) current().shown_.add(~value->leaf_number, snapshot);
  if (value->saved && !value->is_leaf) value->saved->shown.add(value->index, snapshot);
}

void Recorder::watch(Value* value) {
  GradientSlot* slot = value->slot;
  if (!slot || !(value->pending || value->saved)) return;
  std::vector<Watch>& watched = value->pending ? value->owner->watched_ : value->saved->watched;
  if (!watched_at(watched, static_cast<size_t>(value->index))) watched.emplace_back(value->index, slot);
}

GradientSlot* Recorder::watched(const Value* value) {
  if (value->slot || !(value->pending || value->saved)) return value->slot;
  return watched_at(value->pending ? value->owner->watched_ : value->saved->watched, static_cast<size_t>(value->index));
}

bool Recorder::has_hooks() const {
  return std::any_of(watched_.begin(), watched_.end(), [](const Watch& watch) { return watch.slot->has_hooks(); });
}

}  // namespace twofold
