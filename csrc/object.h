// A small relocating loader of x86-64 ELF object files, so that kernels in the disk cache
// are loaded without LLVM.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

namespace twofold {

// Owns the memory mapping of one relocated object.
class LoadedObject {
 public:
  using Symbols = std::unordered_map<std::string, std::uintptr_t>;

  // Maps and relocates `image`, which may refer to `known` symbols. Throws std::runtime_error for anything malformed,
  // unknown or unresolved.
  explicit LoadedObject(std::span<const std::byte> image, const Symbols& known = {});
  ~LoadedObject();
  LoadedObject(const LoadedObject&) = delete;
  LoadedObject& operator=(const LoadedObject&) = delete;

  // The address of a global symbol defined by the object. Throws std::out_of_range if there is none.
  std::uintptr_t address(std::string_view symbol) const;

 private:
  friend class ObjectLoader;
  std::byte* base_ = nullptr;
  std::size_t size_ = 0;
  Symbols symbols_;
};

// The identity of the instruction set of the processor, a part of the key of cached machine code.
std::string host_cpu_identity();

// LLVM's name of the highest level of processors that this one reaches, of those that code is compiled for ahead of
// time; empty if it reaches none.
std::string processor_level();

void register_object(nanobind::module_& m);

}  // namespace twofold
