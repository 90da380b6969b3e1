// MPI functions by id and by name, with what the recorder and the readers need to know of each.
//
// Place in the event's way: beside all of it: `Event::function` is an id of this table. The data is generated
// at build time from event/mpi_functions.yml, which is the reviewed description (ids are append only).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "event/event.h"

namespace lbf {

enum class MpiRole : std::uint8_t {
  kInit,
  kInitThread,
  kFinalize,
  kAbort,
  kPcontrol,
  kSend,
  kIsend,
  kRecv,
  kIrecv,
  kSendrecv,
  kSendrecvReplace,
  kPersistentInitSend,
  kPersistentInitRecv,
  kStart,
  kStartall,
  kWait,
  kWaitany,
  kWaitall,
  kWaitsome,
  kTest,
  kTestany,
  kTestall,
  kTestsome,
  kRequestGetStatus,
  kRequestFree,
  kCancel,
  kProbe,
  kIprobe,
  kMprobe,
  kImprobe,
  kMrecv,
  kImrecv,
  kCollective,
  kCommCreate,
  kCommFree,
  kCommDisconnect,
  kLocal,
  kUnmodelled,
  kWinCreate,
  kWinFree,
  kWinFence,
  kWinPost,
  kWinStart,
  kWinComplete,
  kWinWait,
  kWinTest,
  kWinLock,
  kWinLockAll,
  kWinFlush,
  kWinFlushAll,
  kOneSided,
  kIo,
  kSpawn,
  kIsendrecv,
  kIsendrecvReplace,
  kPsendInit,
  kPrecvInit,
  kPready,
  kPreadyRange,
  kPreadyList,
  kSessionInit,
  kCollectiveInit,
  kSessionFinalize,
  kCommCreateFromGroup,
};

// How a kCommCreate or kCommCreateFromGroup call makes its communicator.
enum class CommCreation : std::uint8_t {
  kUnknown,  // no function (text traces)
  kDup,
  kCreate,
  kCreateGroup,
  kSplit,
  kSplitType,
  kCartCreate,
  kCartSub,
  kGraphCreate,
  kDistGraphCreate,
  kDistGraphCreateAdjacent,
  kIntercommCreate,
  kIntercommMerge,
};

enum class SendMode : std::uint8_t { kStandard, kBuffered, kSynchronous, kReady };

struct MpiFunction {
  std::uint16_t id = 0;   // 1 .. mpi_function_count()
  std::string_view name;  // "MPI_Send"
  MpiRole role = MpiRole::kLocal;
  SendMode mode = SendMode::kStandard;        // kSend, kIsend, kPersistentInitSend
  CollectiveOp op = CollectiveOp::kBarrier;   // kCollective, kCommCreate, kCommCreateFromGroup
  bool blocking = true;                       // kCollective, kCommCreate
  CommCreation how = CommCreation::kUnknown;  // kCommCreate, kCommCreateFromGroup
};

std::size_t mpi_function_count();

// The function with this id; nullptr: no such function (0, or an id of a newer version).
const MpiFunction* mpi_function(std::uint16_t id);

// The function with this C name ("MPI_Send"); nullptr: not one that the table knows.
const MpiFunction* mpi_function(std::string_view name);

// How it makes a communicator; kUnknown where it makes none.
CommCreation comm_creation(std::uint16_t id);

// Its C name, for people; "unknown MPI function" for an id that the table does not have.
std::string_view mpi_function_name(std::uint16_t id);

}  // namespace lbf
