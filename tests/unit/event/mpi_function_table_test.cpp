// event/mpi_function_table.h: the table against the reviewed description, and ids that must never move.
#include "event/mpi_function_table.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace lbf::mpi_function_table_test {
namespace {

TEST(MpiFunctionTable, HasEveryFunctionOfTheDescription) {
  std::ifstream yml(LBF_MPI_FUNCTIONS_YML);
  ASSERT_TRUE(yml);
  std::string line;
  std::size_t functions = 0;
  std::uint16_t id = 0;
  while (std::getline(yml, line)) {
    if (line.starts_with("  - id: ")) id = static_cast<std::uint16_t>(std::stoi(line.substr(8)));
    if (!line.starts_with("    name: ")) continue;
    const std::string name = line.substr(10);
    ++functions;
    ASSERT_NE(mpi_function(id), nullptr) << name;
    EXPECT_EQ(mpi_function(id)->name, name);
    ASSERT_NE(mpi_function(std::string_view(name)), nullptr) << name;
    EXPECT_EQ(mpi_function(std::string_view(name))->id, id);
  }
  EXPECT_EQ(functions, mpi_function_count());
}

// Ids are in stored traces: whoever changes one of these breaks them.
TEST(MpiFunctionTable, IdsNeverMove) {
  EXPECT_EQ(mpi_function_name(1), "MPI_Init");
  EXPECT_EQ(mpi_function_name(6), "MPI_Send");
  EXPECT_EQ(mpi_function_name(10), "MPI_Recv");
  EXPECT_EQ(mpi_function_name(13), "MPI_Isend");
  EXPECT_EQ(mpi_function_name(27), "MPI_Waitall");
  EXPECT_EQ(mpi_function_name(384), "MPI_Buffer_detach");
}

TEST(MpiFunctionTable, KnowsWhatAFunctionDoes) {
  const MpiFunction* issend = mpi_function("MPI_Issend");
  ASSERT_NE(issend, nullptr);
  EXPECT_EQ(issend->role, MpiRole::kIsend);
  EXPECT_EQ(issend->mode, SendMode::kSynchronous);
  const MpiFunction* ireduce_scatter = mpi_function("MPI_Ireduce_scatter");
  ASSERT_NE(ireduce_scatter, nullptr);
  EXPECT_EQ(ireduce_scatter->role, MpiRole::kCollective);
  EXPECT_EQ(ireduce_scatter->op, CollectiveOp::kReduceScatter);
  EXPECT_FALSE(ireduce_scatter->blocking);
  const MpiFunction* split = mpi_function("MPI_Comm_split");
  ASSERT_NE(split, nullptr);
  EXPECT_EQ(split->role, MpiRole::kCommCreate);
  EXPECT_EQ(split->op, CollectiveOp::kCommCreate);
  EXPECT_EQ(mpi_function("MPI_Win_fence")->role, MpiRole::kWinFence);
  EXPECT_EQ(mpi_function("MPI_Rget")->role, MpiRole::kOneSided);
  EXPECT_EQ(mpi_function("MPI_File_read_all")->role, MpiRole::kIo);
  EXPECT_EQ(mpi_function("MPI_Grequest_start")->role, MpiRole::kUnmodelled);
  EXPECT_EQ(mpi_function("MPI_Comm_rank")->role, MpiRole::kLocal);
}

TEST(MpiFunctionTable, UnknownOnes) {
  EXPECT_EQ(mpi_function(std::uint16_t{0}), nullptr);
  EXPECT_EQ(mpi_function(static_cast<std::uint16_t>(mpi_function_count() + 1)), nullptr);
  EXPECT_EQ(mpi_function(std::string_view("MPI_Sendx")), nullptr);
  EXPECT_EQ(mpi_function(std::string_view("")), nullptr);
  EXPECT_EQ(mpi_function_name(0), "unknown MPI function");
  EXPECT_EQ(mpi_function_name(65535), "unknown MPI function");
}

}  // namespace
}  // namespace lbf::mpi_function_table_test