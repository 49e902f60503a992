/* A bare ping-pong through shared memory: the reference the harness is compared with.
 *
 *   shm_pingpong BYTES SAMPLES BATCH WARMUP LINES CPU0 CPU1
 *
 * LINES cache lines for each direction, used one after the other, each with a sequence flag and at most
 * 56 bytes of payload. The reader says after every quarter of them how far it has got, and the writer
 * goes no further than that: nothing is overwritten unread. With one line nobody says anything, for a
 * ping-pong never has two messages under way. Prints the time of each sample of BATCH round trips in
 * nanoseconds. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST = 128 };
struct line { _Alignas(64) atomic_ulong flag; char payload[56]; };
struct ring { _Alignas(128) atomic_ulong done; _Alignas(128) struct line line[MOST]; };
static unsigned long lines; /* used, a power of two */
static unsigned long seen;  /* what the writer knows of `done` */

static void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (sched_setaffinity(0, sizeof set, &set)) perror("sched_setaffinity"), exit(1);
}

static void put(struct ring *ring, unsigned long sequence, const char *from, size_t bytes) {
  struct line *line = &ring->line[sequence & (lines - 1)];
  if (lines > 1)
    while (sequence - seen > lines) seen = atomic_load_explicit(&ring->done, memory_order_acquire);
  memcpy(line->payload, from, bytes);
  atomic_store_explicit(&line->flag, sequence, memory_order_release);
}

static void take(struct ring *ring, unsigned long sequence, char *to, size_t bytes) {
  struct line *line = &ring->line[sequence & (lines - 1)];
  while (atomic_load_explicit(&line->flag, memory_order_acquire) != sequence) __builtin_ia32_pause();
  memcpy(to, line->payload, bytes);
  if (lines > 1 && (sequence & (lines / 4 - 1)) == 0)
    atomic_store_explicit(&ring->done, sequence, memory_order_release);
}

int main(int argc, char **argv) {
  if (argc != 8)
    return fprintf(stderr, "usage: shm_pingpong BYTES SAMPLES BATCH WARMUP LINES CPU0 CPU1\n"), 2;
  size_t bytes = atol(argv[1]);
  if (bytes > 56) return fprintf(stderr, "at most 56 bytes\n"), 2;
  long samples = atol(argv[2]), batch = atol(argv[3]), warmup = atol(argv[4]);
  lines = atol(argv[5]);
  if (lines != 1 && (lines < 4 || lines > MOST || lines & (lines - 1)))
    return fprintf(stderr, "lines: 1, 4, 8, ... %d\n", MOST), 2;
  struct ring *rings = mmap(0, 2 * sizeof(struct ring), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  char buffer[56] = {0};
  pid_t child = fork();
  if (child < 0) return perror("fork"), 1;
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin(atoi(argv[7]));
    for (long i = 1; i <= warmup + samples * batch; i++) {
      take(&rings[0], i, buffer, bytes);
      put(&rings[1], i, buffer, bytes);
    }
    _exit(0);
  }
  pin(atoi(argv[6]));
  struct timespec before, after;
  double *times = calloc(samples, sizeof *times);
  long i = 1;
  for (; i <= warmup; i++) put(&rings[0], i, buffer, bytes), take(&rings[1], i, buffer, bytes);
  for (long s = 0; s < samples; s++) {
    clock_gettime(CLOCK_MONOTONIC, &before);
    for (long b = 0; b < batch; b++, i++) {
      put(&rings[0], i, buffer, bytes);
      take(&rings[1], i, buffer, bytes);
    }
    clock_gettime(CLOCK_MONOTONIC, &after);
    times[s] = (after.tv_sec - before.tv_sec) * 1e9 + after.tv_nsec - before.tv_nsec;
  }
  for (long s = 0; s < samples; s++) printf("%.0f\n", times[s]);
  waitpid(child, 0, 0);
  return 0;
}
