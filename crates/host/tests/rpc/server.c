/* A server of libtirpc: registers with rpcbind over TCP and UDP, and serves until it is killed. */
#include <rpc/rpc.h>
#include <stdio.h>
#include <string.h>

enum { PROGRAM = 0x20000002, VERSION = 3 };

typedef struct { char *octets; u_int length; } block;

static bool_t xdr_block(XDR *xdrs, block *b) { return xdr_bytes(xdrs, &b->octets, &b->length, ~0u); }

static void serve(struct svc_req *request, SVCXPRT *transport) {
  block got = {NULL, 0};
  int uid = -1;
  switch (request->rq_proc) {
    case 0:
      svc_sendreply(transport, (xdrproc_t)xdr_void, NULL);
      return;
    case 1:
      if (!svc_getargs(transport, (xdrproc_t)xdr_block, (caddr_t)&got)) {
        svcerr_decode(transport);
        return;
      }
      svc_sendreply(transport, (xdrproc_t)xdr_block, (caddr_t)&got);
      svc_freeargs(transport, (xdrproc_t)xdr_block, (caddr_t)&got);
      return;
    case 2:
      if (request->rq_cred.oa_flavor != AUTH_SYS) {
        svcerr_weakauth(transport);
        return;
      }
      uid = (int)((struct authunix_parms *)request->rq_clntcred)->aup_uid;
      svc_sendreply(transport, (xdrproc_t)xdr_int, (caddr_t)&uid);
      return;
    case 3:
      svcerr_systemerr(transport);
      return;
    default:
      svcerr_noproc(transport);
  }
}

int main(void) {
  if (svc_create(serve, PROGRAM, VERSION, "tcp") == 0 || svc_create(serve, PROGRAM, VERSION, "udp") == 0) {
    fputs("svc_create\n", stderr);
    return 1;
  }
  puts("ready");
  fflush(stdout);
  svc_run();
  return 1;
}
