// Prologues: by hand, and of every function of real libraries: what is moved must decode to the same.
#include "spank_plugin/procedures/prologue.h"

#include <Zydis/Zydis.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "spank_plugin/procedures/loaded_symbols.h"
#include "spank_plugin/procedures/memory_map.h"

namespace lbf::procedures::prologue_test {
namespace {

using testing::HasSubstr;
using Bytes = std::vector<std::uint8_t>;
constexpr std::uint64_t kAt = 0x400000;
constexpr std::uint64_t kTarget = 0x500000;

Result<Prologue> plan(const Bytes& code, std::size_t size = 0, std::vector<std::uint64_t> others = {}) {
  ProcedureCode procedure;
  procedure.address = kAt;
  procedure.size = size != 0 ? size : code.size();
  procedure.code = code;
  procedure.other_entries = others;
  return plan_prologue(procedure);
}

std::string why_not(const Result<Prologue>& plan) {
  return plan ? "" : plan.error().message;
}

TEST(Prologue, WholeInstructionsAreReplaced) {
  const Bytes code{0x55, 0x48, 0x89, 0xe5, 0x48,
                   0x83, 0xec, 0x10, 0xc9, 0xc3};  // push rbp; mov; sub rsp,16; leave; ret
  const auto prologue = plan(code);
  ASSERT_TRUE(prologue) << why_not(prologue);
  EXPECT_EQ(prologue->replaced, Bytes(code.begin(), code.begin() + 8));
  EXPECT_EQ(prologue->starts, (Bytes{0, 1, 4}));
  const auto moved = relocate(*prologue, kTarget);
  ASSERT_TRUE(moved);
  Bytes expected(code.begin(), code.begin() + 8);
  const Bytes back = *jump(kTarget + 8, kAt + 8);
  expected.insert(expected.end(), back.begin(), back.end());
  EXPECT_EQ(moved->bytes, expected);
}

TEST(Prologue, EndbrStays) {
  const auto prologue = plan({0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x83, 0xec, 0x08, 0x31, 0xc0, 0xc3});
  ASSERT_TRUE(prologue) << why_not(prologue);
  EXPECT_EQ(prologue->address, kAt + 4);
  EXPECT_EQ(prologue->replaced.size(), 6u);
}

TEST(Prologue, NopsForPatchingAreDropped) {
  const auto prologue = plan({0x90, 0x90, 0x90, 0x90, 0x90, 0xc3});  // -fpatchable-function-entry=5
  ASSERT_TRUE(prologue);
  const auto moved = relocate(*prologue, kTarget);
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->bytes, *jump(kTarget, kAt + 5));
}

TEST(Prologue, ShortProceduresUsePaddingOrAreRefused) {
  EXPECT_TRUE(plan({0xc3, 0x66, 0x0f, 0x1f, 0x44, 0, 0}, 1));  // ret, nop
  EXPECT_TRUE(plan({0xc3, 0xcc, 0xcc, 0xcc, 0xcc}, 1));
  EXPECT_THAT(why_not(plan({0xc3, 0x31, 0xc0, 0xc3, 0x90}, 1)), HasSubstr("shorter than a jump"));
  EXPECT_THAT(why_not(plan({0xc3, 0x90}, 1)), HasSubstr("shorter than a jump"));
  EXPECT_THAT(why_not(plan({0xc3, 0x0f, 0x1f, 0x44, 0, 0}, 1, {3})), HasSubstr("another procedure begins"));
}

TEST(Prologue, JumpsIntoIt) {
  // xor eax,eax; inc eax; cmp eax,9; jl -5 (into the replaced bytes); ret
  EXPECT_THAT(why_not(plan({0x31, 0xc0, 0xff, 0xc0, 0x83, 0xf8, 0x09, 0x7c, 0xf9, 0xc3})),
              HasSubstr("jumps into its first"));
  // To its very beginning: a loop that the hook must tell from a call.
  const auto loops = plan({0x48, 0xff, 0xc7, 0x48, 0x83, 0xff, 0x09, 0x7c, 0xf7, 0xc3});
  ASSERT_TRUE(loops) << why_not(loops);
  EXPECT_TRUE(loops->loops_to_entry);
  // A recursive call is none.
  const auto recursive = plan({0x48, 0x83, 0xec, 0x08, 0x31, 0xc0, 0xe8, 0xf5, 0xff, 0xff, 0xff, 0xc3});
  ASSERT_TRUE(recursive);
  EXPECT_FALSE(recursive->loops_to_entry);
}

TEST(Prologue, CallsReturnIntoTheProcedure) {
  const auto prologue = plan({0xe8, 0x0b, 0, 0, 0, 0xc3});  // call kAt+0x10
  ASSERT_TRUE(prologue);
  const auto moved = relocate(*prologue, kTarget);
  ASSERT_TRUE(moved);
  // push kAt+5; jmp kAt+0x10
  Bytes expected{0x68, 0x05, 0, 0x40, 0, 0xc7, 0x44, 0x24, 0x04, 0, 0, 0, 0};
  const Bytes to = *jump(kTarget + 13, kAt + 0x10);
  expected.insert(expected.end(), to.begin(), to.end());
  EXPECT_EQ(moved->bytes, expected);
  EXPECT_THAT(why_not(plan({0xff, 0xd0, 0x90, 0x90, 0x90, 0xc3})), HasSubstr("calls in its first 5 bytes"));
}

TEST(Prologue, WhatCannotBeMoved) {
  EXPECT_THAT(why_not(plan({0xe3, 0x05, 0x90, 0x90, 0x90, 0x90, 0xc3, 0x90, 0xc3})), HasSubstr("jrcxz"));
  EXPECT_THAT(why_not(plan({0x06, 0x06, 0x06, 0x06, 0x06, 0x06})), HasSubstr("no instructions"));
  EXPECT_THAT(why_not(plan({}, 0)), HasSubstr("no size"));
  EXPECT_EQ(jump(kAt, kAt + (std::uint64_t{1} << 32)).error().code, ErrorCode::kLimit);
}

TEST(Prologue, RefersRelativeToItself) {
  // mov rax, [rip+0x100]; ret
  const auto prologue = plan({0x48, 0x8b, 0x05, 0x00, 0x01, 0, 0, 0xc3});
  ASSERT_TRUE(prologue);
  const auto moved = relocate(*prologue, kTarget);
  ASSERT_TRUE(moved);
  std::int32_t distance;
  std::memcpy(&distance, moved->bytes.data() + 3, 4);
  EXPECT_EQ(kTarget + 7 + static_cast<std::uint64_t>(distance), kAt + 7 + 0x100);
  EXPECT_FALSE(relocate(*prologue, kAt + (std::uint64_t{1} << 33)));
}

TEST(Prologue, JumpsOfOtherProceduresAreFound) {
  // At 0x400100: jmp 0x400003; at 0x400200: jne 0x400021; call 0x400040 (an entry: fine).
  const auto at = [](std::uint64_t address, Bytes opcode, std::uint64_t to) {
    const auto relative = static_cast<std::int32_t>(to - (address + opcode.size() + 4));
    Bytes out = opcode;
    for (int i = 0; i < 4; ++i)
      out.push_back(static_cast<std::uint8_t>(static_cast<std::uint32_t>(relative) >> (8 * i)));
    return out;
  };
  Bytes code(0x300, 0x90);
  const auto put = [&](std::uint64_t address, const Bytes& bytes) {
    std::copy(bytes.begin(), bytes.end(), code.begin() + static_cast<std::ptrdiff_t>(address - kAt));
  };
  put(kAt + 0x100, at(kAt + 0x100, {0xe9}, kAt + 3));
  put(kAt + 0x200, at(kAt + 0x200, {0x0f, 0x85}, kAt + 0x21));
  put(kAt + 0x210, at(kAt + 0x210, {0xe8}, kAt + 0x40));
  std::vector<PatchedRange> ranges{
      {kAt, kAt + 5}, {kAt + 0x20, kAt + 0x26}, {kAt + 0x40, kAt + 0x45}, {kAt + 0x60, kAt + 0x66}};
  mark_jump_targets(code, kAt, ranges);
  EXPECT_TRUE(ranges[0].is_target);
  EXPECT_TRUE(ranges[1].is_target);
  EXPECT_FALSE(ranges[2].is_target);
  EXPECT_FALSE(ranges[3].is_target);
  const Bytes neighbour{0x31, 0xc0, 0xeb, 0xe0};  // xor eax,eax; jmp -32
  mark_short_jump_targets(neighbour, kAt + 0x80, ranges);
  EXPECT_TRUE(ranges[3].is_target);
}

// --- every function of what this test has loaded

struct Text {
  std::string text;  // with absolute targets
  ZydisDecodedInstruction instruction;
};
bool disassemble(std::span<const std::uint8_t> code, std::uint64_t address, Text& out) {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code.data(), code.size(), &out.instruction, operands)))
    return false;
  ZydisFormatter formatter;
  ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
  ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_FORCE_SIZE, ZYAN_FALSE);
  char text[256];
  ZydisFormatterFormatInstruction(&formatter, &out.instruction, operands, out.instruction.operand_count_visible, text,
                                  sizeof(text), address, nullptr);
  out.text = text;
  return true;
}

TEST(Prologue, OfEveryLoadedFunctionDecodesToTheSame) {
  LoadedSymbols symbols;
  ASSERT_TRUE(symbols.read(""));
  const std::vector<Mapping> map = read_memory_map();
  std::size_t moved_count = 0;
  std::size_t refused = 0;
  std::size_t calls = 0;
  for (std::size_t s = 0; s < symbols.symbols().size(); ++s) {
    const LoadedSymbol& symbol = symbols.symbols()[s];
    const LoadedModule& module = symbols.modules()[symbol.module];
    bool readable = false;
    for (const Mapping& mapping : map) {
      readable |= mapping.readable && mapping.executable && symbol.address >= mapping.begin &&
                  symbol.address + symbol.size <= mapping.end;
    }
    if (!readable || symbol.size == 0) continue;
    ProcedureCode code;
    code.address = symbol.address;
    code.size = symbol.size;
    code.code = {reinterpret_cast<const std::uint8_t*>(symbol.address), symbol.size};
    const Result<Prologue> prologue = plan_prologue(code);
    if (!prologue) {
      ++refused;
      EXPECT_FALSE(prologue.error().message.empty());
      continue;
    }
    EXPECT_GE(prologue->replaced.size(), kJumpBytes);
    const std::uint64_t target = (module.end + 0xfff) & ~std::uint64_t{0xfff};
    const Result<RelocatedPrologue> relocated = relocate(*prologue, target);
    ASSERT_TRUE(relocated) << symbol.linkage << ": " << relocated.error().message;
    ASSERT_EQ(relocated->starts.size(), prologue->starts.size());
    ++moved_count;
    for (std::size_t i = 0; i < prologue->starts.size(); ++i) {
      const std::uint64_t old_at = prologue->address + prologue->starts[i];
      const std::uint64_t new_at = target + relocated->starts[i];
      Text before;
      Text after;
      ASSERT_TRUE(disassemble(std::span(prologue->replaced).subspan(prologue->starts[i]), old_at, before));
      if (before.instruction.mnemonic == ZYDIS_MNEMONIC_NOP) continue;
      const std::span<const std::uint8_t> rest = std::span(relocated->bytes).subspan(relocated->starts[i]);
      ASSERT_TRUE(disassemble(rest, new_at, after)) << symbol.linkage;
      if (before.instruction.meta.category == ZYDIS_CATEGORY_CALL) {
        ++calls;
        EXPECT_EQ(after.instruction.mnemonic, ZYDIS_MNEMONIC_PUSH);
        continue;
      }
      // A short jump became a long one; "short" and "near" are not in the text.
      EXPECT_EQ(before.text, after.text) << symbol.linkage << " in " << module.file;
    }
  }
  std::printf("%zu moved, %zu refused, %zu begin with a call\n", moved_count, refused, calls);
  EXPECT_GT(moved_count, 5000u);
  EXPECT_LT(refused, moved_count / 10);
}

// Random bytes: refused, or moved; never more.
TEST(Prologue, OfAnyBytes) {
  std::uint64_t state = 1;
  for (int i = 0; i < 100000; ++i) {
    Bytes code(1 + i % 40);
    for (std::uint8_t& byte : code) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      byte = static_cast<std::uint8_t>(state >> 56);
    }
    const auto prologue = plan(code, 1 + (state >> 20) % code.size());
    if (!prologue) continue;
    const auto moved = relocate(*prologue, kTarget);
    if (moved) {
      EXPECT_LE(moved->bytes.size(), 120u);
    }
  }
}

}  // namespace
}  // namespace lbf::procedures::prologue_test