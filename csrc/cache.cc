#include "cache.h"

namespace twofold {
namespace {

constexpr size_t kParts = 32;

std::vector<CacheAccount*>& accounts() {
  static auto& list = *new std::vector<CacheAccount*>();
  return list;
}

size_t& total() {
  static size_t bytes = size_t{256} << 20;
  return bytes;
}

size_t share(const CacheAccount& cache) { return total() / kParts * cache.parts; }

// What a cache does not use of its budget, and lends.
size_t unused(const CacheAccount& cache, Loan loan) {
  if (!cache.lends) return 0;
  const size_t kept = std::max(cache.bytes, share(cache) / static_cast<size_t>(cache.grows ? loan : Loan::kExpected));
  return cache.budget - std::min(cache.budget, kept);
}

}  // namespace

CacheAccount::CacheAccount(const char* name, size_t parts, bool grows, bool lends)
    : name(name), parts(parts), grows(grows), lends(lends), budget(share(*this)) {
  accounts().push_back(this);
}

const std::vector<CacheAccount*>& cache_accounts() { return accounts(); }

size_t lendable_budget(const CacheAccount& cache, Loan loan) {
  size_t bytes = 0;
  for (const CacheAccount* other : accounts()) bytes += other == &cache ? 0 : unused(*other, loan);
  return bytes;
}

void enlarge_budget(CacheAccount& cache, size_t bytes, Loan loan) {
  for (CacheAccount* other : accounts()) {
    if (other == &cache) continue;
    const size_t moved = std::min(bytes, unused(*other, loan));
    other->budget -= moved;
    cache.budget += moved;
    bytes -= moved;
  }
}

namespace {

std::vector<bool (*)()>& holders() {
  static auto& list = *new std::vector<bool (*)()>();
  return list;
}

}  // namespace

void add_holder(bool (*drop_oldest)()) { holders().push_back(drop_oldest); }

bool drop_oldest_of_all() {
  bool any = false;
  for (auto drop_oldest : holders()) any |= drop_oldest();
  return any;
}

void set_cache_budget(size_t bytes) {
  total() = bytes;
  for (CacheAccount* account : accounts()) account->budget = share(*account);
}

}  // namespace twofold
