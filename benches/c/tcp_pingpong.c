/* A bare spinning TCP ping-pong over the loopback: the reference the harness is compared with.
 *
 *   tcp_pingpong BYTES ITERATIONS WARMUP CPU0 CPU1
 *
 * Prints the time of each round trip in nanoseconds. The parent is the client, pinned to CPU0;
 * the child is the server, pinned to CPU1. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void die(const char *what) { perror(what); exit(1); }

static void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  if (sched_setaffinity(0, sizeof set, &set)) die("sched_setaffinity");
}

static void send_all(int fd, const char *p, size_t n) {
  while (n) {
    ssize_t k = send(fd, p, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (k >= 0) p += k, n -= k;
    else if (errno != EAGAIN) die("send");
  }
}

static void recv_all(int fd, char *p, size_t n) {
  while (n) {
    ssize_t k = recv(fd, p, n, MSG_DONTWAIT);
    if (k > 0) p += k, n -= k;
    else if (k == 0 || errno != EAGAIN) die("recv");
  }
}

int main(int argc, char **argv) {
  if (argc != 6) return fprintf(stderr, "usage: tcp_pingpong BYTES ITERATIONS WARMUP CPU0 CPU1\n"), 2;
  size_t bytes = atol(argv[1]);
  long iterations = atol(argv[2]), warmup = atol(argv[3]);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t length = sizeof address;
  int listener = socket(AF_INET, SOCK_STREAM, 0), on = 1;
  if (bind(listener, (void *)&address, length) || listen(listener, 1) ||
      getsockname(listener, (void *)&address, &length)) die("listen");
  char *buffer = calloc(1, bytes);
  pid_t child = fork();
  if (child < 0) die("fork");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    pin(atoi(argv[5]));
    int fd = accept(listener, 0, 0);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    for (long i = 0; i < warmup + iterations; i++) recv_all(fd, buffer, bytes), send_all(fd, buffer, bytes);
    _exit(0);
  }
  pin(atoi(argv[4]));
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(fd, (void *)&address, length)) die("connect");
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  struct timespec before, after;
  double *times = calloc(iterations, sizeof *times);
  for (long i = -warmup; i < iterations; i++) {
    clock_gettime(CLOCK_MONOTONIC, &before);
    send_all(fd, buffer, bytes), recv_all(fd, buffer, bytes);
    clock_gettime(CLOCK_MONOTONIC, &after);
    if (i >= 0) times[i] = (after.tv_sec - before.tv_sec) * 1e9 + after.tv_nsec - before.tv_nsec;
  }
  for (long i = 0; i < iterations; i++) printf("%.0f\n", times[i]);
  waitpid(child, 0, 0);
  return 0;
}
