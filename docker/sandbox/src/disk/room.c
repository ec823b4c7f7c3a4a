/*
 * The file system that the workspace is on: whether it is the workspace's alone (then statfs counts and the kernel is
 * the wall) or everybody's, how much room it has, and whether that is below the floor that the controller named.
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
static atomic_bool walled;                     /* statfs tells of the workspace alone */

/*
 * Mounted as a whole: what its file system holds is the workspace's. Not so 9p, as gVisor shows whatever it passes on:
 * its top is the directory that is passed on, and statfs tells of the disk below.
 */
static void look_at_mount(void)
{
    FILE *f = fopen("/proc/self/mountinfo", "re");
    static char line[16384];
    while (f && fgets(line, sizeof line, f)) {
        char top[4096], point[4096];
        const char *type = strstr(line, " - ");
        /* The last one mounted there is the one that is seen. Names with blanks are escaped and do not match: we walk. */
        if (!type || sscanf(line, "%*s %*s %*s %4095s %4095s", top, point) != 2 || strcmp(point, workspace_path) != 0)
            continue;
        own_file_system = strcmp(top, "/") == 0 && strncmp(type, " - 9p ", 6) != 0;
    }
    if (f)
        fclose(f);
}

/* struct fsxattr and its request, as in linux/fs.h: which project quota a directory belongs to. */
struct project {
    uint32_t flags, extent_size, extents, id, cow_extent_size;
    uint8_t pad[8];
};
#define GET_PROJECT _IOR('X', 31, struct project)
#define INHERIT_PROJECT 0x00000200

/* With a project quota statfs tells the quota's numbers; a quota that was lost shows as a far larger file system. */
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

/* With a quarter more than the floor the disk is no longer short, or it would go back and forth. */
static bool is_short(uint64_t left, uint64_t floor, bool was) { return left < (was ? floor + floor / 4 : floor); }

uint8_t disk_low(void)
{
    struct disk_room room;
    uint64_t bytes = atomic_load(&floor_bytes), files = atomic_load(&floor_files);
    bool was = atomic_load(&low), is = false;
    /* What statfs tells of a workspace with a wall of its own is not the host. */
    if ((bytes || files) && !atomic_load(&walled) && disk_room(&room))
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

bool disk_walled(uint64_t budget)
{
    bool wall = own_file_system || has_project_quota(budget);
    atomic_store(&walled, wall);
    return wall;
}

bool disk_brim_full(void)
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
    look_at_mount();
}
