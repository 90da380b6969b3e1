#include "spank_plugin/procedures/prologue.h"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

namespace lbf::procedures {
namespace {

struct Decoded {
  ZydisDecodedInstruction instruction;
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

const ZydisDecoder& decoder() {
  static const ZydisDecoder kDecoder = [] {
    ZydisDecoder made;
    ZydisDecoderInit(&made, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    return made;
  }();
  return kDecoder;
}

bool decode(std::span<const std::uint8_t> code, Decoded& out) {
  return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder(), code.data(), code.size(), &out.instruction, out.operands));
}

bool is_call(const ZydisDecodedInstruction& instruction) {
  return instruction.meta.category == ZYDIS_CATEGORY_CALL;
}
bool is_relative_branch(const ZydisDecodedInstruction& instruction) {
  return instruction.raw.imm[0].is_relative != 0;
}
bool is_rip_relative(const ZydisDecodedInstruction& instruction) {
  return (instruction.attributes & ZYDIS_ATTRIB_HAS_MODRM) != 0 && instruction.raw.modrm.mod == 0 &&
         instruction.raw.modrm.rm == 5;
}
// Control never reaches what stands behind it.
bool ends_flow(const ZydisDecodedInstruction& instruction) {
  return instruction.meta.category == ZYDIS_CATEGORY_UNCOND_BR || instruction.meta.category == ZYDIS_CATEGORY_RET ||
         instruction.mnemonic == ZYDIS_MNEMONIC_UD2 || instruction.mnemonic == ZYDIS_MNEMONIC_HLT;
}
bool is_padding(const ZydisDecodedInstruction& instruction) {
  return instruction.mnemonic == ZYDIS_MNEMONIC_NOP || instruction.mnemonic == ZYDIS_MNEMONIC_INT3;
}
std::uint64_t branch_target(const ZydisDecodedInstruction& instruction, std::uint64_t address) {
  return address + instruction.length + static_cast<std::uint64_t>(instruction.raw.imm[0].value.s);
}
std::uint64_t memory_target(const ZydisDecodedInstruction& instruction, std::uint64_t address) {
  return address + instruction.length + static_cast<std::uint64_t>(instruction.raw.disp.value);
}

Error refused(std::string why) {
  return Error{ErrorCode::kInvalidInput, std::move(why)};
}

std::optional<std::int32_t> distance(std::uint64_t from, std::uint64_t to) {
  const auto difference = static_cast<std::int64_t>(to - from);
  if (difference < std::numeric_limits<std::int32_t>::min() || difference > std::numeric_limits<std::int32_t>::max()) {
    return std::nullopt;
  }
  return static_cast<std::int32_t>(difference);
}

template <class T>
void append(std::vector<std::uint8_t>& bytes, T value) {
  std::uint8_t raw[sizeof(T)];
  std::memcpy(raw, &value, sizeof(T));
  bytes.insert(bytes.end(), raw, raw + sizeof(T));
}

// push of a 64-bit constant that changes no register and no flag: push its low half, then write the high one.
void append_push(std::vector<std::uint8_t>& bytes, std::uint64_t value) {
  bytes.push_back(0x68);
  append(bytes, static_cast<std::uint32_t>(value));
  bytes.insert(bytes.end(), {0xc7, 0x44, 0x24, 0x04});
  append(bytes, static_cast<std::uint32_t>(value >> 32));
}

bool uses_stack_pointer(const Decoded& decoded) {
  for (unsigned i = 0; i < decoded.instruction.operand_count_visible; ++i) {
    const ZydisDecodedOperand& operand = decoded.operands[i];
    if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY &&
        (operand.mem.base == ZYDIS_REGISTER_RSP || operand.mem.index == ZYDIS_REGISTER_RSP)) {
      return true;
    }
    if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER && operand.reg.value == ZYDIS_REGISTER_RSP) return true;
  }
  return false;
}

// Jumps in one piece of the procedure that lead into (first, last), where they cannot stay; or to its entry:
// true.
Result<bool> look_for_jumps(const CodePiece& piece, std::uint64_t entry, std::uint64_t first, std::uint64_t last) {
  bool to_entry = false;
  Decoded decoded;
  for (std::size_t offset = 0; offset < piece.code.size();) {
    const std::uint64_t address = piece.address + offset;
    if (!decode(piece.code.subspan(offset), decoded)) {
      return refused("it holds bytes that are no instructions, so jumps into its first instructions cannot be seen");
    }
    const ZydisDecodedInstruction& instruction = decoded.instruction;
    if (is_relative_branch(instruction)) {
      const std::uint64_t target = branch_target(instruction, address);
      if (target > first && target < last) return refused("it jumps into its first instructions");
      if ((target == entry || target == first) && !is_call(instruction)) to_entry = true;
    }
    offset += instruction.length;
  }
  return to_entry;
}

void mark(std::span<PatchedRange> ranges, std::uint64_t target) {
  const auto behind = std::upper_bound(ranges.begin(), ranges.end(), target,
                                       [](std::uint64_t t, const PatchedRange& range) { return t < range.first; });
  if (behind == ranges.begin()) return;
  PatchedRange& range = *std::prev(behind);
  if (target > range.first && target < range.last) range.is_target = true;
}

}  // namespace

void mark_jump_targets(std::span<const std::uint8_t> code, std::uint64_t address, std::span<PatchedRange> ranges) {
  if (ranges.empty()) return;
  for (std::size_t i = 0; i + kJumpBytes <= code.size(); ++i) {
    const std::uint8_t byte = code[i];
    const bool is_jump = byte == 0xe8 || byte == 0xe9 || (byte >= 0x80 && byte <= 0x8f && i > 0 && code[i - 1] == 0x0f);
    if (!is_jump) continue;
    std::int32_t relative;
    std::memcpy(&relative, &code[i + 1], sizeof(relative));
    const std::uint64_t target =
        address + i + kJumpBytes + static_cast<std::uint64_t>(static_cast<std::int64_t>(relative));
    if (target > ranges.front().first && target < ranges.back().last) mark(ranges, target);
  }
}

void mark_short_jump_targets(std::span<const std::uint8_t> code, std::uint64_t address,
                             std::span<PatchedRange> ranges) {
  Decoded decoded;
  for (std::size_t offset = 0; offset < code.size() && decode(code.subspan(offset), decoded);) {
    if (is_relative_branch(decoded.instruction)) mark(ranges, branch_target(decoded.instruction, address + offset));
    offset += decoded.instruction.length;
  }
}

Result<std::vector<std::uint8_t>> jump(std::uint64_t from, std::uint64_t to) {
  const auto relative = distance(from + kJumpBytes, to);
  if (!relative) return Error{ErrorCode::kLimit, "no memory within 2 GiB of its code is free"};
  std::vector<std::uint8_t> bytes{0xe9};
  append(bytes, *relative);
  return bytes;
}

Result<Prologue> plan_prologue(const ProcedureCode& procedure) {
  if (procedure.size == 0) return refused("its symbol has no size");
  if (procedure.code.size() < procedure.size) return refused("its code cannot be read");
  Prologue plan;
  Decoded decoded;
  std::size_t offset = 0;
  if (decode(procedure.code, decoded) && decoded.instruction.mnemonic == ZYDIS_MNEMONIC_ENDBR64) {
    offset = decoded.instruction.length;
  }
  const std::size_t begin = offset;
  plan.address = procedure.address + begin;
  bool ended = false;
  while (offset - begin < kJumpBytes) {
    if (offset >= procedure.code.size()) return refused("it is shorter than a jump (5 bytes)");
    if (!decode(procedure.code.subspan(offset), decoded)) {
      return refused("its first bytes are no instructions");
    }
    const ZydisDecodedInstruction& instruction = decoded.instruction;
    const std::size_t next = offset + instruction.length;
    if (offset >= procedure.size || ended) {
      if (!is_padding(instruction)) return refused("it is shorter than a jump (5 bytes)");
    } else {
      if (next > procedure.size) return refused("its first bytes are no instructions");
      plan.starts.push_back(static_cast<std::uint8_t>(offset - begin));
      switch (instruction.mnemonic) {
        case ZYDIS_MNEMONIC_LOOP:
        case ZYDIS_MNEMONIC_LOOPE:
        case ZYDIS_MNEMONIC_LOOPNE:
        case ZYDIS_MNEMONIC_JCXZ:
        case ZYDIS_MNEMONIC_JECXZ:
        case ZYDIS_MNEMONIC_JRCXZ:
        case ZYDIS_MNEMONIC_XBEGIN:
          return refused(std::string("it begins with ") + ZydisMnemonicGetString(instruction.mnemonic) +
                         ", which cannot be moved");
        default:
          break;
      }
      if (is_call(instruction)) {
        if (next - begin < kJumpBytes) return refused("it calls in its first 5 bytes");
        if (instruction.meta.branch_type == ZYDIS_BRANCH_TYPE_FAR || uses_stack_pointer(decoded)) {
          return refused("it begins with a call that cannot be moved");
        }
      }
      ended = ends_flow(instruction);
    }
    offset = next;
  }
  const std::uint64_t last = procedure.address + offset;
  for (const std::uint64_t other : procedure.other_entries) {
    if (other > begin && other < offset) return refused("another procedure begins in its first instructions");
  }
  plan.replaced.assign(procedure.code.begin() + static_cast<std::ptrdiff_t>(begin),
                       procedure.code.begin() + static_cast<std::ptrdiff_t>(offset));
  const auto look_in = [&](const CodePiece& piece) {
    return look_for_jumps(piece, procedure.address, plan.address, last);
  };
  Result<bool> loops = look_in({procedure.address, procedure.code.first(procedure.size)});
  if (!loops) return loops.error();
  plan.loops_to_entry = *loops;
  for (const CodePiece& piece : procedure.pieces) {
    loops = look_in(piece);
    if (!loops) return loops.error();
    plan.loops_to_entry |= *loops;
  }
  return plan;
}

Result<RelocatedPrologue> relocate(const Prologue& prologue, std::uint64_t target) {
  RelocatedPrologue out;
  const Error too_far{ErrorCode::kLimit,
                      "what its first instructions refer to is more than 2 GiB away from free memory"};
  const auto append_relative = [&](std::uint64_t to) {  // rel32 that ends the instruction
    const auto relative = distance(target + out.bytes.size() + 4, to);
    if (relative) append(out.bytes, *relative);
    return relative.has_value();
  };
  bool reaches_end = true;
  for (const std::uint8_t start : prologue.starts) {
    Decoded decoded;
    const std::span<const std::uint8_t> rest = std::span(prologue.replaced).subspan(start);
    if (!decode(rest, decoded)) return refused("its first bytes are no instructions");
    const ZydisDecodedInstruction& instruction = decoded.instruction;
    const std::uint64_t address = prologue.address + start;
    const std::uint64_t behind = address + instruction.length;
    out.starts.push_back(static_cast<std::uint16_t>(out.bytes.size()));
    reaches_end = !ends_flow(instruction);
    const std::span<const std::uint8_t> raw = rest.first(instruction.length);
    if (is_call(instruction)) {
      // Returns into the procedure itself, not to here: an unwinder knows that place.
      append_push(out.bytes, behind);
      reaches_end = false;
      if (is_relative_branch(instruction)) {
        out.bytes.push_back(0xe9);
        if (!append_relative(branch_target(instruction, address))) return too_far;
        continue;
      }
      const std::size_t at = out.bytes.size();
      out.bytes.insert(out.bytes.end(), raw.begin(), raw.end());
      std::uint8_t& modrm = out.bytes[at + instruction.raw.modrm.offset];  // ff /2 call -> ff /4 jmp
      modrm = static_cast<std::uint8_t>((modrm & ~0x38u) | 4u << 3);
      if (is_rip_relative(instruction)) {
        const auto relative = distance(target + out.bytes.size(), memory_target(instruction, address));
        if (!relative) return too_far;
        std::memcpy(&out.bytes[at + instruction.raw.disp.offset], &*relative, 4);
      }
      continue;
    }
    if (is_relative_branch(instruction)) {
      if (instruction.meta.category == ZYDIS_CATEGORY_COND_BR) {
        // 7x rel8 and 0f 8x rel32: the condition is the low half byte.
        out.bytes.push_back(0x0f);
        out.bytes.push_back(static_cast<std::uint8_t>(0x80 | (instruction.opcode & 0x0f)));
      } else if (instruction.meta.category == ZYDIS_CATEGORY_UNCOND_BR) {
        out.bytes.push_back(0xe9);
      } else {
        return refused("its first instructions cannot be moved");
      }
      if (!append_relative(branch_target(instruction, address))) return too_far;
      continue;
    }
    if (is_padding(instruction) && instruction.mnemonic == ZYDIS_MNEMONIC_NOP) continue;
    const std::size_t at = out.bytes.size();
    out.bytes.insert(out.bytes.end(), raw.begin(), raw.end());
    if (is_rip_relative(instruction)) {
      const auto relative = distance(target + out.bytes.size(), memory_target(instruction, address));
      if (!relative) return too_far;
      std::memcpy(&out.bytes[at + instruction.raw.disp.offset], &*relative, 4);
    }
  }
  if (reaches_end) {
    out.bytes.push_back(0xe9);
    if (!append_relative(prologue.address + prologue.replaced.size())) return too_far;
  }
  return out;
}

}  // namespace lbf::procedures
