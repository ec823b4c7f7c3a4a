import { setTimeout as sleep } from 'node:timers/promises'

import { expect } from 'vitest'

import { extent } from '../../../../test/campaign.ts'
import type { Suite } from '../support/contract.ts'
import { treeOf } from '../support/process-tree.ts'
import { Bench, finish, marker, newId, sh, survivors } from './harness.ts'

/**
 * Its first thread ends when the second one holds the lock: to /proc it looks like a dead process.
 */
const HEADLESS = `
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>
static pthread_t first;
static void *second(void *unused) {
    flock(open("headless.c", O_RDONLY), LOCK_EX);
    pthread_join(first, NULL);
    FILE *out = fopen("headless.out", "w");
    fputs("alone\\n", out);
    fclose(out);
    for (;;) pause();
}
int main(void) {
    pthread_t t;
    first = pthread_self();
    pthread_create(&t, NULL, second, NULL);
    pthread_exit(NULL);
}
`

/** Forks and makes threads that fork, as fast as it can. */
const FLOOD = `
#include <pthread.h>
#include <signal.h>
#include <unistd.h>
static void *more(void *unused) {
    for (;;) {
        pthread_t t;
        pthread_create(&t, NULL, more, NULL);
        if (fork() == 0) setsid();
    }
}
int main(void) {
    signal(SIGTERM, SIG_IGN);
    more(NULL);
}
`

export function endingTests({ it, sandbox, bench, fixture, ownProcesses }: Suite): void {
  /** Start, wait for the first output, so that everything before it has happened. */
  async function running(command: string, options: { timeoutMs?: number } = {}) {
    const started = await sandbox().run({
      id: newId(),
      command,
      merge: true,
      autoAcknowledge: true,
      ...options,
    })
    const output = started.output[Symbol.asyncIterator]()
    await output.next()
    const rest = (async () => {
      while (!(await output.next()).done);
      return started.exit
    })()
    return { started, exit: rest }
  }

  it('knows how it ended, also when an order crosses its end', async () => {
    const ends: unknown[] = []
    for (let n = 0; n < 10; n += 1) {
      const command = 'read x; exit 4'
      const ending = await sandbox().run({ id: newId(), command, stdin: true, autoAcknowledge: true })
      const orders = Array.from({ length: 20 }, () => ending.signal('SIGCONT', 'tree'))
      await Promise.all([ending.writeStdin(Buffer.from('\n')), ...orders])
      const { cause, code } = await ending.exit
      ends.push({ cause, code })
    }
    expect(ends).toEqual(ends.map(() => ({ cause: 'exited', code: 4 })))
  })

  it('ends a command at its timeout', async () => {
    const m = marker()
    expect(await sh(sandbox(), `sleep ${m}`, { timeoutMs: 150 })).toMatchObject({
      cause: 'timeout',
      signal: 'SIGTERM',
    })
    expect(await survivors(sandbox(), m)).toEqual([])
  })

  it('kills a command that ignores TERM at its timeout', async () => {
    // Time enough for a slow machine's shell to get as far as its trap.
    const result = await sh(sandbox(), 'trap "" TERM; while :; do sleep 0.05; done', { timeoutMs: 800 })
    expect(result).toMatchObject({ cause: 'timeout', signal: 'SIGKILL' })
  })

  it('cancels with TERM first, so a command can clean up', async () => {
    const { started, exit } = await running('trap "exit 7" TERM; echo ready; while :; do sleep 0.05; done')
    await started.cancel(10_000)
    expect(await exit).toMatchObject({ cause: 'cancel', code: 7 })
  })

  for (const [who, one] of [
    ['new sessions, double forks and deaf processes', ''],
    ['stopped processes', 'kill -STOP $!'],
  ])
    it(`cancels a whole tree: ${who}`, async () => {
      const m = marker()
      const { started, exit } = await running(`
      trap "" TERM
      for i in 1 2 3 4 5; do setsid sleep ${m} & done
      (setsid bash -c 'trap "" TERM; (sleep ${m} & sleep ${m})' &) 
      sleep ${m} & ${one}
      echo ready; wait`)
      // The shells whose text names it, and eight that sleep.
      await expect
        .poll(async () => (await survivors(sandbox(), m)).length, { timeout: 10_000 })
        .toBeGreaterThan(9)
      await started.cancel(50)
      expect((await exit).cause).toBe('cancel')
      expect(await survivors(sandbox(), m)).toEqual([])
    })

  it('says how many processes a stop has ended, and in what time; of an end by itself nothing', async () => {
    const { started, exit } = await running('sleep 100 & sleep 100 & echo up; wait')
    await started.cancel(2_000)
    const { cause, stopped } = await exit
    expect(cause).toBe('cancel')
    expect(stopped).toEqual({ processes: 3, tookMs: expect.any(Number) })
    expect(stopped?.tookMs).toBeGreaterThanOrEqual(0)
    expect(await sh(sandbox(), 'sleep 0.1 & exit 3')).not.toHaveProperty('stopped')
  })

  it('cancels a tree while it grows, whatever is half made then', async () => {
    const rounds = extent(6, 60)
    for (let round = 0; round < rounds; round += 1) {
      const m = marker()
      const { started, exit } = await running(`echo growing; ${treeOf(m)}`)
      await sleep((150 * round) / rounds)
      await started.cancel(0)
      // The cause's name is proven above; a runtime may have ended it itself.
      await exit
      expect(await survivors(sandbox(), m)).toEqual([])
    }
  })

  it('cancels a command that prints without end and is not read', async () => {
    const command = await sandbox().run({ id: newId(), command: 'yes', autoAcknowledge: true })
    await command.cancel(0)
    expect(await finish(command)).toMatchObject({ cause: 'cancel' })
  })

  it('does not wait for children in the background, and ends them', async () => {
    const m = marker()
    const result = await sh(
      sandbox(),
      `sleep ${m} & setsid nohup sleep ${m} >/dev/null 2>&1 & disown; echo started`,
    )
    expect(result).toMatchObject({ cause: 'exited', code: 0, out: 'started\n' })
    expect(await survivors(sandbox(), m)).toEqual([])
  })

  it('waits for a command that closed its output but runs on', async () => {
    expect(await sh(sandbox(), 'exec >&- 2>&-; sleep 0.2; exit 5')).toMatchObject({
      cause: 'exited',
      code: 5,
    })
  })

  it('keeps what children print shortly after the main process', async () => {
    expect((await sh(sandbox(), '(sleep 0.05; echo late) & echo early')).out).toBe('early\nlate\n')
  })

  it('sends signals to the process, the group or the tree', async () => {
    const main = await running('trap "exit 9" USR1; echo ready; while :; do sleep 0.02; done')
    await main.started.signal('SIGUSR1', 'process')
    expect(await main.exit).toMatchObject({ cause: 'exited', code: 9 })
    const group = await running('echo ready; sleep 300 | sleep 300; exit 4')
    await group.started.signal('SIGINT')
    expect(await group.exit).toMatchObject({ cause: 'signal', signal: 'SIGINT' })
    const tree = await running(
      'setsid bash -c "trap \'exit 6\' USR2; echo ready; while :; do sleep 0.02; done" & trap "" USR2; wait $!; exit $?',
    )
    await tree.started.signal('SIGUSR2', 'tree')
    expect(await tree.exit).toMatchObject({ cause: 'exited', code: 6 })
  })

  it('reports the signal that ended a command', async () => {
    expect(await sh(sandbox(), 'kill -SEGV $$')).toMatchObject({ cause: 'signal', signal: 'SIGSEGV' })
    expect(await sh(sandbox(), 'kill -KILL $$')).toMatchObject({ cause: 'signal', signal: 'SIGKILL' })
  })

  it('notices a killed shim and ends what it guarded', async () => {
    const m = marker()
    const result = await sh(sandbox(), `setsid sleep ${m} & kill -KILL $PPID; sleep ${m}`)
    expect(result.cause).toBe('shim_killed')
    expect(await survivors(sandbox(), m)).toEqual([])
  })

  it('notices a stopped shim', async () => {
    const m = marker()
    expect((await sh(sandbox(), `kill -STOP $PPID; sleep ${m}`)).cause).toBe('shim_killed')
    expect(await survivors(sandbox(), m)).toEqual([])
  })

  it('ends a process whose first thread has ended', async () => {
    const box = sandbox()
    await box.files.write('headless.c', Buffer.from(HEADLESS))
    expect(await sh(box, 'gcc -pthread -o headless headless.c')).toMatchObject({ code: 0 })
    const result = await sh(
      box,
      'mkfifo headless.out; setsid ./headless & read -r line < headless.out; echo "$line"; :',
      {
        timeoutMs: 60_000,
      },
    )
    expect(result).toMatchObject({ cause: 'exited', out: 'alone\n' })
    // It held this lock.
    expect(await sh(box, 'flock -n headless.c true')).toMatchObject({ code: 0 })
  })

  it('lets nothing inside end the shim with a catchable signal', async () => {
    expect(
      await sh(sandbox(), 'kill -TERM $PPID; kill -HUP $PPID; kill -INT $PPID; echo alive'),
    ).toMatchObject({ out: 'alive\n', code: 0 })
  })

  it('resets: every command ends, the next one works', async () => {
    const { bench: mine, sandbox: own } = await Bench.start(fixture())
    const m = marker()
    const command = await own.run({
      id: newId(),
      command: `trap "" TERM; setsid sleep ${m} & echo x > kept; sleep ${m}`,
      autoAcknowledge: true,
    })
    await sh(own, 'until test -e kept; do sleep 0.02; done')
    await own.reset()
    expect((await finish(command)).cause).toBe('cancel')
    expect(await survivors(own, m)).toEqual([])
    expect((await sh(own, 'cat kept')).out).toBe('x\n')
    await own.close()
    await mine.remove()
  })

  it('resets only its own: a second sandbox and a bystander live on', async () => {
    const { bench: mine, sandbox: own } = await Bench.start(fixture())
    const bystander = await running('echo ready; read -r -t 300 < <(sleep 300)')
    await own.reset()
    await bystander.started.signal('SIGUSR1', 'process')
    expect(await bystander.exit).toMatchObject({ cause: 'signal', signal: 'SIGUSR1' })
    await own.close()
    await mine.remove()
  })

  if (ownProcesses) {
    it('survives kill -9 -1 and every signal to process 1', async () => {
      const { bench: mine, sandbox: own } = await Bench.start(fixture())
      const command =
        'for s in KILL STOP SEGV TERM HUP; do kill -$s 1; done; sleep 300 & kill -9 -1; sleep 300'
      const running = await own.run({ id: newId(), command, autoAcknowledge: true })
      // In a Pod the relay of the stream is killed too, and another one reads the end.
      const ended = await finish(running).catch(() => undefined)
      const again = ended === undefined ? await mine.connect() : own
      const attached = ended === undefined ? await again.attach(running.id) : undefined
      const result = ended ?? (attached && (await finish(attached)))
      expect(['shim_killed', 'signal']).toContain(result?.cause)
      expect((await sh(again, 'cat /proc/1/comm')).out).toBe('sbxd\n')
      await again.close()
      await mine.remove()
    })

    it('hides process 1 from commands', async () => {
      const { out } = await sh(
        sandbox(),
        'for f in environ mem maps fd root; do cat /proc/1/$f 2>&1 >/dev/null || ls /proc/1/$f 2>&1 >/dev/null; done | grep -c "ermission denied\\|No such"',
      )
      expect(Number(out)).toBeGreaterThanOrEqual(5)
    })

    /** A bomb of as many processes as there may be costs the machine of the tests seconds. */
    const bombed = () => ({ limits: { ...bench().spec.limits, pids: extent(160, 512) } })

    it('clears a fork bomb and works on', async () => {
      const { bench: mine, sandbox: own } = await Bench.start(fixture(), bombed())
      const bomb = await own.run({
        id: newId(),
        command: 'b() { b | b & }; b; while :; do sleep 1; done',
        merge: true,
        timeoutMs: extent(700, 1_500),
        autoAcknowledge: true,
      })
      expect((await finish(bomb)).cause).toBe('timeout')
      expect(await sh(own, 'echo works')).toMatchObject({ out: 'works\n' })
      await own.close()
      await mine.remove()
    })

    it('says that there is no room for another process, and has room after a reset', async () => {
      const { bench: mine, sandbox: own } = await Bench.start(fixture(), {
        limits: { ...bench().spec.limits, pids: 64 },
      })
      await own.run({ id: newId(), command: 'while :; do sleep 300 & done' })
      const refused = async (): Promise<unknown> => {
        for (;;)
          try {
            await sh(own, ['true'])
          } catch (error) {
            return error
          }
      }
      expect(await refused()).toMatchObject({ code: 'pids_exhausted' })
      await own.reset()
      expect(await sh(own, 'echo room')).toMatchObject({ out: 'room\n' })
      await own.close()
      await mine.remove()
    })

    it('clears a bomb of processes and threads', async () => {
      const { bench: mine, sandbox: own } = await Bench.start(fixture(), bombed())
      await own.files.write('flood.c', Buffer.from(FLOOD))
      expect(await sh(own, 'gcc -pthread -o flood flood.c')).toMatchObject({ code: 0 })
      const bomb = await own.run({
        id: newId(),
        command: ['./flood'],
        timeoutMs: extent(700, 1_500),
        autoAcknowledge: true,
      })
      expect((await finish(bomb)).cause).toBe('timeout')
      expect(await sh(own, 'echo works')).toMatchObject({ out: 'works\n' })
      expect(await survivors(own, 'flood')).toEqual([])
      await own.close()
      await mine.remove()
    })

    it('distinguishes an out-of-memory kill from any other', async () => {
      const small = await Bench.start(fixture(), {
        limits: { ...bench().spec.limits, memoryBytes: 512 * 1024 * 1024, tmpBytes: 8 * 1024 * 1024 },
      })
      expect((await sh(small.sandbox, ['tail', '/dev/zero'])).cause).toBe('oom')
      expect((await sh(small.sandbox, 'kill -9 $$')).cause).toBe('signal')
      // A part of it, whatever the code: known, and no reason of its end.
      for (const code of [0, 3])
        expect(await sh(small.sandbox, `tail /dev/zero | cat; exit ${code}`)).toMatchObject({
          cause: 'exited',
          code,
          oomKills: 1,
        })
      expect(await sh(small.sandbox, 'exit 137')).toMatchObject({ cause: 'exited', code: 137 })
      expect(await sh(small.sandbox, 'true')).not.toHaveProperty('oomKills')
      await small.sandbox.close()
      await small.bench.remove()
    })
  }
}
