// The recorder of operation calls. While a trace repeats the predicted one, recording only compares.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "process.h"
#include "value.h"

namespace twofold {

constexpr Ref kNoRef = INT32_MIN;

// A backward pass in a trace, which is replayed by skipping its entries.
struct BackwardEvent {
  uint32_t begin, end;
  Ref root, seed;                                  // seed: the given cotangent, or kNoRef
  bool retain, create;
  struct Target {
    Ref value;           // leaf or entry
    Ref start;           // the initial `.grad`, if the pass accumulates into it, or kNoRef
    Ref gradient, total; // entries of the gradient of the pass and of the accumulated `.grad`, or kNoRef
    uint32_t sparse;     // 1 if it is as in FoundGradient; a word, as all bytes are part of the digest of a trace
  };
  std::vector<Target> targets;
  std::vector<uint32_t> reading;                   // visited entries whose gradients read values
  std::vector<Ref> read;                           // these values and what they are views of, in order
  std::vector<Ref> forward;                        // by entry of the pass: the entry that it differentiates, or kNoRef
  // Of a pass over one trace that has run, whose values and entries all numbers but those of gradients stand for:
  uint64_t over = 0;                               // the number of the trace; 0 of the open one
  std::vector<Ref> inputs;                         // what the inputs of the pass are
  std::vector<uint32_t> sums;                      // by leaf: the number of its target plus one, or 0
  std::vector<uint32_t> freed;                     // entries whose saved values the pass has freed
};

// A cached trace, with everything needed to run it again.
struct CachedTrace {
  explicit CachedTrace(Trace recorded) : whole(std::make_shared<const Trace>(std::move(recorded))) {}

  const uint64_t number = ++made;            // another one for each
  const std::shared_ptr<const Trace> whole;  // also that of the executable, if it is canonical
  const Trace& trace = *whole;
  std::vector<uint8_t> alive;          // entries that had a live handle at the end
  std::vector<BackwardEvent> events;
  std::vector<uint8_t> consumed;       // entries whose saved values a backward pass has freed, and those refused
  std::vector<uint8_t> used_up;        // entries that depend on such an entry, or are one
  std::vector<Ref> outputs;            // outputs of the executable: live entries, saved ones, and those that only check values
  size_t living = 0, kept = 0;         // the number of live ones, and of live or saved ones
  std::vector<Ref> deferred;            // live entries that are deferred: kept as calls
  std::vector<uint8_t> needed_leaf;    // by input of this trace: a deferred value reads it
  bool keeps_history = false;
  ExecutableRef executable;            // shared by all traces that are equal after dead code elimination
  std::vector<int32_t> leaf_source;    // leaf of the executable -> leaf of this trace
  std::vector<int32_t> entry_source;   // entry of the executable -> entry of this trace
  std::weak_ptr<CachedTrace> next;     // the trace that followed it last
  std::weak_ptr<CachedTrace> update;   // the same where an optimizer's update was cut off from it
  uint64_t used = 0;                   // when, see Cache

  size_t memory() const;
  static inline uint64_t made = 0;
};

struct TraceRun;

struct Operand {
  UsedValue value;           // null for a scalar
  Type* scalar_type = nullptr;
  uint64_t scalar = 0;
  bool detached = false;
};

// Of an entry: a backward pass has freed its saved values; its result was refused.
constexpr uint8_t kConsumed = 1, kRefused = 2;

class Recorder {
 public:
  Recorder();
  static Recorder& current();

  const Trace& trace() const { return trace_; }  // valid while no prediction holds
  Type* type_of(Ref ref) const { return (predicted_ ? predicted_->trace : trace_).type_of_ref(ref); }

  // Records one call; null with a Python error set. `arguments` serves messages and may be null. The location is captured
  // before the operands are read: that may collect garbage.
  ValueRef record(Operation* op, Attributes* attributes, Operand* inputs, size_t count, PyObject* const* arguments, uint32_t location);
  // Most calls of a repeated step are the one that the predicted trace has next, on values of this trace, inputs that it has read
  // before, and numbers. The entry if it is a call of this operation, else null.
  const Entry* expected_call(const Operation* op, const Attributes* attributes, size_t count) const {
    // first what may call Python, which may run the trace
    if (runs_at_once() || !predicted_ || busy_ || leaf_mismatch_ || position_ >= predicted_->trace.entries.size()) return nullptr;
    const Entry& next = predicted_->trace.entries[position_];
    return next.instance->operation == op && next.instance->attributes == attributes && next.count == count ? &next : nullptr;
  }
  const Ref* expected_operands(const Entry& next) const { return predicted_->trace.inputs(next); }
  bool is_expected(Ref operand, const Value* value) const {
    if (value->failed || value->deferred) return false;
    if (!value->pending) return value->leaf_stamp == stamp_ && operand == ~value->leaf_number && (leaf_of(value) == value || holds_elements(value));
    return operand == value->index && !ends_step(value);
  }
  // Of the number that has so many numbers before it among the operands.
  bool is_expected(Ref operand, const Type* scalar_type, size_t before) const {
    const size_t leaf = leaves_.size() + before;
    const auto& types = predicted_->trace.leaves;
    return operand == ~static_cast<Ref>(leaf) && leaf < types.size() && types[leaf] == scalar_type;
  }
  ValueRef record_expected(const Entry& next, const uint64_t* numbers, size_t count, uint32_t location);
  // As record, for an input to which gradients flow whether or not it requires them.
  ValueRef record_tracked(Operation* op, Operand* input, PyObject* const* arguments, uint32_t location);
  // As record, for a known op instance and operands that are references of this trace.
  bool record_known(OpInstance* instance, const Ref* inputs, size_t count, uint64_t mask, Provenance provenance, Ref* out);
  // Runs everything recorded so far, perhaps because an update begins; false with a Python error set. `known`: the digest of that.
  // With `goes_on`, a long run may go on in the background.
  bool flush(bool cuts = false, const Digest* known = nullptr, bool goes_on = false);
  // Memory for the provenance of the next trace but one.
  void recycle(std::vector<Provenance> unused);
  // Runs what is recorded if it reads this memory, which others will write to from now on.
  bool flush_readers(const Buffer* buffer);

  // Whether the trace input that stands for a value is the value, or a copy of foreign memory that nobody has written since.
  bool holds_elements(const Value* value) const;
  Ref leaf_reference(Value* value);
  Ref scalar_reference(Type* type, uint64_t bits);
  ValueRef value_of_entry(Ref ref, bool requires_grad);
  // Records the calls of a deferred value; it is pending from then on.
  Ref rematerialise(Value* value);
  // As rematerialise, and the next run computes the value in any case.
  bool materialise(Value* value);
  void forget(const Value* value) {
    if (value->stamp != stamp_) return;
    live_[static_cast<size_t>(value->index)] = nullptr;
    alive_[static_cast<size_t>(value->index)] = 0;
  }

  // The predicted backward pass that starts here; null also if it would read freed values.
  const BackwardEvent* predicted_backward(Ref root, Ref seed, bool retain, bool create);
  void replay(const BackwardEvent& event, uint32_t location);
  // The pass with which the predicted trace begins, if it is one over the trace of this number; null if it is not.
  const BackwardEvent* predicted_pass(uint64_t over, Ref root, bool retain) const;
  // Skips the entries of a pass over calls of this provenance.
  void skip(const BackwardEvent& event, const std::vector<Provenance>& provenance, uint32_t location);
  Value* live(Ref entry) const { return live_[static_cast<size_t>(entry)]; }
  ExecutableRef last_executable() const { return last_ ? last_->executable : nullptr; }
  void add_event(BackwardEvent event);
  // Records that the value, if it is in a trace, is of a storage that may be overwritten.
  static void note(Value* value, const Snapshot& snapshot);
  Snapshots& shown() { return shown_; }
  void mark_consumed(size_t entry) { consumed_[entry] |= kConsumed; }
  // The call that made a value, and the dead ones of its line before it, report no invalid values unless their results are
  // read: the result was refused.
  void refuse(const Value* value);

  const Entry& entry(size_t i) const { return predicted_ ? predicted_->trace.entries[i] : trace_.entries[i]; }
  const Ref* inputs(const Entry& e) const { return (predicted_ ? predicted_->trace : trace_).inputs(e); }
  Provenance provenance(size_t i) const { return provenance_[i]; }
  uint32_t size() const { return position_; }
  // How many entries have results that somebody holds.
  size_t living() const { return position_ - static_cast<size_t>(std::count(alive_.begin(), alive_.begin() + position_, uint8_t{0})); }
  const std::vector<Leaf>& leaves() const { return leaves_; }
  bool is_consumed(size_t entry) const { return consumed_[entry] & kConsumed; }
  // From now on backward passes respect the gradient slot of the value.
  static void watch(Value* value);
  // The gradient slot of a value, also where another handle of it had the slot; null if there is none.
  static GradientSlot* watched(const Value* value);
  bool has_hooks() const;
  // 1 if an entry reports invalid values when it is computed; -1 with a Python error set.
  int has_checks() const;
  // Changes with every flush: references of an earlier trace are invalid in a later one.
  uint64_t stamp() const { return stamp_; }
  // Where an optimizer's update begins: cuts it off from the trace of a program whose graph is another in each step. The update is
  // always the same, so that as a trace of its own it is predicted, fused, and overwrites the parameters. False with a Python error set.
  bool begin_update();
  void leave_prediction();
  void forget_prediction() { if (predicted_) leave_prediction(); }

  // Whether the thread of this recorder was left behind by a fork.
  bool is_orphaned() const { return generation_ != process_generation(); }
  // Once, when the module is loaded: the recorder of the thread that forks goes on in the child.
  static void watch_forks();

  // Python code may run while a trace is read or changed; other threads are locked out meanwhile.
  class Busy {
   public:
    explicit Busy(Recorder& recorder);
    ~Busy() { --recorder_.busy_; }
    Busy(const Busy&) = delete;

   private:
    Recorder& recorder_;
  };
  // Waits, without the GIL, while another thread is busy here; false with a Python error set.
  bool wait_until_free();
  bool in_flight(const Value* value) const { return value->stamp != stamp_; }
  // Whether a value belongs to a trace that is not the open one.
  bool is_elsewhere(const Value* value) const { return value->pending && (value->owner != this || in_flight(value)); }
  bool grad_enabled = true;
  bool autocast = false;  // whether operations choose the dtype of their operands
  uint8_t autocast_dtype = kBFloat16;
  // Whether a pending value ends the step before a call of it is recorded: it is another thread's, or a parameter that was updated in
  // this trace.
  bool ends_step(const Value* value) const {
    return value->owner != this || in_flight(value) || (value->is_leaf && value->requires_grad && grad_enabled);
  }
  // Eager mode: asked for, or because a debugger steps through the program.
  bool runs_at_once() const { return eager || (tracing_possible && is_traced()); }
  static bool is_traced();
  static bool tracing_possible;  // a trace function has been set in this process

  bool eager = false;
  bool replaces = false;  // a storage was written to through `.data` while the open trace was recorded
  uint32_t differentiated = 0;  // while a function's `backward` runs: `Provenance::forward` of what it records
  PyObject *pack = nullptr, *unpack = nullptr;  // owned; hooks for saved tensors, or null
  static inline uint64_t predicted_flushes = 0, other_flushes = 0, recorded = 0, replayed_passes = 0;  // of all threads

 private:
  // The live values of a trace, then the deferred ones.
  std::vector<ValueRef> living_of(const CachedTrace& cached) const;
  bool record_segment(const CachedTrace& cached, PyObject** segment);
  bool run_here(TraceRun& run, uint64_t stamp);
  bool references(Operand* inputs, size_t count, Ref* out, uint64_t* mask, bool* again);
  // `again` is set where the trace has run meanwhile, so that the references are to be made anew.
  ValueRef append(Operation* op, Attributes* attributes, const Ref* refs, size_t count, uint64_t mask, PyObject* const* arguments,
                  uint32_t location, bool* again);
  // The input that has its number.
  const Value* leaf_of(const Value* value) const { return leaves_[static_cast<size_t>(value->leaf_number)].value.get(); }
  void ensure_room(size_t entries);
  ValueRef make_value(uint32_t index, OpInstance* instance, bool requires_grad, Provenance provenance);
  Ref new_leaf(Type* type, Leaf leaf);
  bool ends_at_leaves(const BackwardEvent& event) const;
  bool predicted_matches(Operation* op, Attributes* a, const Ref* in, size_t count, uint64_t mask) const;
  std::shared_ptr<CachedTrace> finish_trace(std::vector<ValueRef>& held, const Digest* known);
  std::shared_ptr<CachedTrace> build_trace(Coming coming);
  bool plan_outputs(CachedTrace& cached) const;
  bool plan_deferred(CachedTrace& cached, std::vector<char>& needed) const;
  bool plan_checks(CachedTrace& cached) const;
  bool mark_kept(CachedTrace& cached, std::vector<char>& kept) const;
  void reset(std::shared_ptr<CachedTrace> prediction);
  void restore(TraceRun& run);
  Digest digest() const;

  uint64_t generation_ = process_generation();
  int busy_ = 0;
  unsigned long busy_thread_ = 0;
  std::shared_ptr<CachedTrace> predicted_;   // null while a new trace is recorded
  bool leaf_mismatch_ = false;
  uint32_t position_ = 0;
  uint64_t stamp_ = 0;
  Trace trace_;
  std::vector<BackwardEvent> events_;
  std::vector<uint8_t> consumed_;   // by entry, whether or not a prediction holds
  std::vector<Leaf> leaves_;
  std::vector<Watch> watched_;
  Snapshots shown_;
  std::vector<Value*> live_;     // by entry; not owned
  std::vector<uint8_t> alive_;   // by entry: 1 if a handle is live, 2 if its value is asked for
  std::vector<Provenance> provenance_;  // by entry, of the present run, whether or not a prediction holds
  std::vector<Provenance> spare_provenance_;  // double buffer, as a run needs the old one
  std::shared_ptr<CachedTrace> last_;
  std::shared_ptr<CachedTrace> followed_;  // the last one that is no update cut off
  std::weak_ptr<CachedTrace> update_;      // the last one that is
  bool is_cut_off_ = false;  // the trace is an update that was cut off
  bool updates_ = false;     // the trace is long and holds an update
  uint32_t unforeseen_ = 0;  // such traces in a row that were neither the predicted ones nor those of the step before
};

// Whether this thread records gradients, for the length of a scope, however that is left.
class GradientScope {
 public:
  explicit GradientScope(bool mode) : recorder_(Recorder::current()), before_(std::exchange(recorder_.grad_enabled, mode)) {}
  ~GradientScope() { recorder_.grad_enabled = before_; }
  GradientScope(const GradientScope&) = delete;

 private:
  Recorder& recorder_;
  const bool before_;
};

// Releases the GIL for a moment; false with a Python error set.
bool rest_without_lock();
// Replaces the value's memory by a private copy if foreign code may write to it.
ValueRef stable_value(Value* value);
// A value of the buffer's memory at the position in the graph where `value` stands.
ValueRef at_place_of(Value* value, Type* type, BufferRef buffer);
// The value of an entry of a trace that has run; without memory if it was not kept.
ValueRef kept_value(const std::shared_ptr<SavedTrace>& saved, size_t index);
// Calls the pack hook for all values that gradients of the trace read, and keeps the results; false with a Python error set.
bool pack_saved(SavedTrace& saved, PyObject* pack, PyObject* unpack);
// False with a Python error set for a declared value, which has no memory.
bool need_values(const Value* value);
// What `data` holds, at the position in the graph where `value` stands; both are computed. Null with a Python error set.
ValueRef with_data(Value* value, Value* data);
// Computes a pending value, or waits for the thread that does; false with a Python error set.
bool realise(Value* value);
void clear_cached_traces();
// Whether this thread has a tape.
bool is_on_tape();
// Whether a debugger steps through what this thread records: backward passes record even calls that only pass a cotangent on.
bool is_stepped();
// What the tape holds of a trace that is about to run, a new reference, and adds it there; null, or false, with a Python error set.
PyObject* segment_of_tape(const CachedTrace& cached, const std::vector<Leaf>& leaves, const std::vector<Provenance>& provenance,
                          const std::vector<ValueRef>& living);
bool add_to_tape(PyObject* segment);

// The order of the last run, see SavedTrace.
uint64_t traced_runs();

}  // namespace twofold
