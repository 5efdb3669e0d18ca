// Passes that are replayed as a whole, as they repeat what the predicted trace has: over calls of the open trace, and over one trace that
// has run, as where a program reads its loss before.
#include <Python.h>

#include <algorithm>

#include "tensor.h"
#include "backward_pass.h"

namespace twofold {
namespace {

GradientSlot* slot_of_leaf(const SavedTrace& saved, size_t k) {
  const Value* leaf = saved.leaves[k].value.get();
  return leaf && leaf->requires_grad ? leaf->slot : nullptr;
}

// Whether nobody may see, or change, what the pass computes of a leaf; and whether `.grad` is not set, so that it starts with nothing.
bool is_plain(const Value* leaf) { return leaf->is_leaf && !is_frozen(leaf) && leaf->slot && !leaf->slot->gradient && !leaf->slot->calls_python(); }

bool all_differ(std::vector<GradientSlot*> slots) {
  std::sort(slots.begin(), slots.end());
  return std::adjacent_find(slots.begin(), slots.end()) == slots.end();
}

}  // namespace

GradientSlot* BackwardPass::slot_at(Ref ref) const {
  const Value* value = ref >= 0 ? recorder_.live(ref) : recorder_.leaves()[static_cast<size_t>(~ref)].value.get();
  return value ? value->slot : nullptr;
}

// Whether the pass accumulates into the same values of `.grad`, and computes what hooks read.
bool BackwardPass::is_same(const BackwardEvent& event) const {
  return std::all_of(event.targets.begin(), event.targets.end(), [this](const BackwardEvent::Target& target) {
    const GradientSlot* slot = slot_at(target.value);
    const auto found = starts_.find(const_cast<GradientSlot*>(slot));
    if (target.value < 0 && is_frozen(recorder_.leaves()[static_cast<size_t>(~target.value)].value.get())) return false;
    return target.start == (found == starts_.end() ? kNoRef : found->second) && (target.gradient != kNoRef || !(each_seen_ || slot->has_hooks()));
  });
}

bool BackwardPass::replay(std::vector<FoundGradient>* found, Ref seed) {
  const BackwardEvent* event = recorder_.predicted_backward(request_.root->index, seed, request_.retain, request_.create);
  if (!event || !is_same(*event)) return false;
  recorder_.replay(*event, request_.location);
  for (const BackwardEvent::Target& target : event->targets) {
    if (GradientSlot* slot = slot_at(target.value)) {
      found->push_back({Watch(0, slot), value_of(target.gradient), value_of(target.total), value_of(target.start), target.sparse != 0});
    }
  }
  return true;
}

// The trace that the pass is over, if it may be replayed: then references and numbers of entries in its event are those of that trace.
SavedTrace* BackwardPass::sole_trace() const {
  const Value* root = request_.root;
  const bool is_whole = !request_.seed && !request_.create && request_.targets.empty() && request_.more.empty();
  if (!is_whole || root->pending || root->is_leaf || !root->saved || each_seen_ || is_stepped_) return nullptr;
  const bool is_watched = !root->saved->watched.empty() || !root->saved->packed.empty();
  return is_watched || recorder_.size() > 0 || !recorder_.leaves().empty() ? nullptr : root->saved.get();
}

// What the inputs of the open trace are, after the walk over the scope: false if one is no value of its trace, or two are the same.
bool BackwardPass::note_inputs(Scope& scope, BackwardEvent& event) const {
  event.inputs.assign(recorder_.leaves().size(), kNoRef);
  bool fits = true;
  scope.translated.each([&](Ref ref, Ref open) {
    Ref* input = open < 0 ? &event.inputs[static_cast<size_t>(~open)] : nullptr;
    fits = fits && input && *input == kNoRef;
    if (input) *input = ref;
  });
  return fits && std::find(event.inputs.begin(), event.inputs.end(), kNoRef) == event.inputs.end();
}

// Completes the event of a pass that has visited one trace; false if it cannot be replayed.
bool BackwardPass::note_leaves(const SavedTrace& saved, BackwardEvent& event) const {
  if (!undefined_.empty() || !vanishing_.empty()) return false;
  const auto starts = [](const Sum& sum) { return sum.start != kNoRef || sum.total != kNoRef; };
  if (std::any_of(sums_.begin(), sums_.end(), starts)) return false;
  event.over = saved.trace->number;
  event.sums.assign(saved.leaves.size(), 0);
  for (const Sum& sum : sums_) event.targets.push_back({kNoRef, kNoRef, sum.cotangent, kNoRef, !sum.dense});
  for (size_t k = 0; k < saved.leaves.size(); ++k) {
    const Value* leaf = saved.leaves[k].value.get();
    if (!leaf || !leaf->requires_grad) continue;
    const auto sum = leaf->slot ? sum_of_.find(leaf->slot) : sum_of_.end();
    if (sum == sum_of_.end() || !is_plain(leaf)) return false;
    event.sums[k] = static_cast<uint32_t>(sum->second + 1);
    Ref& first = event.targets[sum->second].value;
    if (first == kNoRef) first = ~static_cast<Ref>(k);
  }
  const auto is_found = [](const BackwardEvent::Target& target) { return target.value != kNoRef && target.gradient != kNoRef; };
  return std::all_of(event.targets.begin(), event.targets.end(), is_found);
}

// Whether the pass adds to the gradients of the same leaves.
bool BackwardPass::has_same_leaves(const SavedTrace& saved, const BackwardEvent& event) const {
  if (saved.leaves.size() != event.sums.size()) return false;
  std::vector<GradientSlot*> slots;
  for (const BackwardEvent::Target& target : event.targets) slots.push_back(slot_of_leaf(saved, static_cast<size_t>(~target.value)));
  for (size_t k = 0; k < saved.leaves.size(); ++k) {
    const Value* leaf = saved.leaves[k].value.get();
    const bool has_gradient = leaf && leaf->requires_grad;
    if (has_gradient != (event.sums[k] != 0)) return false;
    if (has_gradient && !(is_plain(leaf) && leaf->slot == slots[event.sums[k] - 1])) return false;
  }
  return all_differ(std::move(slots));
}

// Whether what the pass reads is at hand as it was: kept, neither written over nor deferred.
bool BackwardPass::has_same_inputs(const SavedTrace& saved, const BackwardEvent& event) const {
  if (!saved.shown.empty() && saved.shown.changed_among(event.read)) return false;
  const auto is_overwritten = [&](Ref ref) {
    const Value* leaf = ref < 0 ? saved.leaves[static_cast<size_t>(~ref)].value.get() : nullptr;
    return leaf && leaf->shown && leaf->shown->state() != Snapshot::kSame;
  };
  if (std::any_of(event.read.begin(), event.read.end(), is_overwritten)) return false;
  for (size_t k = 0; k < event.inputs.size(); ++k) {
    const Ref ref = event.inputs[k];
    const Value* leaf = ref < 0 ? saved.leaves[static_cast<size_t>(~ref)].value.get() : nullptr;
    if (ref >= 0 ? !saved.kept[static_cast<size_t>(ref)] : leaf && (leaf->pending || leaf->deferred || leaf->failed)) return false;
  }
  return true;
}

bool BackwardPass::replay_over(SavedTrace& saved, std::vector<FoundGradient>* found, bool* replayed) {
  *replayed = false;
  const BackwardEvent* event = recorder_.predicted_pass(saved.trace->number, request_.root->index, request_.retain);
  if (!event || !has_same_leaves(saved, *event) || !has_same_inputs(saved, *event)) return true;
  Scope scope{request_.root->saved, {}, {}, {}, {}, {}, {}, {}};
  start_consuming(saved);
  const auto is_freed = [&](uint32_t entry) { return (saved.consumed[entry] & kConsumed) != 0; };
  if (std::any_of(event->reading.begin(), event->reading.end(), is_freed)) return true;
  for (size_t k = 0; k < event->inputs.size(); ++k) {
    Ref input;
    if (!translate(scope, event->inputs[k], &input)) return false;
    if (input != ~static_cast<Ref>(k)) return true;  // two are one value now: the pass is recorded with what has been read
  }
  recorder_.skip(*event, saved.provenance, request_.location);
  for (uint32_t entry : event->freed) saved.consumed[entry] |= kConsumed;
  for (const BackwardEvent::Target& target : event->targets) {
    GradientSlot* slot = slot_of_leaf(saved, static_cast<size_t>(~target.value));
    found->push_back({Watch(0, slot), value_of(target.gradient), ValueRef(), ValueRef(), target.sparse != 0});
  }
  return *replayed = true;
}

}  // namespace twofold
