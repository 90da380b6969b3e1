// What a fuzz target gives to the standalone driver (standalone_driver.cpp) besides libFuzzer's entry point.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

// Valid inputs, from which the driver makes others by mutation.
std::vector<std::string> fuzz_seeds();

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

// A property that must hold for every input: both drivers see the abort and keep the input.
inline void fuzz_require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "fuzz: broken property: %s\n", what);
  std::abort();
}
