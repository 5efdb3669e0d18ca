// One backward pass over traces: reverse accumulation.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "collection_pause.h"
#include "gradient.h"

namespace twofold {

// What an instruction of the pass differentiates: a call, by its number in its trace, and the location of one that has run.
struct Origin {
  Ref entry = kNoRef;
  uint32_t location = 0;
};

// A term of a cotangent in terms of values of the open trace: the product of the rows of two values, rows (right) that are
// added at an index (left), rows that are summed (right, or computed by the gradient), or one value (right).
struct Term {
  OpInstanceRef call;  // the call that is differentiated
  uint32_t input = 0;
  const Gradient* gradient = nullptr;  // lives as long as the call; null of one value
  Ref left = kNoRef, right = kNoRef;
  std::vector<Ref> inputs;  // operands of the gradient, if its form is a sum of rows or a chain; none where `right` may be its result
  bool is_row = false;      // the gradient is `right`
  bool transposed = false;  // the term is the transpose of the gradient, with its factors exchanged
  std::pair<uint64_t, uint32_t> order;  // position of the call in all traces
  Origin origin;

  int32_t kind() const { return gradient ? gradient->form.kind : Form::kPlain; }
};

// A map from references of another trace to references of the open one.
class RefMap {
 public:
  // The reference of the open trace; kNoRef until it is set.
  Ref& at(Ref ref) {
    std::vector<Ref>& side = ref >= 0 ? entries_ : leaves_;
    const auto number = static_cast<size_t>(ref >= 0 ? ref : ~ref);
    if (number >= side.size()) side.resize(std::max(number + 1, 2 * side.size()), kNoRef);
    return side[number];
  }
  void clear() {
    entries_.clear();
    leaves_.clear();
  }
  // Visits each reference that is set, with that of the open trace.
  template <class Visit>
  void each(Visit visit) const {
    for (size_t k = 0; k < leaves_.size(); ++k) if (leaves_[k] != kNoRef) visit(~static_cast<Ref>(k), leaves_[k]);
    for (size_t k = 0; k < entries_.size(); ++k) if (entries_[k] != kNoRef) visit(static_cast<Ref>(k), entries_[k]);
  }

 private:
  std::vector<Ref> entries_, leaves_;
};

// A trace that is differentiated: the open one, or one that has run.
struct Scope {
  std::shared_ptr<SavedTrace> saved;  // null for the open trace
  std::vector<Ref> cotangents;       // by entry, references of the open trace
  std::unordered_map<Ref, std::vector<Term>> terms;  // by entry, the terms of its cotangent that are not summed yet
  std::unordered_map<Ref, std::vector<Term>> blocks;  // by entry, blocks inside zeros that its cotangent begins with, not added yet
  std::vector<char> undefined;       // by entry, empty if there is none: whether a call that reads it says that there is no cotangent
  std::vector<char> vanishing;       // by entry, empty if there is none: whether a gradient that was differentiated is constant in it, see vanish
  std::vector<char> needed;          // by entry, if gradients of some values only are asked for: whether it depends on one of them
  RefMap translated;                 // values of it that are inputs of the open trace
};

// A set of references of the open trace, in order of insertion.
class RefSet {
 public:
  // Whether it was inserted.
  bool add(Ref ref) {
    std::vector<uint8_t>& side = ref >= 0 ? entries_ : leaves_;
    const auto number = static_cast<size_t>(ref >= 0 ? ref : ~ref);
    if (number >= side.size()) side.resize(std::max(number + 1, 2 * side.size()), 0);
    return !std::exchange(side[number], uint8_t{1});
  }
  std::vector<Ref> sorted() const {
    std::vector<Ref> all;
    for (size_t k = leaves_.size(); k-- > 0;) {
      if (leaves_[k]) all.push_back(~static_cast<Ref>(k));
    }
    for (size_t k = 0; k < entries_.size(); ++k) {
      if (entries_[k]) all.push_back(static_cast<Ref>(k));
    }
    return all;
  }

 private:
  std::vector<uint8_t> entries_, leaves_;
};

// Whether requires_grad was switched off at the handle of a leaf. A trace may hold a copy of its value, or one from before a write.
bool is_frozen(const Value* leaf);

class BackwardPass {
 public:
  // `is_hooked`: hooks run during the pass, and may change `.grad`.
  BackwardPass(Recorder& recorder, const BackwardRequest& request, bool is_hooked)
      : recorder_(recorder), request_(request), each_seen_(is_hooked) {}

  bool run(std::vector<FoundGradient>* found);

 private:
  // The target of terms of a cotangent: an entry of a scope, or the slot of a leaf.
  struct Destination {
    Scope* scope = nullptr;
    Ref index = kNoRef;
    GradientSlot* slot = nullptr;
    Type* type = nullptr;  // of a leaf

    bool reached() const { return scope || slot; }
  };

  // A reference that stays valid when the open trace is flushed: its value or scalar is held.
  struct HeldRef {
    Ref* destination;
    ValueRef value;
    Type* type;
    uint64_t scalar;
  };

  // A call that is being differentiated.
  struct Visit {
    Scope& scope;
    size_t index;
    const Entry& entry;
    const Ref* inputs;
    const GradientPlan& plan;
    std::vector<std::pair<int32_t, ValueRef>> unpacked = {};  // saved values that hooks returned, by slot (see Gradient::used)
  };

  // Whether the trace to which the references of the pass belong is still open; false with an error set if it was run, as a
  // debugger can do in the Python that makes op instances and gradients.
  bool is_open(uint64_t stamp) const {
    if (recorder_.stamp() == stamp) return true;
    PyErr_SetString(PyExc_RuntimeError, "backward: a value was read inside of the library while gradients were recorded. Read it after the pass.");
    return false;
  }
  // The op instance or gradients that `find` finds, or Python makes; null with an error set.
  template <class Find>
  auto found(Find find) const {
    const uint64_t stamp = recorder_.stamp();
    auto made = find();
    if (made && !is_open(stamp)) made = nullptr;
    return made;
  }

  bool seed(Value* root, Value* given, Ref* out);
  bool record_filled(PyObject* hook, Type* filled, const Origin& origin, Ref* out);
  bool start(Value* root, Ref cotangent);
  bool find_starts();
  bool find_start(GradientSlot* slot, Type* type, Ref* out);
  bool replay(std::vector<FoundGradient>* found, Ref seed);
  bool is_same(const BackwardEvent& event) const;
  GradientSlot* slot_at(Ref value) const;
  SavedTrace* sole_trace() const;
  bool note_inputs(Scope& scope, BackwardEvent& event) const;
  bool note_leaves(const SavedTrace& saved, BackwardEvent& event) const;
  bool has_same_leaves(const SavedTrace& saved, const BackwardEvent& event) const;
  bool has_same_inputs(const SavedTrace& saved, const BackwardEvent& event) const;
  // Replays the pass over a trace that has run; false with an error set.
  bool replay_over(SavedTrace& saved, std::vector<FoundGradient>* found, bool* replayed);
  static void start_consuming(SavedTrace& saved);
  bool walk(Scope& scope);
  void reach(const Value* value);
  void reach_inputs(Scope& scope);
  bool is_at(const Value* target, const Scope& scope, Ref ref) const;
  bool is_target(const Scope& scope, Ref ref) const;
  bool leads_to_target(Scope& scope, Ref ref);
  void keep_leading(Scope& scope);
  bool mark_needed();
  bool is_wanted(Scope& scope, const Entry& entry, const Ref* inputs, uint32_t k);
  bool visit(Scope& scope, size_t index);
  bool visit_undefined(Scope& scope, size_t index);
  bool leave_undefined(Scope& scope, size_t index);
  bool vanish(Scope& scope, Ref input);
  bool visit_vanishing(Scope& scope, size_t index);
  bool settle_vanishing();
  bool differentiate_call(Scope& scope, size_t index);
  bool cotangent_of(const Visit& visit, uint32_t k);
  bool cotangent_alone(const Visit& visit, uint32_t k, Ref* out);
  bool hooked_cotangents(const Visit& visit, GradientSlot* slot);
  bool run_call_hooks(const Visit& visit, GradientSlot* slot, std::vector<Ref>& made);
  bool read_all(const Visit& visit, const Gradient& gradient, std::vector<Ref>& refs, uint64_t* mask);
  bool read_one(const Visit& visit, int32_t slot, Ref* out);
  bool read_shared(const Visit& visit, size_t slot, Ref* out);
  bool translate(Scope& scope, Ref ref, Ref* out);
  bool read(Scope& scope, Ref ref, Ref* out, bool viewed);
  bool refer(Value* value, Ref* out);
  bool unpack(Visit& visit);
  ValueRef replaced(const Scope& scope, Ref ref, Value* now) const;
  int read_now(Scope& scope, Ref ref, Ref* out, bool viewed = false);
  bool written_over(const Scope& scope, Ref ref, const Snapshot& snapshot) const;
  bool find_destination(Scope& scope, Ref target, Destination* destination);
  bool is_asked_for(const Value* value) const;
  bool find_leaf(Value* leaf, Ref target, Destination* destination);
  bool give(const Destination& destination, Ref cotangent);
  bool contribute(const Visit& visit, const Destination& destination, Ref cotangent);
  bool is_internal(const Destination& destination) const;
  bool begins_with_blocks(const Destination& destination) const;
  bool is_source(const Destination& destination) const;
  std::vector<Term>& terms_of(const Destination& destination);
  static std::pair<uint64_t, uint32_t> order_of(const Visit& visit);
  bool keep_factors(const Visit& visit, const Gradient& gradient, uint32_t k, const std::vector<Ref>& refs, const Destination& destination);
  bool is_captured(const Scope& scope, size_t index) const;
  bool pass_through_transpose(Scope& scope, size_t index, std::vector<Term>& terms);
  void keep_block(const Visit& visit, const Gradient& gradient, const std::vector<Ref>& refs, const Destination& destination);
  bool settle_blocks(Scope& scope, Ref index);
  bool settle(Scope& scope, size_t index);
  bool settle_slots();
  std::vector<std::pair<size_t, GradientSlot*>> first_readers(const Scope& scope) const;
  bool add_terms(Ref* sum, std::vector<Term> terms);
  bool add_group(Ref* sum, std::span<const Term> terms);
  bool add_products(Ref* sum, std::span<const Term> terms);
  bool add_one_by_one(Ref* sum, std::span<const Term> terms);
  bool rows_of_group(std::span<const Term> terms, std::vector<Ref>* inputs);
  bool record_alone(const Term& term, Ref* out);
  bool join_summed(std::vector<Term> terms, const Origin& origin, Ref* out);
  bool join_rows(std::vector<Ref> refs, int64_t axes, const Origin& origin, Ref* out);
  bool call(Operation* operation, const std::vector<int64_t>& numbers, const Ref* inputs, size_t count, const Origin& origin, Ref* out);
  bool call_with(Operation* operation, Attributes* attributes, const Ref* inputs, size_t count, const Origin& origin, Ref* out);
  bool add(Ref* sum, Ref term, const Origin& origin);
  bool copy(Ref ref, Ref* out, bool flow);
  bool record(OpInstance* instance, const Ref* inputs, size_t count, uint64_t mask, const Origin& origin, Ref* out);
  Origin origin_of(const Scope& scope, Ref ref) const;
  bool requires_grad(Ref ref) const;
  bool has_gradient(const Scope& scope, Ref ref) const;
  Scope& scope_of(const std::shared_ptr<SavedTrace>& saved);
  bool capture(Scope& scope, size_t index);
  Type* type_of(Ref ref) const;
  ValueRef value_of(Ref ref);
  bool call_hooks(Scope& scope, size_t index, GradientSlot* slot);
  std::vector<HeldRef> hold(Scope& scope);
  bool refer_again(Scope& scope, const std::vector<HeldRef>& held);

  struct Sum {
    GradientSlot* slot;
    Type* type;  // of a leaf
    Ref target;
    Ref start = kNoRef, cotangent = kNoRef, total = kNoRef;  // as in BackwardEvent::Target
    std::vector<Term> terms = {};
    bool dense = false;  // whether a gradient of it is not sparse
  };
  Sum& sum_of(const Destination& destination);
  bool settle_slot(Sum& sum);

  CollectionPause pause_;  // what a collection calls may read values, which runs the trace that the pass is in
  Recorder& recorder_;
  const BackwardRequest& request_;
  Scope open_;
  std::map<uint64_t, Scope, std::greater<>> saved_traces_;
  std::vector<Sum> sums_;
  std::vector<GradientSlot*> undefined_;  // of leaves that a call reads which says that there is no cotangent
  std::vector<Destination> vanishing_;    // leaves in which a gradient that was differentiated is constant
  std::unordered_map<GradientSlot*, size_t> sum_of_;
  std::unordered_map<GradientSlot*, Ref> starts_;    // `.grad` of leaves, if the pass accumulates into it
  std::unordered_set<const PyTensor*> held_;         // the tensors of these, or their roots if they are views
  bool each_seen_;  // compute the gradient of the pass separately for each leaf: hooks or other leaves may change `.grad`
  std::unordered_set<const Value*> dead_ends_;  // values that a root depends on, and whose graph is freed
  std::vector<uint32_t> reading_, freed_;  // entries whose gradients read values; of traces that have run, those whose values were freed
  size_t scopes_ = 0;                      // traces that have run which the pass has met
  SavedTrace* sole_ = nullptr;             // the only one that it may be over, see sole_trace
  std::map<std::pair<int64_t, std::vector<Ref>>, Ref> joined_;  // memo of join_rows, by its arguments
  std::vector<Ref> shared_;  // common subexpressions of the gradients of the visited call, numbered behind its inputs; kNoRef until recorded
  std::vector<Ref> forward_;  // by entry of the pass: the entry that it differentiates
  uint32_t begin_ = 0;        // the first entry of the pass in the open trace
  RefSet read_;                      // values that gradients read, and those they are views of
  std::vector<Ref> inputs_, operands_;  // operands of the visited call, and of the gradient that is being recorded
  bool crossed_ = false;
  bool is_frozen_ = false;  // gradients flowed to a leaf that requires none any more, and may require them again when the trace repeats
  const bool is_stepped_ = is_stepped();  // a debugger stops at each call that has a cotangent
};

}  // namespace twofold
