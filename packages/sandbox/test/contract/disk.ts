import { expect } from 'vitest'

import type { ConnectedSandbox } from '../../src/sbxd/client.ts'
import type { Suite } from '../support/contract.ts'
import { ATTRIBUTES, HIDER, HONEST, MAPPING, WORKING } from '../support/hider.ts'
import { Bench, finish, newId, sh } from './harness.ts'

const MiB = 1024 * 1024
/** Small, so that the disk of the host hardly notices. */
const BUDGET = { bytes: 16 * MiB, entries: 500 }
const FOREVER = 60_000
/**
 * Writes without end. To a disk as fast as it can; to memory, which nothing is faster than, at a
 * pace: there it would be full before anybody could look.
 */
const FILL =
  'if [ "$(stat -f -c %T .)" = tmpfs ]; then while :; do head -c 256k /dev/zero; done; else cat /dev/zero; fi'

/**
 * A thread with descriptors of its own writes; the first one, whose descriptors /proc shows for
 * all, has ended.
 */
const THREAD_HOLDS = `
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
static char bytes[1 << 16];
static int writer(void *unused) {
    int fd = open("hidden", O_RDWR | O_CREAT, 0600);
    unlink("hidden");
    for (;;) write(fd, bytes, sizeof bytes);
}
int main(void) {
    char *stack = malloc(1 << 20);
    clone(writer, stack + (1 << 20), CLONE_VM | CLONE_SIGHAND | CLONE_THREAD | CLONE_FS, NULL);
    syscall(SYS_exit, 0);
}
`

export function diskTests({ it, fixture, ownProcesses }: Suite): void {
  let made: Promise<{ bench: Bench; sandbox: ConnectedSandbox }> | undefined
  /** One sandbox for all of these, with an empty workspace and the budget above. */
  async function limited(): Promise<ConnectedSandbox> {
    made ??= Bench.start(fixture())
    const { sandbox } = await made
    await sandbox.setDiskBudget({ bytes: 0, entries: 0 })
    await sh(sandbox, 'chmod -R u+rwx . ; find . -mindepth 1 -delete')
    await sandbox.setDiskBudget(BUDGET)
    await counted(sandbox, (disk) => disk.bytes < MiB && !disk.over)
    return sandbox
  }

  it('reports the usage of the sandbox', async () => {
    const sandbox = await limited()
    await sh(sandbox, 'head -c 3M /dev/zero >three; mkdir a; : >a/b')
    const command = await sandbox.run({ id: newId(), command: 'sleep 100', autoAcknowledge: true })
    const stat = await counted(sandbox, (disk) => disk.entries === 3)
    expect(stat.disk).toMatchObject({ over: false, frozen: false, countedBy: 'walk', entries: 3 })
    expect(stat.disk.budget).toEqual(BUDGET)
    expect(stat.disk.bytes).toBeGreaterThanOrEqual(3 * MiB)
    expect(stat.disk.bytes).toBeLessThan(4 * MiB)
    expect(stat.processes.count).toBeGreaterThanOrEqual(2)
    expect(stat.memory.bytes).toBeGreaterThan(100_000)
    expect(stat.load).toMatchObject({ commands: 1 })
    expect(stat.load.cpuMs).toBeGreaterThan(0)
    expect(stat.fileSystem.freeBytes).toBeGreaterThan(0)
    expect(stat.fileSystem.bytes).toBeGreaterThan(stat.fileSystem.freeBytes)
    await command.cancel(0)
    await finish(command)
  })

  it('a writer without end is ended with disk_quota, and freed space can be used at once', async () => {
    const sandbox = await limited()
    const ended = await sh(sandbox, `${FILL} >full`, { timeoutMs: FOREVER })
    expect(ended.cause).toBe('disk_quota')
    expect(sandbox.disk).toMatchObject({ over: true })
    // It still starts, and says what it finds; what it writes is refused.
    expect(await sh(sandbox, 'ls')).toMatchObject({ cause: 'exited', code: 0, out: 'full\n' })
    expect(await sh(sandbox, 'echo more >more')).toMatchObject({ cause: 'disk_quota' })
    await expect(sandbox.files.write('file', new Uint8Array(10))).rejects.toMatchObject({
      code: 'disk_quota',
    })
    await expect(sandbox.files.mkdir('folder')).rejects.toMatchObject({ code: 'disk_quota' })
    expect(await sh(sandbox, 'rm full more')).toMatchObject({ cause: 'exited', code: 0 })
    expect(sandbox.disk).toMatchObject({ over: false })
    expect(await sh(sandbox, 'echo more >more; cat more')).toMatchObject({ code: 0, out: 'more\n' })
  })

  it('removing through the file requests makes room as well', async () => {
    const sandbox = await limited()
    expect((await sh(sandbox, `${FILL} >full`, { timeoutMs: FOREVER })).cause).toBe('disk_quota')
    await sandbox.files.remove('full')
    await sandbox.files.write('file', new Uint8Array(10))
    expect((await sandbox.files.stat('file')).size).toBe(10)
  })

  it('says once that a floor is no more', async () => {
    const sandbox = await limited()
    const hostFloor = { bytes: 2 ** 50, files: 0 }
    await sandbox.setDiskBudget({ ...BUDGET, hostFloor })
    expect(await sh(sandbox, 'echo x >x')).toMatchObject({ cause: 'disk_quota' })
    await sandbox.setDiskBudget(BUDGET)
    const states = new Set([sandbox.disk])
    const command = await sandbox.run({
      id: newId(),
      command: 'for i in $(seq 20); do echo; sleep 0.05; done',
      autoAcknowledge: true,
    })
    for await (const _ of command.output) states.add(sandbox.disk)
    expect(await command.exit).toMatchObject({ cause: 'exited', code: 0 })
    expect(states.size).toBeLessThan(5)
  })

  it('many tiny files are too much as well', async () => {
    const sandbox = await limited()
    const ended = await sh(sandbox, 'i=0; while :; do : >f$((i++)); done', { timeoutMs: FOREVER })
    expect(ended.cause).toBe('disk_quota')
    expect(await sh(sandbox, 'rm -f f*')).toMatchObject({ code: 0 })
    expect(await sh(sandbox, 'echo x >x')).toMatchObject({ code: 0 })
  })

  it('a deleted file that is still open counts', async () => {
    const sandbox = await limited()
    const ended = await sh(sandbox, `exec 3>gone; rm gone; ${FILL} >&3`, { timeoutMs: FOREVER })
    expect(ended.cause).toBe('disk_quota')
    await counted(sandbox, (disk) => disk.bytes < MiB && !disk.over)
  })

  it('a deleted file counts that only a thread holds, or that is the program itself', async () => {
    const sandbox = await limited()
    await sandbox.files.write('thread.c', Buffer.from(THREAD_HOLDS))
    expect(await sh(sandbox, 'gcc -w -pthread -o thread thread.c')).toMatchObject({ code: 0, err: '' })
    const thread = await sh(sandbox, ['./thread'], { timeoutMs: FOREVER })
    expect(thread).toMatchObject({ cause: 'disk_quota' })
    await counted(sandbox, (disk) => disk.bytes < MiB && !disk.over)
    const large = `cp /bin/sleep large; head -c 6M /dev/zero >>large; ./large 100 &
      until [ "$(readlink /proc/$!/exe)" = "$PWD/large" ]; do sleep 0.01; done; rm large; wait`
    const program = await sandbox.run({ id: newId(), command: large, autoAcknowledge: true })
    await counted(sandbox, (disk) => disk.bytes > 6 * MiB)
    await program.cancel(0)
    await finish(program)
  })

  // On a host with visible processes of other users, a deleted file is identified by its path, and
  // none has one this long.
  if (ownProcesses)
    it('a deleted file counts whose path was longer than any link can say', async () => {
      const sandbox = await limited()
      // A pause in each round, for a disk in memory, which would be full before anybody has looked.
      const script = `
        for (1 .. 30) { mkdir "d" x 200; chdir "d" x 200 }
        for (1 .. 50) { open $f[$_], ">", "gone"; unlink "gone" }
        while (1) { for (1 .. 50) { syswrite $f[$_], "x" x 65536 } select undef, undef, undef, 0.01 }`
      const ended = await sh(sandbox, ['perl', '-e', script], { timeoutMs: FOREVER })
      expect(ended.cause).toBe('disk_quota')
    })

  it('a hole in a file counts nothing', async () => {
    const sandbox = await limited()
    expect(await sh(sandbox, 'truncate -s 1G hole')).toMatchObject({ code: 0 })
    await counted(sandbox, (disk) => disk.entries === 1 && disk.bytes < MiB)
  })

  it('hard links count once, and no directory hides anything', async () => {
    const sandbox = await limited()
    const deep = Array.from({ length: 400 }, () => 'd').join('/')
    const script = [
      'head -c 2M /dev/zero >one; ln one two; ln one three',
      'mkdir shut; head -c 2M /dev/zero >shut/file; mkdir shut/in; head -c 1M /dev/zero >shut/in/file',
      'chmod 0 shut/in shut',
      `mkdir -p ${deep}; (cd ${deep}; head -c 1M /dev/zero >bottom)`,
    ].join('\n')
    expect(await sh(sandbox, script)).toMatchObject({ code: 0 })
    const { disk } = await counted(sandbox, (now) => now.entries === 3 + 4 + 401)
    // Files of 2 + 2 + 1 + 1 MiB, and a block or so for each of 400 directories.
    expect(disk.bytes).toBeGreaterThanOrEqual(6 * MiB)
    expect(disk.bytes).toBeLessThan(8 * MiB + 64 * 1024)
    expect(
      await sh(sandbox, 'm() { find "$1" -maxdepth 0 -printf "%m\\n"; }; m shut; chmod 700 shut; m shut/in'),
    ).toMatchObject({
      // The group bit is inherited from a home on Kubernetes.
      out: expect.stringMatching(/^(?:(?:0|2000)\n){2}$/) as string,
    })
  })

  it('a command that does not write continues', async () => {
    const sandbox = await limited()
    // Writes to memory belong to no disk, so the writer is unknown there, and all commands are
    // ended.
    if ((await sh(sandbox, 'stat -f -c %T .')).out.trim() === 'tmpfs') return
    const quiet = await sandbox.run({
      id: newId(),
      command: 'read line; echo "$line"',
      stdin: true,
      autoAcknowledge: true,
    })
    // Its own writing is long over when the other one begins.
    await counted(sandbox, (disk) => disk.bytes < MiB)
    expect((await sh(sandbox, `${FILL} >full`, { timeoutMs: FOREVER })).cause).toBe('disk_quota')
    await quiet.writeStdin(Buffer.from('still here\n'))
    expect(await finish(quiet)).toMatchObject({ cause: 'exited', code: 0, out: 'still here\n' })
  })

  it('nothing grows while the host is short of disk', async () => {
    const sandbox = await limited()
    const writer = await sandbox.run({
      id: newId(),
      command: 'echo go; while :; do head -c 10k /dev/zero >>full; done',
      autoAcknowledge: true,
      timeoutMs: FOREVER,
    })
    await sandbox.setDiskBudget({ bytes: 0, entries: 0, hostFloor: { bytes: 2 ** 52, files: 0 } })
    expect((await finish(writer)).cause).toBe('disk_quota')
    expect(sandbox.disk).toMatchObject({ hostLow: true, over: false, frozen: false })
    expect(await sh(sandbox, 'echo x >x')).toMatchObject({ cause: 'disk_quota' })
    expect(await sh(sandbox, 'rm full')).toMatchObject({ code: 0 })
    await sandbox.setDiskBudget({ ...BUDGET, hostFloor: { bytes: MiB, files: 0 } })
    expect(await sh(sandbox, 'echo x >x; cat x')).toMatchObject({ code: 0, out: 'x\n' })
  })

  /**
   * The host is short of disk; then this program begins, which nothing ends but a verdict, beside
   * one that hides and sleeps.
   */
  async function hides(sandbox: ConnectedSandbox, program: string): Promise<void> {
    await sandbox.setDiskBudget({ bytes: 0, entries: 0 })
    await sandbox.files.write('hider.c', Buffer.from(HIDER))
    expect(await sh(sandbox, 'gcc -w -pthread -o hider hider.c')).toMatchObject({ code: 0, err: '' })
    const input = { stdin: true, autoAcknowledge: true, timeoutMs: FOREVER }
    const sleeping = await sandbox.run({ ...input, id: newId(), command: `exec ${HONEST}` })
    const hider = await sandbox.run({ ...input, id: newId(), command: `read line; exec ${program}` })
    // One that still begins when the host gets short of disk works, and may be who takes the room.
    const asleep = `until ps -eo state=,args= | grep -q '^S ${HONEST}'; do sleep 0.01; done`
    expect(await sh(sandbox, asleep, { timeoutMs: FOREVER })).toMatchObject({ code: 0 })
    await sandbox.setDiskBudget({ bytes: 0, entries: 0, hostFloor: { bytes: 2 ** 52, files: 0 } })
    await expect.poll(() => sandbox.disk?.hostLow, { timeout: 15_000 }).toBe(true)
    await hider.writeStdin(Buffer.from('now\n'))
    expect(await finish(hider)).toMatchObject({ cause: 'disk_quota', err: '' })
    await sleeping.writeStdin(Buffer.from('?'))
    expect(await finish(sleeping)).toMatchObject({ cause: 'exited', out: 'on\nstill on\n' })
    await sandbox.setDiskBudget(BUDGET)
  }

  // A host with visible processes of other users may have more of them than one scan has time for.
  if (ownProcesses) {
    it('a process that hides its bytes is ended while the host is short of disk, and one that hides and sleeps is not', async () => {
      await hides(await limited(), MAPPING)
    })

    it('a process that holds bytes written by others, and wrote none itself, is ended as well', async () => {
      await hides(await limited(), WORKING)
    })

    // Without a journal the kernel charges who sets them with a write, so that this proves no more
    // than the row above.
    it('a process that uses space by attributes instead of bytes is ended as well', async ({ skip }) => {
      const sandbox = await limited()
      const type = (await sh(sandbox, 'stat -f -c %T .')).out.trim()
      // Elsewhere users may set none, or they are kept in memory.
      if (!['ext2/ext3', 'xfs'].includes(type)) skip(`attributes of ${type} take no room of the disk`)
      await hides(sandbox, ATTRIBUTES)
    })
  }

  it('frozen, nothing may grow whatever the budget, and then it may again', async () => {
    const sandbox = await limited()
    const writer = await sandbox.run({
      id: newId(),
      command: `echo go; ${FILL} >full`,
      autoAcknowledge: true,
      timeoutMs: FOREVER,
    })
    await sandbox.setDiskBudget({ bytes: 0, entries: 0, freeze: true })
    expect((await finish(writer)).cause).toBe('disk_quota')
    expect(sandbox.disk).toMatchObject({ frozen: true, over: false })
    expect(await sh(sandbox, 'echo x >x')).toMatchObject({ cause: 'disk_quota' })
    expect(await sh(sandbox, 'rm full')).toMatchObject({ code: 0 })
    await sandbox.setDiskBudget(BUDGET)
    expect(await sh(sandbox, 'echo x >x; cat x')).toMatchObject({ code: 0, out: 'x\n' })
  })
}

/** Ask until the count says so; sbxd counts afresh unless it did so a moment ago. */
async function counted(
  sandbox: ConnectedSandbox,
  isSo: (disk: Awaited<ReturnType<ConnectedSandbox['stat']>>['disk']) => boolean,
): Promise<Awaited<ReturnType<ConnectedSandbox['stat']>>> {
  return expect
    .poll(() => sandbox.stat(), { timeout: 15_000, interval: 20 })
    .toSatisfy((stat: Awaited<ReturnType<ConnectedSandbox['stat']>>) => isSo(stat.disk))
    .then(() => sandbox.stat())
}
