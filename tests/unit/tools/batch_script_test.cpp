// Batch scripts whose #SBATCH lines are changed to what is advised: every form in which sbatch takes an option, what is
// left alone, and what is refused.
#include "tools/advise/batch_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lbf::tools::batch_script_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

const ScriptAdvice kAdvice{.flags = "--partition=main -N2 -n8 --distribution=cyclic --ntasks-per-node=4",
                           .ranks = 8,
                           .ranks_per_node = 4,
                           .cores = 4,
                           .predicted_s = 600};

ChangedScript changed(const std::string& script, const ScriptAdvice& advice = kAdvice) {
  auto result = change_script(script, "job.sh", advice);
  EXPECT_TRUE(result.ok()) << result.error().message;
  return result.ok() ? std::move(*result) : ChangedScript();
}

std::string refusal(const std::string& script, const ScriptAdvice& advice = kAdvice) {
  const auto result = change_script(script, "job.sh", advice);
  return result.ok() ? "not refused" : result.error().message;
}

TEST(BatchScript, OptionsKeepTheirFormAndTheirPlace) {
  const ChangedScript out = changed(
      "#!/bin/bash -l\n"
      "# a remark\n"
      "#SBATCH -N 4 -n8   --ntasks-per-node=2 # two each\n"
      "#SBATCH --job-name \"my -N 9 job\"\n"
      "#SBATCH -p debug --distribution block:cyclic\n"
      "\n"
      "cd /scratch\n"
      "#SBATCH -N 16\n"
      "srun ./app -N 5\n");
  EXPECT_EQ(out.text,
            "#!/bin/bash -l\n"
            "# a remark\n"
            "#SBATCH -N 2 -n8   --ntasks-per-node=4 # two each\n"
            "#SBATCH --job-name \"my -N 9 job\"\n"
            "#SBATCH -p main --distribution cyclic:cyclic\n"
            "\n"
            "cd /scratch\n"
            "#SBATCH -N 16\n"
            "srun ./app -N 5\n");
  EXPECT_THAT(out.changes, ElementsAre("job.sh:3: --nodes=4 becomes -N 2",
                                       "job.sh:3: --ntasks-per-node=2 becomes --ntasks-per-node=4",
                                       "job.sh:5: --partition=debug becomes -p main",
                                       "job.sh:5: --distribution=block:cyclic becomes --distribution cyclic:cyclic"));
  EXPECT_THAT(out.notes, IsEmpty());
}

TEST(BatchScript, EveryFormOfAnOption) {
  for (const auto& [before, after] : {std::pair{"-N4", "-N2"},
                                      {"-N 4", "-N 2"},
                                      {"-N\t4-8", "-N 2"},
                                      {"--nodes=4", "--nodes=2"},
                                      {"--nodes 4", "--nodes 2"},
                                      {"--nodes=\"4\"", "--nodes=2"}}) {
    const std::string rest = " -n 8 --part=main -m cyclic --ntasks-per-node 4\n";
    EXPECT_EQ(changed(std::string("#!/bin/sh\n#SBATCH ") + before + rest).text,
              std::string("#!/bin/sh\n#SBATCH ") + after + rest)
        << before;
  }
}

TEST(BatchScript, WhatIsMissingIsAdded) {
  const ChangedScript out = changed("#!/bin/sh\n\n#SBATCH -t 1:00:00\nsrun ./app");
  EXPECT_EQ(out.text,
            "#!/bin/sh\n\n#SBATCH -t 1:00:00\n#SBATCH --partition=main\n#SBATCH --nodes=2\n#SBATCH --ntasks=8\n"
            "#SBATCH --distribution=cyclic\n#SBATCH --ntasks-per-node=4\nsrun ./app\n");
  EXPECT_EQ(out.changes.front(), "job.sh: --partition=main added");
  EXPECT_THAT(changed("#!/bin/sh\nsrun ./app\n").text, StartsWith("#!/bin/sh\n#SBATCH --partition=main\n"));
}

TEST(BatchScript, WhatTheAdviceDoesWithoutGoes) {
  ScriptAdvice one_node = kAdvice;
  one_node.flags = "-N1 -n8";
  const ChangedScript out =
      changed("#!/bin/sh\n#SBATCH -N2\n#SBATCH --ntasks-per-node=4\n#SBATCH -O -n8\nsrun ./app\n", one_node);
  EXPECT_EQ(out.text, "#!/bin/sh\n#SBATCH -N1\n#SBATCH  -n8\nsrun ./app\n");
  EXPECT_THAT(out.changes, ElementsAre("job.sh:2: --nodes=2 becomes -N1", "job.sh:3: --ntasks-per-node=4 removed",
                                       "job.sh:4: --overcommit removed"));
}

TEST(BatchScript, ThreadsReachTheSrunsInside) {
  ScriptAdvice threads = kAdvice;
  threads.flags = "-N2 -n8 --cpus-per-task=2 --export=ALL,OMP_NUM_THREADS=2";
  EXPECT_THAT(changed("#!/bin/sh\n#SBATCH -n8 -c1\nsrun ./app\n", threads).text,
              AllOf(HasSubstr("#SBATCH -n8 -c2\n"),
                    HasSubstr("#SBATCH --export=ALL,OMP_NUM_THREADS=2,SRUN_CPUS_PER_TASK=2\n")));
  const ChangedScript out =
      changed("#!/bin/sh\n#SBATCH --export=NONE\nexport OMP_NUM_THREADS=8\nsrun ./app\n", threads);
  EXPECT_THAT(out.text, HasSubstr("#SBATCH --export=NONE\n"));
  EXPECT_THAT(out.notes,
              ElementsAre(HasSubstr("job.sh:2: --export=NONE stays"), StartsWith("job.sh:3: OMP_NUM_THREADS is set")));
  EXPECT_THAT(changed("#!/bin/sh\nexport OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK\nsrun ./app\n", threads).notes,
              IsEmpty());
}

TEST(BatchScript, LayoutsInsideTheCommandsAreNamed) {
  const auto notes_of = [](const std::string& command) { return changed("#!/bin/sh\n" + command + "\n").notes; };
  EXPECT_THAT(notes_of("srun --exclusive -n 8 --mpi pmix ./app"), ElementsAre(StartsWith("job.sh:2: srun has -n 8,")));
  EXPECT_THAT(notes_of("time /usr/bin/srun --label \\\n  --nodes=4 ./app"),
              ElementsAre(AllOf(StartsWith("job.sh:2: "), HasSubstr("--nodes=4"))));
  EXPECT_THAT(notes_of("mpirun -np 8 ./app"), ElementsAre(HasSubstr("mpirun has -np 8")));
  for (const char* follows : {"srun ./app -n 8", "srun -n $SLURM_NTASKS ./app", "mpirun -np \"$SLURM_NTASKS\" ./app",
                              "# srun -n 8", "srun --exclusive --mpi pmix ./app -N 3"}) {
    EXPECT_THAT(notes_of(follows), IsEmpty()) << follows;
  }
}

TEST(BatchScript, WhatStaysAndMayMatterIsNamed) {
  EXPECT_THAT(changed("#!/bin/sh\n#SBATCH --mem=8G -t 5\nsrun ./app\n").notes,
              ElementsAre("job.sh:2: --mem=8G stays; it is for each node, which gets up to 4 ranks",
                          AllOf(StartsWith("job.sh:2: --time=5 stays"), HasSubstr("give it more time"))));
  const std::string as_advised =
      "#!/bin/sh\n#SBATCH -pmain -N2 -n8 -mcyclic --ntasks-per-node=4 --mem=8G\nsrun ./app\n";
  EXPECT_THAT(changed(as_advised).notes, IsEmpty()) << "nothing is changed";
  EXPECT_EQ(changed(as_advised).text, as_advised);
}

TEST(BatchScript, WhatItCannotDoIsRefusedWithTheLine) {
  EXPECT_THAT(refusal(""), StartsWith("job.sh:1: no batch script"));
  EXPECT_THAT(refusal("srun ./app\n"), StartsWith("job.sh:1: no batch script"));
  EXPECT_THAT(refusal("#!/bin/sh\n#SBATCH -n1\n#SBATCH hetjob\n#SBATCH -n2\n"),
              StartsWith("job.sh:3: a heterogeneous"));
  EXPECT_EQ(refusal("#!/bin/sh\n#SBATCH -n 16\n"),
            "job.sh:2: --ntasks=16, but the run had 8 ranks: was it this script's?");
  for (const char* fixed : {"-w n[1-4]", "--nodelist=n1", "--ntasks-per-socket=2", "-F hosts", "-B2"}) {
    EXPECT_THAT(refusal(std::string("#!/bin/sh\n#SBATCH ") + fixed + "\n"), HasSubstr("decides what lbf-advise would"));
  }
  EXPECT_THAT(refusal("#!/bin/sh\n#SBATCH -c 2\n"),
              HasSubstr("the advised 4 ranks of a node would need more than its 4"));
  ScriptAdvice mapped = kAdvice;
  mapped.flags = "-N2 -n8 --distribution=arbitrary --nodelist=./hosts";
  EXPECT_THAT(refusal("#!/bin/sh\n", mapped), HasSubstr("needs a host file"));
}

}  // namespace
}  // namespace lbf::tools::batch_script_test
