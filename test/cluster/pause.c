/* First process of every Pod: holds its namespaces and reaps orphans until it is ended. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int number)
{
	_exit(number == SIGINT);
}

static void reap(int number)
{
	(void)number;
	while (waitpid(-1, NULL, WNOHANG) > 0) {
	}
}

int main(void)
{
	signal(SIGTERM, end);
	signal(SIGINT, end);
	signal(SIGCHLD, reap);
	for (;;) {
		pause();
	}
}
