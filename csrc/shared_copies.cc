#include "shared_copies.h"

#include <cstring>
#include <memory>
#include <string>

#include "cache.h"
#include "copies.h"
#include "written_pages.h"

namespace twofold {
namespace {

constexpr size_t kSmallest = size_t{1} << 18;  // bytes that take longer to copy than to ask about
constexpr uint32_t kMostChanges = 3;           // of copies that were of no use, for each kUses that were
constexpr uint32_t kUses = 8;

// Memory that was copied before, and its copy if that is kept.
class SharedCopy {
 public:
  explicit SharedCopy(const Buffer& shared) : shared_(shared), pages_(whole_pages(shared.data, shared.nbytes)) {}
  SharedCopy(const SharedCopy&) = delete;
  ~SharedCopy() { stop(); }

  uint64_t used = 0;  // for the cache
  size_t memory() const { return sizeof *this + (copy_ ? copy_->nbytes : 0); }
  const MemoryRange& pages() const { return pages_; }
  const BufferRef& copy() const { return copy_; }

  bool is_current() const {
    return copy_ && !is_stale_ && copy_->content() == content_ && are_unwritten(pages_) && same(0, head()) && same(shared_.nbytes - tail(), tail());
  }
  // For copies that turn out to be of no use the pages are not watched any longer: each costs a fault when it is written to.
  bool is_worthwhile() const { return is_watchable_ && changes_ <= kMostChanges + uses_ / kUses; }
  void count_use() { ++uses_; }

  // The memory may have been written to. `written` are pages of which the system does not say so any more.
  void note_written(const std::vector<MemoryRange>& written) {
    for (const MemoryRange& range : written) is_stale_ = is_stale_ || range.meets(pages_);
  }

  void drop() {
    if (!copy_) return;
    copy_ = BufferRef();
    ++changes_;
  }

  // The pages that were written to before, once they are watched; null if they cannot be.
  std::optional<std::vector<MemoryRange>> restart() {
    is_watched_ = watch_pages(pages_) || is_watched_;
    auto written = restart_pages(pages_);
    if (!written) stop();
    return written;
  }

  void keep(const BufferRef& copy) {
    if (!are_private(pages_)) return stop();
    copy_ = copy;
    content_ = copy->content();
    is_stale_ = content_ == 0;
  }

  void stop() noexcept {
    if (is_watched_) forget_pages(pages_);
    is_watched_ = is_watchable_ = false;
    copy_ = BufferRef();
  }

 private:
  size_t head() const { return pages_.begin - reinterpret_cast<uintptr_t>(shared_.data); }
  size_t tail() const { return reinterpret_cast<uintptr_t>(shared_.data) + shared_.nbytes - pages_.end; }
  bool same(size_t offset, size_t nbytes) const {
    return std::memcmp(static_cast<const char*>(shared_.data) + offset, static_cast<const char*>(copy_->data) + offset, nbytes) == 0;
  }

  const Buffer& shared_;
  const MemoryRange pages_;
  BufferRef copy_;
  uint64_t content_ = 0;
  uint32_t uses_ = 0, changes_ = 0;
  bool is_watched_ = false, is_watchable_ = true, is_stale_ = false;
};

// They may be as large as a program's data, so they have a budget beside that of all other caches.
auto& cache = *new Cache<SharedCopy>("copies of shared memory", 64, false);
const bool holds = (add_holder([] { return cache.drop_oldest(); }), true);

std::string key_of(const Buffer* shared) {
  const auto address = reinterpret_cast<uintptr_t>(shared);
  return std::string(reinterpret_cast<const char*>(&address), sizeof address);
}

BufferRef new_copy(const Buffer* shared) {
  BufferRef copy(new_buffer(shared->nbytes));
  copy_memory(copy->data, shared->data, shared->nbytes);
  return copy;
}

// Watches the memory, then copies it, so that no write between the two is missed.
BufferRef kept_copy(SharedCopy& item, const Buffer* shared) {
  const auto written = item.restart();
  if (written && !written->empty()) cache.for_each([&](SharedCopy& other) { other.note_written(*written); });
  BufferRef copy = new_copy(shared);
  if (written) item.keep(copy);
  return copy;
}

// Charges the cache for what a value of it takes more, or less, at the end of a scope, however that is left.
class Charge {
 public:
  explicit Charge(const SharedCopy& item) : item_(item), before_(item.memory()) {}
  ~Charge() { cache.charge(static_cast<ptrdiff_t>(item_.memory() - before_)); }
  Charge(const Charge&) = delete;

 private:
  const SharedCopy& item_;
  const size_t before_;
};

// A copy where there is none, or an outdated one.
BufferRef another_copy(SharedCopy& item, const Buffer* shared) {
  const Charge charge(item);
  item.drop();
  if (item.is_worthwhile()) return kept_copy(item, shared);
  item.stop();
  return new_copy(shared);
}

}  // namespace

BufferRef copy_of_shared(Buffer* shared) {
  if (shared->nbytes < kSmallest) return new_copy(shared);
  const std::string key = key_of(shared);
  if (!shared->has_copy) {
    shared->has_copy = true;
    cache.insert(key, std::make_shared<SharedCopy>(*shared));
    return new_copy(shared);
  }
  const auto item = cache.find(key);
  if (!item) {  // it was evicted
    shared->has_copy = false;
    return new_copy(shared);
  }
  if (item->is_current()) {
    item->count_use();
    return item->copy();
  }
  BufferRef copy = another_copy(*item, shared);
  cache.bound();
  return copy;
}

bool is_current_copy(const Buffer* shared, const Buffer* copy) {
  const auto item = shared->has_copy ? cache.find(key_of(shared)) : nullptr;
  return item && item->copy().get() == copy && item->is_current();
}

void forget_shared_copy(Buffer* shared) noexcept { cache.remove(key_of(shared)); }

}  // namespace twofold
