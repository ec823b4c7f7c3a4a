import { execFile } from 'node:child_process'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

/** Writes without end to files that no name leads to any more, and holds them where nobody can count them. */
const HIDER = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
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
static void through_a_socket(void) {
    int pair[2], fd = hidden();
    char space[CMSG_SPACE(sizeof fd)] = {0}, byte = 0;
    struct iovec one = {&byte, 1};
    struct msghdr m = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    socketpair(AF_UNIX, SOCK_DGRAM, 0, pair);
    for (;;) {
        for (int i = 0; i < 8; i++) if (write(fd, bytes, PIECE) <= 0) return;
        c->cmsg_level = SOL_SOCKET, c->cmsg_type = SCM_RIGHTS, c->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
        sendmsg(pair[0], &m, 0);
        close(fd);
        usleep(20000);
        recvmsg(pair[1], &m, 0);
        memcpy(&fd, CMSG_DATA(c), sizeof fd);
    }
}
static void only_mapped(void) {
    for (;;) {
        int fd = hidden();
        ftruncate(fd, FILE_BYTES);
        char *p = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
        for (int at = 0; at < FILE_BYTES; at += 4096) {
            p[at] = 1;
            if (at % PIECE == 0) usleep(1000);
        }
    }
}
static void *wait_for_ever(void *unused) { for (;;) pause(); }
static void behind_mappings(void) {
    pthread_t thread;
    int fd = open("/proc/self/exe", O_RDONLY);
    for (int i = 0; i < 60000; i++) mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    for (int i = 0; i < 300; i++) pthread_create(&thread, NULL, wait_for_ever, NULL);
    if (fork() == 0) only_mapped();
    wait(NULL);
}
int main(int argc, char **argv) {
    memset(bytes, 1, sizeof bytes);
    if (strcmp(argv[1], "not dumpable") == 0) prctl(PR_SET_DUMPABLE, 0), write_on(hidden());
    if (strcmp(argv[1], "unreadable") == 0) write_on(3);
    if (strcmp(argv[1], "socket") == 0) through_a_socket();
    if (strcmp(argv[1], "mapped") == 0) only_mapped();
    if (strcmp(argv[1], "many") == 0) behind_mappings();
    write(2, "full", 4);
}
`

/** Shell text that hides what it writes in each way that there is; it needs the program at `./hider`. */
export const HIDING: Record<string, string> = {
  'a process that hides from its own user': './hider "not dumpable"',
  'a program that nobody may read': 'chmod 111 hider; exec 3>hidden; rm hidden; ./hider unreadable',
  'a descriptor on its way through a socket': './hider socket',
  'a file that is only mapped': './hider mapped',
  'behind more mappings in more threads than there is time for': './hider many',
}

/** The program, which needs nothing of the image. It says `full` when it was stopped by nothing but the end of the disk. */
export async function buildHider(folder: string): Promise<Uint8Array> {
  const source = join(folder, 'hider.c')
  await writeFile(source, HIDER)
  await promisify(execFile)('gcc', ['-w', '-O1', '-static', '-pthread', '-o', join(folder, 'hider'), source])
  return readFile(join(folder, 'hider'))
}
