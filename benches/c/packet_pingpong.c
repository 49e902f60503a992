/* A bare spinning ping-pong of Ethernet frames by a packet socket with a ring: the reference of direct/packet.
 *
 *   packet_pingpong INTERFACE MAC BYTES ITERATIONS WARMUP CPU first|second
 *
 * One runs on each host, with the other's Ethernet address; the first prints the time of each round trip in
 * nanoseconds. Frames are of an EtherType for experiments (IEEE 802), so no protocol of the kernel has them. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { TYPE = 0x88b5, SLOT = 2048, SLOTS = 256, LIMIT_S = 20 };

static char *ring;
static int fd, next;

static void die(const char *what) { perror(what); exit(1); }

static void set(int option, int value) {
  if (setsockopt(fd, SOL_PACKET, option, &value, sizeof value)) die("setsockopt");
}

static int take(void) {
  struct tpacket2_hdr *head = (void *)(ring + next * SLOT);
  if (!(__atomic_load_n(&head->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER)) return 0;
  __atomic_store_n(&head->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
  next = (next + 1) % SLOTS;
  return 1;
}

int main(int argc, char **argv) {
  if (argc != 8) return fprintf(stderr, "usage: packet_pingpong INTERFACE MAC BYTES ITERATIONS WARMUP CPU first|second\n"), 2;
  size_t length = sizeof(struct ether_header) + atol(argv[3]);
  long iterations = atol(argv[4]), warmup = atol(argv[5]);
  int first = !strcmp(argv[7], "first");
  if (length > SLOT - 128) return fprintf(stderr, "packet_pingpong: at most 1900 bytes\n"), 2;
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(atoi(argv[6]), &cpus);
  if (sched_setaffinity(0, sizeof cpus, &cpus)) die("sched_setaffinity");
  alarm(LIMIT_S); /* of both ends, the other may be gone */

  if ((fd = socket(AF_PACKET, SOCK_RAW, 0)) < 0) die("socket");
  struct tpacket_req request = {SLOT * SLOTS, 1, SLOT, SLOTS};
  set(PACKET_VERSION, TPACKET_V2), set(PACKET_QDISC_BYPASS, 1), set(PACKET_IGNORE_OUTGOING, 1);
  if (setsockopt(fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof request)) die("PACKET_RX_RING");
  ring = mmap(0, SLOT * SLOTS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
  if (ring == MAP_FAILED) die("mmap");
  struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(TYPE), .sll_ifindex = if_nametoindex(argv[1])};
  if (bind(fd, (void *)&at, sizeof at)) die("bind");

  unsigned char frame[SLOT] = {0}, *to = frame;
  if (sscanf(argv[2], "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", to, to + 1, to + 2, to + 3, to + 4, to + 5) != 6) die("MAC");
  struct ifreq own = {0};
  strncpy(own.ifr_name, argv[1], IFNAMSIZ - 1);
  if (ioctl(fd, SIOCGIFHWADDR, &own)) die("SIOCGIFHWADDR");
  memcpy(frame + 6, own.ifr_hwaddr.sa_data, 6);
  ((struct ether_header *)frame)->ether_type = htons(TYPE);

  double *times = calloc(iterations, sizeof *times);
  struct timespec before, after;
  puts("ready"), fflush(stdout);
  if (first && getchar() == EOF) die("told to begin"); /* the other end is ready */
  for (long i = -warmup; i < iterations; i++) {
    clock_gettime(CLOCK_MONOTONIC, &before);
    if (first && send(fd, frame, length, 0) < 0) die("send");
    while (!take()) {}
    if (!first && send(fd, frame, length, 0) < 0) die("send");
    clock_gettime(CLOCK_MONOTONIC, &after);
    if (i >= 0) times[i] = (after.tv_sec - before.tv_sec) * 1e9 + after.tv_nsec - before.tv_nsec;
  }
  for (long i = 0; first && i < iterations; i++) printf("%.0f\n", times[i]);
  return 0;
}
