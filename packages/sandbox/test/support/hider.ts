import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

/**
 * Takes room without end for files that no name leads to any more, and holds them where nobody can
 * count them.
 */
export const HIDER = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>
#define PIECE (1 << 20)
#define FILE_BYTES (64 << 20)
static char bytes[PIECE];
static int hidden(void) {
    int fd = open("hidden", O_RDWR | O_CREAT, 0600);
    unlink("hidden");
    return fd;
}
static void write_on(int fd) {
    while (write(fd, bytes, PIECE) > 0) usleep(1000);
}
static char space[CMSG_SPACE(sizeof(int))], byte;
static struct iovec one = {&byte, 1};
static struct msghdr m = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
static int send_on(int to, int fd) {
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    return sendmsg(to, &m, MSG_DONTWAIT);
}
static void through_a_socket(void) {
    int pair[2], fd = hidden();
    socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
    for (;;) {
        for (int i = 0; i < 8; i++) if (write(fd, bytes, PIECE) <= 0) return;
        send_on(pair[0], fd);
        close(fd);
        usleep(20000);
        recvmsg(pair[1], &m, 0);
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
    }
}
#define KEPT 16
static void for_one_who_sleeps(void) {
    int pairs[KEPT][2], status = 0;
    for (int i = 0; i < KEPT; i++) socketpair(AF_UNIX, SOCK_STREAM, 0, pairs[i]);
    if (fork() == 0) for (prctl(PR_SET_DUMPABLE, 0);;) pause();
    for (int i = 0; i < KEPT; i++) close(pairs[i][1]);
    for (int i = 0; !status; i++) {
        if (fork() == 0) {
            int fd = hidden();
            _exit(write(fd, bytes, PIECE / 8) <= 0 || send_on(pairs[i % KEPT][0], fd) < 0);
        }
        wait(&status);
    }
}
/* Holds so many files at a time, or all of them if none. */
static void *map_one(long n, long held, size_t size, int fd) {
    static char *places;
    if (held && !places) places = mmap(NULL, held * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (held && n % held == 0) munmap(places, held * size);
    char *place = held ? places + n % held * size : NULL;
    void *p = mmap(place, size, PROT_READ | PROT_WRITE, MAP_SHARED | (held ? MAP_FIXED : 0), fd, 0);
    close(fd);
    return p;
}
static void only_mapped(long held) {
    for (long n = 0;; n++) {
        int fd = hidden();
        ftruncate(fd, FILE_BYTES);
        char *p = map_one(n, held, FILE_BYTES, fd);
        for (int at = 0; at < FILE_BYTES; at += 4096) {
            p[at] = 1;
            if (at % PIECE == 0) usleep(1000);
        }
    }
}
/* Files without a byte, whose attributes take a block each. Equal ones would share it. */
static void attributes(void) {
    for (long n = 0;; n++) {
        int fd = open(".", O_TMPFILE | O_RDWR, 0600);
        memcpy(bytes, &n, sizeof n);
        if (fsetxattr(fd, "user.hidden", bytes, 4000, 0) < 0) { perror("fsetxattr"); exit(1); }
        map_one(n, 1000, 4096, fd);
        usleep(1000);
    }
}
/* Others write and are gone; it only maps what they hand to it, which no kernel charges it with. */
static void for_one_who_works(void) {
    int pair[2], fd;
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    signal(SIGCHLD, SIG_IGN);
    for (long n = 0; n < 4000; n++) {
        if (fork() == 0) {
            fd = open("hidden", O_RDWR | O_CREAT | O_NOATIME, 0600);
            unlink("hidden");
            _exit(write(fd, bytes, PIECE / 8) <= 0 || send_on(pair[0], fd) < 0);
        }
        m.msg_controllen = sizeof space;
        if (recvmsg(pair[1], &m, 0) < 0) { perror("recvmsg"); exit(1); }
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
        /* Or the next one of the others would have it too. */
        madvise(map_one(n, 0, 4096, fd), 4096, MADV_DONTFORK);
    }
    for (;;) usleep(1000);
}
static void *wait_for_ever(void *unused) { for (;;) pause(); }
static void behind_mappings(void) {
    pthread_t thread;
    int fd = open("/proc/self/exe", O_RDONLY);
    for (int i = 0; i < 60000; i++) mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    for (int i = 0; i < 300; i++) pthread_create(&thread, NULL, wait_for_ever, NULL);
    if (fork() == 0) only_mapped(0);
    wait(NULL);
}
static void answer_once(void) {
    prctl(PR_SET_DUMPABLE, 0);
    write(1, "on\\n", 3);
    read(0, &byte, 1);
    write(1, "still on\\n", 9);
    exit(0);
}
int main(int argc, char **argv) {
    memset(bytes, 1, sizeof bytes);
    if (strcmp(argv[1], "agent") == 0) answer_once();
    if (strcmp(argv[1], "not dumpable") == 0) prctl(PR_SET_DUMPABLE, 0), write_on(hidden());
    if (strcmp(argv[1], "unreadable") == 0) write_on(3);
    if (strcmp(argv[1], "socket") == 0) through_a_socket();
    if (strcmp(argv[1], "mapped") == 0) only_mapped(argc > 2 ? atol(argv[2]) : 0);
    if (strcmp(argv[1], "attributes") == 0) attributes();
    if (strcmp(argv[1], "many") == 0) behind_mappings();
    if (strcmp(argv[1], "kept") == 0) for_one_who_sleeps();
    if (strcmp(argv[1], "works") == 0) for_one_who_works();
    write(2, "full", 4);
}
`

/**
 * Shell text that hides what it writes in each way that there is; it needs the program at
 * `./hider`.
 */
export const HIDING: Record<string, string> = {
  'a process that hides from its own user': './hider "not dumpable"',
  'a program that nobody may read': 'chmod 111 hider; exec 3>hidden; rm hidden; ./hider unreadable',
  'a descriptor on its way through a socket': './hider socket',
  'a file that is only mapped': './hider mapped',
  'by many, for one who only keeps it and sleeps': './hider kept',
  'behind more mappings in more threads than there is time for': './hider many',
}

/** Writes without end, but holds no more than 512 MiB of it at a time. */
export const MAPPING = './hider mapped 8'

/**
 * Takes 500 MiB that others write, who are gone: the one who holds it is charged with nothing, on
 * any file system.
 */
export const WORKING = './hider works'

/**
 * Takes room that no process is charged with where ext4 has a journal, and on xfs; 4 MiB at a time.
 */
export const ATTRIBUTES = './hider attributes'

/**
 * Hides like an ssh-agent: lets nobody look at it, writes nothing, sleeps until it is asked. Says
 * `on`, and `still on`.
 */
export const HONEST = './hider agent'

/**
 * The program, which needs nothing of the image. It says `full` when it was stopped by nothing but
 * the end of the disk.
 */
export async function buildHider(folder: string): Promise<Uint8Array> {
  const source = join(folder, 'hider.c')
  await writeFile(source, HIDER)
  await promisify(execFile)('gcc', ['-w', '-O1', '-static', '-pthread', '-o', join(folder, 'hider'), source])
  return readFile(join(folder, 'hider'))
}
