// How a step's tasks ended: lines that the plugin writes and the relay reads.
#include "protocol/task_ends.h"

#include <gtest/gtest.h>

namespace lbf::task_ends_test {
namespace {

using protocol::TaskEnds;

TEST(TaskEnds, EachLineIsRead) {
  const TaskEnds ends{{{12, 1792}, {13, 9}}, "its job's time limit"};
  EXPECT_EQ(encode(ends), "task 12 1792\ntask 13 9\nkilled its job's time limit\n");
  EXPECT_EQ(encode(TaskEnds{}), "");
  TaskEnds read;
  for (const char* line : {"task 12 1792", "task 13 9", "killed its job's time limit"}) protocol::take_line(line, read);
  EXPECT_EQ(encode(read), encode(ends));
}

TEST(TaskEnds, WhatBreaksTheFormChangesNothing) {
  TaskEnds read;
  for (const char* line : {"", "task", "task ", "task 1", "task 1 ", "task x 1", "task 1 x", "task 1 2 3",
                           "task 99999999999 1", "kill", "other 1 2"}) {
    protocol::take_line(line, read);
    EXPECT_EQ(encode(read), "") << line;
  }
}

}  // namespace
}  // namespace lbf::task_ends_test
