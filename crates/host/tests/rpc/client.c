/* A client of libtirpc: calls the server of the test and says what came of it, a line a call. */
#include <rpc/rpc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROGRAM = 0x20000001, VERSION = 1, LARGE = 200000, SMALL = 8000 };
static struct timeval limit = {10, 0};
static const struct timeval none = {0, 0};

typedef struct { char *octets; u_int length; } block;

static bool_t xdr_block(XDR *xdrs, block *b) { return xdr_bytes(xdrs, &b->octets, &b->length, ~0u); }

static void echo(CLIENT *client, u_int length) {
  block sent = {malloc(length + 1), length}, got = {NULL, 0};
  for (u_int at = 0; at < length; at++) sent.octets[at] = (char)(at * 7);
  enum clnt_stat stat = clnt_call(client, 1, (xdrproc_t)xdr_block, (caddr_t)&sent, (xdrproc_t)xdr_block,
                                  (caddr_t)&got, limit);
  int same = stat == RPC_SUCCESS && got.length == length && memcmp(sent.octets, got.octets, length) == 0;
  printf("echo %u: %s\n", length, same ? "same" : clnt_sperrno(stat));
}

static void named(const char *what, CLIENT *client, u_long procedure, int argument) {
  int got = 0;
  enum clnt_stat stat = clnt_call(client, procedure, (xdrproc_t)xdr_int, (caddr_t)&argument,
                                  (xdrproc_t)xdr_int, (caddr_t)&got, limit);
  printf("%s: %s %d\n", what, clnt_sperrno(stat), got);
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  CLIENT *client = clnt_create(argv[1], PROGRAM, VERSION, argv[2]);
  if (client == NULL) {
    clnt_pcreateerror("clnt_create");
    return 1;
  }
  int stream = strcmp(argv[2], "tcp") == 0;
  echo(client, 0);
  echo(client, 5);
  echo(client, stream ? LARGE : SMALL);
  if (stream) {
    for (int number = 1; number <= 100; number++)
      clnt_call(client, 2, (xdrproc_t)xdr_int, (caddr_t)&number, (xdrproc_t)NULL, NULL, none);
    named("total", client, 3, 0);
  }
  named("garbage", client, 4, 1);
  named("no procedure", client, 99, 1);
  AUTH *nobody = client->cl_auth;
  named("nobody", client, 5, 0);
  client->cl_auth = authunix_create("spark", 1234, 10, 0, NULL);
  named("somebody", client, 5, 0);
  client->cl_auth = nobody;
  rpcvers_t wrong = 7;
  clnt_control(client, CLSET_VERS, (char *)&wrong);
  named("version", client, 3, 0);
  struct rpc_err error;
  clnt_geterr(client, &error);
  printf("versions: %u to %u\n", (unsigned)error.re_vers.low, (unsigned)error.re_vers.high);
  rpcprog_t unknown = 0x20000099;
  clnt_control(client, CLSET_PROG, (char *)&unknown);
  named("program", client, 3, 0);
  return 0;
}
