/*
 * Commands in a terminal: a pseudo-terminal whose slave is their stdin, stdout and stderr. Its
 * bytes are the command's stdin and stdout, with the same offsets and credit. sbxd holds a
 * descriptor of the slave until the main process has ended: without one, a command that closes and
 * reopens its terminal would look like a hang-up.
 */
#include "commands.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

int terminal_option(struct request *q, struct reader *r)
{
    q->terminal = true;
    q->rows = rd16(r);
    q->columns = rd16(r);
    return q->rows && q->columns ? 0 : EINVAL;
}

static void set_size(int fd, uint16_t rows, uint16_t columns)
{
    struct winsize size = {.ws_row = rows, .ws_col = columns};
    ioctl(fd, TIOCSWINSZ, &size);
}

/* Opens the command's side for a master; -1 with errno. */
static int open_slave(int master)
{
    char name[64];
    int unlocked = 0;
    if (ioctl(master, TIOCSPTLCK, &unlocked) < 0)
        return -1;
    /* Not by its name where possible: a command may have its own /dev/pts. */
    int slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (slave < 0 && ptsname_r(master, name, sizeof name) == 0)
        slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    return slave;
}

bool terminal_open(uint16_t rows, uint16_t columns, int *master, int *slave)
{
    *master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
    *slave = *master < 0 ? -1 : open_slave(*master);
    if (*slave < 0) {
        int error = errno;
        if (*master >= 0)
            close(*master);
        *master = -1;
        errno = error;
        return false;
    }
    struct termios t;
    if (tcgetattr(*slave, &t) == 0) {
        t.c_iflag |= IUTF8; /* so that erasing takes whole characters */
        tcsetattr(*slave, TCSANOW, &t);
    }
    set_size(*slave, rows, columns);
    return true;
}

void commands_resize(const struct frame *f)
{
    struct command *c = command_by_channel(f->channel);
    struct reader r = frame_reader(f);
    uint16_t rows = rd16(&r), columns = rd16(&r);
    if (c && c->slave >= 0 && !r.bad)
        set_size(c->slave, rows, columns);
}

/*
 * The key for the end of the input; twice after an unfinished line, which the first one only
 * submits.
 */
bool terminal_end_input(struct command *c)
{
    const struct ring *r = &c->in.ring;
    struct termios t;
    uint8_t keys[2] = {4, 4};
    struct iovec last[2] = {{0}};
    if (tcgetattr(c->in.fd, &t) == 0 && t.c_cc[VEOF])
        keys[0] = keys[1] = t.c_cc[VEOF];
    else
        t.c_lflag = ICANON;
    if (r->cap && r->end)
        ring_slice(r, r->end - 1, 1, last);
    bool unfinished = last[0].iov_len && *(uint8_t *)last[0].iov_base != '\n' && t.c_lflag & ICANON;
    return write(c->in.fd, keys, unfinished ? 2 : 1) >= 0 || errno != EAGAIN;
}

void terminal_hang_up(struct command *c)
{
    /* Like closing its window; SIGCONT lets stopped processes receive it. */
    command_order(c, ORDER_SIGNAL, SIGHUP, SCOPE_TREE);
    command_order(c, ORDER_SIGNAL, SIGCONT, SCOPE_TREE);
}
