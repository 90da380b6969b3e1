// See region_functions.h.
#include "spank_plugin/capture/region_functions.h"

#include "spank_plugin/capture/next_functions.h"

namespace lbf::capture {

constinit lbf_function region_functions[static_cast<std::uint32_t>(RegionFunction::kCount)] = {};

namespace {

constexpr const char* kRegionFunctionNames[] = {
#define LBF_REGION_FUNCTION(name) #name,
    LBF_REGION_FUNCTIONS(LBF_REGION_FUNCTION)
#undef LBF_REGION_FUNCTION
};

constexpr const char* kOpenMpNames[] = {"GOMP_", "omp_", "__kmpc_"};

constinit NextFunctions next_region_functions{region_functions, kOpenMpNames};

}  // namespace

lbf_function find_region_function(RegionFunction function, const void* caller) noexcept {
  const auto slot = static_cast<std::uint32_t>(function);
  return next_region_functions.find(slot, kRegionFunctionNames[slot], caller);
}

}  // namespace lbf::capture
