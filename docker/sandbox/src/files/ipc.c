/*
 * SysV objects outlive the processes that made them. In a container the IPC namespace is ours alone, so all of them go
 * at a RESET.
 */
#include "files.h"

#include <stdio.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>

/* The second column of each of these files is the object's number; the first line names the columns. */
static void remove_each(const char *path, void (*remove_one)(int id))
{
    FILE *f = fopen(path, "re");
    char line[512];
    int id;
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, " %*d %d", &id) == 1)
            remove_one(id);
    if (f)
        fclose(f);
}

static void remove_shm(int id) { shmctl(id, IPC_RMID, NULL); }
static void remove_msg(int id) { msgctl(id, IPC_RMID, NULL); }
static void remove_sem(int id) { semctl(id, 0, IPC_RMID); }

void ipc_remove(void)
{
    remove_each("/proc/sysvipc/shm", remove_shm);
    remove_each("/proc/sysvipc/msg", remove_msg);
    remove_each("/proc/sysvipc/sem", remove_sem);
}
