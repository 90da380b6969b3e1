// Open MPI's choice of a collective's algorithm, see collective_rules.h.
//
// The thresholds are those of coll/tuned's fixed decisions (4.1.4, the same in every 5.0 and 6.0) and of coll/libnbc;
// docs/collectives.md explains them.
#include <bit>
#include <cstddef>
#include <optional>
#include <span>

#include "predictor/engine/match/collective_arithmetic.h"
#include "predictor/engine/match/collective_rules.h"
#include "predictor/engine/match/collective_rules_common.h"

namespace lbf::engine::collective {
namespace {

// clang-format off
constexpr Rule kAllreduceNonCommutativeRules[] = {
    {4, 128 * kKiB, Algorithm::kRecursiveDoubling}, {4, kAnyBytes, Algorithm::kBasicLinear},
    {8, kAnyBytes, Algorithm::kRecursiveDoubling},
    {16, 1 * kMiB, Algorithm::kRecursiveDoubling}, {16, kAnyBytes, Algorithm::kReduceThenBcast},
    {128, kAnyBytes, Algorithm::kRecursiveDoubling},
    {256, 128 * kKiB, Algorithm::kReduceThenBcast}, {256, 512 * kKiB, Algorithm::kRecursiveDoubling},
    {256, kAnyBytes, Algorithm::kReduceThenBcast},
    {512, 4 * kKiB, Algorithm::kReduceThenBcast}, {512, 512 * kKiB, Algorithm::kRecursiveDoubling},
    {512, kAnyBytes, Algorithm::kReduceThenBcast},
    {kAnyRanks, 2 * kKiB, Algorithm::kReduceThenBcast},
    {kAnyRanks, kAnyBytes, Algorithm::kRecursiveDoubling},
};

constexpr Rule kAllreduceRules[] = {
    {4, 8, Algorithm::kRing}, {4, 4 * kKiB, Algorithm::kRecursiveDoubling}, {4, 8 * kKiB, Algorithm::kRing},
    {4, 16 * kKiB, Algorithm::kRecursiveDoubling}, {4, 64 * kKiB, Algorithm::kRing},
    {4, 256 * kKiB, Algorithm::kSegmentedRing}, {4, kAnyBytes, Algorithm::kRabenseifner},
    {8, 16, Algorithm::kRing}, {8, 8 * kKiB, Algorithm::kRecursiveDoubling},
    {8, kAnyBytes, Algorithm::kRabenseifner},
    {16, 8 * kKiB, Algorithm::kRecursiveDoubling}, {16, kAnyBytes, Algorithm::kRabenseifner},
    {32, 64, Algorithm::kSegmentedRing}, {32, 4 * kKiB, Algorithm::kRecursiveDoubling},
    {32, kAnyBytes, Algorithm::kRabenseifner},
    {64, 128, Algorithm::kSegmentedRing}, {64, kAnyBytes, Algorithm::kRabenseifner},
    {128, 256 * kKiB, Algorithm::kRecursiveDoubling}, {128, kAnyBytes, Algorithm::kRabenseifner},
    {256, 128 * kKiB, Algorithm::kReduceThenBcast}, {256, 256 * kKiB, Algorithm::kRecursiveDoubling},
    {256, kAnyBytes, Algorithm::kRabenseifner},
    {512, 4 * kKiB, Algorithm::kReduceThenBcast}, {512, kAnyBytes, Algorithm::kRabenseifner},
    {2048, 2 * kKiB, Algorithm::kReduceThenBcast}, {2048, 16 * kKiB, Algorithm::kRecursiveDoubling},
    {2048, kAnyBytes, Algorithm::kRabenseifner},
    {4096, 2 * kKiB, Algorithm::kReduceThenBcast}, {4096, 4 * kKiB, Algorithm::kSegmentedRing},
    {4096, 16 * kKiB, Algorithm::kRecursiveDoubling}, {4096, kAnyBytes, Algorithm::kRabenseifner},
    {kAnyRanks, 2 * kKiB, Algorithm::kReduceThenBcast}, {kAnyRanks, 16 * kKiB, Algorithm::kSegmentedRing},
    {kAnyRanks, 32 * kKiB, Algorithm::kRecursiveDoubling}, {kAnyRanks, kAnyBytes, Algorithm::kRabenseifner},
};

constexpr Rule kAlltoallRules[] = {
    {3, 2, Algorithm::kPairwise}, {3, 4, Algorithm::kTwoProc}, {3, 16, Algorithm::kPairwise},
    {3, 64, Algorithm::kTwoProc}, {3, 256, Algorithm::kPairwise}, {3, 4 * kKiB, Algorithm::kTwoProc},
    {3, 32 * kKiB, Algorithm::kPairwise}, {3, 256 * kKiB, Algorithm::kLinearSync},
    {3, 1 * kMiB, Algorithm::kTwoProc}, {3, kAnyBytes, Algorithm::kPairwise},
    {8, 8 * kKiB, Algorithm::kLinearSync}, {8, 16 * kKiB, Algorithm::kLinear},
    {8, 64 * kKiB, Algorithm::kLinearSync}, {8, 512 * kKiB, Algorithm::kLinear},
    {8, 1 * kMiB, Algorithm::kPairwise}, {8, kAnyBytes, Algorithm::kLinear},
    {16, 256 * kKiB, Algorithm::kLinearSync}, {16, kAnyBytes, Algorithm::kLinear},
    {32, 4, Algorithm::kLinearSync}, {32, 512, Algorithm::kModifiedBruck},
    {32, 8 * kKiB, Algorithm::kLinearSync}, {32, 32 * kKiB, Algorithm::kLinear},
    {32, 256 * kKiB, Algorithm::kLinearSync}, {32, 512 * kKiB, Algorithm::kLinear},
    {32, kAnyBytes, Algorithm::kLinearSync},
    {64, 512, Algorithm::kModifiedBruck}, {64, 512 * kKiB, Algorithm::kLinear},
    {64, kAnyBytes, Algorithm::kLinearSync},
    {128, 1 * kKiB, Algorithm::kModifiedBruck}, {128, 2 * kKiB, Algorithm::kLinear},
    {128, 4 * kKiB, Algorithm::kLinearSync}, {128, 256 * kKiB, Algorithm::kLinear},
    {128, kAnyBytes, Algorithm::kPairwise},
    {256, 1 * kKiB, Algorithm::kModifiedBruck}, {256, 2 * kKiB, Algorithm::kLinearSync},
    {256, 256 * kKiB, Algorithm::kLinear}, {256, kAnyBytes, Algorithm::kPairwise},
    {512, 1 * kKiB, Algorithm::kModifiedBruck}, {512, 8 * kKiB, Algorithm::kLinearSync},
    {512, 32 * kKiB, Algorithm::kLinear}, {512, kAnyBytes, Algorithm::kPairwise},
    {1024, 512, Algorithm::kModifiedBruck}, {1024, 8 * kKiB, Algorithm::kLinearSync},
    {1024, 16 * kKiB, Algorithm::kLinear}, {1024, 128 * kKiB, Algorithm::kLinearSync},
    {1024, 256 * kKiB, Algorithm::kLinear}, {1024, kAnyBytes, Algorithm::kPairwise},
    {2048, 512, Algorithm::kModifiedBruck}, {2048, 1 * kKiB, Algorithm::kLinearSync},
    {2048, 2 * kKiB, Algorithm::kLinear}, {2048, 16 * kKiB, Algorithm::kLinearSync},
    {2048, 256 * kKiB, Algorithm::kLinear}, {2048, kAnyBytes, Algorithm::kLinearSync},
    {4096, 1 * kKiB, Algorithm::kModifiedBruck}, {4096, 4 * kKiB, Algorithm::kLinearSync},
    {4096, 8 * kKiB, Algorithm::kLinear}, {4096, 128 * kKiB, Algorithm::kLinearSync},
    {4096, kAnyBytes, Algorithm::kLinear},
    {kAnyRanks, 2 * kKiB, Algorithm::kModifiedBruck}, {kAnyRanks, 8 * kKiB, Algorithm::kLinearSync},
    {kAnyRanks, 16 * kKiB, Algorithm::kLinear}, {kAnyRanks, 32 * kKiB, Algorithm::kLinearSync},
    {kAnyRanks, 64 * kKiB, Algorithm::kLinear}, {kAnyRanks, kAnyBytes, Algorithm::kLinearSync},
};

constexpr Rule kAlltoallvRules[] = {
    {4, kAnyBytes, Algorithm::kPairwise},
    {64, kAnyBytes, Algorithm::kBasicLinear},
    {128, kAnyBytes, Algorithm::kPairwise},
    {256, kAnyBytes, Algorithm::kBasicLinear},
    {1024, kAnyBytes, Algorithm::kPairwise},
    {kAnyRanks, kAnyBytes, Algorithm::kBasicLinear},
};

constexpr Rule kBarrierRules[] = {
    {4, kAnyBytes, Algorithm::kRecursiveDoubling},
    {8, kAnyBytes, Algorithm::kLinear},
    {64, kAnyBytes, Algorithm::kRecursiveDoubling},
    {256, kAnyBytes, Algorithm::kBruck},
    {512, kAnyBytes, Algorithm::kTree},
    {1024, kAnyBytes, Algorithm::kBruck},
    {4096, kAnyBytes, Algorithm::kTree},
    {kAnyRanks, kAnyBytes, Algorithm::kBruck},
};

constexpr Rule kBcastRules[] = {
    {4, 32, Algorithm::kPipeline}, {4, 256, Algorithm::kBinaryTree}, {4, 512, Algorithm::kPipeline},
    {4, 1 * kKiB, Algorithm::kKnomial}, {4, 32 * kKiB, Algorithm::kBasicLinear},
    {4, 128 * kKiB, Algorithm::kBinaryTree}, {4, 256 * kKiB, Algorithm::kChain},
    {4, 512 * kKiB, Algorithm::kBasicLinear}, {4, 1 * kMiB, Algorithm::kBinomial},
    {4, kAnyBytes, Algorithm::kBinaryTree},
    {8, 64, Algorithm::kBinaryTree}, {8, 128, Algorithm::kBinomial}, {8, 2 * kKiB, Algorithm::kBinaryTree},
    {8, 8 * kKiB, Algorithm::kBinomial}, {8, 1 * kMiB, Algorithm::kBasicLinear},
    {8, kAnyBytes, Algorithm::kChain},
    {16, 8, Algorithm::kKnomial}, {16, 64, Algorithm::kBinaryTree}, {16, 4 * kKiB, Algorithm::kKnomial},
    {16, 16 * kKiB, Algorithm::kBinaryTree}, {16, 32 * kKiB, Algorithm::kBinomial},
    {16, kAnyBytes, Algorithm::kBasicLinear},
    {32, 4 * kKiB, Algorithm::kKnomial}, {32, 1 * kMiB, Algorithm::kBinomial},
    {32, kAnyBytes, Algorithm::kScatterAllgather},
    {64, 2 * kKiB, Algorithm::kBinomial}, {64, kAnyBytes, Algorithm::kKnomial},
    {128, kAnyBytes, Algorithm::kKnomial},
    {256, 2, Algorithm::kBinomial}, {256, 16 * kKiB, Algorithm::kBinaryTree},
    {256, 32 * kKiB, Algorithm::kBasicLinear}, {256, 64 * kKiB, Algorithm::kBinaryTree},
    {256, kAnyBytes, Algorithm::kKnomial},
    {1024, 16 * kKiB, Algorithm::kKnomial}, {1024, 32 * kKiB, Algorithm::kSplitBinaryTree},
    {1024, kAnyBytes, Algorithm::kKnomial},
    {2048, 512 * kKiB, Algorithm::kKnomial}, {2048, kAnyBytes, Algorithm::kScatterAllgather},
    {4096, 256 * kKiB, Algorithm::kKnomial}, {4096, kAnyBytes, Algorithm::kScatterAllgather},
    {kAnyRanks, 8 * kKiB, Algorithm::kKnomial}, {kAnyRanks, 16 * kKiB, Algorithm::kBinaryTree},
    {kAnyRanks, 256 * kKiB, Algorithm::kKnomial}, {kAnyRanks, kAnyBytes, Algorithm::kScatterAllgather},
};

constexpr Rule kReduceNonCommutativeRules[] = {
    {4, 8, Algorithm::kInOrderBinary}, {4, kAnyBytes, Algorithm::kLinear},
    {8, kAnyBytes, Algorithm::kLinear},
    {16, 1 * kKiB, Algorithm::kInOrderBinary}, {16, 8 * kKiB, Algorithm::kLinear},
    {16, 16 * kKiB, Algorithm::kInOrderBinary}, {16, 256 * kKiB, Algorithm::kLinear},
    {16, kAnyBytes, Algorithm::kInOrderBinary},
    {128, kAnyBytes, Algorithm::kInOrderBinary},
    {256, 512, Algorithm::kInOrderBinary}, {256, 1 * kKiB, Algorithm::kLinear},
    {256, kAnyBytes, Algorithm::kInOrderBinary},
    {kAnyRanks, kAnyBytes, Algorithm::kInOrderBinary},
};

constexpr Rule kReduceRules[] = {
    {4, 8, Algorithm::kRabenseifner}, {4, 16, Algorithm::kBinary}, {4, 32, Algorithm::kPipeline},
    {4, 256 * kKiB, Algorithm::kLinear}, {4, 512 * kKiB, Algorithm::kPipeline},
    {4, 1 * kMiB, Algorithm::kChain}, {4, kAnyBytes, Algorithm::kPipeline},
    {8, 4 * kKiB, Algorithm::kBinary}, {8, 64 * kKiB, Algorithm::kChain},
    {8, 256 * kKiB, Algorithm::kBinomial}, {8, 512 * kKiB, Algorithm::kLinear},
    {8, 1 * kMiB, Algorithm::kBinomial}, {8, kAnyBytes, Algorithm::kLinear},
    {16, 8 * kKiB, Algorithm::kBinary}, {16, kAnyBytes, Algorithm::kBinomial},
    {32, 4 * kKiB, Algorithm::kBinary}, {32, kAnyBytes, Algorithm::kBinomial},
    {256, kAnyBytes, Algorithm::kBinomial},
    {512, 8 * kKiB, Algorithm::kBinomial}, {512, 16 * kKiB, Algorithm::kInOrderBinary},
    {512, kAnyBytes, Algorithm::kBinomial},
    {2048, kAnyBytes, Algorithm::kBinomial},
    {4096, 512, Algorithm::kBinomial}, {4096, 1 * kKiB, Algorithm::kInOrderBinary},
    {4096, 8 * kKiB, Algorithm::kBinomial}, {4096, 16 * kKiB, Algorithm::kInOrderBinary},
    {4096, kAnyBytes, Algorithm::kBinomial},
    {kAnyRanks, 16, Algorithm::kBinomial}, {kAnyRanks, 32, Algorithm::kInOrderBinary},
    {kAnyRanks, 1 * kKiB, Algorithm::kBinomial}, {kAnyRanks, 2 * kKiB, Algorithm::kInOrderBinary},
    {kAnyRanks, 8 * kKiB, Algorithm::kBinomial}, {kAnyRanks, 16 * kKiB, Algorithm::kInOrderBinary},
    {kAnyRanks, kAnyBytes, Algorithm::kBinomial},
};

constexpr Rule kReduceScatterNonCommutativeRules[] = {
    {kAnyRanks, kAnyBytes, Algorithm::kReduceThenScatter},
};

constexpr Rule kReduceScatterRules[] = {
    {4, 64 * kKiB, Algorithm::kRing}, {4, 128 * kKiB, Algorithm::kButterfly},
    {4, kAnyBytes, Algorithm::kRing},
    {8, 8, Algorithm::kReduceThenScatter}, {8, 256 * kKiB, Algorithm::kRecursiveHalving},
    {8, kAnyBytes, Algorithm::kRing},
    {32, 256 * kKiB, Algorithm::kRecursiveHalving}, {32, kAnyBytes, Algorithm::kRing},
    {64, 64, Algorithm::kReduceThenScatter}, {64, 2 * kKiB, Algorithm::kRecursiveHalving},
    {64, 512 * kKiB, Algorithm::kButterfly}, {64, kAnyBytes, Algorithm::kRing},
    {128, 256, Algorithm::kReduceThenScatter}, {128, 512, Algorithm::kRecursiveHalving},
    {128, 2 * kKiB, Algorithm::kButterfly}, {128, 4 * kKiB, Algorithm::kRecursiveHalving},
    {128, kAnyBytes, Algorithm::kButterfly},
    {256, 256, Algorithm::kReduceThenScatter}, {256, 512, Algorithm::kRecursiveHalving},
    {256, kAnyBytes, Algorithm::kButterfly},
    {512, 256, Algorithm::kReduceThenScatter}, {512, 1 * kKiB, Algorithm::kRecursiveHalving},
    {512, kAnyBytes, Algorithm::kButterfly},
    {1024, 512, Algorithm::kReduceThenScatter}, {1024, 2 * kKiB, Algorithm::kRecursiveHalving},
    {1024, 8 * kKiB, Algorithm::kButterfly}, {1024, 16 * kKiB, Algorithm::kRecursiveHalving},
    {1024, kAnyBytes, Algorithm::kButterfly},
    {2048, 512, Algorithm::kReduceThenScatter}, {2048, 4 * kKiB, Algorithm::kRecursiveHalving},
    {2048, 16 * kKiB, Algorithm::kButterfly}, {2048, 32 * kKiB, Algorithm::kRecursiveHalving},
    {2048, kAnyBytes, Algorithm::kButterfly},
    {4096, 512, Algorithm::kReduceThenScatter}, {4096, 4 * kKiB, Algorithm::kRecursiveHalving},
    {4096, kAnyBytes, Algorithm::kButterfly},
    {kAnyRanks, 1 * kKiB, Algorithm::kReduceThenScatter}, {kAnyRanks, 8 * kKiB, Algorithm::kRecursiveHalving},
    {kAnyRanks, kAnyBytes, Algorithm::kButterfly},
};

constexpr Rule kReduceScatterBlockNonCommutativeRules[] = {
    {kAnyRanks, kAnyBytes, Algorithm::kBasicLinear},
};

constexpr Rule kReduceScatterBlockRules[] = {
    {4, 4, Algorithm::kRecursiveDoubling}, {4, 8, Algorithm::kButterfly},
    {4, 16, Algorithm::kRecursiveHalving}, {4, 128, Algorithm::kButterfly},
    {4, 256, Algorithm::kRecursiveHalving}, {4, 4 * kKiB, Algorithm::kButterfly},
    {4, 8 * kKiB, Algorithm::kRecursiveHalving}, {4, 128 * kKiB, Algorithm::kButterfly},
    {4, kAnyBytes, Algorithm::kBasicLinear},
    {8, 8, Algorithm::kRecursiveHalving}, {8, 32, Algorithm::kRecursiveDoubling},
    {8, 256, Algorithm::kButterfly}, {8, 8 * kKiB, Algorithm::kRecursiveHalving},
    {8, 16 * kKiB, Algorithm::kButterfly}, {8, 1 * kMiB, Algorithm::kRecursiveHalving},
    {8, kAnyBytes, Algorithm::kBasicLinear},
    {16, 4, Algorithm::kBasicLinear}, {16, 32, Algorithm::kRecursiveHalving},
    {16, 128, Algorithm::kButterfly}, {16, 512 * kKiB, Algorithm::kRecursiveHalving},
    {16, 4 * kMiB, Algorithm::kBasicLinear}, {16, kAnyBytes, Algorithm::kButterfly},
    {32, 32, Algorithm::kBasicLinear}, {32, 512 * kKiB, Algorithm::kRecursiveHalving},
    {32, 2 * kMiB, Algorithm::kBasicLinear}, {32, 4 * kMiB, Algorithm::kRecursiveHalving},
    {32, kAnyBytes, Algorithm::kButterfly},
    {kAnyRanks, 4, Algorithm::kRecursiveHalving}, {kAnyRanks, 16, Algorithm::kBasicLinear},
    {kAnyRanks, 64 * kKiB, Algorithm::kButterfly}, {kAnyRanks, 256 * kKiB, Algorithm::kBasicLinear},
    {kAnyRanks, kAnyBytes, Algorithm::kButterfly},
};

constexpr Rule kAllgatherRules[] = {
    {3, kAnyBytes, Algorithm::kTwoProc},
    {32, kAnyBytes, Algorithm::kRecursiveDoubling},
    {64, 1 * kKiB, Algorithm::kRecursiveDoubling}, {64, 64 * kKiB, Algorithm::kNeighbor},
    {64, kAnyBytes, Algorithm::kRing},
    {128, 512, Algorithm::kRecursiveDoubling}, {128, 64 * kKiB, Algorithm::kNeighbor},
    {128, kAnyBytes, Algorithm::kRing},
    {256, 512, Algorithm::kRecursiveDoubling}, {256, 128 * kKiB, Algorithm::kNeighbor},
    {256, 512 * kKiB, Algorithm::kRing}, {256, 1 * kMiB, Algorithm::kNeighbor},
    {256, kAnyBytes, Algorithm::kRing},
    {512, 32, Algorithm::kRecursiveDoubling}, {512, 128, Algorithm::kBruck},
    {512, 1 * kKiB, Algorithm::kRecursiveDoubling}, {512, 128 * kKiB, Algorithm::kNeighbor},
    {512, 512 * kKiB, Algorithm::kRing}, {512, 1 * kMiB, Algorithm::kNeighbor},
    {512, kAnyBytes, Algorithm::kRing},
    {1024, 64, Algorithm::kRecursiveDoubling}, {1024, 256, Algorithm::kBruck},
    {1024, 2 * kKiB, Algorithm::kRecursiveDoubling}, {1024, kAnyBytes, Algorithm::kNeighbor},
    {2048, 4, Algorithm::kRecursiveDoubling}, {2048, 8, Algorithm::kBruck},
    {2048, 16, Algorithm::kRecursiveDoubling}, {2048, 32, Algorithm::kBruck},
    {2048, 256, Algorithm::kRecursiveDoubling}, {2048, 512, Algorithm::kBruck},
    {2048, 4 * kKiB, Algorithm::kRecursiveDoubling}, {2048, kAnyBytes, Algorithm::kNeighbor},
    {4096, 32, Algorithm::kBruck}, {4096, 128, Algorithm::kRecursiveDoubling},
    {4096, 512, Algorithm::kBruck}, {4096, 4 * kKiB, Algorithm::kRecursiveDoubling},
    {4096, kAnyBytes, Algorithm::kNeighbor},
    {kAnyRanks, 2, Algorithm::kRecursiveDoubling}, {kAnyRanks, 8, Algorithm::kBruck},
    {kAnyRanks, 16, Algorithm::kRecursiveDoubling}, {kAnyRanks, 512, Algorithm::kBruck},
    {kAnyRanks, 4 * kKiB, Algorithm::kRecursiveDoubling}, {kAnyRanks, kAnyBytes, Algorithm::kNeighbor},
};

constexpr Rule kAllgathervRules[] = {
    {3, 2 * kKiB, Algorithm::kRing}, {3, 4 * kKiB, Algorithm::kTwoProc}, {3, 8 * kKiB, Algorithm::kRing},
    {3, kAnyBytes, Algorithm::kTwoProc},
    {8, 256, Algorithm::kDefault}, {8, 4 * kKiB, Algorithm::kNeighbor}, {8, 8 * kKiB, Algorithm::kRing},
    {8, 16 * kKiB, Algorithm::kNeighbor}, {8, 256 * kKiB, Algorithm::kBruck},
    {8, kAnyBytes, Algorithm::kNeighbor},
    {16, 1 * kKiB, Algorithm::kDefault}, {16, kAnyBytes, Algorithm::kBruck},
    {32, 128, Algorithm::kDefault}, {32, 256 * kKiB, Algorithm::kBruck}, {32, kAnyBytes, Algorithm::kRing},
    {64, 256, Algorithm::kDefault}, {64, 8 * kKiB, Algorithm::kBruck}, {64, kAnyBytes, Algorithm::kRing},
    {128, 256, Algorithm::kDefault}, {128, 4 * kKiB, Algorithm::kBruck}, {128, kAnyBytes, Algorithm::kRing},
    {256, 1 * kKiB, Algorithm::kBruck}, {256, 64 * kKiB, Algorithm::kNeighbor},
    {256, kAnyBytes, Algorithm::kRing},
    {512, 1 * kKiB, Algorithm::kBruck}, {512, kAnyBytes, Algorithm::kRing},
    {1024, 512, Algorithm::kBruck}, {1024, 1 * kKiB, Algorithm::kDefault},
    {1024, 4 * kKiB, Algorithm::kBruck}, {1024, 1 * kMiB, Algorithm::kNeighbor},
    {1024, kAnyBytes, Algorithm::kRing},
    {kAnyRanks, 4 * kKiB, Algorithm::kBruck}, {kAnyRanks, kAnyBytes, Algorithm::kNeighbor},
};

constexpr Rule kGatherRules[] = {
    {4, 2, Algorithm::kLinearSync}, {4, 4, Algorithm::kBasicLinear}, {4, 32 * kKiB, Algorithm::kBinomial},
    {4, 64 * kKiB, Algorithm::kBasicLinear}, {4, 128 * kKiB, Algorithm::kBinomial},
    {4, kAnyBytes, Algorithm::kLinearSync},
    {8, 1 * kKiB, Algorithm::kBinomial}, {8, 8 * kKiB, Algorithm::kBasicLinear},
    {8, 32 * kKiB, Algorithm::kBinomial}, {8, 256 * kKiB, Algorithm::kBasicLinear},
    {8, kAnyBytes, Algorithm::kLinearSync},
    {256, kAnyBytes, Algorithm::kBinomial},
    {512, 2 * kKiB, Algorithm::kBinomial}, {512, 8 * kKiB, Algorithm::kBasicLinear},
    {512, kAnyBytes, Algorithm::kBinomial},
    {kAnyRanks, kAnyBytes, Algorithm::kBinomial},
};

constexpr Rule kScatterRules[] = {
    {4, 2, Algorithm::kLinearNb}, {4, 128 * kKiB, Algorithm::kBasicLinear},
    {4, 256 * kKiB, Algorithm::kLinearNb}, {4, kAnyBytes, Algorithm::kBasicLinear},
    {8, 2 * kKiB, Algorithm::kBinomial}, {8, 4 * kKiB, Algorithm::kBasicLinear},
    {8, 8 * kKiB, Algorithm::kBinomial}, {8, 32 * kKiB, Algorithm::kBasicLinear},
    {8, 1 * kMiB, Algorithm::kLinearNb}, {8, kAnyBytes, Algorithm::kBasicLinear},
    {16, 16 * kKiB, Algorithm::kBinomial}, {16, 1 * kMiB, Algorithm::kLinearNb},
    {16, kAnyBytes, Algorithm::kBasicLinear},
    {32, 16 * kKiB, Algorithm::kBinomial}, {32, 32 * kKiB, Algorithm::kBasicLinear},
    {32, kAnyBytes, Algorithm::kLinearNb},
    {64, 512, Algorithm::kBinomial}, {64, 8 * kKiB, Algorithm::kLinearNb},
    {64, 16 * kKiB, Algorithm::kBinomial}, {64, kAnyBytes, Algorithm::kLinearNb},
    {kAnyRanks, 512, Algorithm::kBinomial}, {kAnyRanks, kAnyBytes, Algorithm::kLinearNb},
};

constexpr Rule kLinearRules[] = {
    {kAnyRanks, kAnyBytes, Algorithm::kLinear},
};
// clang-format on

std::span<const Rule> rules_of(CollectiveOp op, bool commutative) {
  switch (op) {
    case CollectiveOp::kBarrier:
      return kBarrierRules;
    case CollectiveOp::kBcast:
      return kBcastRules;
    case CollectiveOp::kReduce:
      if (!commutative) return kReduceNonCommutativeRules;
      return kReduceRules;
    case CollectiveOp::kAllreduce:
      if (!commutative) return kAllreduceNonCommutativeRules;
      return kAllreduceRules;
    case CollectiveOp::kGather:
      return kGatherRules;
    case CollectiveOp::kScatter:
      return kScatterRules;
    case CollectiveOp::kAllgather:
      return kAllgatherRules;
    case CollectiveOp::kAllgatherv:
      return kAllgathervRules;
    case CollectiveOp::kAlltoall:
      return kAlltoallRules;
    case CollectiveOp::kAlltoallv:
      return kAlltoallvRules;
    case CollectiveOp::kReduceScatter:
      if (!commutative) return kReduceScatterNonCommutativeRules;
      return kReduceScatterRules;
    case CollectiveOp::kReduceScatterBlock:
      if (!commutative) return kReduceScatterBlockNonCommutativeRules;
      return kReduceScatterBlockRules;
    default:
      return kLinearRules;  // coll/basic has one algorithm for each of these
  }
}

Choice choose_nonblocking(const CollectiveCall& call) {
  constexpr Bytes kShortVectorBytes = 64 * kKiB;
  const std::uint32_t power = std::bit_floor(call.size);
  switch (call.op) {
    case CollectiveOp::kBarrier:
      return {Algorithm::kDissemination};
    case CollectiveOp::kBcast:
      // By size of the communicator only: the datatype signatures of an ibcast may differ
      // (ibcast_skip_dt_decision).
      return {call.size <= 4 ? Algorithm::kLinear : Algorithm::kBinomial};
    case CollectiveOp::kReduce: {
      Choice choice;
      if (call.commutative && call.size > 2 &&
          long_enough(
              call.bytes, [&](Bytes n) { return n >= power; }, choice.unsure)) {
        choice.algorithm = Algorithm::kRabenseifner;
      } else if (call.size > 4 || call.bytes < kShortVectorBytes || !call.commutative) {
        choice.algorithm = Algorithm::kBinomial;
      } else {
        choice.algorithm = Algorithm::kChain;
      }
      return choice;
    }
    case CollectiveOp::kAllreduce: {
      if (call.size < 4 || call.bytes < kShortVectorBytes || !call.commutative || call.in_place) {
        return {Algorithm::kBinomial};
      }
      Choice choice;
      choice.algorithm = long_enough(
                             call.bytes, [&](Bytes n) { return n >= power; }, choice.unsure)
                             ? Algorithm::kRabenseifner
                             : Algorithm::kRing;
      return choice;
    }
    case CollectiveOp::kReduceScatter:
    case CollectiveOp::kReduceScatterBlock:
      return {Algorithm::kBinomial};
    case CollectiveOp::kAlltoall:
    case CollectiveOp::kAlltoallv:
    case CollectiveOp::kAlltoallw:
      return {call.in_place ? Algorithm::kInPlace : Algorithm::kLinear};
    default:
      return {Algorithm::kLinear};
  }
}

Choice choose_inter(const CollectiveCall& call) {
  if (call.nonblocking) return {Algorithm::kInterLinear};
  switch (call.op) {
    case CollectiveOp::kAlltoall:
    case CollectiveOp::kAlltoallv:
    case CollectiveOp::kAlltoallw:
      return {Algorithm::kInterLinear};
    case CollectiveOp::kGatherv:
    case CollectiveOp::kScatterv:
    case CollectiveOp::kAllgatherv:
      // How much the others of the group have is unknown here: they are taken to have as much as this rank.
      return {Algorithm::kInterLeaders, true};
    case CollectiveOp::kAllgather:
      // Assumes that both groups contribute equally much per rank.
      return {Algorithm::kInterLeaders, true};
    default:
      return {Algorithm::kInterLeaders};
  }
}

// What becomes of an algorithm that cannot do with so many ranks or so short a vector.
Choice fall_back_openmpi(MpiLibrary library, CollectiveOp op, Algorithm algorithm, std::uint32_t ranks, Bytes bytes,
                         Bytes element_bytes) {
  Choice choice{algorithm};
  const auto has_elements = [&](std::uint32_t count) {
    return long_enough(
        bytes, [&](Bytes n) { return n >= count; }, choice.unsure);
  };
  switch (op) {
    case CollectiveOp::kBcast: {
      const Bytes elements = bytes / element_bytes;
      if (algorithm == Algorithm::kSplitBinaryTree && elements < 2) choice.algorithm = Algorithm::kChain;
      if (algorithm == Algorithm::kScatterAllgather && elements < ranks) choice.algorithm = Algorithm::kBasicLinear;
      break;
    }
    case CollectiveOp::kReduce:
      // 6.0 gives a number of chains, those before none.
      if (algorithm == Algorithm::kChain && library == MpiLibrary::kOpenMpi6) choice.algorithm = Algorithm::kTwoChains;
      if (algorithm == Algorithm::kRabenseifner && !has_elements(std::bit_floor(ranks))) {
        choice.algorithm = Algorithm::kLinear;
      }
      break;
    case CollectiveOp::kAllreduce:
      // Without a segment size one segment is the whole vector, and such a segmented ring is a ring.
      if (algorithm == Algorithm::kSegmentedRing) choice.algorithm = Algorithm::kRing;
      if (choice.algorithm == Algorithm::kRing && !has_elements(ranks)) {
        choice.algorithm = Algorithm::kRecursiveDoubling;
      }
      if (algorithm == Algorithm::kRabenseifner && library != MpiLibrary::kOpenMpi6 &&
          !has_elements(std::bit_floor(ranks))) {
        choice.algorithm = Algorithm::kBasicLinear;
      }
      break;
    case CollectiveOp::kAllgather:
    case CollectiveOp::kAllgatherv:
      if (algorithm == Algorithm::kRecursiveDoubling && !std::has_single_bit(ranks)) {
        choice.algorithm = Algorithm::kBruck;
      }
      if (algorithm == Algorithm::kNeighbor && ranks % 2 != 0) choice.algorithm = Algorithm::kRing;
      break;
    default:
      break;
  }
  return choice;
}

}  // namespace

Choice choose_intra_openmpi(MpiLibrary library, CollectiveOp op, std::uint32_t ranks, Bytes bytes, Bytes element_bytes,
                            bool commutative) {
  const Algorithm algorithm = first_that_fits(rules_of(op, commutative), ranks, bytes);
  return fall_back_openmpi(library, op, algorithm, ranks, bytes, element_bytes);
}

Choice choose_openmpi(const CollectiveCall& call) {
  Choice choice;
  if (call.remote_size > 0) {
    choice = choose_inter(call);
  } else if (call.nonblocking) {
    choice = choose_nonblocking(call);
  } else if (call.in_place && (call.op == CollectiveOp::kAlltoall || call.op == CollectiveOp::kAlltoallv ||
                               call.op == CollectiveOp::kAlltoallw)) {
    choice = {Algorithm::kInPlace};
  } else {
    Bytes bytes = call.bytes;
    if (call.op == CollectiveOp::kAllgatherv) bytes = sum(call.values) / call.size;
    if (call.op == CollectiveOp::kReduceScatter) bytes = sum(call.values);
    const Bytes element_bytes = likely_element_bytes(bytes);
    const std::optional<Algorithm> forced = forced_algorithm(call);
    if (forced && call.commutative) {
      return fall_back_openmpi(call.library, call.op, *forced, call.size, bytes, element_bytes);
    }
    choice = choose_intra_openmpi(call.library, call.op, call.size, bytes, element_bytes, call.commutative);
    choice.unsure |= forced.has_value();
  }
  return choice;
}

}  // namespace lbf::engine::collective
