// Functions of the CUDA driver and of HIP in which a thread waits for its device, behind the preload's entries
// (device_entries.cpp): the next ones of these names, found when they are first called.
//
// Place in the event's way: inside *capture*, under the preload. Which ones: CUDA's "API synchronization behavior" and
// HIP's reference. Copies between places of devices do not wait, and are not here. CUDA's runtime waits in the driver.
// Nothing of theirs is included.
#pragma once

#include <cstdint>

#include "spank_plugin/capture/dispatch.h"

namespace lbf::capture {

// X(name, words): each argument is a word of its own, or part of one; the result is an int.
// clang-format off
#define LBF_CUDA_WAITS(X) \
  X(cuCtxSynchronize, 1) X(cuCtxSynchronize_v2, 1) X(cuEventSynchronize, 1) \
  X(cuStreamSynchronize, 1) X(cuStreamSynchronize_ptsz, 1) X(cuMemFree_v2, 1) \
  X(cuMemcpy, 3) X(cuMemcpy_ptds, 3) X(cuMemcpyHtoD_v2, 3) X(cuMemcpyHtoD_v2_ptds, 3) \
  X(cuMemcpyDtoH_v2, 3) X(cuMemcpyDtoH_v2_ptds, 3) X(cuMemcpyHtoA_v2, 4) X(cuMemcpyHtoA_v2_ptds, 4) \
  X(cuMemcpyAtoH_v2, 4) X(cuMemcpyAtoH_v2_ptds, 4) X(cuMemcpy2D_v2, 1) X(cuMemcpy2D_v2_ptds, 1) \
  X(cuMemcpy2DUnaligned_v2, 1) X(cuMemcpy2DUnaligned_v2_ptds, 1) X(cuMemcpy3D_v2, 1) X(cuMemcpy3D_v2_ptds, 1)
#define LBF_HIP_WAITS(X) \
  X(hipDeviceSynchronize, 0) X(hipCtxSynchronize, 0) X(hipEventSynchronize, 1) \
  X(hipStreamSynchronize, 1) X(hipStreamSynchronize_spt, 1) X(hipFree, 1) \
  X(hipMemcpy, 4) X(hipMemcpy_spt, 4) X(hipMemcpyWithStream, 5) X(hipMemcpyHtoD, 3) X(hipMemcpyDtoH, 3) \
  X(hipMemcpyHtoA, 4) X(hipMemcpyAtoH, 4) X(hipMemcpy2D, 7) X(hipMemcpy2D_spt, 7) X(hipMemcpyParam2D, 1) \
  X(hipMemcpy3D, 1) X(hipMemcpy3D_spt, 1) X(hipDrvMemcpy3D, 1) X(hipMemcpyToSymbol, 5) X(hipMemcpyToSymbol_spt, 5) \
  X(hipMemcpyFromSymbol, 5) X(hipMemcpyFromSymbol_spt, 5) X(hipMemcpyToArray, 6) X(hipMemcpyFromArray, 6) \
  X(hipMemcpyFromArray_spt, 6) X(hipMemcpy2DToArray, 8) X(hipMemcpy2DToArray_spt, 8) \
  X(hipMemcpy2DFromArray, 8) X(hipMemcpy2DFromArray_spt, 8)
#define LBF_DEVICE_WAITS(X) LBF_CUDA_WAITS(X) LBF_HIP_WAITS(X)
// The driver's look-up of its functions.
#define LBF_DEVICE_LOOKUPS(X) X(cuGetProcAddress, 4) X(cuGetProcAddress_v2, 5)
#define LBF_DEVICE_FUNCTIONS(X) LBF_DEVICE_WAITS(X) LBF_DEVICE_LOOKUPS(X)
// clang-format on

enum class DeviceFunction : std::uint32_t {
#define LBF_DEVICE_FUNCTION(name, words) k_##name,
  LBF_DEVICE_FUNCTIONS(LBF_DEVICE_FUNCTION)
#undef LBF_DEVICE_FUNCTION
      kCount
};
inline constexpr std::uint32_t kDeviceFunctions = static_cast<std::uint32_t>(DeviceFunction::kCount);

// What the function is to the code at `caller`; nullptr: the process has none.
lbf_function find_device_function(DeviceFunction function, const void* caller) noexcept;

// The same where every caller means the same one; nullptr: ask find_device_function().
extern constinit lbf_function device_functions[kDeviceFunctions];

// The function that a library exports under NAME; kCount: none of these.
DeviceFunction device_function_named(const char* name) noexcept;
// The one that the driver's look-up knows under NAME, whatever its version; kCount: none of these.
DeviceFunction driver_function_named(const char* name) noexcept;

// Which of these libraries are loaded: ring::DeviceLibrary, or'd.
std::uint32_t loaded_device_libraries() noexcept;

}  // namespace lbf::capture
