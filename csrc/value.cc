#include <Python.h>

#include "value.h"

#include <algorithm>

#include "free_blocks.h"
#include "recorder.h"

namespace twofold {
namespace {

FreeBlocks<Value, (size_t{1} << 15)> free_values;

// Values above a dying value die in turn; the list keeps that from recursing through a deep graph. It is linked through
// them, since releasing must not need memory.
Value* dying = nullptr;
bool destroying = false;

void destroy_one(Value* value) noexcept {
  if (value->slot) release_slot(value->slot);
  value->~Value();
  free_values.give(value);
}

}  // namespace

void release_slot(GradientSlot* slot) noexcept {
  if (--slot->references > 0) return;
  Py_XDECREF(slot->gradient);
  Py_XDECREF(slot->hooks);
  Py_XDECREF(slot->call_hooks);
  Py_XDECREF(slot->metadata);
  Py_XDECREF(slot->after);
  Py_XDECREF(slot->handle);
  delete slot;
}

void release_storage(Storage* storage) noexcept {
  while (storage && --storage->references == 0) {
    Storage* const next = storage->next;
    delete storage;
    storage = next;
  }
}

void Snapshots::add(int32_t ref, Snapshot snapshot) {
  sorted_ = sorted_ && (found_.empty() || found_.back().first < ref);
  found_.emplace_back(ref, std::move(snapshot));
}

const Snapshot* Snapshots::find(int32_t ref) {
  auto before = [](const auto& a, const auto& b) { return a.first < b.first; };
  if (!sorted_) std::stable_sort(found_.begin(), found_.end(), before);
  sorted_ = true;
  auto position = std::lower_bound(found_.begin(), found_.end(), ref, [](const auto& item, int32_t wanted) { return item.first < wanted; });
  return position != found_.end() && position->first == ref ? &position->second : nullptr;
}

bool Snapshots::changed_among(const std::vector<int32_t>& references) const {
  return std::any_of(found_.begin(), found_.end(), [&](const auto& item) {
    return item.second.state() != Snapshot::kSame && std::binary_search(references.begin(), references.end(), item.first);
  });
}

GradientSlot* watched_at(const std::vector<Watch>& watched, size_t entry) {
  for (const Watch& watch : watched) {
    if (watch.entry == static_cast<int32_t>(entry)) return watch.slot;
  }
  return nullptr;
}

Value* new_value(Type* type) {
  Value* value = new (free_values.take()) Value();
  value->type = type;
  return value;
}

void Storage::hold(Value* value) {
  current = value->buffer ? ValueRef(new_value(value->type)) : share(value);
  if (!value->buffer) return;
  current->buffer = value->buffer;
  current->location = value->location;
}

void Storage::leave_for(Storage* storage, Value* before) {
  hold(before);
  next = storage;
  next_writes = storage->writes;
  ++storage->references;
}

void destroy_value(Value* value) noexcept {
  // At once: while the value waits for its end, the finaliser of the memory of another one may run the trace.
  if (value->pending) value->owner->forget(value);
  value->next_dying = std::exchange(dying, value);
  if (destroying) return;
  destroying = true;
  while (dying) destroy_one(std::exchange(dying, dying->next_dying));
  destroying = false;
}

}  // namespace twofold
