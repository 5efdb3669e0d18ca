#include <Python.h>

#include <algorithm>
#include <cstring>

#include "background_run.h"
#include "cache.h"
#include "guard.h"
#include "out_of_memory.h"
#include "owned.h"
#include "deferred.h"
#include "freed_trace.h"
#include "recorder.h"
#include "shared_copies.h"

namespace twofold {
namespace {

uint64_t next_stamp() {
  static uint64_t stamp = 0;
  return ++stamp;
}
auto& traces = *new Cache<CachedTrace>("traces", 3);
const bool holds = (add_holder([] { return traces.drop_oldest(); }), true);

constexpr size_t kEntryBytes = 16;  // what an entry of a cached trace takes beside that of its executable, about

// Digests of long traces that have run, which are cached when they repeat, whatever is evicted for them.
class Met {
 public:
  bool has(uint64_t digest) const { return slots_[digest % kSlots] == digest; }
  // Whether a trace with this digest had run before.
  bool meet(uint64_t digest) {
    uint64_t& slot = slots_[digest % kSlots];
    return std::exchange(slot, digest) == digest;
  }
  void forget() { std::fill(slots_.begin(), slots_.end(), 0); }

 private:
  static constexpr size_t kSlots = 8191;
  std::vector<uint64_t> slots_ = std::vector<uint64_t>(kSlots, 0);
};
auto& met = *new Met();

bool has_run(const Digest& trace) { return met.has(trace.words().first) || traces.contains(trace.bytes()); }

}  // namespace

Digest Recorder::digest() const {
  Digest digest;
  const size_t n = trace_.entries.size();
  digest.add(n);
  for (const Entry& e : trace_.entries) {
    digest.add(reinterpret_cast<uintptr_t>(e.instance.get()));
    digest.add(e.gradient_mask);
  }
  digest.add(trace_.refs);
  digest.add(trace_.leaves);
  digest.add(alive_.data(), n);
  digest.add(consumed_.data(), n);
  for (const auto& event : events_) digest.add(event.targets);
  return digest;
}

// The pass with which a trace begins may be over another trace than when it was cached: it is replayed over the one of now.
static void renew_pass(CachedTrace& cached, const BackwardEvent& event) {
  auto& events = cached.events;
  if (!events.empty() && events.front().over == event.over) return;
  const size_t before = cached.memory();
  if (!events.empty() && events.front().over) events.front() = event;
  else events.insert(events.begin(), event);
  traces.charge(static_cast<ptrdiff_t>(cached.memory()) - static_cast<ptrdiff_t>(before));
}

void Recorder::add_event(BackwardEvent event) {
  if (!predicted_) events_.push_back(std::move(event));
  else if (event.over) renew_pass(*predicted_, event);
}

std::shared_ptr<CachedTrace> Recorder::finish_trace(std::vector<ValueRef>& held, const Digest* known) {
  // Planning, waiting for a run in the background, and the tape call Python, where the garbage collector, a signal handler or
  // another thread may drop handles: values that are live now are held until delivery.
  const auto hold_living = [&] {
    for (size_t i = 0; i < position_; ++i) {
      if (alive_[i]) held.push_back(share(live_[i]));
    }
  };
  if (predicted_) {
    const CachedTrace& p = *predicted_;
    if (position_ == p.trace.entries.size() && leaves_.size() == p.trace.leaves.size() &&
        std::memcmp(alive_.data(), p.alive.data(), position_) == 0 &&
        std::memcmp(consumed_.data(), p.consumed.data(), position_) == 0) {
      ++predicted_flushes;
      ++traces.account.hits;
      predicted_->used = next_use();
      if (updates_) unforeseen_ = 0;
      if (has_background() || is_on_tape()) hold_living();
      return predicted_;
    }
    leave_prediction();
  }
  ++other_flushes;
  unforeseen_ += updates_;
  hold_living();
  const Digest identity = known ? *known : digest();
  std::string key = identity.bytes();
  if (auto found = traces.find(key)) {
    if (updates_ && found == followed_) unforeseen_ = 0;
    if (!events_.empty() && events_.front().over) renew_pass(*found, events_.front());
    return found;
  }
  const bool is_long = position_ >= kLongTrace, comes_back = is_long && met.meet(identity.words().first);
  Coming coming = comes_back ? Coming::kAgain : Coming::kFirst;
  const bool has_room = traces.has_room(position_ * kEntryBytes, true) && has_room_for_executable(position_);
  if (is_long && !comes_back && !has_room) coming = Coming::kOnly;
  auto built = build_trace(coming);
  if (!built || coming == Coming::kOnly) return built;
  traces.insert(std::move(key), built);
  if (is_long) traces.borrow(comes_back ? Loan::kNeeded : Loan::kExpected);
  traces.bound();
  return built;
}

std::shared_ptr<CachedTrace> Recorder::build_trace(Coming coming) {
  auto cached = std::make_shared<CachedTrace>(trace_);
  cached->alive.assign(alive_.begin(), alive_.begin() + position_);
  cached->events = events_;
  cached->consumed.assign(consumed_.begin(), consumed_.begin() + position_);
  if (!plan_outputs(*cached)) return nullptr;
  if (cached->outputs.empty()) return cached;
  CanonicalTrace canonical(cached->whole, cached->outputs);
  cached->leaf_source = canonical.leaf_source;
  cached->entry_source = canonical.entry_source;
  cached->executable = executable_of(std::move(canonical), coming);
  return cached;
}

// The live entries, then the values that their gradients, and deferred values, will read.
bool Recorder::plan_outputs(CachedTrace& cached) const {
  size_t n = cached.trace.entries.size();
  std::vector<char> kept(n, 0);
  if (!mark_kept(cached, kept) || !plan_deferred(cached, kept)) return false;
  std::vector<char> later(n, 0);
  for (Ref ref : cached.deferred) later[static_cast<size_t>(ref)] = 1;
  for (size_t i = 0; i < n; ++i) {
    if (cached.alive[i] && !later[i]) cached.outputs.push_back(static_cast<Ref>(i));
  }
  cached.living = cached.outputs.size();
  for (size_t i = 0; i < n; ++i) {
    if (kept[i] && !cached.alive[i]) cached.outputs.push_back(static_cast<Ref>(i));
  }
  cached.kept = cached.outputs.size();
  return plan_checks(cached);
}

// Entries that report invalid values run even if their results are dead.
bool Recorder::plan_checks(CachedTrace& cached) const {
  const Trace& trace = cached.trace;
  std::vector<char> computed(trace.entries.size(), 0);
  for (Ref ref : cached.outputs) computed[static_cast<size_t>(ref)] = 1;
  for (Ref ref : cached.deferred) computed[static_cast<size_t>(ref)] = 1;
  for (size_t i = trace.entries.size(); i-- > 0;) {
    const Entry& e = trace.entries[i];
    if (!computed[i]) {
      const Traits* traits = traits_of(e.instance);
      if (!traits) return false;
      if (!traits->checks || cached.consumed[i] & kRefused) continue;
      cached.outputs.push_back(static_cast<Ref>(i));
    }
    const Ref* in = trace.inputs(e);
    for (uint16_t k = 0; k < e.count; ++k) {
      if (in[k] >= 0) computed[static_cast<size_t>(in[k])] = 1;
    }
  }
  return true;
}

void Recorder::refuse(const Value* value) {
  if (!value->pending || value->owner != this || in_flight(value)) return;
  const auto last = static_cast<size_t>(value->index);
  const uint32_t line = provenance_[last].location;
  for (size_t i = last + 1; i-- > 0 && provenance_[i].location == line && (i == last || !alive_[i]);) consumed_[i] |= kRefused;
}

int Recorder::has_checks() const {
  for (uint32_t i = 0; i < position_; ++i) {
    if (consumed_[i] & kRefused && !alive_[i]) continue;
    const Traits* traits = traits_of(entry(i).instance);
    if (!traits) return -1;
    if (traits->checks) return 1;
  }
  return 0;
}

// Values that an earlier backward pass has freed are not saved. A gradient that is not
// implemented, or whose rule fails, is an error of the backward pass that needs it, not of the value, nor of other values.
bool Recorder::mark_kept(CachedTrace& cached, std::vector<char>& kept) const {
  const Trace& trace = cached.trace;
  cached.used_up = cached.consumed;
  for (uint8_t& one : cached.used_up) one &= kConsumed;
  for (size_t i = 0; i < trace.entries.size(); ++i) {
    const Entry& e = trace.entries[i];
    for (uint32_t k = 0; e.requires_grad() && k < e.count; ++k) {
      Ref ref = trace.inputs(e)[k];
      if (ref >= 0 && e.flows_to(k)) cached.used_up[i] |= cached.used_up[static_cast<size_t>(ref)];
    }
  }
  std::vector<char> on_path(trace.entries.size(), 0);
  bool any = false;
  for (size_t i = 0; i < trace.entries.size(); ++i) {
    const Value* value = cached.alive[i] ? live_[i] : nullptr;
    if (value && !value->is_leaf && trace.entries[i].requires_grad() && !cached.used_up[i]) on_path[i] = any = true;
  }
  cached.keeps_history = any;
  if (!any) return true;
  for (size_t i = trace.entries.size(); i-- > 0;) {
    const Entry& e = trace.entries[i];
    if (!on_path[i] || !e.requires_grad()) continue;
    const Ref* in = trace.inputs(e);
    const GradientPlan* plan = gradient_plan_of(e.instance, e.gradient_mask);
    if (!plan) {
      if (is_transient_error()) return false;
      PyErr_Clear();
      continue;
    }
    for (uint32_t k = 0; k < e.count; ++k) {
      if (!e.flows_to(k)) continue;
      const Gradient* gradient = plan->at(k);
      if (in[k] >= 0 && (!gradient || gradient->instance)) on_path[static_cast<size_t>(in[k])] = 1;
      if (!gradient) {
        if (is_transient_error()) return false;
        PyErr_Clear();
        continue;
      }
      for (int32_t read : gradient->reads) {
        Ref ref = read == -2 ? static_cast<Ref>(i) : read >= 0 ? in[read] : -1;
        if (ref >= 0) kept[static_cast<size_t>(ref)] = 1;
      }
    }
  }
  return true;
}

void Recorder::reset(std::shared_ptr<CachedTrace> prediction) {
  trace_.clear();
  events_.clear();
  leaves_.clear();
  watched_.clear();
  shown_.clear();
  position_ = 0;
  stamp_ = next_stamp();
  leaf_mismatch_ = updates_ = replaces = false;
  predicted_ = std::move(prediction);
}

// Restores a trace as if it had just been recorded, so that a later flush runs it again.
void Recorder::restore(TraceRun& run) {
  const std::shared_ptr<CachedTrace> cached = run.cached;
  const std::vector<ValueRef>& living = run.living;
  run.give_before();
  // Of a call that was refused meanwhile; it ends once all is restored, as its finalisers may record calls.
  const std::vector<Leaf> unused = std::exchange(leaves_, {});
  const std::shared_ptr<CachedTrace> left = predicted_;
  reset(cached);
  replaces = true;  // perhaps
  position_ = static_cast<uint32_t>(cached->trace.entries.size());
  leaves_ = std::move(run.leaves);
  watched_ = std::move(run.watched);
  shown_ = std::move(run.shown);
  std::copy(run.provenance.begin(), run.provenance.begin() + position_, provenance_.begin());
  std::fill(live_.begin(), live_.begin() + position_, nullptr);
  std::copy(cached->alive.begin(), cached->alive.end(), alive_.begin());
  std::copy(cached->consumed.begin(), cached->consumed.end(), consumed_.begin());
  for (size_t j = 0; j < living.size(); ++j) {
    Ref entry = j < cached->living ? cached->outputs[j] : cached->deferred[j - cached->living];
    live_[static_cast<size_t>(entry)] = living[j].get();
    living[j]->stamp = stamp_;
  }
}

bool Recorder::flush(bool cuts, const Digest* known, bool goes_on) {
  if (busy_ && (known = nullptr, !wait_until_free())) return false;
  goes_on = goes_on && !pack && !is_on_tape() && !runs_at_once();
  bool follows = false;
  TraceRun run;
  std::vector<ValueRef> held;
  Owned segment(nullptr);
  for (bool grew = true; grew;) {
    if (position_ == 0) return finish_background();
    const uint64_t stamp = stamp_;
    const uint32_t position = position_;
    held.clear();
    {
      Busy busy(*this);
      run.cached = finish_trace(held, std::exchange(known, nullptr));
    }
    if (!run.cached) return false;
    const bool stands = stamp_ == stamp && position_ == position;
    if (stands && is_on_tape() && !record_segment(*run.cached, &segment.object)) return false;
    follows = goes_on && is_cut_off_ && run.cached->executable && run.cached->deferred.empty() && can_follow();
    if (!follows && !finish_background()) return false;
    // Planning and the tape run Python, where an import, a debugger or a finaliser may record calls, which belong to the trace,
    // and run it.
    if (stamp_ != stamp) return flush(cuts, nullptr, goes_on);
    grew = position_ != position;
  }
  const std::shared_ptr<CachedTrace> cached = run.cached;
  spare_provenance_.resize(live_.size());
  run.results.reserve(cached->outputs.size());
  run.living = living_of(*cached);
  if (segment && !add_to_tape(segment.object)) return false;
  held.clear();
  run.take_before(held);
  // Nothing may fail from here to the run, or the values would stay pending forever.
  run.leaves = std::move(leaves_);
  run.watched = std::move(watched_);
  run.shown = std::move(shown_);
  run.provenance = std::exchange(provenance_, std::move(spare_provenance_));
  const uint64_t stamp = stamp_;
  // Until the run: programs of traces that are forgotten may hold objects of the user's, whose finalisers record calls.
  const std::shared_ptr<CachedTrace> last = std::exchange(last_, cached), followed = followed_, predicted = predicted_;
  if (is_cut_off_) {
    followed_->update = update_ = cached;
  } else {
    if (followed_) followed_->next = cached;
    followed_ = cached;
  }
  is_cut_off_ = cuts;
  reset(!cuts ? followed_->next.lock() : cached->update.expired() ? update_.lock() : cached->update.lock());
  if (follows && follow_background(run, stamp)) return true;
  if (!follows && goes_on && cached->executable && begin_in_background(run, stamp)) return true;
  const bool done = run_here(run, stamp);
  recycle(std::move(run.provenance));
  return done;
}

std::vector<ValueRef> Recorder::living_of(const CachedTrace& cached) const {
  std::vector<ValueRef> living;
  living.reserve(cached.living + cached.deferred.size());
  for (size_t j = 0; j < cached.living; ++j) living.push_back(share(live_[static_cast<size_t>(cached.outputs[j])]));
  for (Ref entry : cached.deferred) living.push_back(share(live_[static_cast<size_t>(entry)]));
  return living;
}

bool Recorder::record_segment(const CachedTrace& cached, PyObject** segment) {
  Busy busy(*this);
  // Copies, as a finaliser may record calls, and run the trace, meanwhile.
  const std::vector<ValueRef> living = living_of(cached);
  const std::vector<Leaf> leaves = leaves_;
  const std::vector<Provenance> provenance(provenance_.begin(), provenance_.begin() + position_);
  Py_XSETREF(*segment, segment_of_tape(cached, leaves, provenance, living));
  return *segment != nullptr;
}

bool Recorder::run_here(TraceRun& run, uint64_t stamp) {
  const Running running(stamp);
  if (!run.cached->executable && run.cached->deferred.empty()) return true;
  Interrupts interrupts;
  std::shared_ptr<SavedTrace> saved;
  if (!run.cached->executable || run.run(interrupts)) {
    bool done = run.deliver(saved);
    return done && (!saved || !pack || pack_saved(*saved, pack, unpack));
  }
  if ((interrupts.raised() || is_transient_error()) && position_ == 0) {
    restore(run);
    return false;
  }
  run.deliver_rest();
  return false;
}

void Recorder::recycle(std::vector<Provenance> unused) {
  if (spare_provenance_.size() < unused.size()) spare_provenance_ = std::move(unused);
}

bool Recorder::begin_update() {
  constexpr uint32_t kManySteps = 3, kManyEntries = 256;
  if (position_ == 0) return true;
  // also if one that is known ends here: it was cut here before
  if (predicted_ && position_ == predicted_->trace.entries.size()) return flush(true, nullptr, true);
  if (!predicted_ && position_ >= kManyEntries) {
    const Digest so_far = digest();
    const uint64_t runs_on = so_far.words().second;
    if (!met.has(runs_on) && (unforeseen_ >= kManySteps || has_run(so_far))) return flush(true, &so_far, true);
    met.meet(runs_on);
  }
  updates_ = position_ >= kManyEntries;
  return true;
}

ValueRef at_place_of(Value* value, Type* type, BufferRef buffer) {
  ValueRef made(new_value(type));
  made->buffer = std::move(buffer);
  made->requires_grad = value->requires_grad;
  made->is_leaf = value->is_leaf;
  made->freed = value->freed;
  made->made_by = value->made_by;
  made->location = value->location;
  made->index = value->index;
  made->saved = value->saved;
  made->slot = value->slot;
  if (made->slot) ++made->slot->references;
  return made;
}

ValueRef kept_value(const std::shared_ptr<SavedTrace>& saved, size_t index) {
  const Entry& entry = saved->trace->trace.entries[index];
  ValueRef value(new_value(entry.instance->output));
  value->buffer = saved->kept[index];
  value->location = saved->provenance[index].location;
  value->requires_grad = entry.requires_grad();
  value->is_leaf = !value->requires_grad;
  value->index = static_cast<int32_t>(index);
  if (value->requires_grad) value->saved = saved;
  return value;
}

bool need_values(const Value* value) {
  if (!value->declared) return true;
  PyErr_Format(PyExc_RuntimeError,
               "a value that depends on a placeholder (%s) is written where the graph does not reach: to memory shared with an array, or to a "
               "tensor that shares storage by .data. Run the graph with Session.run, and write its result.",
               line_text(value->location).c_str());
  return false;
}

ValueRef with_data(Value* value, Value* data) {
  ValueRef held = share(value), source = share(data);
  if (!need_values(data)) return ValueRef();
  if ((!value->is_leaf && !realise(value)) || !realise(data)) return ValueRef();
  ValueRef made = at_place_of(value, data->type, data->buffer);
  made->location = data->location;
  return made;
}

ValueRef stable_value(Value* value) {
  try {
    return at_place_of(value, value->type, copy_of_shared(value->buffer.get()));
  } catch (const std::bad_alloc&) {
    raise_out_of_memory(value->buffer->nbytes, "a copy of " + value->type->text() + ", whose memory is shared");
    return ValueRef();
  }
}

bool realise(Value* value) {
  // Its handle may get another value while this thread waits.
  const UsedValue held(value->pending || value->deferred ? value : nullptr);
  while (value->pending || value->deferred) {
    if (value->deferred && !Recorder::current().materialise(value)) return false;
    Recorder* owner = value->owner;
    if (owner == &background_owner() && has_background()) {
      if (!finish_background()) return false;
    } else if (!owner->in_flight(value)) {
      if (!owner->flush()) return false;
    } else if (const Running* run = Running::find(value->stamp); owner->is_orphaned() || (run && run->is_orphaned())) {
      PyErr_SetString(PyExc_RuntimeError,
                      "this value was being computed by another thread when the process was forked. Compute it before forking.");
      return false;
    } else if (run && run->is_here()) {
      PyErr_SetString(PyExc_RuntimeError, "a value is used while the run that computes it is still going on");
      return false;
    } else if (!rest_without_lock()) {
      return false;
    }
  }
  if (value->failed) {
    PyErr_SetString(PyExc_RuntimeError, "this value was never computed: the run that was to compute it raised an error");
    return false;
  }
  return true;
}

size_t CachedTrace::memory() const {
  const bool is_shared = executable && executable->canonical.whole == whole;
  size_t total = sizeof *this + (is_shared ? 0 : trace.memory()) + memory_of(alive) + memory_of(events) + memory_of(consumed) + memory_of(used_up);
  total += memory_of(outputs) + memory_of(deferred) + memory_of(needed_leaf) + memory_of(leaf_source) + memory_of(entry_source);
  for (const BackwardEvent& event : events) {
    total += memory_of(event.targets) + memory_of(event.reading) + memory_of(event.read) + memory_of(event.forward);
    total += memory_of(event.inputs) + memory_of(event.sums) + memory_of(event.freed);
  }
  return total;
}

void clear_cached_traces() {
  met.forget();
  traces.drop_if([](const auto&) { return true; });
}

}  // namespace twofold
