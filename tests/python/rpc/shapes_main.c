/* What rpcgen makes of shapes.x, at work: `octets` prints a value in XDR, `serve` is a server that prints its port,
   `call PORT tcp|udp` a client that says what came of each call. */
#include "shapes.h"
#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void shapes_1(struct svc_req *request, SVCXPRT *transport);
void shapes_2(struct svc_req *request, SVCXPRT *transport);

static int some[3] = {1, -2, 3};
static node last = {"two", NULL}, first = {"one", &last};
static point maybe = {7, -8};

static everything value(void) {
  everything made;
  memset(&made, 0, sizeof made);
  made.flag = TRUE;
  made.word = 4000000000u;
  made.wide = 0x123456789abcdefULL;
  made.single = -2.5f;
  made.twice = 0.1;
  made.letter = 'x';
  made.small = -3;
  made.seat = 65535;
  memcpy(made.sum, "digest", 6);
  made.loose.loose_len = 5;
  made.loose.loose_val = "loose";
  made.name = "a name";
  made.many.numbers_len = 3;
  made.many.numbers_val = some;
  made.points[0] = (point){1, 2};
  made.points[1] = (point){-1, -2};
  made.list = &first;
  made.said.which = BLUE;
  made.said.answer_u.many.numbers_len = 2;
  made.said.answer_u.many.numbers_val = some;
  made.more.code = 1;
  made.more.perhaps_u.why = "so";
  made.maybe = &maybe;
  made.shade = GREEN;
  return made;
}

static unsigned octets_of(everything *of, char *into, unsigned most) {
  XDR xdrs;
  xdrmem_create(&xdrs, into, most, XDR_ENCODE);
  if (!xdr_everything(&xdrs, of)) exit(3);
  return xdr_getpos(&xdrs);
}

everything *turn_1_svc(everything *given, struct svc_req *request) {
  (void)request;
  given->word += 1;
  return given;
}

int *add_1_svc(numbers *given, struct svc_req *request) {
  static int sum;
  (void)request;
  sum = 0;
  for (unsigned at = 0; at < given->numbers_len; at++) sum += given->numbers_val[at];
  return &sum;
}

nodes *count_1_svc(int *most, struct svc_req *request) {
  static node made[2000];
  static char names[2000][12];
  static nodes result;
  (void)request;
  for (int at = 0; at < *most; at++) {
    snprintf(names[at], sizeof names[at], "%d", at);
    made[at] = (node){names[at], at + 1 < *most ? &made[at + 1] : NULL};
  }
  result = *most ? made : NULL;
  return &result;
}

text *shout_1_svc(text *given, struct svc_req *request) {
  (void)request;
  for (char *at = *given; *at; at++) *at = (char)toupper(*at);
  return given;
}

void *quiet_1_svc(void *nothing, struct svc_req *request) {
  static char done;
  (void)nothing, (void)request;
  return &done;
}

colour *next_2_svc(colour *given, struct svc_req *request) {
  static colour next;
  (void)request;
  next = *given == RED ? GREEN : *given == GREEN ? BLUE : RED;
  return &next;
}

static int serve(void) {
  SVCXPRT *transport = svctcp_create(RPC_ANYSOCK, 0, 0);
  if (transport == NULL) return 4;
  if (!svc_register(transport, SHAPES, SHAPES_ONE, shapes_1, 0)) return 5;
  if (!svc_register(transport, SHAPES, SHAPES_TWO, shapes_2, 0)) return 6;
  printf("%d\n", transport->xp_port);
  fflush(stdout);
  svc_run();
  return 7;
}

static CLIENT *client(const char *port, const char *transport, unsigned version) {
  struct sockaddr_in to;
  int socket = RPC_ANYSOCK;
  memset(&to, 0, sizeof to);
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  to.sin_port = htons((unsigned short)atoi(port));
  CLIENT *made = strcmp(transport, "tcp") == 0
                     ? clnttcp_create(&to, SHAPES, version, &socket, 0, 0)
                     : clntudp_create(&to, SHAPES, version, (struct timeval){1, 0}, &socket);
  if (made == NULL) {
    clnt_pcreateerror("client");
    exit(8);
  }
  return made;
}

static int call(const char *port, const char *transport) {
  CLIENT *one = client(port, transport, SHAPES_ONE), *two = client(port, transport, SHAPES_TWO);
  static char sent[4096], got[4096];
  everything made = value();
  everything *turned = turn_1(&made, one);
  made.word += 1;
  unsigned length = octets_of(&made, sent, sizeof sent);
  int same = turned != NULL && octets_of(turned, got, sizeof got) == length && memcmp(sent, got, length) == 0;
  printf("turn: %s\n", same ? "same" : clnt_sperror(one, "turn"));
  int *sum = add_1(&made.many, one);
  printf("add: %d\n", sum ? *sum : -1);
  int most = 1500, found = 0;
  nodes *list = count_1(&most, one);
  for (node *at = list ? *list : NULL; at != NULL; at = at->next) found++;
  printf("count: %d\n", found);
  text quiet = "quiet";
  text *loud = shout_1(&quiet, one);
  printf("shout: %s\n", loud ? *loud : clnt_sperror(one, "shout"));
  printf("quiet: %s\n", quiet_1(NULL, one) ? "done" : clnt_sperror(one, "quiet"));
  colour shade = GREEN;
  colour *next = next_2(&shade, two);
  printf("next: %d\n", next ? (int)*next : -1);
  struct timeval limit = {5, 0};
  // What the type does not have: the server says garbage.
  enum clnt_stat stat = clnt_call(two, NEXT, (xdrproc_t)xdr_int, (char *)&most, (xdrproc_t)xdr_int,
                                  (char *)&found, limit);
  printf("garbage: %s\n", clnt_sperrno(stat));
  return 0;
}

int main(int count, char **words) {
  if (count == 2 && strcmp(words[1], "octets") == 0) {
    static char octets[4096];
    everything made = value();
    unsigned length = octets_of(&made, octets, sizeof octets);
    for (unsigned at = 0; at < length; at++) printf("%02x", (unsigned char)octets[at]);
    printf("\n");
    return 0;
  }
  if (count == 2 && strcmp(words[1], "serve") == 0) return serve();
  if (count == 4 && strcmp(words[1], "call") == 0) return call(words[2], words[3]);
  return 2;
}
