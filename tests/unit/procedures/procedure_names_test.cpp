#include "spank_plugin/procedures/procedure_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lbf::procedures::procedure_names_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

bool means(const char* written, const char* linkage) {
  const std::vector<NamePattern> patterns = parse_patterns(written);
  return patterns.size() == 1 && matches(patterns[0], spellings_of(linkage));
}

TEST(Spellings, OfC) {
  const Spellings c = spellings_of("compute_forces");
  EXPECT_EQ(c.display, "compute_forces");
  EXPECT_FALSE(c.fortran);
  EXPECT_EQ(c.clone, "");
}

TEST(Spellings, OfCxxWithAndWithoutParameters) {
  // grid::Solver::step(double) const
  EXPECT_EQ(spellings_of("_ZNK4grid6Solver4stepEd").display, "grid::Solver::step(double) const");
  EXPECT_TRUE(means("grid::Solver::step", "_ZNK4grid6Solver4stepEd"));
  EXPECT_TRUE(means("grid::Solver::step(double) const", "_ZNK4grid6Solver4stepEd"));
  EXPECT_TRUE(means("_ZNK4grid6Solver4stepEd", "_ZNK4grid6Solver4stepEd"));
  EXPECT_FALSE(means("step", "_ZNK4grid6Solver4stepEd"));
  EXPECT_FALSE(means("grid::Solver::step(int)", "_ZNK4grid6Solver4stepEd"));
}

TEST(Spellings, OfTemplates) {
  // long grid::scale<long>(long, int)
  const char* const kScale = "_ZN4grid5scaleIlEET_S1_i";
  EXPECT_TRUE(means("grid::scale", kScale));
  EXPECT_TRUE(means("grid::scale<long>", kScale));
  EXPECT_TRUE(means("long grid::scale<long>(long, int)", kScale));
  EXPECT_FALSE(means("grid::scale<double>", kScale));
  EXPECT_EQ(spellings_of(kScale).display, "grid::scale<long>(long, int)");
  EXPECT_FALSE(means("long*", kScale));  // the return type is not part of the name
}

TEST(Spellings, OfOperators) {
  EXPECT_THAT(spellings_of("_ZN1AclEi").all, Contains("A::operator()"));  // A::operator()(int)
  EXPECT_THAT(spellings_of("_ZlsR1AS0_").all, Contains("operator<<"));    // operator<<(A&, A&)
  EXPECT_THAT(spellings_of("_ZN1AixEi").all, Contains("A::operator[]"));
  EXPECT_TRUE(means("operator*", "_Zml1AS_"));
  EXPECT_FALSE(means("operator*", "_Zpl1AS_"));
}

TEST(Spellings, OfAnonymousNamespacesAndLambdas) {
  EXPECT_THAT(spellings_of("_ZN12_GLOBAL__N_15solveEi").all, Contains("(anonymous namespace)::solve"));
  // main::{lambda(int)#1}::operator()(int) const
  EXPECT_THAT(spellings_of("_ZZ4mainENKUliE_clEi").all, Contains("main::{lambda(int)#1}::operator()"));
}

TEST(Spellings, OfFortran) {
  EXPECT_EQ(spellings_of("__heat_MOD_relax").display, "heat::relax");
  EXPECT_TRUE(means("heat::relax", "__heat_MOD_relax"));
  EXPECT_TRUE(means("HEAT::Relax", "__heat_MOD_relax"));
  EXPECT_TRUE(means("heat::relax", "heat_mp_relax_"));
  EXPECT_TRUE(means("outside", "outside_"));
  EXPECT_TRUE(means("OUTSIDE", "outside_"));
  EXPECT_TRUE(means("with_underscore", "with_underscore__"));
  EXPECT_TRUE(means("inner", "inner.0"));
  EXPECT_FALSE(means("OUTSIDE", "outside"));  // C tells upper from lower case
}

TEST(Spellings, CopiesThatTheCompilerMadeHaveTheProceduresName) {
  EXPECT_TRUE(means("solve", "solve.constprop.0"));
  EXPECT_TRUE(means("grid::Solver::step", "_ZNK4grid6Solver4stepEd.isra.0"));
  EXPECT_EQ(spellings_of("solve.part.0").clone, "part");
  EXPECT_EQ(spellings_of("solve.constprop.0.cold").clone, "cold");
  EXPECT_EQ(spellings_of("solve.lto_priv.3").clone, "lto_priv");
}

TEST(Patterns, Wildcards) {
  EXPECT_TRUE(means("compute_*", "compute_forces"));
  EXPECT_TRUE(means("grid::*", "_ZNK4grid6Solver4stepEd"));
  EXPECT_TRUE(means("?olve", "solve"));
  EXPECT_FALSE(means("?olve", "resolve"));
  EXPECT_TRUE(means("HEAT::*", "__heat_MOD_relax"));
  EXPECT_FALSE(means("[a-z]*", "solve"));  // brackets are characters: operator[]
}

bool is_for_several(const char* written) {
  return parse_patterns(written).at(0).wildcards;
}

TEST(Patterns, AStarInsideBracketsIsAPointers) {
  for (const char* const one :
       {"f(double*)", "ns::f(char const*)", "libfoo.so:f(int*, ns::A**)", "f(void (*)(int))", "scale<double*>",
        "scale<int*>::g", "double* make<int>(int)", "operator*", "A::operator*(A*)", "A::operator->*",
        "A::operator()(int*)", "A::operator[](char*) const", "std::ostream& operator<< <A*>(std::ostream&, A*)",
        "main::{lambda(int*)#1}::operator()"}) {
    EXPECT_FALSE(is_for_several(one)) << one;
  }
  for (const char* const several : {"f*", "ns::*", "*", "?olve", "ns::*(double*)", "*<double*>", "f(double*)::*",
                                    "scale<*", "f(*", "f(double?)", "my_operator*", "operator_*", "A::operator<*",
                                    "A::operator**", "libfoo.so:*", "[a-z]*", "(anonymous namespace)::*"}) {
    EXPECT_TRUE(is_for_several(several)) << several;
  }
}

TEST(Patterns, AParameterListWithAPointerMeansOneFunction) {
  EXPECT_TRUE(means("f(double*)", "_Z1fPd"));
  EXPECT_FALSE(means("f(double*)", "_Z1fdPi")) << "f(double, int*)";
  EXPECT_FALSE(means("f(double*)", "_Z1fPdS_")) << "f(double*, double*)";
  EXPECT_TRUE(means("f(double*, double*)", "_Z1fPdS_"));
  EXPECT_TRUE(means("ns::f(char const*)", "_ZN2ns1fEPKc"));
  EXPECT_FALSE(means("ns::f(char const*)", "_ZN2ns1fEPKcS1_")) << "ns::f(char const*, char const*)";
  EXPECT_TRUE(means("grid::scale<long*>", "_ZN4grid5scaleIPlEET_S2_i"));
  EXPECT_TRUE(means("long* grid::scale<long*>(long*, int)", "_ZN4grid5scaleIPlEET_S2_i"));
  EXPECT_FALSE(means("grid::scale<long*>", "_ZN4grid5scaleIlEET_S1_i"));
  EXPECT_TRUE(means("A::operator*(A*)", "_ZN1AmlEPS_"));
  // Wildcards beside it are still some.
  EXPECT_TRUE(means("ns::*(char const*)", "_ZN2ns1fEPKc"));
  EXPECT_FALSE(means("ns::*(char const*)", "_ZN2ns1fEi"));
  EXPECT_TRUE(means("f(*", "_Z1fPd"));
  // A conversion's type is not in brackets: the name itself is found all the same.
  EXPECT_TRUE(means("A::operator double*()", "_ZN1AcvPdEv"));
}

TEST(Patterns, ListIsSplitOutsideOfBrackets) {
  const auto list = parse_patterns(" solve , f(int, long),g<a,b>::h, operator<,operator(),x ");
  std::vector<std::string> texts;
  for (const auto& item : list) texts.push_back(item.text);
  EXPECT_THAT(texts, ElementsAre("solve", "f(int, long)", "g<a,b>::h", "operator<", "operator()", "x"));
  EXPECT_THAT(parse_patterns(" , ,"), IsEmpty());
}

TEST(Patterns, LibraryBeforeAColon) {
  const auto list = parse_patterns("libfoo.so:sym,mod::proc,libm:grid::solve");
  EXPECT_EQ(list[0].module, "libfoo.so");
  EXPECT_EQ(list[0].name, "sym");
  EXPECT_EQ(list[1].module, "");
  EXPECT_EQ(list[1].name, "mod::proc");
  EXPECT_EQ(list[2].module, "libm");
  EXPECT_EQ(list[2].name, "grid::solve");
  EXPECT_TRUE(matches_module(list[0], "/usr/lib/libfoo.so.1.2"));
  EXPECT_TRUE(matches_module(list[2], "/usr/lib/libm-2.36.so"));
  EXPECT_FALSE(matches_module(list[0], "/usr/lib/libfood.so"));
}

TEST(NearNames, SwapsMissesAndQualification) {
  EXPECT_EQ(edit_distance("solve", "slove", 5), 1u);
  EXPECT_EQ(edit_distance("solve", "solve", 5), 0u);
  EXPECT_EQ(edit_distance("abc", "xyz", 2), 3u);
  EXPECT_EQ(edit_distance("", "abc", 5), 3u);
  const std::vector<std::string> known{"compute_forces", "grid::Solver::solve(int)", "write_output", "solved"};
  EXPECT_THAT(near_names("compute_force", known), ElementsAre("compute_forces"));
  EXPECT_THAT(near_names("slove", known), Contains("grid::Solver::solve(int)"));
  EXPECT_THAT(near_names("SOLVED", known, 1), ElementsAre("solved"));
  EXPECT_THAT(near_names("entirely_else", known), IsEmpty());
}

TEST(NeverMeasured, ByName) {
  EXPECT_NE(never_measured("setjmp"), nullptr);
  EXPECT_NE(never_measured("MPI_Send"), nullptr);
  EXPECT_NE(never_measured("_Unwind_Resume"), nullptr);
  EXPECT_EQ(never_measured("compute"), nullptr);
}

// Whatever stands in a symbol table or on a command line: no crash, and a name is always one of its own
// spellings.
TEST(Spellings, OfAnyBytes) {
  std::uint64_t state = 7;
  const std::string letters = "_ZN1fooEv.<>()[],: *&$0123456789MOD_mp_operator~{}#\xff\x01";
  for (int i = 0; i < 20000; ++i) {
    std::string text = i % 3 == 0 ? "_ZN" : "";
    const std::size_t length = (state >> 33) % 24;
    for (std::size_t k = 0; k < length; ++k) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      text += letters[(state >> 33) % letters.size()];
    }
    state = state * 6364136223846793005u + 1442695040888963407u;
    const Spellings spellings = spellings_of(text);
    if (!text.empty()) {
      EXPECT_THAT(spellings.all, Contains(text)) << text;
    }
    for (const NamePattern& pattern : parse_patterns(text)) matches(pattern, spellings);
    near_names(text, {text, "foo"});
  }
}

}  // namespace
}  // namespace lbf::procedures::procedure_names_test