/* Evaluation of a count: whether it exceeds the budget, and by which processes. */
#include "disk.h"

#define MiB (1ull << 20)
#define RECOVER_MAX (16 * MiB) /* recovery margin below the budget, at most */
/*
 * A share of the floor, or a fixed size where only the controller has the floor: the most that
 * another sandbox may use before it is ended.
 */
#define MUCH_OF_FLOOR 8
#define MUCH (64 * MiB)

bool disk_is_over(const struct disk_count *used, const struct disk_count *most, bool was)
{
    uint64_t less = 0, fewer = 0;
    if (was) {
        /* Hysteresis against toggling with every block. */
        less = most->bytes / 50 < RECOVER_MAX ? most->bytes / 50 : RECOVER_MAX;
        fewer = most->entries / 50;
    }
    return (most->bytes && used->bytes > most->bytes - less) || (most->entries && used->entries > most->entries - fewer);
}

static void blame(const struct disk_suspects *s, bool only_these)
{
    disk.writers = *s;
    disk.only_these = only_these;
    disk.writers_found = true;
    /*
     * Until they have ended they may write a little more, for which no other process is to blame.
     */
    disk.base_known = false;
}

/*
 * While growth is forbidden: compares with the base and blames the writers. Bytes can be hidden
 * from the count.
 */
static enum disk_hidden check_growth(uint64_t room, const struct disk_suspects *s)
{
    struct disk_count *used = &disk.state.used;
    if (disk.base_known && (used->bytes > disk.base.bytes + DISK_SLACK || used->entries > disk.base.entries + DISK_SLACK_ENTRIES)) {
        blame(s, false);
        return HIDDEN_NOTHING;
    }
    bool short_of_disk = disk_was_low() || disk.state.flags & DISK_FROZEN;
    uint64_t shrunk = disk.base_known && short_of_disk && room < disk.base_free ? disk.base_free - room : 0;
    uint64_t much = disk_floor_bytes() ? disk_floor_bytes() / MUCH_OF_FLOOR + DISK_SLACK : MUCH;
    if (!disk.base_known || used->bytes < disk.base.bytes)
        disk.base.bytes = used->bytes;
    if (!disk.base_known || used->entries < disk.base.entries)
        disk.base.entries = used->entries;
    if (!disk.base_known || room > disk.base_free)
        disk.base_free = room;
    disk.base_known = true;
    return shrunk > much ? HIDDEN_MUCH : shrunk > DISK_SLACK ? HIDDEN_SOME : HIDDEN_NOTHING;
}

enum disk_hidden disk_publish(const struct disk_count *used, enum disk_source source, uint64_t began, uint64_t room, const struct disk_suspects *s)
{
    bool was = disk.state.flags & DISK_OVER, first = !disk.state.counted_us;
    enum disk_hidden hidden = HIDDEN_NOTHING;
    disk.state.used = *used;
    disk.state.source = source;
    disk.state.counted_us = began;
    bool over = disk_is_over(used, &disk.state.most, was);
    disk.state.flags = (uint8_t)((disk.state.flags & DISK_FROZEN) | (over ? DISK_OVER : 0));
    if (!disk.state.flags && !disk_was_low())
        disk.base_known = false;
    else if (over && !was && !first && !(disk.state.flags & DISK_FROZEN))
        blame(s, false); /* it has just been exceeded: blame all writers */
    else
        hidden = check_growth(room, s);
    atomic_store(&disk.no_growth, disk.state.flags);
    disk.changed = disk.changed || over != was || disk.writers_found;
    pthread_cond_broadcast(&disk.counted);
    return hidden;
}

void disk_blame_hidden(const struct disk_suspects *s)
{
    if (s->writers_n && disk.base_known)
        blame(s, true);
}
