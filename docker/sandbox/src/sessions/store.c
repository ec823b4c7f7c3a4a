/*
 * Sessions outlive sbxd: after every change they are written to a file on the user's volume, and
 * the next sbxd reads them, in any container and image. Commands can change that file, and it
 * influences later commands, also those that run without approval (PATH, an exported function). So
 * it is sealed with a key that the controller sends and no command sees: only a file written by an
 * sbxd of this workspace is read, and without the key none is read or written. Its entries are
 * validated all the same. An invalid file stays until the next change replaces it. Only the
 * difference to sbxd's environment is written, so a session follows a new image's PATH, unless it
 * has changed PATH itself: `NAME=value` where it differs, `NAME` where it is no longer exported.
 *
 * magic, HMAC-SHA256 [32] of the magic and the rest, then per session: length of the name u8, name,
 * length u32, and so many bytes: the directory and the entries, each ended by NUL
 */
#include "sessions.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../disk/disk.h"
#include "../files/files.h"

extern char **environ;

#define FILE_NAME ".sessions"
#define STAGED_NAME STAGING_PREFIX "sessions"
#define LAST_NAME STAGING_PREFIX "sessions-last"
/* Exported variables are often secrets: they must not be committed by accident */
#define IGNORE_NAME ".gitignore"
#define FILE_MAX (SESSIONS_BYTES + (1u << 20))
#define ENTRIES_MAX 8192
#define FLUSH_TIMEOUT_S 1

static const char magic[16] = "sbxd sessions 2\n";
#define SEAL_BYTES 32
#define HEAD_BYTES (sizeof magic + SEAL_BYTES)

uint8_t state_key[KEY_BYTES];
static bool sealed; /* the key is set */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, placing = PTHREAD_MUTEX_INITIALIZER;
/* Under the lock. */
static struct buf pending;    /* the file to write; empty: no file is needed */
/* Not written yet; queued for the file thread; being written */
static bool due, asked, busy;
/* While placing. */
static bool ended; /* the final file is written: nothing older replaces it */

/* ---- as bytes -------------------------------------------------------------------------------- */

static void add_text(struct buf *b, const char *text) { buf_bytes(b, text, strlen(text) + 1); }

/* A session without changes is not worth a file in the workspace: nothing is added. */
static void add_record(struct buf *b, const struct session *s)
{
    size_t name = strlen(s->name), before = b->len;
    buf8(b, (uint8_t)name);
    buf_bytes(b, s->name, name);
    size_t length_at = b->len;
    buf32(b, 0);
    add_text(b, s->cwd);
    size_t entries_at = b->len;
    for (char **e = s->env; *e; e++) {
        if (strncmp(*e, "PWD=", 4) == 0 && strcmp(*e + 4, s->cwd) == 0)
            continue; /* every bash finds it out by itself */
        const char *own = session_find_entry(environ, *e);
        if (!own || strcmp(own, *e) != 0)
            add_text(b, *e);
    }
    for (char **e = environ; *e; e++)
        if (session_entry_allowed(*e) && !session_find_entry(s->env, *e)) {
            buf_bytes(b, *e, strcspn(*e, "="));
            buf8(b, 0);
        }
    put32(b->p + length_at, (uint32_t)(b->len - length_at - 4));
    if (b->len == entries_at && strcmp(s->cwd, workspace_path) == 0)
        b->len = before;
}

/* Without its seal, which the writing thread adds. Empty when there is nothing to store. */
static struct buf serialize(void)
{
    struct buf b = {0};
    buf_bytes(&b, magic, sizeof magic);
    memset(buf_add(&b, SEAL_BYTES), 0, SEAL_BYTES);
    for (struct session *s = sessions; s; s = s->next) {
        if (!s->recorded)
            add_record(&s->record, s);
        s->recorded = true;
        buf_bytes(&b, s->record.p, s->record.len);
    }
    if (b.len == HEAD_BYTES)
        b.len = 0;
    return b;
}

/* `entries` are n bytes of strings. True if one of them sets or unsets the variable of `own`. */
static bool mentions(const char *entries, size_t n, const char *own)
{
    size_t name = strcspn(own, "=");
    for (const char *at = entries; at < entries + n; at += strlen(at) + 1)
        if (strncmp(at, own, name) == 0 && (at[name] == '=' || at[name] == 0))
            return true;
    return false;
}

/* `p` ends in NUL. NULL when it is no session. */
static struct session *parse_session(const char *name, const char *p, size_t n)
{
    size_t strings = 0, cwd = strlen(p) + 1;
    for (size_t i = 0; i < n; i++)
        strings += p[i] == 0;
    if (n > SESSION_BYTES || strings > ENTRIES_MAX || cwd > SESSION_CWD_MAX)
        return NULL;
    struct buf text = {0};
    buf_bytes(&text, p, cwd);
    for (char **own = environ; *own; own++)
        if (session_entry_allowed(*own) && !mentions(p + cwd, n - cwd, *own))
            add_text(&text, *own);
    for (const char *at = p + cwd; at < p + n; at += strlen(at) + 1)
        if (strchr(at, '=') && session_entry_allowed(at))
            add_text(&text, at);
    return session_make(name, &text);
}

void sessions_read(const uint8_t *p, size_t n)
{
    struct reader r = {p, n, false};
    while (r.left) {
        char name[SESSION_NAME_MAX + 1];
        uint8_t name_length = rd8(&r);
        const uint8_t *name_at = rdn(&r, name_length);
        uint32_t length = rd32(&r);
        const uint8_t *entries = rdn(&r, length);
        if (r.bad || !length || entries[length - 1] != 0 || !session_name_read(name, name_at, name_length))
            return;
        struct session *s = parse_session(name, (const char *)entries, length);
        if (!s || !session_append(s))
            return;
    }
}

/* ---- as a file ------------------------------------------------------------------------------- */

/* Seals the bytes of a whole file; the seal's own bytes count as zeros. */
static void seal(uint8_t *file, size_t n, uint8_t out[SEAL_BYTES])
{
    memset(file + sizeof magic, 0, SEAL_BYTES);
    hmac_sha256(state_key, file, n, out);
}

static bool is_sealed(uint8_t *file, size_t n)
{
    uint8_t given[SEAL_BYTES], expected[SEAL_BYTES];
    memcpy(given, file + sizeof magic, SEAL_BYTES);
    seal(file, n, expected);
    return equal_secret(given, expected, SEAL_BYTES);
}

static void load(void)
{
    struct stat st;
    int dir = staging_dir(false);
    int fd = dir < 0 ? -1 : openat(dir, FILE_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (dir >= 0)
        close(dir);
    if (fd < 0)
        return;
    bool fits = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > (off_t)HEAD_BYTES && st.st_size <= (off_t)FILE_MAX;
    size_t n = fits ? (size_t)st.st_size : 0, got = 0;
    uint8_t *p = fits ? malloc(n) : NULL;
    ssize_t r = 1;
    while (p && got < n && r > 0) {
        r = read(fd, p + got, n - got);
        got += r > 0 ? (size_t)r : 0;
    }
    close(fd);
    bool whole = got > HEAD_BYTES && memcmp(p, magic, sizeof magic) == 0;
    if (whole && is_sealed(p, got))
        sessions_read(p + HEAD_BYTES, got - HEAD_BYTES);
    free(p);
}

void sessions_set_key(const uint8_t key[KEY_BYTES])
{
    if (sealed)
        return;
    memcpy(state_key, key, KEY_BYTES);
    sealed = true;
    load();
}

/* True for one of ours; another one is the user's, and stays. */
static bool is_our_ignore(int dir)
{
    struct stat st;
    char text[4];
    int fd = openat(dir, IGNORE_NAME, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    bool ours = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && read(fd, text, sizeof text) == 2 && memcmp(text, "*\n", 2) == 0;
    if (fd >= 0)
        close(fd);
    return ours;
}

/* Returns true when no such file is left. */
static bool remove_file(void)
{
    int dir = staging_dir_unlocked();
    if (dir < 0)
        return errno == ENOENT;
    bool removed = unlinkat(dir, FILE_NAME, 0) == 0;
    bool gone = removed || errno == ENOENT;
    /* A staged file that could not be renamed because the user had just closed the folder. */
    unlinkat(dir, STAGED_NAME, 0);
    unlinkat(dir, LAST_NAME, 0);
    if (removed && is_our_ignore(dir))
        unlinkat(dir, IGNORE_NAME, 0);
    close(dir);
    staging_remove_if_empty();
    return gone;
}

static void ignore_in_git(int dir)
{
    int fd = openat(dir, IGNORE_NAME, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return;
    (void)!write(fd, "*\n", 2);
    close(fd);
}

/*
 * Next to the old one. `synced`: on the disk before this returns, so that even a power cut leaves
 * no partial file.
 */
static bool write_staged(const char *name, const struct buf *b, bool synced)
{
    if (disk_refusal())
        return false;
    int folder = staging_dir_unlocked();
    if (folder >= 0)
        close(folder);
    int fd = create_staged(name);
    if (fd < 0)
        return false;
    size_t done = 0;
    ssize_t n = 1;
    fchmod(fd, 0600);
    uint8_t mac[SEAL_BYTES];
    seal(b->p, b->len, mac);
    memcpy(b->p + sizeof magic, mac, SEAL_BYTES);
    while (done < b->len && n > 0) {
        n = write(fd, b->p + done, b->len - done);
        done += n > 0 ? (size_t)n : 0;
    }
    bool good = done == b->len && (!synced || fdatasync(fd) == 0);
    close(fd);
    return good;
}

/* Replaces the old one, or removes an incomplete one. */
static bool rename_staged(const char *name, bool whole)
{
    int dir = staging_dir(false);
    if (dir < 0)
        return false;
    bool good = whole && renameat(dir, name, dir, FILE_NAME) == 0;
    if (good)
        ignore_in_git(dir);
    else
        unlinkat(dir, name, 0);
    close(dir);
    return good;
}

/* ---- when ------------------------------------------------------------------------------------ */

/* The final write does not wait for the disk: time is short. */
static bool write_out(const struct buf *b, bool last)
{
    const char *name = last ? LAST_NAME : STAGED_NAME;
    bool staged = b->len && write_staged(name, b, !last);
    pthread_mutex_lock(&placing);
    bool late = ended && !last;
    bool written = b->len ? rename_staged(name, staged && !late) : late || remove_file();
    ended = ended || last;
    pthread_mutex_unlock(&placing);
    return written;
}

/* On the file thread. */
static void sessions_write(void)
{
    pthread_mutex_lock(&lock);
    struct buf b = pending;
    bool wanted = busy = due;
    pending = (struct buf){0};
    due = asked = false;
    pthread_mutex_unlock(&lock);
    bool written = !wanted || write_out(&b, false);
    pthread_mutex_lock(&lock);
    busy = false;
    if (!written && !due) { /* no room: at the next change, or at the end */
        pending = b;
        due = true;
        b.p = NULL;
    }
    pthread_mutex_unlock(&lock);
    free(b.p);
}

static void *write_last(void *file)
{
    write_out(file, true);
    return NULL;
}

void sessions_flush(void)
{
    static struct buf b; /* static: the thread may still use it when sbxd ends */
    struct timespec until;
    pthread_t thread;
    pthread_mutex_lock(&lock);
    bool wanted = due || busy;
    pthread_mutex_unlock(&lock);
    if (!wanted)
        return;
    b = serialize();
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += FLUSH_TIMEOUT_S; /* sbxd stops soon: do not wait for a hanging disk */
    if (pthread_create(&thread, NULL, write_last, &b) == 0)
        pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until);
    else
        write_last(&b);
}

void sessions_save(void)
{
    if (!sealed)
        return;
    struct buf b = serialize();
    pthread_mutex_lock(&lock);
    struct buf old = pending;
    bool ask = !asked;
    pending = b;
    due = asked = true;
    pthread_mutex_unlock(&lock);
    free(old.p);
    if (ask)
        files_run(sessions_write);
}

void sessions_clear(void)
{
    sessions_forget();
    sessions_save();
}
