/*
 * vnettest: what a VI gives between two processes, in the manner of M-VIA's program of that name.
 *
 *     vnettest [-s] [ROUNDS] [DEVICE]           two processes of this host
 *     vnettest [-s] ROUNDS DEVICE -             one of two hosts, which serves the other
 *     vnettest [-s] ROUNDS DEVICE HOST          the other, which measures, with the same ROUNDS
 *
 * Prints, for each way of waiting, half a round trip of 8 bytes, and for each way of moving data the rate at
 * 1 MiB; with -s half a round trip for each size from 4 B to 1 MiB, polling. Every message and every write is
 * checked.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <vipl.h>

enum { BATCH = 16, SMALL = 8, LARGE = 1 << 20, WINDOW = 4, SLOTS = 2 * WINDOW, PATIENCE_MS = 20000 };

/* How a process waits for a descriptor. */
enum way { POLL, BLOCK, QUEUE };

static void check(VIP_RETURN code, const char *call)
{
    if (code != VIP_SUCCESS) {
        fprintf(stderr, "vnettest: %s returned %d\n", call, (int)code);
        exit(1);
    }
}
#define CHECK(call) check((call), #call)

static void require(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "vnettest: %s\n", what);
        exit(1);
    }
}

struct end {
    VIP_NIC_HANDLE nic;
    VIP_VI_HANDLE vi;
    VIP_CQ_HANDLE cq;
    VIP_MEM_HANDLE memory;
    VIP_DESCRIPTOR *descriptors; /* SLOTS of them, then the data */
    unsigned char *data;         /* WINDOW times LARGE */
    size_t bytes;                /* of both */
    int file;                    /* which they are a mapping of */
    VIP_UINT64 remote;           /* the other end's data, for RDMA */
    VIP_MEM_HANDLE remote_memory;
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

/* The host that serves, by its name or address; none if it is this one. */
static char *server_host;

/* An address: the host that serves, and a discriminator. */
static VIP_NET_ADDRESS *address(VIP_NIC_HANDLE nic, const char *discriminator)
{
    VIP_NIC_ATTRIBUTES attributes;
    CHECK(VipQueryNic(nic, &attributes));
    size_t more = strlen(discriminator);
    VIP_NET_ADDRESS *made = malloc(sizeof *made + attributes.NicAddressLen + more);
    require(made != NULL, "no memory");
    made->HostAddressLen = attributes.NicAddressLen;
    memcpy(made->HostAddress, attributes.LocalNicAddress, attributes.NicAddressLen);
    if (server_host != NULL) {
        CHECK(VipNSInit(nic, NULL));
        CHECK(VipNSGetHostByName(nic, server_host, made, 0));
        CHECK(VipNSShutdown(nic));
    }
    made->DiscriminatorLen = (VIP_UINT16)more;
    memcpy(made->HostAddress + made->HostAddressLen, discriminator, more);
    return made;
}

static VIP_DESCRIPTOR *fill(struct end *end, int slot, int operation, int at, VIP_UINT32 length)
{
    VIP_DESCRIPTOR *descriptor = &end->descriptors[slot];
    memset(descriptor, 0, sizeof *descriptor);
    VIP_DESCRIPTOR_SEGMENT *segment = descriptor->DS;
    if (operation == VIP_CONTROL_OP_RDMAWRITE) {
        segment->Remote.Data.AddressBits = end->remote + (VIP_UINT64)at * LARGE;
        segment->Remote.Handle = end->remote_memory;
        segment++;
    }
    segment->Local.Data.Address = end->data + (size_t)at * LARGE;
    segment->Local.Handle = end->memory;
    segment->Local.Length = length;
    descriptor->CS.SegCount = (VIP_UINT16)(segment - descriptor->DS + 1);
    descriptor->CS.Control = (VIP_UINT16)operation;
    descriptor->CS.Length = length;
    return descriptor;
}

static void post_receive(struct end *end, int slot, VIP_UINT32 length)
{
    CHECK(VipPostRecv(end->vi, fill(end, WINDOW + slot, 0, slot, length), end->memory));
}

static void post_send(struct end *end, int slot, int operation, VIP_UINT32 length)
{
    CHECK(VipPostSend(end->vi, fill(end, slot, operation, slot, length), end->memory));
}

static VIP_DESCRIPTOR *sent(struct end *end)
{
    VIP_DESCRIPTOR *descriptor;
    VIP_RETURN code;
    while ((code = VipSendDone(end->vi, &descriptor)) == VIP_NOT_DONE) {
    }
    check(code, "VipSendDone");
    return descriptor;
}

static VIP_DESCRIPTOR *received(struct end *end, enum way way)
{
    VIP_DESCRIPTOR *descriptor;
    VIP_VI_HANDLE vi;
    VIP_BOOLEAN receives;
    VIP_RETURN code;
    if (way == BLOCK) {
        CHECK(VipRecvWait(end->vi, PATIENCE_MS, &descriptor));
        return descriptor;
    }
    if (way == QUEUE) {
        while ((code = VipCQDone(end->cq, &vi, &receives)) == VIP_NOT_DONE) {
        }
        check(code, "VipCQDone");
        require(vi == end->vi && receives, "the completion queue told of another queue");
    }
    while ((code = VipRecvDone(end->vi, &descriptor)) == VIP_NOT_DONE) {
    }
    check(code, "VipRecvDone");
    return descriptor;
}

/* Memory that the other process may map: a file without a name that never becomes shorter, and stays open. Any memory can
   be registered; out of this, long data are copied without a system call. */
static void *shared(size_t bytes, int *file)
{
    *file = memfd_create("vnettest", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    require(*file >= 0 && ftruncate(*file, (off_t)bytes) == 0, "no memory");
    require(fcntl(*file, F_ADD_SEALS, F_SEAL_SHRINK) == 0, "memory that cannot be sealed");
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *file, 0);
    require(memory != MAP_FAILED, "no memory");
    return memory;
}

/* A NIC, memory, and a VI that is connected; receives of so many bytes are posted before it is. */
static void open_end(struct end *end, int server, const char *device, const char *service, enum way way,
                     VIP_UINT32 receives)
{
    VIP_PROTECTION_HANDLE tag;
    CHECK(VipOpenNic(device, &end->nic));
    CHECK(VipCreatePtag(end->nic, &tag));
    size_t bytes = end->bytes = SLOTS * sizeof(VIP_DESCRIPTOR) + (size_t)WINDOW * LARGE;
    void *memory = shared(bytes, &end->file);
    VIP_MEM_ATTRIBUTES access = {.Ptag = tag, .EnableRdmaWrite = VIP_TRUE};
    CHECK(VipRegisterMem(end->nic, memory, bytes, &access, &end->memory));
    end->descriptors = memory;
    end->data = (unsigned char *)memory + SLOTS * sizeof(VIP_DESCRIPTOR);
    end->cq = NULL;
    if (way == QUEUE) {
        CHECK(VipCreateCQ(end->nic, SLOTS, &end->cq));
    }
    VIP_VI_ATTRIBUTES attributes = {.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY,
                                    .MaxTransferSize = LARGE,
                                    .Ptag = tag,
                                    .EnableRdmaWrite = VIP_TRUE};
    CHECK(VipCreateVi(end->nic, &attributes, NULL, end->cq, &end->vi));
    for (int slot = 0; slot < WINDOW; slot++) {
        post_receive(end, slot, receives);
    }
    VIP_NET_ADDRESS *at = address(end->nic, service);
    if (server) {
        VIP_CONN_HANDLE connection;
        CHECK(VipConnectWait(end->nic, at, PATIENCE_MS, NULL, NULL, &connection));
        CHECK(VipConnectAccept(connection, end->vi));
    } else {
        VIP_RETURN code;
        /* The server may not wait yet. */
        while ((code = VipConnectRequest(end->vi, NULL, at, PATIENCE_MS, NULL)) == VIP_NO_MATCH) {
            struct timespec pause = {.tv_nsec = 1000000};
            nanosleep(&pause, NULL);
        }
        check(code, "VipConnectRequest");
    }
    free(at);
}

static void close_end(struct end *end)
{
    VipDisconnect(end->vi);
    CHECK(VipCloseNic(end->nic));
    munmap(end->descriptors, end->bytes);
    close(end->file);
}

static int larger(const void *one, const void *other)
{
    double first = *(const double *)one, second = *(const double *)other;
    return (first > second) - (first < second);
}

/* Echoes; the client returns half a round trip in microseconds, the median over batches. */
static double echo(int server, const char *device, const char *service, enum way way, VIP_UINT32 length, int rounds)
{
    struct end end;
    open_end(&end, server, device, service, way, length);
    size_t last = length - sizeof(VIP_UINT32);
    int batches = (rounds + BATCH - 1) / BATCH;
    double *took = malloc(sizeof *took * (size_t)batches);
    require(took != NULL, "no memory");
    double began = now();
    for (int round = 0; round < batches * BATCH; round++) {
        int slot = round % WINDOW;
        VIP_UINT32 number = (VIP_UINT32)round;
        unsigned char *mark = end.data + (size_t)slot * LARGE + last;
        if (!server) {
            memcpy(mark, &number, sizeof number);
            post_send(&end, slot, 0, length);
        }
        VIP_DESCRIPTOR *came = received(&end, way);
        require(came->CS.Length == length, "a message of another length");
        require(memcmp(mark, &number, sizeof number) == 0, "a message is not what was sent");
        if (server) {
            post_send(&end, slot, 0, length);
        }
        sent(&end);
        post_receive(&end, slot, length);
        if (round % BATCH == BATCH - 1) {
            double ended = now();
            took[round / BATCH] = ended - began;
            began = ended;
        }
    }
    close_end(&end);
    qsort(took, (size_t)batches, sizeof *took, larger);
    double median = took[batches / 2];
    free(took);
    return median / BATCH / 2 * 1e6;
}

/* Where the server's data are goes to the client in the first message; the last tells it how it went. */
static void exchange_memory(struct end *end, int server)
{
    if (server) {
        VIP_UINT64 place[2] = {(VIP_UINT64)(uintptr_t)end->data, end->memory};
        memcpy(end->data, place, sizeof place);
        post_send(end, 0, 0, sizeof place);
        sent(end);
    } else {
        VIP_UINT64 place[2];
        received(end, POLL);
        memcpy(place, end->data, sizeof place);
        end->remote = place[0];
        end->remote_memory = (VIP_MEM_HANDLE)place[1];
        post_receive(end, 0, LARGE);
    }
}

/* Messages or RDMA writes of 1 MiB, with so many under way; the client returns MB/s. */
static double stream(int server, const char *device, const char *service, int operation, int rounds)
{
    struct end end;
    open_end(&end, server, device, service, POLL, LARGE);
    exchange_memory(&end, server);
    double began = now();
    if (server && operation == VIP_CONTROL_OP_SENDRECV) {
        for (int round = 0; round < rounds; round++) {
            VIP_DESCRIPTOR *came = received(&end, POLL);
            require(came->CS.Length == LARGE, "a message of another length");
            require(end.data[(size_t)(round % WINDOW) * LARGE + LARGE - 1] == (unsigned char)(round % WINDOW + 1),
                    "a message is not what was sent");
            post_receive(&end, round % WINDOW, LARGE);
            /* Nobody counts receives but the programs: the other end is told that there is one again. */
            post_send(&end, round % WINDOW, 0, SMALL);
            sent(&end);
        }
    }
    if (!server) {
        for (int slot = 0; slot < WINDOW; slot++) {
            memset(end.data + (size_t)slot * LARGE, slot + 1, LARGE);
        }
        int credits = 1; /* where the next goes: the first message went to slot 0 */
        for (int round = 0; round < rounds + WINDOW - 1; round++) {
            if (round < rounds) {
                post_send(&end, round % WINDOW, operation, LARGE);
            }
            if (round >= WINDOW - 1 && round - (WINDOW - 1) < rounds) {
                sent(&end);
                if (operation == VIP_CONTROL_OP_SENDRECV) {
                    received(&end, POLL);
                    post_receive(&end, credits++ % WINDOW, LARGE);
                }
            }
        }
        double took = now() - began;
        post_send(&end, 0, 0, SMALL);
        sent(&end);
        received(&end, POLL);
        close_end(&end);
        return (double)rounds * LARGE / took / 1e6;
    }
    received(&end, POLL);
    for (int slot = 1; slot < WINDOW && rounds > slot; slot++) {
        require(end.data[(size_t)slot * LARGE + LARGE - 1] == slot + 1, "data are not what was sent");
    }
    post_send(&end, 0, 0, SMALL);
    sent(&end);
    /* The client says that it has heard by ending the connection. */
    VIP_VI_STATE state = VIP_STATE_CONNECTED;
    while (state == VIP_STATE_CONNECTED) {
        CHECK(VipQueryVi(end.vi, &state, NULL, NULL, NULL));
    }
    close_end(&end);
    return 0;
}

/* Half a round trip at each size. */
static void sweep(int server, const char *device, int rounds, int process)
{
    for (VIP_UINT32 length = 4; length <= LARGE; length *= 2) {
        char service[32];
        snprintf(service, sizeof service, "sweep-%d-%u", process, (unsigned)length);
        double took = echo(server, device, service, POLL, length, rounds / (1 + (int)(length / 4096)) + WINDOW);
        if (!server) {
            printf("%u %.4f\n", (unsigned)length, took);
        }
    }
}

int main(int count, char **words)
{
    int sweeps = count > 1 && strcmp(words[1], "-s") == 0;
    count -= sweeps;
    words += sweeps;
    int rounds = count > 1 ? atoi(words[1]) : 20000;
    const char *device = count > 2 ? words[2] : "shm";
    if (count > 4 || rounds < 1) {
        fprintf(stderr, "usage: vnettest [-s] [ROUNDS] [DEVICE] [- | HOST]\n");
        return 2;
    }
    /* Of two processes of this host, others may do the same; of two hosts neither knows the other's number. */
    int alone = count > 3, server = alone && strcmp(words[3], "-") == 0, process = alone ? 0 : (int)getpid();
    server_host = alone && !server ? words[3] : NULL;
    char services[5][32];
    for (int part = 0; part < 5; part++) {
        snprintf(services[part], sizeof services[part], "vnettest-%d-%d", process, part);
    }
    int large = rounds / 20 + 1;
    pid_t child = alone ? 0 : fork();
    require(child >= 0, "no second process");
    server |= !alone && child == 0;
    if (sweeps) {
        sweep(server, device, rounds, process);
        int status = 0;
        require(child == 0 || (waitpid(child, &status, 0) == child && status == 0), "the other process failed");
        return 0;
    }
    double poll = echo(server, device, services[0], POLL, SMALL, rounds);
    double queue = echo(server, device, services[1], QUEUE, SMALL, rounds);
    double block = echo(server, device, services[2], BLOCK, SMALL, rounds);
    double message = stream(server, device, services[3], VIP_CONTROL_OP_SENDRECV, large);
    double write = stream(server, device, services[4], VIP_CONTROL_OP_RDMAWRITE, large);
    if (server) {
        return 0;
    }
    int status;
    require(child == 0 || (waitpid(child, &status, 0) == child && status == 0), "the other process failed");
    printf("8 bytes, polling            %8.2f us\n", poll);
    printf("8 bytes, completion queue   %8.2f us\n", queue);
    printf("8 bytes, blocking           %8.2f us\n", block);
    printf("1 MiB, messages             %8.0f MB/s\n", message);
    printf("1 MiB, RDMA write           %8.0f MB/s\n", write);
    return 0;
}
