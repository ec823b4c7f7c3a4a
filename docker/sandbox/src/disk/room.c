/*
 * The workspace's file system: its own (statfs counts and the kernel enforces the limit) or shared,
 * its free space, and the controller's floor.
 */
#include "disk.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/statfs.h>
#include <unistd.h>

static int root = -1;
static bool own_file_system;
static atomic_bool low;
static atomic_ullong floor_bytes, floor_files; /* of the shared file system, 0 = none */
static atomic_bool own_limit;                     /* statfs shows the workspace alone */

/*
 * Mounted as a whole: its file system holds only the workspace. Except 9p, by which gVisor presents
 * every mount: its root is the shared directory, and statfs shows the disk below.
 */
static void read_mount(void)
{
    FILE *f = fopen("/proc/self/mountinfo", "re");
    static char line[16384];
    while (f && fgets(line, sizeof line, f)) {
        char top[4096], point[4096];
        const char *type = strstr(line, " - ");
        /*
         * The last mount there is the visible one. Names with blanks are escaped and do not match:
         * the files are counted.
         */
        if (!type || sscanf(line, "%*s %*s %*s %4095s %4095s", top, point) != 2 || strcmp(point, workspace_path) != 0)
            continue;
        own_file_system = strcmp(top, "/") == 0 && strncmp(type, " - 9p ", 6) != 0;
    }
    if (f)
        fclose(f);
}

/* struct fsxattr and its request, as in linux/fs.h: the project quota of a directory. */
struct project {
    uint32_t flags, extent_size, extents, id, cow_extent_size;
    uint8_t pad[8];
};
#define GET_PROJECT _IOR('X', 31, struct project)
#define INHERIT_PROJECT 0x00000200

/*
 * With a project quota statfs shows the quota's numbers; a lost quota appears as a far larger file
 * system.
 */
static bool has_project_quota(uint64_t budget)
{
    struct project p;
    struct statfs s;
    if (!budget || ioctl(root, GET_PROJECT, &p) < 0 || !p.id || !(p.flags & INHERIT_PROJECT) || fstatfs(root, &s) < 0)
        return false;
    return (uint64_t)s.f_blocks * (uint64_t)s.f_bsize <= budget + budget / 8;
}

bool disk_room(struct disk_room *out)
{
    struct statfs s;
    if (root < 0 || fstatfs(root, &s) < 0)
        return false;
    uint64_t block = (uint64_t)s.f_bsize;
    *out = (struct disk_room){s.f_blocks * block, s.f_bfree * block, s.f_files, s.f_ffree};
    return true;
}

/* Hysteresis: a short disk recovers at a quarter above the floor. */
static bool is_short(uint64_t left, uint64_t floor, bool was) { return left < (was ? floor + floor / 4 : floor); }

uint8_t disk_low(void)
{
    struct disk_room room;
    uint64_t bytes = atomic_load(&floor_bytes), files = atomic_load(&floor_files);
    bool was = atomic_load(&low), is = false;
    /* For a workspace with its own limit statfs does not show the host. */
    if ((bytes || files) && !atomic_load(&own_limit) && disk_room(&room))
        is = is_short(room.bytes_free, bytes, was) || (room.files && is_short(room.files_free, files, was));
    if (is != was)
        atomic_store(&low, is);
    return is ? DISK_LOW : 0;
}

void disk_floor(uint64_t bytes, uint64_t files)
{
    atomic_store(&floor_bytes, bytes);
    atomic_store(&floor_files, files);
}

uint64_t disk_floor_bytes(void) { return atomic_load(&floor_bytes); }

bool disk_was_low(void) { return atomic_load(&low); }

bool disk_has_own_limit(uint64_t budget)
{
    bool wall = own_file_system || has_project_quota(budget);
    atomic_store(&own_limit, wall);
    return wall;
}

bool disk_own_full(void)
{
    struct disk_room room;
    return own_file_system && disk_room(&room) && room.bytes_free < DISK_SLACK;
}

int disk_root(void) { return root; }

void disk_room_init(void)
{
    root = openat(workspace_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        die("cannot open the workspace");
    read_mount();
}
