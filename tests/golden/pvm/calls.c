/* What calls of PVM return: one line each. `calls.txt` is what it prints under PVM 3.4.6 on one host. */
#include <stdio.h>
#include <pvm3.h>

#define SAY(...) (printf(__VA_ARGS__), putchar('\n'))

static int none = 0x40fff, far = 0x140001;

static void packing(const char *name, int encoding) {
    char bytes[5] = {0};
    short shorts[3] = {1, -2, 3};
    int ints[3] = {1, 2, 3}, bytes_there, tag, from;
    long longs[3] = {1, 2, -5};
    float floats[4] = {1, 2, 3, 4};
    static double doubles[1200];
#define PACK(what, call)                                          \
    pvm_initsend(encoding);                                       \
    call;                                                         \
    pvm_bufinfo(pvm_getsbuf(), &bytes_there, &tag, &from);        \
    SAY("%s %s %d", name, what, bytes_there)
    PACK("byte 5", pvm_pkbyte(bytes, 5, 1));
    PACK("byte 1 stride 0", pvm_pkbyte(bytes, 1, 0));
    PACK("short 3", pvm_pkshort(shorts, 3, 1));
    PACK("int 3", pvm_pkint(ints, 3, 1));
    PACK("int 2 stride 2", pvm_pkint(ints, 2, 2));
    PACK("int 3 stride 0", pvm_pkint(ints, 3, 0));
    PACK("int 0", pvm_pkint(ints, 0, 1));
    PACK("long 3", pvm_pklong(longs, 3, 1));
    PACK("float 3", pvm_pkfloat(floats, 3, 1));
    PACK("cplx 2", pvm_pkcplx(floats, 2, 1));
    PACK("dcplx 2", pvm_pkdcplx(doubles, 2, 1));
    PACK("double 1200", pvm_pkdouble(doubles, 1200, 1));
    PACK("int double 1200", (pvm_pkint(ints, 1, 1), pvm_pkdouble(doubles, 1200, 1)));
    PACK("string hello", pvm_pkstr("hello"));
}

static void unpacking(const char *name, int encoding) {
    int ints[4] = {1, 2, 3, 0}, back[4], bytes, tag, from;
    double doubles[1];
    pvm_initsend(encoding);
    pvm_pkint(ints, 3, 1);
    for (int time = 0; time < 2; time++) pvm_send(pvm_mytid(), 7);
    pvm_bufinfo(pvm_recv(-1, 7), &bytes, &tag, &from);
    SAY("%s received %d", name, bytes);
    SAY("%s first double %d", name, pvm_upkdouble(doubles, 1, 1));
    SAY("%s second double %d", name, pvm_upkdouble(doubles, 1, 1));
    SAY("%s int after it %d", name, pvm_upkint(back, 1, 1));
    pvm_recv(-1, 7);
    back[2] = 0;
    SAY("%s four of three %d", name, pvm_upkint(back, 4, 1));
    SAY("%s the third %d", name, back[2]);
}

int main(void) {
    int tids[3], mine = pvm_mytid(), *several = tids;
    pvm_setopt(PvmAutoErr, 0);
    packing("default", PvmDataDefault);
    packing("raw", PvmDataRaw);
    unpacking("default", PvmDataDefault);
    unpacking("raw", PvmDataRaw);
    unpacking("in place", PvmDataInPlace);
    pvm_initsend(PvmDataInPlace);
    SAY("in place stride 2 %d", pvm_pkint(tids, 2, 2));
    SAY("in place string %d", pvm_pkstr("no"));
    pvm_initsend(PvmDataDefault);
    SAY("send to the daemon %d", pvm_send(0x80000000, 3));
    SAY("send tag -3 %d", pvm_send(mine, -3));
    SAY("send to no host %d", pvm_send(far, 3));
    SAY("parent %d", pvm_parent());
    SAY("spawn none %d", pvm_spawn("x", 0, 0, "", 0, tids));
    SAY("spawn no file %d", pvm_spawn("nosuchfile", 0, 0, "", 2, tids));
    SAY("why %d %d", tids[0], tids[1]);
    SAY("spawn no host %d", pvm_spawn("x", 0, PvmTaskHost, "nohost", 1, tids));
    SAY("why %d", tids[0]);
    SAY("pstat no task %d", pvm_pstat(none));
    SAY("pstat no host %d", pvm_pstat(far));
    SAY("pstat itself %d", pvm_pstat(mine));
    SAY("pstat no task's number %d", pvm_pstat(0x80000000));
    SAY("mstat no host %d", pvm_mstat("nohost"));
    SAY("tasks no host %d", pvm_tasks(far, tids, (struct pvmtaskinfo **)&several));
    SAY("kill no task %d", pvm_kill(none));
    SAY("notify nobody %d", pvm_notify(PvmTaskExit, 12, 0, &none));
    SAY("notify the dead %d", pvm_notify(PvmTaskExit, 12, 1, &none));
    pvm_recv(-1, 12);
    pvm_upkint(tids, 1, 1);
    SAY("told of %x", tids[0]);
    SAY("recvinfo nothing %d", pvm_recvinfo("nothing", 0, 0));
    SAY("recvinfo no name %d", pvm_recvinfo("", 0, 0));
    SAY("delinfo nothing %d", pvm_delinfo("nothing", 0, 0));
    pvm_initsend(PvmDataDefault);
    pvm_pkint(&mine, 1, 1);
    for (int time = 0; time < 2; time++) SAY("putinfo %d", pvm_putinfo("entry", pvm_getsbuf(), 0));
    for (int time = 0; time < 2; time++)
        SAY("putinfo several %d", pvm_putinfo("more", pvm_getsbuf(), PvmMboxMultiInstance));
    SAY("recvinfo %d", pvm_recvinfo("entry", 0, 0) > 0);
    pvm_upkint(tids, 1, 1);
    SAY("the entry %d", tids[0] == mine);
    SAY("recvinfo from 1 on %d", pvm_recvinfo("entry", 1, PvmMboxFirstAvail));
    SAY("delinfo %d", pvm_delinfo("entry", 0, 0));
    SAY("delinfo again %d", pvm_delinfo("entry", 0, 0));
    SAY("join no name %d", pvm_joingroup(""));
    SAY("join %d", pvm_joingroup("g"));
    SAY("join again %d", pvm_joingroup("g"));
    SAY("gsize %d", pvm_gsize("g"));
    SAY("gsize no group %d", pvm_gsize("h"));
    SAY("getinst %d", pvm_getinst("g", mine));
    SAY("getinst no member %d", pvm_getinst("g", none));
    SAY("gettid %d", pvm_gettid("g", 0) == mine);
    SAY("gettid no instance %d", pvm_gettid("g", 9));
    SAY("barrier no group %d", pvm_barrier("h", 1));
    SAY("barrier of one %d", pvm_barrier("g", 1));
    SAY("barrier of all %d", pvm_barrier("g", -1));
    pvm_initsend(PvmDataDefault);
    SAY("bcast alone %d", pvm_bcast("g", 5));
    SAY("bcast no group %d", pvm_bcast("h", 5));
    SAY("leave %d", pvm_lvgroup("g"));
    SAY("leave again %d", pvm_lvgroup("g"));
    SAY("exit %d", pvm_exit());
    return 0;
}
