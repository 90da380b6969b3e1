// IS, integer sort, after the NAS kernel of that name: a bucket sort of keys that are spread over the ranks.
//
// Each iteration makes new keys (bell-shaped: the mean of four random numbers), counts them by bucket
// (MPI_Allreduce), gives each rank a range of buckets with about the same number of keys, sends the keys
// there (MPI_Alltoall of the counts, MPI_Alltoallv), and each rank sorts what it got (merge sort).
//
// Check, after the last iteration: each rank's keys ascend, none is smaller than the greatest of the rank
// before, and they are the same keys as before, by count and by a sum of scrambled keys; that sum is written
// down here.
//
// usage: is S|W|A
#include "accuracy.h"

enum { kKeyBits = 24, kBucketBits = 10, kBuckets = 1 << kBucketBits };

static uint32_t bucket_of(uint32_t key) {
  return key >> (kKeyBits - kBucketBits);
}

static void make_keys(const struct accuracy_run* run, int iteration, size_t count, uint32_t* keys) {
  const uint64_t first = ((uint64_t)iteration * run->ranks + run->rank) * count;
  uint64_t state = lcg_jump(577215664, 4 * first);
  for (size_t i = 0; i < count; ++i) {
    uint64_t sum = 0;
    for (int part = 0; part < 4; ++part) sum += (state = lcg_step(state)) >> (64 - kKeyBits);
    keys[i] = (uint32_t)(sum / 4);
  }
}

// The first bucket of each rank, so that each gets about as many keys; of rank `ranks`: kBuckets.
static void share_out(const int64_t* in_bucket, int ranks, int* first_bucket) {
  int64_t total = 0, before = 0;
  for (int bucket = 0; bucket < kBuckets; ++bucket) total += in_bucket[bucket];
  int rank = 0;
  for (int bucket = 0; bucket < kBuckets; ++bucket) {
    while (rank < ranks && before * ranks >= total * rank) first_bucket[rank++] = bucket;
    before += in_bucket[bucket];
  }
  while (rank <= ranks) first_bucket[rank++] = kBuckets;
}

// Sorts keys[0 .. count); `other` has as much room. Returns where the sorted keys are: in one of the two.
static uint32_t* merge_sort(uint32_t* keys, uint32_t* other, size_t count) {
  for (size_t width = 1; width < count; width *= 2) {
    for (size_t start = 0; start < count; start += 2 * width) {
      const size_t middle = start + width < count ? start + width : count;
      const size_t end = start + 2 * width < count ? start + 2 * width : count;
      size_t left = start, right = middle;
      for (size_t out = start; out < end; ++out) {
        const int take_left = left < middle && (right >= end || keys[left] <= keys[right]);
        other[out] = take_left ? keys[left++] : keys[right++];
      }
    }
    uint32_t* const sorted = other;
    other = keys;
    keys = sorted;
  }
  return keys;
}

// The same for each order of the same keys.
static uint64_t scrambled_sum(const uint32_t* keys, size_t count) {
  uint64_t sum = 0;
  for (size_t i = 0; i < count; ++i) sum += lcg_step(keys[i]) ^ (lcg_step(keys[i]) >> 29);
  return sum;
}

struct sorter {
  const struct accuracy_run* run;
  size_t my_count;             // keys that a rank makes
  size_t room;                 // keys that a rank can take
  uint32_t *keys, *by_bucket;  // made by this rank
  uint32_t *taken, *spare;     // of this rank's buckets
  int* first_bucket;           // by rank
  int *send_count, *send_start, *take_count, *take_start;
};

// Sorts sorter->keys over all ranks; *sorted are this rank's, and their number is returned.
static size_t sort_all(struct sorter* sorter, uint32_t** sorted) {
  const int ranks = sorter->run->ranks;
  int64_t mine[kBuckets] = {0}, all[kBuckets];
  for (size_t i = 0; i < sorter->my_count; ++i) ++mine[bucket_of(sorter->keys[i])];
  MPI_Allreduce(mine, all, kBuckets, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  share_out(all, ranks, sorter->first_bucket);

  size_t next[kBuckets], place = 0;
  for (int bucket = 0; bucket < kBuckets; ++bucket) {
    next[bucket] = place;
    place += (size_t)mine[bucket];
  }
  for (int rank = 0; rank < ranks; ++rank) {
    const int first = sorter->first_bucket[rank], end = sorter->first_bucket[rank + 1];
    sorter->send_start[rank] = first < kBuckets ? (int)next[first] : (int)place;
    sorter->send_count[rank] = (end < kBuckets ? (int)next[end] : (int)place) - sorter->send_start[rank];
  }
  for (size_t i = 0; i < sorter->my_count; ++i) {
    sorter->by_bucket[next[bucket_of(sorter->keys[i])]++] = sorter->keys[i];
  }

  MPI_Alltoall(sorter->send_count, 1, MPI_INT, sorter->take_count, 1, MPI_INT, MPI_COMM_WORLD);
  size_t count = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    sorter->take_start[rank] = (int)count;
    count += (size_t)sorter->take_count[rank];
  }
  if (count > sorter->room) accuracy_fail(sorter->run, "one rank's buckets have more keys than there is room for");
  MPI_Alltoallv(sorter->by_bucket, sorter->send_count, sorter->send_start, MPI_UINT32_T, sorter->taken,
                sorter->take_count, sorter->take_start, MPI_UINT32_T, MPI_COMM_WORLD);
  *sorted = merge_sort(sorter->taken, sorter->spare, count);
  return count;
}

// True if this rank's keys ascend and continue where the rank before ended. Collective.
static int ascends(const struct accuracy_run* run, const uint32_t* sorted, size_t count) {
  for (size_t i = 1; i < count; ++i) {
    if (sorted[i - 1] > sorted[i]) return 0;
  }
  int64_t greatest = count > 0 ? (int64_t)sorted[count - 1] : -1, before = -1;
  MPI_Exscan(&greatest, &before, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
  return run->rank == 0 || count == 0 || before <= sorted[0];
}

int main(int argc, char** argv) {
  const struct accuracy_run run = accuracy_begin(&argc, &argv, "is", "");
  if ((run.ranks & (run.ranks - 1)) != 0) accuracy_fail(&run, "IS needs a power of two of ranks");
  const size_t all_keys = (size_t)accuracy_by_size(&run, 1 << 16, 1 << 19, 1 << 21);
  const int iterations = (int)accuracy_by_size(&run, 10, 40, 20);
  const uint64_t expected = run.size == 'S'   ? UINT64_C(0xac8fb830717539e4)
                            : run.size == 'W' ? UINT64_C(0x79bd5f0a7dfe0180)
                                              : UINT64_C(0x916a4343d5bbfcc6);

  struct sorter sorter = {.run = &run, .my_count = all_keys / run.ranks};
  sorter.room = run.ranks == 1 ? all_keys : 2 * sorter.my_count;
  sorter.keys = accuracy_alloc(&run, sorter.my_count, sizeof(uint32_t));
  sorter.by_bucket = accuracy_alloc(&run, sorter.my_count, sizeof(uint32_t));
  sorter.taken = accuracy_alloc(&run, sorter.room, sizeof(uint32_t));
  sorter.spare = accuracy_alloc(&run, sorter.room, sizeof(uint32_t));
  sorter.first_bucket = accuracy_alloc(&run, run.ranks + 1, sizeof(int));
  sorter.send_count = accuracy_alloc(&run, run.ranks, sizeof(int));
  sorter.send_start = accuracy_alloc(&run, run.ranks, sizeof(int));
  sorter.take_count = accuracy_alloc(&run, run.ranks, sizeof(int));
  sorter.take_start = accuracy_alloc(&run, run.ranks, sizeof(int));

  uint32_t* sorted = NULL;
  size_t count = 0;
  for (int iteration = 0; iteration < iterations; ++iteration) {
    make_keys(&run, iteration, sorter.my_count, sorter.keys);
    count = sort_all(&sorter, &sorted);
  }
  const int in_order = ascends(&run, sorted, count);
  uint64_t mine[3] = {scrambled_sum(sorter.keys, sorter.my_count), scrambled_sum(sorted, count), count}, all[3];
  MPI_Allreduce(mine, all, 3, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  const int right = in_order && all[0] == all[1] && all[2] == all_keys && all[0] == expected;
  return accuracy_end(&run, right, "%016llx", (unsigned long long)all[0]);
}
