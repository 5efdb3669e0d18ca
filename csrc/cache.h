// Tables of what was made once and is looked up again, bounded in bytes: beyond its budget a table drops what was used
// least recently, unless something else still refers to it. Used under the interpreter lock only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace twofold {

// What a cache holds and how often it served.
struct CacheAccount {
  CacheAccount(const char* name, size_t parts);
  CacheAccount(const CacheAccount&) = delete;

  const char* const name;
  const size_t parts;  // of the 32 of the budget of all caches
  size_t count = 0, bytes = 0, budget = 0;
  uint64_t hits = 0, misses = 0, evictions = 0;
};

const std::vector<CacheAccount*>& cache_accounts();
// Gives every cache its part; caches that hold more shrink when they next grow.
void set_cache_budget(size_t bytes);

// Things are kept alive by others: a trace holds signatures, a signature attributes. Each holder names a function that
// drops some of what it used least recently; false if it has nothing to drop.
void add_holder(bool (*drop_oldest)());
// Has each holder drop some; false if none had anything.
bool drop_oldest_of_all();

// A number that grows with every use.
inline uint64_t next_use() {
  static uint64_t uses = 0;
  return ++uses;
}

template <class T>
size_t memory_of(const std::vector<T>& list) { return list.capacity() * sizeof(T); }

// By key; Value has `uint64_t used`, which whoever uses it without asking the cache sets, and `size_t memory() const`.
template <class Value>
class Cache {
 public:
  using Ref = std::shared_ptr<Value>;

  Cache(const char* name, size_t parts) : account(name, parts) {}

  Ref find(const std::string& key) {
    auto found = items_.find(key);
    if (found == items_.end()) {
      ++account.misses;
      return nullptr;
    }
    ++account.hits;
    found->second->used = next_use();
    return found->second;
  }

  void insert(std::string key, const Ref& value) {
    value->used = next_use();
    account.bytes += cost(key, *value);
    items_.emplace(std::move(key), value);
    account.count = items_.size();
    held_ -= held_ / 32;  // what was in use may be free by now
  }

  // A value in the cache takes so many more bytes than when it was inserted, or fewer.
  void charge(ptrdiff_t bytes) { account.bytes += static_cast<size_t>(bytes); }

  bool is_full() const { return account.bytes > std::max(account.budget, held_); }

  // Drops what was used least recently, down to three quarters of the budget.
  void shrink() {
    std::vector<Item> items;
    items.reserve(items_.size());
    account.bytes = 0;
    for (auto item = items_.begin(); item != items_.end(); ++item) {
      items.push_back(Item{item->second->used, cost(item->first, *item->second), item});
      account.bytes += items.back().cost;
    }
    std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.used < b.used; });
    std::vector<Ref> dropped;  // what goes may run Python, which may come back here
    for (const Item& item : items) {
      if (account.bytes <= account.budget / 4 * 3) break;
      if (item.position->second.use_count() > 1) continue;
      account.bytes -= item.cost;
      ++account.evictions;
      dropped.push_back(std::move(item.position->second));
      items_.erase(item.position);
    }
    account.count = items_.size();
    held_ = account.bytes + account.bytes / 4;  // what is in use cannot go: look again when much has been added
  }

  // As shrink, and if others hold too much they drop some.
  void bound() {
    if (!is_full()) return;
    shrink();
    while (account.bytes > account.budget && drop_oldest_of_all()) shrink();
  }

  // Drops the eighth that was used least recently; false if nothing could be dropped.
  bool drop_oldest() {
    std::vector<Position> positions;
    for (auto item = items_.begin(); item != items_.end(); ++item) {
      if (item->second.use_count() == 1) positions.push_back(item);
    }
    std::sort(positions.begin(), positions.end(), [](Position a, Position b) { return a->second->used < b->second->used; });
    positions.resize((positions.size() + 7) / 8);
    drop(positions);
    return !positions.empty();
  }

  // Drops what `goes` says.
  template <class Goes>
  void drop_if(Goes goes) {
    std::vector<Position> positions;
    for (auto item = items_.begin(); item != items_.end(); ++item) {
      if (goes(item->second)) positions.push_back(item);
    }
    drop(positions);
  }

  size_t size() const { return items_.size(); }

  CacheAccount account;

 private:
  using Position = typename std::unordered_map<std::string, Ref>::iterator;
  struct Item {
    uint64_t used;
    size_t cost;
    Position position;
  };

  static size_t cost(const std::string& key, const Value& value) {
    constexpr size_t kNode = 96;  // of the table, and of the shared reference
    return kNode + key.capacity() + value.memory();
  }

  void drop(const std::vector<Position>& positions) {
    std::vector<Ref> dropped;
    for (Position position : positions) {
      account.bytes -= std::min(account.bytes, cost(position->first, *position->second));
      dropped.push_back(std::move(position->second));
      items_.erase(position);
    }
    account.evictions += positions.size();
    account.count = items_.size();
  }

  std::unordered_map<std::string, Ref> items_;
  size_t held_ = 0;
};

}  // namespace twofold
