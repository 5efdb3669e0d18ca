// Caches, bounded in bytes: beyond its budget a cache evicts what was used
// least recently, unless something else still refers to it. A cache whose evicted entries
// are needed again takes budget from those that use little of theirs. Used under the GIL only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace twofold {

// The size of a cache, and its hits and misses.
struct CacheAccount {
  CacheAccount(const char* name, size_t parts, bool grows = false, bool lends = true);
  CacheAccount(const CacheAccount&) = delete;

  const char* const name;
  const size_t parts;  // its share of the budget of all caches, in 1/32; what does not lend has a budget beside that
  const bool grows;    // takes budget from others when it is too small
  const bool lends;    // others may take what it does not use
  size_t count = 0, bytes = 0, budget = 0;
  uint64_t hits = 0, misses = 0, evictions = 0;
};

const std::vector<CacheAccount*>& cache_accounts();
// Of its share, a cache that lends unused budget keeps a quarter for what another one needs again, and half for what that may
// need again; half in any case if it could not take budget back.
enum class Loan : size_t { kNeeded = 4, kExpected = 2 };
// The bytes of budget that others would lend.
size_t lendable_budget(const CacheAccount& cache, Loan loan);
// Moves up to so many of them to this cache.
void enlarge_budget(CacheAccount& cache, size_t bytes, Loan loan);
// Sets the budget of all caches; caches that hold more shrink when they next grow.
void set_cache_budget(size_t bytes);

// Things are kept alive by others: a trace holds op instances, an op instance attributes. Each holder names a function that
// evicts some of its least recently used entries; false if it has nothing to evict.
void add_holder(bool (*drop_oldest)());
// Lets each holder evict some; false if none had anything.
bool drop_oldest_of_all();

// A logical clock that advances with every use.
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

  Cache(const char* name, size_t parts, bool lends = true) : account(name, parts, lends, lends) {}

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
    if (!evicted_.empty()) {
      Evicted& evicted = evicted_[slot_of(key)];
      if (evicted.bytes && evicted.hash == std::hash<std::string>()(key)) enlarge_budget(account, std::exchange(evicted.bytes, 0), Loan::kNeeded);
    }
    items_.emplace(std::move(key), value);
    account.count = items_.size();
    held_ -= held_ / 32;  // some that were in use may be unreferenced now
  }

  // A value in the cache takes so many more bytes than when it was inserted, or fewer.
  void charge(ptrdiff_t bytes) { account.bytes += static_cast<size_t>(bytes); }

  bool contains(const std::string& key) const { return items_.count(key) != 0; }
  // Whether so many bytes that may be needed again fit without an eviction, if others `lend` budget.
  bool has_room(size_t bytes, bool lend) const {
    return account.bytes + bytes <= account.budget + (lend ? lendable_budget(account, Loan::kExpected) : 0);
  }
  // Takes the budget that is missing from caches that do not use theirs, so that less or nothing is evicted.
  void borrow(Loan loan) {
    if (account.bytes > account.budget) enlarge_budget(account, account.bytes - account.budget, loan);
  }
  bool is_full() const { return account.bytes > std::max(account.budget, held_); }

  // Evicts the least recently used entries, down to three quarters of the budget.
  void shrink() {
    std::vector<Item> items;
    items.reserve(items_.size());
    account.bytes = 0;
    for (auto item = items_.begin(); item != items_.end(); ++item) {
      items.push_back(Item{item->second->used, cost(item->first, *item->second), item});
      account.bytes += items.back().cost;
    }
    std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.used < b.used; });
    std::vector<Ref> dropped;  // destructors may run Python, which may re-enter this cache
    for (const Item& item : items) {
      if (account.bytes <= account.budget / 4 * 3) break;
      if (item.position->second.use_count() > 1) continue;
      account.bytes -= item.cost;
      ++account.evictions;
      if (evicted_.empty()) evicted_.resize(kEvicted);
      evicted_[slot_of(item.position->first)] = Evicted{std::hash<std::string>()(item.position->first), item.cost};
      dropped.push_back(std::move(item.position->second));
      items_.erase(item.position);
    }
    account.count = items_.size();
    held_ = account.bytes + account.bytes / 4;  // entries in use cannot be evicted: try again when much has been added
  }

  // As shrink, and evicts from others if all hold too much.
  void bound() {
    if (!is_full()) return;
    shrink();
    while (account.bytes > account.budget && drop_oldest_of_all()) shrink();
  }

  // Evicts the least recently used eighth; false if nothing could be evicted.
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

  // Removes entries by a predicate.
  template <class Goes>
  void drop_if(Goes goes) {
    std::vector<Position> positions;
    for (auto item = items_.begin(); item != items_.end(); ++item) {
      if (goes(item->second)) positions.push_back(item);
    }
    drop(positions);
  }

  void remove(const std::string& key) noexcept {
    const auto found = items_.find(key);
    if (found == items_.end()) return;
    const Ref held = std::move(found->second);
    account.bytes -= std::min(account.bytes, cost(found->first, *held));
    items_.erase(found);
    account.count = items_.size();
  }

  template <class Visit>
  void for_each(Visit visit) {
    for (auto& item : items_) visit(*item.second);
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

  // What was evicted for want of budget, by hash: an older one in the same slot is forgotten.
  static constexpr size_t kEvicted = 512;
  struct Evicted {
    size_t hash = 0, bytes = 0;
  };

  static size_t slot_of(const std::string& key) { return std::hash<std::string>()(key) % kEvicted; }

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
  std::vector<Evicted> evicted_;
  size_t held_ = 0;
};

}  // namespace twofold
