// See device_functions.h.
#include "spank_plugin/capture/device_functions.h"

#include <link.h>
#include <string.h>

#include "spank_plugin/capture/next_functions.h"
#include "spank_plugin/capture/ring.h"

namespace lbf::capture {

constinit lbf_function device_functions[kDeviceFunctions] = {};

namespace {

constexpr const char* kDeviceFunctionNames[] = {
#define LBF_DEVICE_FUNCTION(name, words) #name,
    LBF_DEVICE_FUNCTIONS(LBF_DEVICE_FUNCTION)
#undef LBF_DEVICE_FUNCTION
};

constexpr const char* kDeviceNames[] = {"cu", "hip"};

constinit NextFunctions next_device_functions{device_functions, kDeviceNames};

// By the file's name: a library may be loaded in a scope that no look-up sees.
int note_device_library(dl_phdr_info* info, std::size_t, void* data) {
  if (info->dlpi_name == nullptr) return 0;
  const char* const slash = strrchr(info->dlpi_name, '/');
  const char* const file = slash != nullptr ? slash + 1 : info->dlpi_name;
  auto& libraries = *static_cast<std::uint32_t*>(data);
  for (const char* const name : {"libcuda.so", "libcudart.so"}) {
    if (strncmp(file, name, strlen(name)) == 0) libraries |= ring::kCudaLibrary;
  }
  if (strncmp(file, "libamdhip64.so", strlen("libamdhip64.so")) == 0) libraries |= ring::kHipLibrary;
  return 0;
}

}  // namespace

lbf_function find_device_function(DeviceFunction function, const void* caller) noexcept {
  const auto slot = static_cast<std::uint32_t>(function);
  return next_device_functions.find(slot, kDeviceFunctionNames[slot], caller);
}

DeviceFunction device_function_named(const char* name) noexcept {
  std::uint32_t slot = 0;
  while (slot < kDeviceFunctions && strcmp(kDeviceFunctionNames[slot], name) != 0) ++slot;
  return static_cast<DeviceFunction>(slot);
}

// "cuMemcpyHtoD" is cuMemcpyHtoD_v2 and cuMemcpyHtoD_v2_ptds; their arguments are alike.
DeviceFunction driver_function_named(const char* name) noexcept {
  const std::size_t length = strlen(name);
  std::uint32_t slot = 0;
  for (; slot < kDeviceFunctions; ++slot) {
    const char* const known = kDeviceFunctionNames[slot];
    if (strncmp(known, name, length) == 0 && (known[length] == '\0' || known[length] == '_')) break;
  }
  return static_cast<DeviceFunction>(slot);
}

std::uint32_t loaded_device_libraries() noexcept {
  std::uint32_t libraries = 0;
  dl_iterate_phdr(note_device_library, &libraries);
  return libraries;
}

}  // namespace lbf::capture
