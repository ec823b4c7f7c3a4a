/*
 * Parser of frames from stdin, and the handshake (HELLO → WELCOME or REFUSED). Only a frame whose
 * header and payload checksums fit the last accepted controller reaches its handler. Anything else
 * is discarded and reported by DROPPED: after a bad header the search continues at the next byte,
 * after a bad payload at the end of the frame. In a Pod (pod/) descriptors 0 and 1 are the
 * connection of the session, and others are parsed up to their HELLO.
 */
#include "wire.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define IN_BYTES (256u << 10)
/* Answers waiting for the controller to read; above it requests are not read */
#define QUEUE_MAX (4u << 20)
#define HELLO_MAX 128

bool wire_ended, welcomed;
uint64_t frames_in;
unsigned wire_connection;
uint8_t boot_id[ID_BYTES];
uint8_t sandbox_key[KEY_BYTES];

static void (*handlers[256])(const struct frame *f);
const struct wire_hooks *wire_hooks;

static bool key_installed;
static uint64_t epoch;
/* Frames of this controller are checked from these start values */
static uint32_t session_header_crc, session_crc;
static uint8_t session_nonce[NONCE_BYTES];
/* Good frames of this session: their number shows a controller a lost frame */
static uint64_t session_frames;
static bool dropped;

static uint8_t input[IN_BYTES];
static size_t input_length;

void wire_take(int fd)
{
    /* A shim that was just forked holds copies, and the other end would see no end. */
    shutdown(0, SHUT_RDWR);
    for (int number = 0; number <= 1; number++) {
        poll_remove(number);
        if (dup2(fd, number) < 0)
            die("dup2");
    }
    wire_connection++;
    input_length = 0;
    wire_forget_queue();
    wire_ended = false;
}

/* `to`: a connection without a session; -1: the wire. */
static void send_refused(int to, const uint8_t *nonce, uint8_t reason)
{
    uint8_t p[NONCE_BYTES + 9];
    memcpy(p, nonce, NONCE_BYTES);
    p[NONCE_BYTES] = reason;
    put64(p + NONCE_BYTES + 1, epoch);
    if (to < 0)
        frame_out(T_REFUSED, 0, 0, p, sizeof p);
    else
        frame_to(to, T_REFUSED, p, sizeof p);
}

static void send_welcome(const uint8_t *nonce)
{
    /*
     * The queue stays: it may hold the answer to another controller's HELLO, for which that one
     * waits.
     */
    memcpy(session_nonce, nonce, NONCE_BYTES);
    dropped = false;
    session_frames = 0;
    wire_hooks->controller_changed();
    /* Never zero, so that a payload of zeros never has a good checksum. */
    session_crc = get32(nonce) | 1;
    session_header_crc = get32(nonce + 4) | 1;
    welcomed = true;

    struct buf b = {0};
    size_t path = strlen(workspace_path);
    buf_bytes(&b, nonce, NONCE_BYTES);
    buf_bytes(&b, boot_id, ID_BYTES);
    buf16(&b, PROTOCOL_VERSION);
    buf16(&b, (uint16_t)((is_init ? WELCOME_INIT : 0) | (may_trace ? WELCOME_MAY_TRACE : 0)));
    buf64(&b, epoch);
    buf32(&b, WINDOW_BYTES);
    buf32(&b, MAX_COMMANDS);
    buf32(&b, (uint32_t)path);
    buf_bytes(&b, workspace_path, path);
    wire_hooks->describe(&b);
    frame_out(T_WELCOME, 0, 0, b.p, b.len);
    free(b.p);
}

static void handle_hello(int from, uint16_t flags, const uint8_t *p, size_t n)
{
    struct reader r = {p, n, false};
    uint16_t version = rd16(&r);
    uint64_t claimed = rd64(&r);
    const uint8_t *nonce = rdn(&r, NONCE_BYTES), *mac = rdn(&r, 32);
    const uint8_t *key = flags & F_INSTALL ? rdn(&r, KEY_BYTES) : NULL;
    const uint8_t *seal = key && r.left ? rdn(&r, KEY_BYTES) : NULL;
    if (r.bad)
        return;
    if (version != PROTOCOL_VERSION) {
        send_refused(from, nonce, REFUSED_VERSION);
        return;
    }
    if (!key_installed && !key) {
        send_refused(from, nonce, REFUSED_NO_KEY);
        return;
    }
    uint8_t text[16 + NONCE_BYTES + 8], expected[32];
    memcpy(text, "sandlot-sbxd-1\0\0", 16);
    memcpy(text + 16, nonce, NONCE_BYTES);
    put64(text + 16 + NONCE_BYTES, claimed);
    hmac_sha256(key_installed ? sandbox_key : key, text, sizeof text, expected);
    if (!equal_secret(expected, mac, 32)) {
        send_refused(from, nonce, REFUSED_BAD_KEY);
        return;
    }
    if (claimed < epoch) {
        send_refused(from, nonce, REFUSED_OLD_EPOCH);
        return;
    }
    /*
     * A repeated HELLO before the controller has read its WELCOME: a second WELCOME would detach
     * its commands.
     */
    if (welcomed && claimed == epoch && memcmp(nonce, session_nonce, NONCE_BYTES) == 0)
        return;
    if (!key_installed && key) {
        memcpy(sandbox_key, key, KEY_BYTES);
        key_installed = true;
        if (seal)
            wire_hooks->seal_installed(seal);
    }
    epoch = claimed;
    if (from >= 0) {
        /* For the controller before: it gives way, and does not open its stream again. */
        frame_out(T_WELCOME, 0, 0, nonce, NONCE_BYTES);
        wire_flush();
        wire_take(from);
    }
    send_welcome(nonce);
}

static void handle_ping(const struct frame *f)
{
    struct buf b = {0};
    buf_bytes(&b, f->p, f->n < MAX_PAYLOAD - 8 ? f->n : MAX_PAYLOAD - 8);
    buf64(&b, session_frames);
    frame_out(T_PONG, 0, f->channel, b.p, b.len);
    free(b.p);
}

static void dispatch(const struct frame *f)
{
    if (handlers[f->type])
        handlers[f->type](f);
    /*
     * A type of a later version: the controller knows our version from WELCOME and does not send
     * it.
     */
    else
        dropped = true;
}

/* Bytes consumed at p; 0 when more are needed. `from` as of handle_hello. */
static size_t parse_frame(int from, uint8_t *p, size_t n)
{
    if (p[0] != FRAME_MAGIC) {
        /* Zeros are the resynchronisation filler; other bytes before a frame are a loss. */
        size_t i = 0;
        while (i < n && p[i] != FRAME_MAGIC) {
            if (p[i])
                dropped = true;
            i++;
        }
        return i;
    }
    if (n < HEADER_BYTES)
        return 0;
    /*
     * The length in a header of a replaced controller is not trusted either, or it would swallow
     * good frames.
     */
    bool is_hello = p[1] == T_HELLO;
    uint32_t length = get32(p + 8), start = is_hello ? HEADER_CRC_START : session_header_crc;
    if ((!is_hello && (!welcomed || from >= 0)) || get32(p + 12) != crc32c(start, p, 12) || length > (is_hello ? HELLO_MAX : MAX_PAYLOAD)) {
        dropped = true;
        return 1;
    }
    size_t whole = HEADER_BYTES + length + CRC_BYTES;
    if (n < whole)
        return 0;
    uint8_t *payload = p + HEADER_BYTES;
    uint32_t sum = get32(payload + length);
    uint16_t flags = (uint16_t)(p[2] | p[3] << 8);
    if (is_hello && sum == crc32c(HELLO_CRC_START, payload, length)) {
        frames_in++;
        handle_hello(from, flags, payload, length);
        /* It may hold the key, and shims start as copies of this memory. */
        explicit_bzero(payload, length);
    } else if (!is_hello && sum == crc32c(session_crc, payload, length)) {
        frames_in++;
        session_frames++;
        dispatch(&(struct frame){p[1], flags, get32(p + 4), payload, length});
    } else {
        /*
         * A half-written frame completed by filler, or one of a controller that has been replaced.
         */
        dropped = true;
    }
    return whole;
}

bool wire_wants_read(void) { return !wire_ended && wire_queued() < QUEUE_MAX; }

void wire_readable(void)
{
    ssize_t r = read(0, input + input_length, IN_BYTES - input_length);
    if (r == 0 || (r < 0 && errno != EAGAIN && errno != EINTR)) {
        wire_ended = true;
        return;
    }
    if (r < 0)
        return;
    input_length += (size_t)r;
    size_t at = 0;
    while (at < input_length) {
        size_t step = parse_frame(-1, input + at, input_length - at);
        if (!step)
            break;
        at += step;
    }
    memmove(input, input + at, input_length - at);
    input_length -= at;
    if (dropped && welcomed) {
        dropped = false;
        uint8_t p[8];
        put64(p, session_frames);
        frame_out(T_DROPPED, 0, 0, p, sizeof p);
    }
}

size_t wire_greet(int fd, uint8_t *p, size_t n)
{
    unsigned before = wire_connection;
    size_t step = parse_frame(fd, p, n);
    /* No loss of the session. */
    dropped = false;
    if (wire_connection == before)
        return step;
    input_length = n - step;
    memcpy(input, p + step, input_length);
    return n;
}

struct reader frame_reader(const struct frame *f) { return (struct reader){f->p, f->n, false}; }

void wire_init(const struct frame_handler *table, size_t n, const struct wire_hooks *hooks)
{
    if (getrandom(boot_id, sizeof boot_id, 0) != sizeof boot_id)
        die("getrandom");
    wire_hooks = hooks;
    handlers[T_PING] = handle_ping;
    for (size_t i = 0; i < n; i++)
        handlers[table[i].type] = table[i].handle;
    for (int fd = 0; fd <= 1; fd++)
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    /* Best effort: a bigger pipe means fewer wake-ups for heavy output. */
    fcntl(1, F_SETPIPE_SZ, 1 << 20);
}
