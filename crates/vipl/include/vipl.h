/*
 * vipl.h: the programming interface of the Virtual Interface Architecture, version 1.0.
 *
 * Calls, types and values as in the VI Architecture specification (1997) and the VI Developer's Guide
 * (1998). What those leave to a provider is said beside the call, and on the documentation's page "vipl".
 * Where public headers of the time differ (names of a descriptor's members, the code VIP_NOT_REACHABLE),
 * this one has both or says so.
 */
#ifndef VIPL_H
#define VIPL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void *VIP_PVOID;
typedef int VIP_BOOLEAN;
typedef char VIP_CHAR;
typedef unsigned char VIP_UCHAR;
typedef unsigned short VIP_USHORT;
typedef unsigned long VIP_ULONG;
typedef uint64_t VIP_UINT64;
typedef uint32_t VIP_UINT32;
typedef uint16_t VIP_UINT16;
typedef uint8_t VIP_UINT8;

#define VIP_FALSE 0
#define VIP_TRUE 1

/* A timeout in milliseconds that never passes. */
#define VIP_INFINITE ((VIP_ULONG)-1)

/* Handles say nothing by themselves. One that was given back is refused, and never given again. */
typedef VIP_PVOID VIP_NIC_HANDLE;
typedef VIP_PVOID VIP_VI_HANDLE;
typedef VIP_PVOID VIP_CQ_HANDLE;
typedef VIP_PVOID VIP_PROTECTION_HANDLE;
typedef VIP_PVOID VIP_CONN_HANDLE;
typedef VIP_UINT32 VIP_MEM_HANDLE;

/* Quality of service. This provider has one, NULL: as good as it gets. */
typedef VIP_PVOID VIP_QOS;

/* VIP_NOT_REACHABLE is not in every header of the time. */
typedef enum {
    VIP_SUCCESS,
    VIP_NOT_DONE,
    VIP_INVALID_PARAMETER,
    VIP_ERROR_RESOURCE,
    VIP_TIMEOUT,
    VIP_REJECT,
    VIP_INVALID_RELIABILITY_LEVEL,
    VIP_INVALID_MTU,
    VIP_INVALID_QOS,
    VIP_INVALID_PTAG,
    VIP_INVALID_RDMAREAD,
    VIP_DESCRIPTOR_ERROR,
    VIP_INVALID_STATE,
    VIP_ERROR_NAMESERVICE,
    VIP_NO_MATCH,
    VIP_NOT_REACHABLE
} VIP_RETURN;

/* Reliability levels; attributes that tell which are supported are sums of them. */
typedef VIP_USHORT VIP_RELIABILITY_LEVEL;
#define VIP_SERVICE_UNRELIABLE 1
#define VIP_SERVICE_RELIABLE_DELIVERY 2
#define VIP_SERVICE_RELIABLE_RECEPTION 4

/* A host and whom at it: HostAddressLen bytes, then DiscriminatorLen bytes. */
typedef struct {
    VIP_UINT16 HostAddressLen;
    VIP_UINT16 DiscriminatorLen;
    VIP_UINT8 HostAddress[1];
} VIP_NET_ADDRESS;

typedef struct {
    VIP_CHAR Name[64];
    VIP_ULONG HardwareVersion;
    VIP_ULONG ProviderVersion;
    VIP_UINT16 NicAddressLen;
    const VIP_UINT8 *LocalNicAddress;
    VIP_BOOLEAN ThreadSafe;
    VIP_UINT16 MaxDiscriminatorLen;
    VIP_ULONG MaxRegisterBytes;
    VIP_ULONG MaxRegisterRegions;
    VIP_ULONG MaxRegisterBlockBytes;
    VIP_ULONG MaxVI;
    VIP_ULONG MaxDescriptorsPerQueue;
    VIP_ULONG MaxSegmentsPerDesc;
    VIP_ULONG MaxCQ;
    VIP_ULONG MaxCQEntries;
    VIP_ULONG MaxTransferSize;
    VIP_ULONG NativeMTU;
    VIP_ULONG MaxPtags;
    VIP_RELIABILITY_LEVEL ReliabilityLevelSupport;
    VIP_RELIABILITY_LEVEL RDMAReadSupport;
} VIP_NIC_ATTRIBUTES;

typedef enum {
    VIP_STATE_IDLE,
    VIP_STATE_CONNECTED,
    VIP_STATE_CONNECT_PENDING,
    VIP_STATE_ERROR
} VIP_VI_STATE;

typedef struct {
    VIP_RELIABILITY_LEVEL ReliabilityLevel;
    VIP_ULONG MaxTransferSize;
    VIP_QOS QoS;
    VIP_PROTECTION_HANDLE Ptag;
    VIP_BOOLEAN EnableRdmaWrite;
    VIP_BOOLEAN EnableRdmaRead;
} VIP_VI_ATTRIBUTES;

typedef struct {
    VIP_PROTECTION_HANDLE Ptag;
    VIP_BOOLEAN EnableRdmaWrite;
    VIP_BOOLEAN EnableRdmaRead;
} VIP_MEM_ATTRIBUTES;

/*
 * Descriptors lie in registered memory on multiples of VIP_DESCRIPTOR_ALIGNMENT bytes: a control segment,
 * for RDMA an address segment, then data segments, all without gaps. Some headers of the time call the
 * members Control and Data instead of CS and DS.
 */
#define VIP_DESCRIPTOR_ALIGNMENT 64

typedef union {
    VIP_UINT64 AddressBits;
    VIP_PVOID Address;
} VIP_PVOID64;

typedef struct {
    VIP_PVOID64 Next;
    VIP_MEM_HANDLE NextHandle;
    VIP_UINT16 SegCount;
    VIP_UINT16 Control;
    VIP_UINT32 Reserved;
    VIP_UINT32 ImmediateData;
    VIP_UINT32 Length;
    VIP_UINT32 Status;
} VIP_CONTROL_SEGMENT;

typedef struct {
    VIP_PVOID64 Data;
    VIP_MEM_HANDLE Handle;
    VIP_UINT32 Reserved;
} VIP_ADDRESS_SEGMENT;

typedef struct {
    VIP_PVOID64 Data;
    VIP_MEM_HANDLE Handle;
    VIP_UINT32 Length;
} VIP_DATA_SEGMENT;

typedef union {
    VIP_ADDRESS_SEGMENT Remote;
    VIP_DATA_SEGMENT Local;
} VIP_DESCRIPTOR_SEGMENT;

typedef struct _VIP_DESCRIPTOR {
    VIP_CONTROL_SEGMENT CS;
    VIP_DESCRIPTOR_SEGMENT DS[2];
} VIP_DESCRIPTOR;

/* CS.Control */
#define VIP_CONTROL_OP_SENDRECV 0x0
#define VIP_CONTROL_OP_RDMAWRITE 0x1
#define VIP_CONTROL_OP_RDMAREAD 0x2
#define VIP_CONTROL_OP_MASK 0x3
#define VIP_CONTROL_IMMEDIATE 0x4
#define VIP_CONTROL_QFENCE 0x8

/* CS.Status */
#define VIP_STATUS_DONE 0x1
#define VIP_STATUS_FORMAT_ERROR 0x2
#define VIP_STATUS_PROTECTION_ERROR 0x4
#define VIP_STATUS_LENGTH_ERROR 0x8
#define VIP_STATUS_PARTIAL_ERROR 0x10
#define VIP_STATUS_DESC_FLUSHED_ERROR 0x20
#define VIP_STATUS_TRANSPORT_ERROR 0x40
#define VIP_STATUS_RDMA_PROT_ERROR 0x80
#define VIP_STATUS_REMOTE_DESC_ERROR 0x100
#define VIP_STATUS_ERROR_MASK 0x1fe
#define VIP_STATUS_OP_SEND 0x00000
#define VIP_STATUS_OP_RECEIVE 0x10000
#define VIP_STATUS_OP_RDMA_WRITE 0x20000
#define VIP_STATUS_OP_REMOTE_RDMA_WRITE 0x30000
#define VIP_STATUS_OP_RDMA_READ 0x40000
#define VIP_STATUS_OP_MASK 0x70000
#define VIP_STATUS_IMMEDIATE 0x80000

typedef enum {
    VIP_RESOURCE_NIC,
    VIP_RESOURCE_VI,
    VIP_RESOURCE_CQ,
    VIP_RESOURCE_DESCRIPTOR
} VIP_RESOURCE_CODE;

typedef enum {
    VIP_ERROR_POST_DESC,
    VIP_ERROR_CONN_LOST,
    VIP_ERROR_RECVQ_EMPTY,
    VIP_ERROR_VI_OVERRUN,
    VIP_ERROR_RDMAW_PROT,
    VIP_ERROR_RDMAW_DATA,
    VIP_ERROR_RDMAW_ABORT,
    VIP_ERROR_RDMAR_PROT,
    VIP_ERROR_COMP_PROT,
    VIP_ERROR_RDMA_TRANSPORT,
    VIP_ERROR_CATASTROPHIC
} VIP_ERROR_CODE;

/* What is not about a VI, a completion queue or a descriptor has NULL there. OpCode is 0 here. */
typedef struct {
    VIP_NIC_HANDLE NicHandle;
    VIP_VI_HANDLE ViHandle;
    VIP_CQ_HANDLE CQHandle;
    VIP_DESCRIPTOR *DescriptorPtr;
    VIP_ULONG OpCode;
    VIP_RESOURCE_CODE ResourceCode;
    VIP_ERROR_CODE ErrorCode;
} VIP_ERROR_DESCRIPTOR;

#define VIP_SMI_AUTODISCOVERY ((VIP_ULONG)1)

typedef struct {
    VIP_ULONG NumberOfHops;
    VIP_NET_ADDRESS **ADAddrArray;
    VIP_ULONG NumAdAddrs;
} VIP_AUTODISCOVERY_LIST;

/*
 * Handlers are called on a thread of the library, and may make any call. A notification is made once for
 * each call that asks for it. Without an error handler, errors are told by the state of the VI alone.
 */
typedef void (*VIP_VI_HANDLER)(VIP_PVOID Context, VIP_NIC_HANDLE Nic, VIP_VI_HANDLE Vi, VIP_DESCRIPTOR *Descriptor);
typedef void (*VIP_CQ_HANDLER)(VIP_PVOID Context, VIP_NIC_HANDLE Nic, VIP_VI_HANDLE Vi, VIP_BOOLEAN RecvQueue);
typedef void (*VIP_ERROR_HANDLER)(VIP_PVOID Context, VIP_ERROR_DESCRIPTOR *Error);

/*
 * The device "shm" reaches the processes of this user on this host; "shm:NAME" those that open the same
 * name, of at most 16 letters. A NIC is its process's own: a child that was forked opens another.
 */
VIP_RETURN VipOpenNic(const VIP_CHAR *DeviceName, VIP_NIC_HANDLE *Nic);
VIP_RETURN VipCloseNic(VIP_NIC_HANDLE Nic);
VIP_RETURN VipQueryNic(VIP_NIC_HANDLE Nic, VIP_NIC_ATTRIBUTES *Attributes);

VIP_RETURN VipCreatePtag(VIP_NIC_HANDLE Nic, VIP_PROTECTION_HANDLE *Ptag);
VIP_RETURN VipDestroyPtag(VIP_NIC_HANDLE Nic, VIP_PROTECTION_HANDLE Ptag);

/* Memory that is registered can be written by this process, and stays mapped until it is deregistered. */
VIP_RETURN VipRegisterMem(VIP_NIC_HANDLE Nic, VIP_PVOID Address, VIP_ULONG Length, VIP_MEM_ATTRIBUTES *Attributes,
                          VIP_MEM_HANDLE *Memory);
VIP_RETURN VipDeregisterMem(VIP_NIC_HANDLE Nic, VIP_PVOID Address, VIP_MEM_HANDLE Memory);
VIP_RETURN VipQueryMem(VIP_NIC_HANDLE Nic, VIP_PVOID Address, VIP_MEM_HANDLE Memory, VIP_MEM_ATTRIBUTES *Attributes);
VIP_RETURN VipSetMemAttributes(VIP_NIC_HANDLE Nic, VIP_PVOID Address, VIP_MEM_HANDLE Memory,
                               VIP_MEM_ATTRIBUTES *Attributes);

/* NULL is no completion queue. */
VIP_RETURN VipCreateVi(VIP_NIC_HANDLE Nic, VIP_VI_ATTRIBUTES *Attributes, VIP_CQ_HANDLE SendCQ, VIP_CQ_HANDLE RecvCQ,
                       VIP_VI_HANDLE *Vi);
VIP_RETURN VipDestroyVi(VIP_VI_HANDLE Vi);
VIP_RETURN VipQueryVi(VIP_VI_HANDLE Vi, VIP_VI_STATE *State, VIP_VI_ATTRIBUTES *Attributes, VIP_BOOLEAN *SendQEmpty,
                      VIP_BOOLEAN *RecvQEmpty);
VIP_RETURN VipSetViAttributes(VIP_VI_HANDLE Vi, VIP_VI_ATTRIBUTES *Attributes);

/*
 * VipConnectWait listens while it waits and no longer: a request to an address where nobody waits is told
 * VIP_NO_MATCH at once and may be made again. RemoteAddress has room for the longest address, unless it is
 * NULL.
 */
VIP_RETURN VipConnectWait(VIP_NIC_HANDLE Nic, VIP_NET_ADDRESS *LocalAddress, VIP_ULONG Timeout,
                          VIP_NET_ADDRESS *RemoteAddress, VIP_VI_ATTRIBUTES *RemoteAttributes,
                          VIP_CONN_HANDLE *Connection);
VIP_RETURN VipConnectAccept(VIP_CONN_HANDLE Connection, VIP_VI_HANDLE Vi);
VIP_RETURN VipConnectReject(VIP_CONN_HANDLE Connection);
VIP_RETURN VipConnectRequest(VIP_VI_HANDLE Vi, VIP_NET_ADDRESS *LocalAddress, VIP_NET_ADDRESS *RemoteAddress,
                             VIP_ULONG Timeout, VIP_VI_ATTRIBUTES *RemoteAttributes);
VIP_RETURN VipConnectPeerRequest(VIP_VI_HANDLE Vi, VIP_NET_ADDRESS *LocalAddress, VIP_NET_ADDRESS *RemoteAddress,
                                 VIP_ULONG Timeout);
VIP_RETURN VipConnectPeerDone(VIP_VI_HANDLE Vi, VIP_VI_ATTRIBUTES *RemoteAttributes);
VIP_RETURN VipConnectPeerWait(VIP_VI_HANDLE Vi, VIP_VI_ATTRIBUTES *RemoteAttributes);
VIP_RETURN VipDisconnect(VIP_VI_HANDLE Vi);

/*
 * A descriptor that is done in error is taken off its queue like others, with VIP_DESCRIPTOR_ERROR. Of an
 * empty queue that is told too, with NULL for the descriptor.
 */
VIP_RETURN VipPostSend(VIP_VI_HANDLE Vi, VIP_DESCRIPTOR *Descriptor, VIP_MEM_HANDLE Memory);
VIP_RETURN VipSendDone(VIP_VI_HANDLE Vi, VIP_DESCRIPTOR **Descriptor);
VIP_RETURN VipSendWait(VIP_VI_HANDLE Vi, VIP_ULONG Timeout, VIP_DESCRIPTOR **Descriptor);
VIP_RETURN VipSendNotify(VIP_VI_HANDLE Vi, VIP_PVOID Context, VIP_VI_HANDLER Handler);
VIP_RETURN VipPostRecv(VIP_VI_HANDLE Vi, VIP_DESCRIPTOR *Descriptor, VIP_MEM_HANDLE Memory);
VIP_RETURN VipRecvDone(VIP_VI_HANDLE Vi, VIP_DESCRIPTOR **Descriptor);
VIP_RETURN VipRecvWait(VIP_VI_HANDLE Vi, VIP_ULONG Timeout, VIP_DESCRIPTOR **Descriptor);
VIP_RETURN VipRecvNotify(VIP_VI_HANDLE Vi, VIP_PVOID Context, VIP_VI_HANDLER Handler);

VIP_RETURN VipCreateCQ(VIP_NIC_HANDLE Nic, VIP_ULONG EntryCount, VIP_CQ_HANDLE *CQ);
VIP_RETURN VipDestroyCQ(VIP_CQ_HANDLE CQ);
VIP_RETURN VipResizeCQ(VIP_CQ_HANDLE CQ, VIP_ULONG EntryCount);
VIP_RETURN VipCQDone(VIP_CQ_HANDLE CQ, VIP_VI_HANDLE *Vi, VIP_BOOLEAN *RecvQueue);
VIP_RETURN VipCQWait(VIP_CQ_HANDLE CQ, VIP_ULONG Timeout, VIP_VI_HANDLE *Vi, VIP_BOOLEAN *RecvQueue);
VIP_RETURN VipCQNotify(VIP_CQ_HANDLE CQ, VIP_PVOID Context, VIP_CQ_HANDLER Handler);

/* NULL takes the handler away. */
VIP_RETURN VipErrorCallback(VIP_NIC_HANDLE Nic, VIP_PVOID Context, VIP_ERROR_HANDLER Handler);

/* VIP_SMI_AUTODISCOVERY fills in a VIP_AUTODISCOVERY_LIST, whose addresses are the library's. */
VIP_RETURN VipQuerySystemManagementInfo(VIP_NIC_HANDLE Nic, VIP_ULONG InfoType, VIP_PVOID Info);

/*
 * NSInitInfo is NULL (this host is "localhost") or text with a host on each line: the address in
 * hexadecimal digits, a blank, the name. Names end in a zero byte; NameLength is the room for one in, and
 * its length out.
 */
VIP_RETURN VipNSInit(VIP_NIC_HANDLE Nic, VIP_PVOID NSInitInfo);
VIP_RETURN VipNSGetHostByName(VIP_NIC_HANDLE Nic, VIP_CHAR *Name, VIP_NET_ADDRESS *Address, VIP_ULONG NameIndex);
VIP_RETURN VipNSGetHostByAddr(VIP_NIC_HANDLE Nic, VIP_NET_ADDRESS *Address, VIP_CHAR *Name, VIP_ULONG *NameLength);
VIP_RETURN VipNSShutdown(VIP_NIC_HANDLE Nic);

#ifdef __cplusplus
}
#endif

#endif
