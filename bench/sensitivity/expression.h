// Expression: a third kind of clock for the replay (predictor/engine/replay/composed.h), with which the engine's own
// code writes the linear program of the graph that it walks: one variable for each maximum, and a row for each of its
// sides.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "predictor/engine/replay/composed.h"

namespace lbf::bench {

struct Row {  // variable >= from + offset
  std::uint32_t variable = 0;
  std::uint32_t from = 0;
  engine::Composed offset;
};

struct LinearProgram {
  std::uint32_t variables = 0;
  std::vector<Row> rows;
};

// Where maxima are written to. Clocks are copied by the million and cannot name it.
inline LinearProgram* written = nullptr;

// A variable (0: none) and what comes on top of it.
struct Expression {
  std::uint32_t variable = 0;
  engine::Composed offset;
  Seconds value = 0;  // on the target as it is

  Expression() = default;
  explicit Expression(const engine::Composed& constant) : offset(constant), value(constant.value) {}

  // REQUIRES: of two sides one is constant.
  friend Expression operator+(const Expression& a, const Expression& b) {
    Expression sum = a;
    sum.variable = std::max(a.variable, b.variable);
    sum.offset += b.offset;
    sum.value += b.value;
    return sum;
  }
  // REQUIRES: b is constant.
  friend Expression operator-(const Expression& a, const Expression& b) {
    Expression rest = a;
    rest.offset -= b.offset;
    rest.value -= b.value;
    return rest;
  }
  friend bool operator<(const Expression& a, const Expression& b) { return a.value < b.value; }
  // No parameter makes b larger.
  friend bool covers(const Expression& a, const Expression& b) {
    const auto& more = a.offset.terms;
    return (a.variable == b.variable || b.variable == 0) &&
           std::equal(more.begin(), more.end(), b.offset.terms.begin(), [](double x, double y) { return x >= y; });
  }
  friend Expression max(const Expression& a, const Expression& b) {
    if (covers(a, b)) return a;
    if (covers(b, a)) return b;
    Expression larger;
    larger.variable = ++written->variables;
    larger.value = std::max(a.value, b.value);
    for (const Expression* side : {&a, &b}) written->rows.push_back({larger.variable, side->variable, side->offset});
    return larger;
  }
  friend Seconds value_of(const Expression& clock) { return clock.value; }
  friend void add(Expression& clock, engine::Term term, Seconds seconds) {
    engine::add(clock.offset, term, seconds);
    clock.value += seconds;
  }
};

}  // namespace lbf::bench
