// TSP: the shortest tour through a number of cities, by branch and bound, a master and workers (TSE Figs. 7,
// 8).
//
// The master sends each worker the distances and which beginnings of tours are his (every n-th pair of second
// and third city), and takes the best tour that each found. The papers do not say how they distribute the
// work; their 6 messages of together 2.3 KB for 4 processes (TSE Fig. 8) are what this needs: one message to
// each of 3 workers and one back. So the distribution is fixed, a worker prunes with the best length he
// himself knows (at first that of the nearest-neighbour tour), and the work does not depend on timing: every
// configuration of a number of ranks does the same. Another number of ranks prunes differently.
//
// Check: the length equals the optimum, which the master finds by dynamic programming (Held, Karp) while the
// others work, and the tour visits every city once and has that length.
//
// usage: tsp S|W|A
#include "accuracy.h"

enum { kMaxCities = 20, kTask = 1, kTour = 2 };

struct problem {
  int cities;
  int distance[kMaxCities][kMaxCities];
};
struct tour {
  int length;
  int city[kMaxCities];
};

static struct problem make_problem(int cities) {
  struct problem problem = {.cities = cities};
  double x[kMaxCities], y[kMaxCities];
  uint64_t state = 2026;
  for (int i = 0; i < cities; ++i) {
    x[i] = lcg_uniform(state = lcg_step(state));
    y[i] = lcg_uniform(state = lcg_step(state));
  }
  for (int i = 0; i < cities; ++i) {
    for (int j = 0; j < cities; ++j) problem.distance[i][j] = (int)(1e4 * hypot(x[i] - x[j], y[i] - y[j]) + 0.5);
  }
  return problem;
}

static int length_of(const struct problem* problem, const int* city) {
  int length = problem->distance[city[problem->cities - 1]][city[0]];
  for (int i = 1; i < problem->cities; ++i) length += problem->distance[city[i - 1]][city[i]];
  return length;
}

static struct tour nearest_neighbour(const struct problem* problem) {
  struct tour tour = {0};
  int visited[kMaxCities] = {1};
  for (int i = 1; i < problem->cities; ++i) {
    int nearest = 0;
    for (int j = 1; j < problem->cities; ++j) {
      const int* from = problem->distance[tour.city[i - 1]];
      if (!visited[j] && (nearest == 0 || from[j] < from[nearest])) nearest = j;
    }
    visited[nearest] = 1;
    tour.city[i] = nearest;
  }
  tour.length = length_of(problem, tour.city);
  return tour;
}

// Every tour that begins with path[0 .. depth), in the order of the cities; a path that is no shorter than
// the best tour is given up.
static void extend(const struct problem* problem, int* path, int depth, unsigned visited, int length,
                   struct tour* best) {
  const int last = path[depth - 1];
  if (depth == problem->cities) {
    if (length + problem->distance[last][0] < best->length) {
      best->length = length + problem->distance[last][0];
      memcpy(best->city, path, sizeof best->city);
    }
    return;
  }
  for (int next = 1; next < problem->cities; ++next) {
    if (visited >> next & 1) continue;
    const int longer = length + problem->distance[last][next];
    if (longer >= best->length) continue;
    path[depth] = next;
    extend(problem, path, depth + 1, visited | 1u << next, longer, best);
  }
}

static struct tour search(const struct problem* problem, int worker, int workers) {
  struct tour best = nearest_neighbour(problem);
  int beginning = 0;
  for (int second = 1; second < problem->cities; ++second) {
    for (int third = 1; third < problem->cities; ++third) {
      if (third == second || beginning++ % workers != worker) continue;
      int path[kMaxCities] = {0, second, third};
      extend(problem, path, 3, 1u | 1u << second | 1u << third,
             problem->distance[0][second] + problem->distance[second][third], &best);
    }
  }
  return best;
}

// The optimum: shortest[set][last] is the shortest path from city 0 through all of `set` that ends in `last`.
static int optimum(const struct accuracy_run* run, const struct problem* problem) {
  const int others = problem->cities - 1;
  const unsigned sets = 1u << others;
  int* shortest = accuracy_alloc(run, (size_t)sets * others, sizeof *shortest);
  for (unsigned set = 1; set < sets; ++set) {
    for (int last = 0; last < others; ++last) {
      if (!(set >> last & 1)) continue;
      const unsigned before = set & ~(1u << last);
      int length = before == 0 ? problem->distance[0][last + 1] : INT32_MAX;
      for (int previous = 0; previous < others; ++previous) {
        if (!(before >> previous & 1)) continue;
        const int candidate = shortest[before * others + previous] + problem->distance[previous + 1][last + 1];
        if (candidate < length) length = candidate;
      }
      shortest[set * others + last] = length;
    }
  }
  int length = INT32_MAX;
  for (int last = 0; last < others; ++last) {
    const int candidate = shortest[(sets - 1) * others + last] + problem->distance[last + 1][0];
    if (candidate < length) length = candidate;
  }
  free(shortest);
  return length;
}

static int is_tour(const struct problem* problem, const struct tour* tour) {
  unsigned visited = 0;
  for (int i = 0; i < problem->cities; ++i) visited |= 1u << tour->city[i];
  return visited == (1u << problem->cities) - 1 && length_of(problem, tour->city) == tour->length;
}

int main(int argc, char** argv) {
  const struct accuracy_run run = accuracy_begin(&argc, &argv, "tsp", "");
  if (run.ranks < 2) accuracy_fail(&run, "TSP needs a master and at least one worker: 2 ranks");
  const int problem_ints = sizeof(struct problem) / sizeof(int), tour_ints = sizeof(struct tour) / sizeof(int);
  struct problem problem;
  struct tour best = {.length = INT32_MAX};
  int right = 1;
  if (run.rank == 0) {
    problem = make_problem((int)accuracy_by_size(&run, 13, 15, 16));
    for (int worker = 1; worker < run.ranks; ++worker) {
      MPI_Send(&problem, problem_ints, MPI_INT, worker, kTask, MPI_COMM_WORLD);
    }
    const int shortest = optimum(&run, &problem);
    for (int worker = 1; worker < run.ranks; ++worker) {
      struct tour tour;
      MPI_Recv(&tour, tour_ints, MPI_INT, worker, kTour, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (tour.length < best.length) best = tour;
    }
    right = best.length == shortest && is_tour(&problem, &best);
  } else {
    MPI_Recv(&problem, problem_ints, MPI_INT, 0, kTask, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    best = search(&problem, run.rank - 1, run.ranks - 1);
    MPI_Send(&best, tour_ints, MPI_INT, 0, kTour, MPI_COMM_WORLD);
  }
  return accuracy_end(&run, right, "%d", best.length);
}
