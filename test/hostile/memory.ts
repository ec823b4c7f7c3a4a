/** Class R: memory, what lies in memory, and what outlives its process there. */
import { randomBytes } from 'node:crypto'

import { expect } from 'vitest'

import { SandboxError } from '../../packages/sandbox/src/errors.ts'
import type { CommandExit, Sandbox } from '../../packages/sandbox/src/sandbox.ts'
import { onlyOnDocker, type Row } from './row.ts'
import { STAGE_LIMITS } from './stage.ts'

/** A command that runs out of memory: killed inside, said so, and the next one has all of it again. */
function outOfMemory(what: string, command: string): Row {
  return {
    id: 'R04',
    what: `${what}: killed inside, the call says out_of_memory, process 1 lives`,
    heavy: true,
    async run({ me, sandbox }) {
      const boot = (await sandbox()).bootId
      const result = await me.shell(command, { timeoutMs: 60_000 })
      expect(result).toMatchObject({ status: 'failed', reason: 'out_of_memory' })
      expect((await me.shell(`perl -e 'my $x = "a" x (200 * 1024 * 1024); print length $x'`)).output).toBe(
        '209715200',
      )
      expect((await sandbox()).bootId).toBe(boot)
    },
  }
}

/** A command that holds so much memory, and answers when it is asked. */
async function holding(
  box: Sandbox,
  megabytes: number,
): Promise<{ ask(): Promise<CommandExit & { said: string }> }> {
  const program = '$| = 1; my $x = "a" x ($ARGV[0] << 20); print "on\\n"; print "still ", scalar <STDIN>'
  const running = await box.run({
    id: randomBytes(16).toString('hex'),
    command: ['perl', '-e', program, String(megabytes)],
    stdin: true,
    autoAcknowledge: true,
    timeoutMs: 120_000,
  })
  const output = running.output[Symbol.asyncIterator]()
  await output.next()
  return {
    async ask() {
      await running.writeStdin(Buffer.from('there\n')).catch((error: unknown) => {
        // The process may have been killed already.
        if (!(error instanceof SandboxError && error.code === 'cancelled')) throw error
      })
      let said = ''
      for (let part = await output.next(); !part.done; part = await output.next())
        said += Buffer.from(part.value.data).toString()
      return { ...(await running.exit), said }
    },
  }
}

export const rows: Row[] = [
  {
    id: 'R04',
    what: 'siblings: the largest is killed as well and says so itself, the small one goes on',
    heavy: true,
    async run({ me, sandbox }) {
      const box = await sandbox()
      const [small, large] = [await holding(box, 1), await holding(box, 600)]
      const result = await me.shell('exec tail /dev/zero', { timeoutMs: 60_000 })
      expect(result).toMatchObject({ status: 'failed', reason: 'out_of_memory' })
      expect(await large.ask()).toMatchObject({ cause: 'oom', said: '' })
      expect(await small.ask()).toMatchObject({ cause: 'exited', code: 0, said: 'still there\n' })
      expect((await sandbox()).bootId).toBe(box.bootId)
    },
  },
  outOfMemory('one large string', `exec perl -e '$x = "a" x (1 << 33)'`),
  outOfMemory(
    'many middle-sized processes',
    `for i in 1 2 3 4 5 6 7 8; do perl -e '$x = "a" x (600 << 20); sleep 60' & done; wait -n; exit $?`,
  ),
  outOfMemory('a line without end', 'exec tail /dev/zero'),
  outOfMemory(
    'anonymous files',
    `exec perl -e 'while (1) { my $f = syscall(319, my $n = "x", 0); open(my $o, ">&=", $f); push @keep, $o; syswrite($o, "a" x (64 << 20)) }'`,
  ),
  {
    id: 'R05',
    what: 'a full /tmp: ENOSPC at its size, and commands still run',
    async run({ me }) {
      const { output } = await me.shell('head -c 2G /dev/zero > /tmp/full; stat -c %s /tmp/full')
      expect(output).toMatch(/No space left/)
      const bytes = Number(output.trim().split('\n').at(-1))
      // Files of an earlier row count too.
      expect(bytes).toBeGreaterThan(STAGE_LIMITS.tmpBytes * 0.9)
      expect(bytes).toBeLessThanOrEqual(STAGE_LIMITS.tmpBytes)
      expect((await me.shell('seq 1000 | sort -rn | tail -1; rm /tmp/full')).output).toBe('1\n')
    },
  },
  {
    id: 'R05',
    what: 'no more files in /tmp: ENOSPC, and commands still run',
    heavy: true,
    async run({ me }) {
      const { output } = await me.shell(
        `mkdir /tmp/many; perl -e 'my $n = 0; $n++ while $n < 200000 && open(my $f, ">", "/tmp/many/$n"); print "$n $!"'; echo; bash -c 'echo still'; rm -rf /tmp/many`,
      )
      expect(output).toMatch(/^3\d{4} No space left on device\nstill\n$/)
    },
    skip: onlyOnDocker('an emptyDir has no limit of files, and the memory limit counts them'),
  },
  {
    id: 'R06',
    what: 'tmpfs, shm and locked memory full, then heap: the command dies, reset empties /tmp',
    heavy: true,
    async run({ me, controller, sandbox }) {
      await me.shell(
        'head -c 1G /dev/zero > /tmp/a; head -c 1G /dev/zero > /dev/shm/b; head -c 1G /dev/zero > /run/c; true',
      )
      const result = await me.shell(`exec perl -e '$x = "a" x (1 << 33)'`, { timeoutMs: 60_000 })
      expect(result).toMatchObject({ status: 'failed', reason: 'out_of_memory' })
      // Memory that a kill cannot free is at most a quarter.
      expect((await me.shell(`perl -e 'my $x = "a" x (300 << 20); print length $x'`)).output).toBe(
        '314572800',
      )
      const boot = (await sandbox()).bootId
      await controller.reset('attacker')
      expect((await me.shell('ls -A /tmp /dev/shm /run | grep -v :')).output.trim()).toBe('')
      expect((await sandbox()).bootId).toBe(boot)
    },
  },
  // Beyond the table.
  {
    id: 'X-R1',
    what: 'SysV memory that a dead command leaves is freed, so the next one has room',
    heavy: true,
    async run({ me }) {
      const hog = `perl -e 'my $k = 0; while (1) { my $id = syscall(29, 0, 100 << 20, 01600); last if $id < 0; my $d = "x" x (100 << 20); shmwrite($id, $d, 0, 100 << 20) or last }'`
      for (let i = 0; i < 3; i += 1) await me.shell(hog, { timeoutMs: 30_000 })
      expect((await me.shell(`perl -e 'my $x = "a" x (300 << 20); print length $x'`)).output).toBe(
        '314572800',
      )
      await me.shell('ipcrm -a')
    },
  },
  {
    id: 'X-R2',
    what: 'a reset takes what outlives processes: SysV and POSIX objects, /dev/shm',
    async run({ me, controller }) {
      await me.shell(
        'ipcmk -Q -M 4096 -S 3; touch /dev/shm/left; perl -e \'syscall(240, "left", 0102, 0600, 0)\'',
      )
      await controller.reset('attacker')
      expect(
        (await me.shell('ipcs -a | grep -c 0x; ls -A /dev/shm /dev/mqueue | grep -v :')).output.trim(),
      ).toBe('0')
    },
  },
  {
    id: 'X-R2',
    what: 'a reset empties folders that are closed as well, and what cannot be removed at first keeps nothing else',
    async run({ me, controller }) {
      await me.shell(
        'for d in /tmp /run /dev/shm; do cd $d; mkdir -p shut/in/deep; echo x > shut/in/deep/f; chmod 0 shut/in/deep; chmod 555 shut/in; chmod 0 shut; echo x > zzz; done',
      )
      await controller.reset('attacker')
      expect((await me.shell('ls -A /tmp /run /dev/shm | grep -v :')).output.trim()).toBe('')
    },
  },
  {
    id: 'X-R7',
    what: 'locked memory ends at its limit; no huge pages',
    async run({ me }) {
      const { output } = await me.shell(
        `perl -e 'my $length = 64 << 20; my $at = syscall(9, 0, $length, 3, 34, -1, 0); print "mapped\n" if $at > 0; print syscall(149, $at, $length) < 0 ? 0 + $! : "locked", "\n"; $! = 0; print syscall(151, 3) < 0 ? 0 + $! : "locked", "\n"; $! = 0; print syscall(30, 1) < 0 ? 0 + $! : "attached"; print "\n", syscall(29, 0, $length, 07600) < 0 ? 0 + $! : "huge"'`,
      )
      // ENOMEM, or EPERM where memory may not be locked at all; EINVAL; EPERM for huge pages.
      expect(output).toMatch(/^mapped\n(12|1)\n(12|1)\n22\n(1|12|38|22)$/)
    },
  },
]
