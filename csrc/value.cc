#include <Python.h>

#include "value.h"

#include <algorithm>

#include "recorder.h"

namespace twofold {
namespace {

constexpr size_t kMostFree = 4096;
// Blocks and dying values are linked through themselves, since releasing must not need memory.
struct FreeBlock {
  FreeBlock* next;
};
FreeBlock* free_blocks = nullptr;
size_t free_count = 0;

// Values above a dying value die in turn; the list keeps that from recursing through a deep graph.
Value* dying = nullptr;
bool destroying = false;

void destroy_one(Value* value) noexcept {
  if (value->pending) value->owner->forget(value);
  if (value->slot) release_slot(value->slot);
  value->~Value();
  if (free_count < kMostFree) {
    free_blocks = new (static_cast<void*>(value)) FreeBlock{free_blocks};
    ++free_count;
  } else {
    ::operator delete(value);
  }
}

}  // namespace

void release_slot(GradientSlot* slot) noexcept {
  if (--slot->references > 0) return;
  Py_XDECREF(slot->gradient);
  Py_XDECREF(slot->hooks);
  Py_XDECREF(slot->after);
  Py_XDECREF(slot->handle);
  delete slot;
}

void release_storage(Storage* storage) noexcept {
  if (--storage->references == 0) delete storage;
}

void Snapshots::add(int32_t ref, Snapshot snapshot) {
  sorted_ = sorted_ && (found_.empty() || found_.back().first < ref);
  found_.emplace_back(ref, std::move(snapshot));
}

const Snapshot* Snapshots::find(int32_t ref) {
  auto before = [](const auto& a, const auto& b) { return a.first < b.first; };
  if (!sorted_) std::stable_sort(found_.begin(), found_.end(), before);
  sorted_ = true;
  auto place = std::lower_bound(found_.begin(), found_.end(), ref, [](const auto& item, int32_t wanted) { return item.first < wanted; });
  return place != found_.end() && place->first == ref ? &place->second : nullptr;
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
  void* block;
  if (!free_blocks) {
    block = ::operator new(sizeof(Value));
  } else {
    block = free_blocks;
    free_blocks = free_blocks->next;
    --free_count;
  }
  Value* value = new (block) Value();
  value->type = type;
  return value;
}

void destroy_value(Value* value) noexcept {
  value->next_dying = std::exchange(dying, value);
  if (destroying) return;
  destroying = true;
  while (dying) destroy_one(std::exchange(dying, dying->next_dying));
  destroying = false;
}

}  // namespace twofold
