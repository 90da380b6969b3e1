#include "event/procedure_table.h"

#include <gtest/gtest.h>

namespace lbf::procedure_table_test {
namespace {

TEST(ProcedureTable, TheSameNameIsTheSameProcedureOnAllRanks) {
  ProcedureTable table;
  ASSERT_TRUE(table.define(0, 7, "F").ok());
  ASSERT_TRUE(table.define(1, 7, "G").ok());
  ASSERT_TRUE(table.define(1, 0, "F").ok());
  ASSERT_TRUE(table.define(1, 0, "F").ok());  // said again
  EXPECT_EQ(table.names(), (std::vector<std::string>{"F", "G"}));
  EXPECT_EQ(table.translate(0, 7), 0u);
  EXPECT_EQ(table.translate(1, 7), 1u);
  EXPECT_EQ(table.translate(1, 0), 0u);
  EXPECT_EQ(table.find("G"), 1u);
  EXPECT_FALSE(table.translate(0, 0).has_value());
  EXPECT_FALSE(table.translate(0, 1 << 16).has_value());
  EXPECT_FALSE(table.find("H").has_value());
}

TEST(ProcedureTable, WhatCannotBe) {
  ProcedureTable table;
  ASSERT_TRUE(table.define(0, 7, "F").ok());
  EXPECT_FALSE(table.define(0, 7, "G").ok());
  EXPECT_FALSE(table.define(0, 1 << 16, "H").ok());
  EXPECT_FALSE(table.define(0, 8, "").ok());
  EXPECT_FALSE(table.define(0, 8, std::string(kMaxProcedureNameBytes + 1, 'x')).ok());
  EXPECT_EQ(table.names().front(), "F");
}

}  // namespace
}  // namespace lbf::procedure_table_test