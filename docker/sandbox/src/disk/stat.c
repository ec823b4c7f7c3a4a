/*
 * Usage of the sandbox, from the cgroup's own files where they are readable inside (v2, v1), else
 * summed over our processes. Unknown numbers are 0.
 */
#include "disk.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statfs.h>
#include <unistd.h>

#define NO_LIMIT (1ull << 60) /* v1 shows "unlimited" as a number near 2^63 */

static bool read_text(const char *path, char *text, size_t n) { return proc_read(AT_FDCWD, path, text, n) > 0; }

/*
 * The first of these files that begins with a number; "max" and the like are 0. Outside a container
 * they are not ours.
 */
static bool read_number(uint64_t *value, const char *v2, const char *v1)
{
    const char *paths[] = {v2, v1};
    char text[64];
    for (size_t i = 0; is_init && i < 2; i++)
        if (paths[i] && read_text(paths[i], text, sizeof text)) {
            *value = strtoull(text, NULL, 10);
            if (*value >= NO_LIMIT)
                *value = 0;
            return true;
        }
    return false;
}

static uint64_t field(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

struct sums {
    uint64_t resident, cpu_us;
    uint32_t processes, runnable;
};

/* One process: added when it is below sbxd; as PID 1 every visible process is. */
static void add_process(void *sums, int proc, const char *name)
{
    struct sums *s = sums;
    char path[32], text[512];
    snprintf(path, sizeof path, "%.20s/stat", name);
    if (proc_read(proc, path, text, sizeof text) <= 0)
        return;
    const char *end = strrchr(text, ')');
    char run;
    unsigned long user, sys;
    long resident;
    /* Fields 3, 14, 15 and 24 of proc_pid_stat(5). */
    if (!end || sscanf(end + 1, " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %*d %*d %*d %*d %*d %*d %*u %*u %ld", &run,
                       &user, &sys, &resident) != 4)
        return;
    pid_t self = getpid(), pid = atoi(name);
    if (!is_init && !proc_ancestor(pid, &self, 1))
        return;
    s->processes++;
    s->runnable += run == 'R';
    s->resident += (uint64_t)resident * (uint64_t)sysconf(_SC_PAGESIZE);
    s->cpu_us += (uint64_t)(user + sys) * (1000000 / (uint64_t)sysconf(_SC_CLK_TCK));
}

static struct sums sum_processes(void)
{
    struct sums s = {0};
    proc_each(add_process, &s);
    return s;
}

/* Without reclaimable page cache. */
static void put_memory(struct buf *b, const struct sums *s)
{
    uint64_t used = s->resident, most = 0;
    char text[8192];
    if (read_number(&used, "/sys/fs/cgroup/memory.current", "/sys/fs/cgroup/memory/memory.usage_in_bytes")) {
        read_number(&most, "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes");
        uint64_t cache = 0;
        if (read_text("/sys/fs/cgroup/memory.stat", text, sizeof text))
            cache = field(text, "\ninactive_file ");
        else if (read_text("/sys/fs/cgroup/memory/memory.stat", text, sizeof text))
            cache = field(text, "\ntotal_inactive_file ");
        used -= cache < used ? cache : used;
    }
    buf64(b, used);
    buf64(b, most);
}

static void put_processes(struct buf *b, const struct sums *s)
{
    uint64_t now = s->processes, most = 0;
    if (read_number(&now, "/sys/fs/cgroup/pids.current", "/sys/fs/cgroup/pids/pids.current"))
        read_number(&most, "/sys/fs/cgroup/pids.max", "/sys/fs/cgroup/pids/pids.max");
    buf32(b, (uint32_t)now);
    buf32(b, (uint32_t)most);
}

static void put_load(struct buf *b, const struct sums *s, uint32_t commands_running)
{
    uint64_t cpu = s->cpu_us, ns;
    char text[1024];
    if (is_init && read_text("/sys/fs/cgroup/cpu.stat", text, sizeof text) && strstr(text, "usage_usec "))
        cpu = field(text, "usage_usec ");
    else if (read_number(&ns, NULL, "/sys/fs/cgroup/cpuacct/cpuacct.usage"))
        cpu = ns / 1000;
    buf64(b, cpu);
    buf32(b, s->runnable);
    buf32(b, commands_running);
}

static void put_disk(struct buf *b)
{
    struct disk_state d;
    struct disk_room room = {0};
    disk_get_state(&d);
    disk_room(&room);
    uint64_t age = d.counted_us ? (now_us() - d.counted_us) / 1000 : UINT32_MAX;
    buf8(b, d.flags | disk_low());
    buf8(b, (uint8_t)d.source);
    buf16(b, 0);
    buf32(b, age > UINT32_MAX ? UINT32_MAX : (uint32_t)age);
    buf64(b, d.used.bytes);
    buf64(b, d.most.bytes);
    buf64(b, d.used.entries);
    buf64(b, d.most.entries);
    buf64(b, room.bytes);
    buf64(b, room.bytes_free);
    buf64(b, room.files);
    buf64(b, room.files_free);
}

static void put_scratch(struct buf *b)
{
    uint64_t used = 0, most = 0;
    for (size_t i = 0; i < sizeof tmp_dirs / sizeof *tmp_dirs && tmp_dirs[i]; i++) {
        struct statfs s;
        if (statfs(tmp_dirs[i], &s) == 0) {
            used += (uint64_t)(s.f_blocks - s.f_bfree) * (uint64_t)s.f_bsize;
            most += (uint64_t)s.f_blocks * (uint64_t)s.f_bsize;
        }
    }
    buf64(b, used);
    buf64(b, most);
}

void stat_describe(struct buf *b, uint32_t commands_running)
{
    struct sums s = sum_processes();
    put_memory(b, &s);
    put_processes(b, &s);
    put_load(b, &s, commands_running);
    put_scratch(b);
    put_disk(b);
}
