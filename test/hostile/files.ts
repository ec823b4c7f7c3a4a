/** Class F: paths, and what may lie at the end of one. */
import { expect } from 'vitest'

import { SandboxError } from '../../packages/sandbox/src/errors.ts'
import type { Sandbox } from '../../packages/sandbox/src/sandbox.ts'
import { extent } from '../campaign.ts'
import { begun, closed, type Row } from './row.ts'
import { rows as values } from './arguments.ts'
import { rows as links } from './links.ts'

/** Paths and the reason that each must be refused with, by every file tool, before anything is opened. */
const PATHS: [string, 'path_outside' | 'invalid_arguments'][] = [
  ['../../etc/shadow', 'path_outside'],
  ['..', 'path_outside'],
  ['/etc/passwd', 'path_outside'],
  ['/workspace/../etc/passwd', 'path_outside'],
  ['/workspaces/x', 'path_outside'],
  ['~root/x', 'path_outside'],
  ['~/x', 'path_outside'],
  ['a/./../../b', 'path_outside'],
  ['a/../../workspace/../b', 'path_outside'],
  ['..\\..\\etc\\passwd', 'path_outside'],
  ['C:\\Windows\\x', 'path_outside'],
  ['a\0b', 'invalid_arguments'],
  ['x/'.repeat(2_500), 'invalid_arguments'],
  ['y'.repeat(256), 'invalid_arguments'],
  ['\ud800', 'invalid_arguments'],
]

const TOOLS: [string, Record<string, unknown>][] = [
  ['read_file', {}],
  ['write_file', { content: 'x' }],
  ['edit_file', { old_text: 'a', new_text: 'b' }],
  ['list_directory', {}],
]

export const rows: Row[] = [
  ...values,
  ...links,
  closed('F01', 'touch /etc/x', /Read-only/),
  closed('F01', 'echo x >> /etc/passwd', /Read-only|denied/),
  closed('F01', 'cp /bin/true /usr/bin/x', /Read-only/),
  closed('F01', 'mkdir /x', /Read-only/),
  closed('F01', 'echo "1.2.3.4 x" >> /etc/hosts', /denied|Read-only/),
  closed('F01', 'echo x > /etc/hostname; echo x > /etc/resolv.conf', /denied|Read-only/),
  {
    id: 'F02',
    what: 'the mounts are the read-only root, the kernel’s own, tmpfs and one volume, and no path of the host that tells anything',
    async run({ me, engine }) {
      const { output } = await me.shell('cat /proc/self/mountinfo')
      const mounts = output
        .trim()
        .split('\n')
        .map((line) => {
          const [left = '', right = ''] = line.split(' - ')
          const [, , , root = '', where = '', how = ''] = left.split(' ')
          return {
            root,
            where,
            how: how.split(','),
            type: right.split(' ')[0] ?? '',
            source: right.split(' ')[1] ?? '',
          }
        })
      expect(mounts.find(({ where }) => where === '/')?.how).toContain('ro')
      const writable = mounts.filter(
        ({ how, where }) => how.includes('rw') && !/^\/(proc|dev|sys|etc)(\/|$)/.test(where),
      )
      // A Pod also has the file of its last words, in a folder that it cannot enter, and tmpfs with the node’s options.
      const onDocker = engine.name === 'docker'
      const last = onDocker ? [] : ['/usr/lib/sandlot/closed/end']
      expect(writable.map(({ where }) => where).toSorted()).toEqual(['/run', '/tmp', ...last, '/workspace'])
      const strict = onDocker ? /^\/(tmp|run|dev\/shm)$/ : /^\/dev\/shm$/
      for (const { where, how } of mounts.filter(({ where }) => strict.test(where)))
        expect(how, where).toEqual(expect.arrayContaining(['nosuid', 'nodev']))
      // Those of a Pod lie where the node has its runtime, its kubelet and its volumes.
      const telling = onDocker ? /docker\.sock|\/home|\/root(\/|$)|attacker/ : /\.sock|attacker/
      for (const { root } of mounts) expect(root).not.toMatch(telling)
      for (const { type } of mounts)
        expect(type).toMatch(
          /^(overlay|proc|tmpfs|devpts|sysfs|cgroup2?|mqueue|ext4|xfs|btrfs|zfs|fuse\.\S+|9p|virtiofs)$/,
        )
    },
  },
  ...PATHS.flatMap(([path, reason]) =>
    TOOLS.map(([tool, args]): Row => ({
      id: 'F03',
      what: `${tool} refuses ${JSON.stringify(path).slice(0, 40)}: ${reason}`,
      async run({ me }) {
        expect(await me.call(tool, { path, ...args })).toMatchObject({ status: 'failed', reason })
      },
    })),
  ),
  {
    id: 'F03',
    what: 'below the workspace the sandbox itself refuses as well, whatever a client sends',
    async run({ sandbox }) {
      const { files } = await sandbox()
      for (const path of ['../x', '/etc/passwd', 'a/../../x', '..'])
        await expect(files.read(path), path).rejects.toMatchObject({ code: 'path_outside' })
      for (const path of ['a\0b', 'x/'.repeat(2_500)])
        await expect(files.write(path, Buffer.alloc(0)), path).rejects.toMatchObject({
          code: 'invalid_arguments',
        })
    },
  },
  {
    id: 'F03',
    what: 'a trailing slash, doubled slashes and dots mean the same file',
    async run({ me }) {
      await me.call('write_file', { path: 'd/./e//f', content: 'inside' })
      expect((await me.call('read_file', { path: '/workspace/d/e/../e/f' })).forModel).toContain('inside')
      await me.shell('rm -r d')
    },
  },
  {
    id: 'F05',
    what: 'a directory swapped for a link all the time: nothing is written outside the workspace',
    heavy: true,
    async run({ me, sandbox }) {
      await me.shell('mkdir -p /tmp/target swap && echo old > /tmp/target/file')
      const swapper = await begun(
        me,
        `exec perl -e '$| = 1; print "on\\n"; while (1) { rename "swap", "swap.real"; symlink "/tmp/target", "swap"; unlink "swap"; rename "swap.real", "swap" }'`,
      )
      const { files } = await sandbox()
      const outcomes = new Map<string, number>()
      for (let i = 0; i < extent(100, 10_000); i += 10) {
        const ten = Array.from({ length: 10 }, (_, n) =>
          files.write('swap/file', Buffer.from(`new ${i + n}`)),
        )
        for (const result of await Promise.allSettled(ten)) {
          const said =
            result.status === 'fulfilled' ? 'written' : String((result.reason as { code?: string }).code)
          outcomes.set(said, (outcomes.get(said) ?? 0) + 1)
        }
      }
      swapper.cancel()
      await swapper.ended
      expect((await me.shell('cat /tmp/target/file; ls -A /tmp/target')).output).toBe('old\nfile\n')
      for (const said of outcomes.keys())
        expect(said).toMatch(/^(written|path_outside|not_found|not_regular|exists|limit_reached)$/)
      await me.shell('rm -rf swap swap.real /tmp/target')
    },
  },
  {
    id: 'F06',
    what: 'what is no regular file is refused at once, by the tools and below them',
    async run({ me, sandbox }) {
      await me.shell(
        `rm -rf odd; mkdir odd; cd odd; mkfifo fifo; ln -s /dev/zero zero; ln -s /proc/self/mem mem; ln -s /proc/kmsg kmsg; ln -s /proc/1/environ environ; ln -s fifo link; ln -s loop loop; mkdir dir; perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); bind(S, pack_sockaddr_un("socket"))'`,
      )
      const from = performance.now()
      for (const name of ['fifo', 'zero', 'mem', 'kmsg', 'environ', 'loop', 'dir', 'socket', 'link']) {
        expect(await me.call('read_file', { path: `odd/${name}` }), name).toMatchObject({ status: 'failed' })
        await expect((await sandbox()).files.read(`odd/${name}`), name).rejects.toMatchObject({
          code: expect.stringMatching(/^(not_regular|path_outside|permission)$/),
        })
      }
      for (const name of ['fifo', 'socket', 'dir'])
        expect(await me.call('write_file', { path: `odd/${name}`, content: 'x' }), name).toMatchObject({
          status: 'failed',
        })
      expect(performance.now() - from).toBeLessThan(30_000)
      await me.shell('rm -rf odd')
    },
  },
  {
    id: 'F08',
    what: 'written over and over while it is read and the writer is cut off: old or new, never half, no temporary files',
    heavy: true,
    async run(stage) {
      const box = await stage.controller.acquire('writer')
      const content = (n: number): Buffer => Buffer.alloc(200_000, `${n % 10}`)
      await box.files.write('whole', content(0))
      const writing = (async () => {
        for (let n = 1; ; n += 1) await box.files.write('whole', content(n))
      })().catch(() => 'cut off')
      const whole = async (sandbox: Sandbox): Promise<void> => {
        const bytes = await sandbox.files.read('whole').catch((error: unknown) => error)
        // Replaced between two pieces of the reading: said so, not mixed.
        if (bytes instanceof SandboxError && bytes.code === 'limit_reached') return
        if (!(bytes instanceof Uint8Array)) throw bytes
        expect([bytes.length, new Set(bytes).size]).toEqual([200_000, 1])
      }
      for (let i = 0; i < extent(10, 200); i += 1) await whole(box)
      // The supervisor goes in the middle of a write.
      await stage.controller.stop('writer')
      expect(await writing).toBe('cut off')
      const again = await stage.controller.acquire('writer')
      await whole(again)
      expect((await again.files.list('')).map(({ path }) => path)).toEqual(['whole'])
    },
  },
  {
    id: 'X-F1',
    what: 'names that are no text, that look like options and that end in spaces are only names',
    async run({ me, sandbox }) {
      await me.shell(
        `mkdir names; cd names; touch -- '-rf' ' a ' $'new\\nline' '"quoted"'; perl -e 'open(F, ">", "\\xff\\xfe")'`,
      )
      const names = (await (await sandbox()).files.list('names')).map(({ path }) => path)
      expect(names.length).toBe(5)
      expect(names).toEqual(
        expect.arrayContaining(['names/-rf', 'names/ a ', 'names/new\nline', 'names/"quoted"']),
      )
      const listed = (await me.call('list_directory', { path: 'names' })).forModel.split('\n')
      expect(listed).toHaveLength(6)
      expect(listed).toEqual(
        expect.arrayContaining([String.raw`"new\nline"  0 bytes`, String.raw`"\"quoted\""  0 bytes`]),
      )
      await me.shell('rm -r names')
    },
  },
  {
    id: 'X-F5',
    what: 'a chain of 60,000 directories goes with its owner, and the engine walks down none of it',
    heavy: true,
    async run({ other, controller, neighbour }) {
      const { output } = await other('digger').shell(
        `perl -e 'for (1 .. 60_000) { mkdir "d" or die $!; chdir "d" } print "dug"'`,
      )
      expect(output).toBe('dug')
      await controller.remove('digger', 'purge')
      expect(await controller.status('digger')).toMatchObject({ state: 'absent', connected: false })
      expect((await neighbour.shell('echo served')).output).toBe('served\n')
    },
  },
  {
    id: 'X-F3',
    what: 'dates that no calendar has do not hide the files beside them',
    async run({ me }) {
      await me.shell(
        `mkdir dates; cd dates; touch plain; python3 -c 'import os
for name, date in (("early", -(2 ** 31)), ("before", -1), ("late", 2 ** 62)):
  open(name, "w").close(); os.utime(name, (date, date))'`,
      )
      const { status, forModel } = await me.call('list_directory', { path: 'dates' })
      expect({ status, names: forModel.match(/early|before|late|plain/g)?.toSorted() }).toEqual({
        status: 'completed',
        names: ['before', 'early', 'late', 'plain'],
      })
      await me.shell('rm -r dates')
    },
  },
  {
    id: 'X-F4',
    what: 'a file that another process holds a lease on is written and removed at once, and read after it',
    async run({ me, sandbox }) {
      const { files } = await sandbox()
      await files.write('leased', Buffer.from('old'))
      const holder = await begun(
        me,
        `exec python3 -c 'import fcntl, signal, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
file = open("leased", "r+"); fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK); print("held", flush=True); time.sleep(300)'`,
      )
      // The kernel would have an open wait for 45 seconds; nobody behind it in the line waits either.
      await expect(files.read('leased')).rejects.toMatchObject({ code: 'limit_reached' })
      await files.write('leased', Buffer.from('new'))
      expect(Buffer.from(await files.read('leased')).toString()).toBe('new')
      await files.remove('leased')
      holder.cancel()
      expect((await holder.ended).reason).toBe('cancelled')
    },
  },
  {
    id: 'X-F2',
    what: 'a tree far deeper than a path may be long is listed, reset and removed',
    heavy: true,
    async run({ me, controller, sandbox }) {
      await me.shell(
        `perl -e 'for my $top ("/tmp", "/workspace") { chdir $top; for (1 .. 3000) { mkdir "d"; chdir "d" } }'`,
      )
      await controller.reset('attacker')
      expect((await me.shell('ls -A /tmp')).output).toBe('')
      await (await sandbox()).files.remove('d', { recursive: true })
      expect((await me.shell('ls -A /workspace | grep -c "^d$"')).output).toBe('0\n')
    },
  },
]
