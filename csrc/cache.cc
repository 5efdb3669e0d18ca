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

}  // namespace

CacheAccount::CacheAccount(const char* name, size_t parts) : name(name), parts(parts), budget(total() / kParts * parts) {
  accounts().push_back(this);
}

const std::vector<CacheAccount*>& cache_accounts() { return accounts(); }

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
  for (CacheAccount* account : accounts()) account->budget = bytes / kParts * account->parts;
}

}  // namespace twofold
