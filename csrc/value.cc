#include <Python.h>

#include "value.h"

#include "recorder.h"

namespace twofold {
namespace {

constexpr size_t kMostFree = 4096;
std::vector<void*>& free_blocks() {
  static auto& blocks = *new std::vector<void*>();
  return blocks;
}

// Values above a dying value die in turn; the list keeps that from recursing through a deep graph.
std::vector<Value*>& dying() {
  static auto& list = *new std::vector<Value*>();
  return list;
}

void destroy_one(Value* value) noexcept {
  if (value->pending) value->owner->forget(value);
  if (value->slot) release_slot(value->slot);
  value->~Value();
  if (free_blocks().size() < kMostFree) {
    free_blocks().push_back(value);
  } else {
    ::operator delete(value);
  }
}

}  // namespace

void release_slot(GradientSlot* slot) noexcept {
  if (--slot->references > 0) return;
  Py_XDECREF(slot->gradient);
  Py_XDECREF(slot->hooks);
  delete slot;
}

GradientSlot* watched_at(const std::vector<Watch>& watched, size_t entry) {
  for (const Watch& watch : watched) {
    if (watch.entry == static_cast<int32_t>(entry)) return watch.slot;
  }
  return nullptr;
}

Value* new_value(Type* type) {
  void* block;
  if (free_blocks().empty()) {
    block = ::operator new(sizeof(Value));
  } else {
    block = free_blocks().back();
    free_blocks().pop_back();
  }
  Value* value = new (block) Value();
  value->type = type;
  return value;
}

void destroy_value(Value* value) noexcept {
  auto& list = dying();
  list.push_back(value);
  if (list.size() > 1) return;
  // Stays at the bottom of the list while it is destroyed, so that nested releases only queue up.
  for (size_t next = 0; next < list.size(); ++next) destroy_one(list[next]);
  list.clear();
}

}  // namespace twofold
