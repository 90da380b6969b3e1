// MPI functions by id and by name (event/mpi_function_table.h); the data comes from event/mpi_functions.yml.
#include "event/mpi_function_table.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace lbf {
namespace {

constexpr MpiFunction kFunctions[] = {
#include "event/mpi_function_table_data.inc"
};

// Indices into kFunctions in the order of the names, for the look-up by name.
const std::vector<std::uint16_t>& indices_by_name() {
  static const std::vector<std::uint16_t> indices = [] {
    std::vector<std::uint16_t> order(std::size(kFunctions));
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<std::uint16_t>(i);
    std::sort(order.begin(), order.end(),
              [](std::uint16_t a, std::uint16_t b) { return kFunctions[a].name < kFunctions[b].name; });
    return order;
  }();
  return indices;
}

}  // namespace

std::size_t mpi_function_count() {
  return std::size(kFunctions);
}

const MpiFunction* mpi_function(std::uint16_t id) {
  if (id == 0 || id > std::size(kFunctions)) return nullptr;
  return &kFunctions[id - 1];  // the generator refuses ids with holes
}

const MpiFunction* mpi_function(std::string_view name) {
  const auto& order = indices_by_name();
  const auto found =
      std::lower_bound(order.begin(), order.end(), name,
                       [](std::uint16_t index, std::string_view wanted) { return kFunctions[index].name < wanted; });
  if (found == order.end() || kFunctions[*found].name != name) return nullptr;
  return &kFunctions[*found];
}

CommCreation comm_creation(std::uint16_t id) {
  const MpiFunction* function = mpi_function(id);
  return function != nullptr ? function->how : CommCreation::kUnknown;
}

std::string_view mpi_function_name(std::uint16_t id) {
  const MpiFunction* function = mpi_function(id);
  return function != nullptr ? function->name : std::string_view("unknown MPI function");
}

}  // namespace lbf
