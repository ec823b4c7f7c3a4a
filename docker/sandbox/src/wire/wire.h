/*
 * Frames and their encoding. The sbxd protocol, version 5:
 * packages/sandbox/src/sbxd/protocol/README.md documents every frame and payload; the names here
 * and in protocol/frames.ts mirror it.
 */
#ifndef SBXD_WIRE_H
#define SBXD_WIRE_H

#include "../base.h"

/* ---- the protocol ---------------------------------------------------------------------------- */

#define PROTOCOL_VERSION 5

#define FRAME_MAGIC 0xA7
#define HEADER_BYTES 16
#define MAX_PAYLOAD 65536
#define CRC_BYTES 4

/*
 * Start values of CRC-32C: never zero, so that neither an empty nor a zero-filled payload has the
 * checksum 0.
 */
#define HEADER_CRC_START 0x5B8D17E3u
#define HELLO_CRC_START 0xA3C59AC3u

enum frame_type {
    T_HELLO = 0x01,
    T_WELCOME = 0x02,
    T_REFUSED = 0x03,
    T_DROPPED = 0x04,
    T_PING = 0x05,
    T_PONG = 0x06,
    T_STAT = 0x07,
    T_STAT_RESULT = 0x08,
    T_DISK_BUDGET = 0x09,
    T_DISK_STATE = 0x0A,
    T_START = 0x10,
    T_STARTED = 0x11,
    T_START_FAILED = 0x12,
    T_ATTACH = 0x13,
    T_DETACHED = 0x14,
    T_DATA = 0x15,
    T_CREDIT = 0x16,
    T_ACK = 0x17,
    T_EOF = 0x18,
    T_SIGNAL = 0x19,
    T_CANCEL = 0x1A,
    T_EXIT = 0x1B,
    T_COMMANDS = 0x1C,
    T_COMMAND_LIST = 0x1D,
    T_RESET = 0x1E,
    T_RESET_DONE = 0x1F,
    T_FILE_STAT = 0x20,
    T_FILE_LIST = 0x21,
    T_FILE_READ = 0x22,
    T_FILE_WRITE = 0x23,
    T_FILE_MKDIR = 0x24,
    T_FILE_REMOVE = 0x25,
    T_FILE_RENAME = 0x26,
    T_FILE_RESULT = 0x27,
    T_RESIZE = 0x28,
    T_FILE_RESOLVE = 0x29,
    T_FILE_WATCH = 0x2A,
    T_FILE_CHANGED = 0x2B,
    T_EGRESS_LISTEN = 0x30,
    T_EGRESS_OPEN = 0x31,
    T_EGRESS_RESULT = 0x32,
    T_CONNECTION_DATA = 0x33,
    T_CONNECTION_CREDIT = 0x34,
    T_CONNECTION_EOF = 0x35,
    T_CONNECTION_CLOSE = 0x36,
    T_EGRESS_REFUSED = 0x37,
    T_PORT_CONNECT = 0x38,
    T_PORT_RESULT = 0x39,
    T_PORT_LIST = 0x3A,
    T_PORT_LISTED = 0x3B,
    T_FILE_SNAPSHOT = 0x40,
    T_FILE_CHANGES = 0x41,
};

/* Header flags. */
/* START: another fragment follows; FILE_RESULT of a list: another page exists */
#define F_MORE 0x0001
#define F_INSTALL 0x0001  /* HELLO: carries the key */
#define F_ACKNOWLEDGED 0x0001 /* ATTACH: also to a command that was acknowledged */
#define F_EXIT 0x0001     /* ACK: the EXIT is stored, the command may be forgotten */
#define F_BEGIN 0x0001    /* FILE_WRITE: first piece, carries the path */
#define F_COMMIT 0x0002   /* FILE_WRITE: last piece */
#define F_ABORT 0x0004    /* FILE_WRITE: abort, remove the temporary file */
#define F_NEW 0x0008      /* FILE_WRITE, FILE_RENAME: EEXIST if the target exists */
#define F_FREEZE 0x0001   /* DISK_BUDGET: prevents all growth */
#define F_RECURSIVE 0x0001 /* FILE_REMOVE */
#define F_ALL 0x0001       /* FILE_CHANGED: in any of them */
#define F_NO_LINKS 0x8000  /* every file request: a symbolic link on the path is ELOOP */
#define F_STREAM_MASK 0x0003 /* DATA, EOF */

enum stream_id { S_STDIN = 0, S_STDOUT = 1, S_STDERR = 2 };

/* START flags. Unknown bits are refused. */
#define START_SHELL 0x0001
#define START_MERGE 0x0002
#define START_STDIN 0x0004
#define START_KNOWN (START_SHELL | START_MERGE | START_STDIN)

/*
 * START options, in a list after the program: 0x01–0x1f limits and output, 0x20–0x3f terminals and
 * sessions.
 */
enum start_option {
    OPT_TIMEOUT = 0x01,
    OPT_SPOOL = 0x02,
    OPT_CUT = 0x03,
    OPT_LIMIT = 0x04,
    OPT_RLIMIT = 0x05,
    OPT_NICE = 0x06,
    OPT_TERMINAL = 0x20,
    OPT_BACKGROUND = 0x21,
    OPT_SESSION = 0x22,
    OPT_HOME = 0x23,
    OPT_PROFILE = 0x24,
};
#define OPT_REPEATS(tag) ((tag) == OPT_RLIMIT)
#define PROFILE_DEBUG 1

/* Flags of WELCOME. */
#define WELCOME_INIT 0x0001      /* sbxd is PID 1 */
#define WELCOME_MAY_TRACE 0x0002 /* OPT_PROFILE is known, and the engine grants PROFILE_DEBUG */

/* Further facts of EXIT, in a list at its end, numbered like the options of START. */
enum exit_fact {
    FACT_CUT = 0x01,
    FACT_RUSAGE = 0x02,
    FACT_OOM = 0x03,
    FACT_STOPPED = 0x04,
    FACT_SESSION = 0x22,
};

enum refused_reason { REFUSED_NO_KEY = 1, REFUSED_BAD_KEY = 2, REFUSED_OLD_EPOCH = 3, REFUSED_VERSION = 4 };

enum start_stage {
    STAGE_REQUEST = 1,
    STAGE_BOOT = 2,
    STAGE_LIMIT = 3,
    STAGE_FORK = 4,
    STAGE_SETUP = 5,
    STAGE_CWD = 6,
    STAGE_EXEC = 7,
    STAGE_ATTACH = 8,
};

enum exit_cause {
    CAUSE_NONE = 0,
    CAUSE_EXITED = 1,
    CAUSE_SIGNAL = 2,
    CAUSE_TIMEOUT = 3,
    CAUSE_CANCEL = 4,
    CAUSE_OOM = 5,
    CAUSE_OUTPUT_LIMIT = 6,
    CAUSE_DISK_QUOTA = 7,
    CAUSE_SHIM_KILLED = 8,
};

enum signal_scope { SCOPE_PROCESS = 0, SCOPE_GROUP = 1, SCOPE_TREE = 2 };

/* Sent in WELCOME. */
#define MAX_COMMANDS 256          /* running plus ended but not acknowledged */
#define WINDOW_BYTES (2u << 20)   /* replay window of one stream while memory is ample */

#define NONCE_BYTES 16

/* ---- bytes.c: little-endian fields ----------------------------------------------------------- */

struct reader {
    const uint8_t *p;
    size_t left;
    bool bad;
};
uint8_t rd8(struct reader *r);
uint16_t rd16(struct reader *r);
uint32_t rd32(struct reader *r);
uint64_t rd64(struct reader *r);
const uint8_t *rdn(struct reader *r, size_t n);

void put16(uint8_t *p, uint16_t v);
void put32(uint8_t *p, uint32_t v);
void put64(uint8_t *p, uint64_t v);
uint32_t get32(const uint8_t *p);

struct buf {
    uint8_t *p;
    size_t len, cap;
};
/* Returns room for n more bytes and counts them as used. Aborts when out of memory. */
uint8_t *buf_add(struct buf *b, size_t n);
void buf8(struct buf *b, uint8_t v);
void buf16(struct buf *b, uint16_t v);
void buf32(struct buf *b, uint32_t v);
void buf64(struct buf *b, uint64_t v);
void buf_bytes(struct buf *b, const void *p, size_t n);

/* ---- sha256.c: begins zeroed ----------------------------------------------------------------- */

struct sha256 {
    uint32_t h[8];
    uint64_t bytes;
    uint8_t block[64];
};
void sha256_add(struct sha256 *s, const void *data, size_t n);
/* The hash of all added bytes; `s` is unchanged. */
void sha256_end(const struct sha256 *s, uint8_t out[32]);

/* ---- checks.c: CRC-32C, HMAC ----------------------------------------------------------------- */

uint32_t crc32c(uint32_t start, const void *data, size_t n);
void hmac_sha256(const uint8_t key[KEY_BYTES], const void *data, size_t n, uint8_t out[32]);
bool equal_secret(const uint8_t *a, const uint8_t *b, size_t n);

/* ---- frames_in.c, frames_out.c --------------------------------------------------------------- */

struct frame {
    uint8_t type;
    uint16_t flags;
    uint32_t channel;
    const uint8_t *p; /* the payload */
    size_t n;
};
struct reader frame_reader(const struct frame *f);

struct frame_handler {
    uint8_t type;
    void (*handle)(const struct frame *f);
};

/* A DATA frame; its bytes stay in place until they are written. */
struct data_frame {
    uint16_t stream;
    uint32_t channel;
    uint64_t offset;
    size_t length;
    struct iovec bytes[2];
    int pieces;
};

/* Callbacks into the folders above; main.c fills it. */
struct wire_hooks {
    /* A new controller: forget the state of the former one. */
    void (*controller_changed)(void);
    /* The first controller has sent the key that seals files on the volume. */
    void (*seal_installed)(const uint8_t key[KEY_BYTES]);
    /* Appends the list of commands to WELCOME. */
    void (*describe)(struct buf *b);
    /* True when output can be sent; next_data returns its next piece, which then counts as sent. */
    bool (*has_data)(void);
    bool (*next_data)(struct data_frame *out);
};

extern const struct wire_hooks *wire_hooks;

void wire_init(const struct frame_handler *handlers, size_t n, const struct wire_hooks *hooks);
void frame_out(uint8_t type, uint16_t flags, uint32_t channel, const void *payload, size_t n);
/* For the loop: reads, writes, and the directions to poll. */
void wire_readable(void);
void wire_pump(void);
bool wire_wants_write(void);
bool wire_wants_read(void);
/* Bytes queued for the controller. */
size_t wire_queued(void);
/* Writes of them what fits. */
void wire_flush(void);
/* Discards them. */
void wire_forget_queue(void);
/* Sends it at once on a connection that is not the wire; it is lost where that has no room. */
void frame_to(int fd, uint8_t type, const void *payload, size_t n);
/*
 * Bytes consumed of a connection without a session; 0 when more are needed. Its valid HELLO makes
 * it the wire, as wire_take does; the rest of the bytes is then consumed too.
 */
size_t wire_greet(int fd, uint8_t *p, size_t n);
/* Ends the present wire and makes a copy of this descriptor the wire; both ways are open again. */
void wire_take(int fd);
extern unsigned wire_connection; /* a number that changes with each wire_take */
/* The descriptors 0 and 1 lead nowhere (any more). Outside of a Pod: no controller will come. */
extern bool wire_ended;
extern bool welcomed;      /* a controller has sent a valid HELLO */
extern uint64_t frames_in; /* good frames received, for the lease */
extern uint8_t boot_id[ID_BYTES];
extern uint8_t sandbox_key[KEY_BYTES];

#endif
