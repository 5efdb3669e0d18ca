#include "written_pages.h"

#if defined(__linux__)
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include "process.h"
#endif

namespace twofold {

#if defined(__linux__)
namespace {

// Of linux/fs.h from 6.7 on, which is newer than the headers that packages are built with.
struct ScanRequest {
  uint64_t size, flags, start, end, walk_end, found, found_room, most_pages, inverted, all_of, any_of, returned;
};
struct FoundPages {
  uint64_t start, end, categories;
};
constexpr unsigned long kScan = _IOWR('f', 16, ScanRequest);
constexpr uint64_t kProtect = 1 << 0, kCheckWatched = 1 << 1;  // flags
constexpr uint64_t kWritten = 1 << 1, kFile = 1 << 2;          // categories
constexpr uint64_t kAsynchronous = 1 << 15;                    // UFFD_FEATURE_WP_ASYNC: a write is allowed, and noted
constexpr int kUserModeOnly = 1;                               // UFFD_USER_MODE_ONLY, which needs no privileges

class File {
 public:
  explicit File(int descriptor = -1) : descriptor_(descriptor) {}
  File(File&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  File& operator=(File other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~File() { if (descriptor_ >= 0) close(descriptor_); }
  int descriptor() const { return descriptor_; }

 private:
  int descriptor_;
};

// The two files that the system answers by, which are those of one process.
struct Files {
  File faults, tables;
  bool work = false;

  Files() : faults(static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC | kUserModeOnly))), tables(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC)) {
    uffdio_api api{UFFD_API, kAsynchronous, 0};
    work = faults.descriptor() >= 0 && tables.descriptor() >= 0 && ioctl(faults.descriptor(), UFFDIO_API, &api) == 0;
  }
};

const Files& files() {
  static uint64_t generation = process_generation();
  static Files now;
  if (generation != process_generation()) {
    generation = process_generation();
    now = Files();
  }
  return now;
}

ScanRequest request(const MemoryRange& range, uint64_t flags, uint64_t category) {
  ScanRequest made{};
  made.size = sizeof made;
  made.flags = flags;
  made.start = range.begin;
  made.end = range.end;
  made.all_of = made.returned = category;
  return made;
}

bool has_none(const MemoryRange& range, uint64_t flags, uint64_t category) {
  FoundPages found;
  ScanRequest scan = request(range, flags, category);
  scan.found = reinterpret_cast<uintptr_t>(&found);
  scan.found_room = scan.most_pages = 1;
  return files().work && ioctl(files().tables.descriptor(), kScan, &scan) == 0;
}

}  // namespace

bool watch_pages(const MemoryRange& range) {
  uffdio_register wanted{{range.begin, range.end - range.begin}, UFFDIO_REGISTER_MODE_WP, 0};
  return files().work && ioctl(files().faults.descriptor(), UFFDIO_REGISTER, &wanted) == 0;
}

void forget_pages(const MemoryRange& range) noexcept {
  uffdio_range given{range.begin, range.end - range.begin};
  if (files().work) ioctl(files().faults.descriptor(), UFFDIO_UNREGISTER, &given);
}

std::optional<std::vector<MemoryRange>> restart_pages(const MemoryRange& range) {
  std::vector<MemoryRange> written;
  if (!files().work) return std::nullopt;
  for (MemoryRange rest = range; rest.begin < rest.end;) {
    FoundPages found[64];
    ScanRequest scan = request(rest, kProtect | kCheckWatched, kWritten);
    scan.found = reinterpret_cast<uintptr_t>(found);
    scan.found_room = std::size(found);
    const int count = ioctl(files().tables.descriptor(), kScan, &scan);
    if (count < 0 || scan.walk_end <= rest.begin) return std::nullopt;
    for (int k = 0; k < count; ++k) written.push_back({found[k].start, found[k].end});
    rest.begin = scan.walk_end;
  }
  return written;
}

bool are_unwritten(const MemoryRange& range) { return has_none(range, kCheckWatched, kWritten); }

bool are_private(const MemoryRange& range) { return has_none(range, 0, kFile); }

MemoryRange whole_pages(const void* data, size_t nbytes) {
  static const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto start = reinterpret_cast<uintptr_t>(data);
  const MemoryRange pages{(start + page - 1) / page * page, (start + nbytes) / page * page};
  return pages.begin < pages.end ? pages : MemoryRange{};
}
#else
bool watch_pages(const MemoryRange&) { return false; }
void forget_pages(const MemoryRange&) noexcept {}
std::optional<std::vector<MemoryRange>> restart_pages(const MemoryRange&) { return std::nullopt; }
bool are_unwritten(const MemoryRange&) { return false; }
bool are_private(const MemoryRange&) { return false; }
MemoryRange whole_pages(const void*, size_t) { return {}; }
#endif

}  // namespace twofold
