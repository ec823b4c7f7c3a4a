/** Class F: files, paths and arguments. */
import { randomBytes } from 'node:crypto'

import { expect } from 'vitest'

import { SandboxError } from '../../packages/sandbox/src/errors.ts'
import type { Sandbox } from '../../packages/sandbox/src/sandbox.ts'
import { extent } from '../campaign.ts'
import { begun, closed, prints, type Row } from './row.ts'

const id = (): string => randomBytes(16).toString('hex')

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

/** Texts that a shell must get as they are: one element of argv, read by nobody else. */
const TEXTS = [
  '$(reboot)`reboot`${IFS}',
  `'"\\'"\\\\`,
  '\r\n\r\n',
  'a\nb\tc\u2028d',
  '--help; -rf /',
  '*?[a-z]{1,2}~',
  '\u202e\ufeff\u{1f468}\u200d\u{1f469}',
  '%s%n%x',
  '!history !!',
]

async function runRaw(
  sandbox: Sandbox,
  command: readonly string[],
  env: Record<string, string> = {},
): Promise<string> {
  const running = await sandbox.run({ id: id(), command, env, autoAcknowledge: true })
  const chunks: Uint8Array[] = []
  for await (const chunk of running.output) chunks.push(chunk.data)
  await running.exit
  return Buffer.concat(chunks).toString()
}

export const rows: Row[] = [
  closed('F01', 'touch /etc/x', /Read-only/),
  closed('F01', 'echo x >> /etc/passwd', /Read-only|denied/),
  closed('F01', 'cp /bin/true /usr/bin/x', /Read-only/),
  closed('F01', 'mkdir /x', /Read-only/),
  closed('F01', 'echo "1.2.3.4 x" >> /etc/hosts', /denied|Read-only/),
  closed('F01', 'echo x > /etc/hostname; echo x > /etc/resolv.conf', /denied|Read-only/),
  {
    id: 'F02',
    what: 'the mounts are the read-only root, the kernel’s own, tmpfs and one volume, and no path of the host that tells anything',
    async run({ me }) {
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
      expect(writable.map(({ where }) => where).toSorted()).toEqual(['/run', '/tmp', '/workspace'])
      for (const { where, how } of mounts.filter(({ where }) => /^\/(tmp|run|dev\/shm)$/.test(where)))
        expect(how, where).toEqual(expect.arrayContaining(['nosuid', 'nodev']))
      for (const { root } of mounts) expect(root).not.toMatch(/docker\.sock|\/home|\/root(\/|$)|attacker/)
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
    id: 'F10',
    what: 'environment: what cannot be is refused, the rest is the command’s own business',
    async run({ sandbox, me }) {
      const box = await sandbox()
      for (const env of [
        { 'A=B': 'x' },
        { '': 'x' },
        { A: 'x\0y' },
        { 'A\0': 'x' },
        { A: 'x'.repeat(2_000_000) },
      ])
        await expect(box.run({ id: id(), command: ['true'], env })).rejects.toMatchObject({
          code: 'invalid_arguments',
        })
      await box.files.write('evil.sh', Buffer.from('echo sourced\n'))
      const env = {
        BASH_ENV: '/workspace/evil.sh',
        ENV: '/workspace/evil.sh',
        PATH: '.',
        LD_PRELOAD: '/workspace/x.so',
        LINES: 'a\nb',
      }
      expect(await runRaw(box, ['/bin/bash', '-c', 'echo "$LINES"'], env)).toMatch(/sourced\na\nb\n/)
      // The next command does not know of it.
      expect((await me.shell('echo "${BASH_ENV-}${ENV-}${LD_PRELOAD-}"; rm evil.sh')).output).toBe('\n')
    },
  },
  ...TEXTS.map((text): Row => ({
    id: 'F11',
    what: `arrives as one argument: ${JSON.stringify(text)}`,
    async run({ sandbox, me }) {
      expect(await runRaw(await sandbox(), ['printf', '%s', text])).toBe(text)
      const quoted = `'${text.replaceAll("'", `'\\''`)}'`
      expect((await me.shell(`printf '%s' ${quoted}`)).output).toBe(text)
    },
  })),
  {
    id: 'F11',
    what: 'too long, NUL, lone surrogates: typed; unbalanced quotes and here documents are the shell’s',
    async run({ me }) {
      expect(await me.shell(`: ${'x'.repeat(4 * 1024 * 1024)}`)).toMatchObject({
        status: 'failed',
        reason: 'invalid_arguments',
      })
      expect(await me.shell('echo a\0b')).toMatchObject({ status: 'failed', reason: 'invalid_arguments' })
      expect(await me.shell('echo \ud800')).toMatchObject({ status: 'failed', reason: 'invalid_arguments' })
      expect(await me.shell("echo 'open")).toMatchObject({ status: 'completed', code: 2 })
      expect(await me.shell('cat <<EOF\nno end $HOME')).toMatchObject({ status: 'completed', code: 0 })
      expect((await me.shell('echo a\r\necho b')).output).toBe('a\r\nb\n')
    },
  },
  {
    id: 'F12',
    what: 'stdin to a process that never reads is bounded by credit; half-closed, the output is complete',
    heavy: true,
    async run({ sandbox }) {
      const box = await sandbox()
      const deaf = await box.run({ id: id(), command: ['sleep', '300'], stdin: true, autoAcknowledge: true })
      const total = extent(64, 1_024) * 1024 * 1024
      let taken = 0
      const piece = Buffer.alloc(1024 * 1024)
      const feeding = (async () => {
        for (; taken < total; taken += piece.length) await deaf.writeStdin(piece)
      })().catch(() => undefined)
      await Promise.race([feeding, new Promise((resolve) => setTimeout(resolve, 1_000))])
      expect(taken).toBeLessThan(8 * 1024 * 1024)
      await deaf.cancel(0)
      await deaf.exit
      await feeding

      const sum = await box.run({
        id: id(),
        command: 'sha256sum; echo end',
        stdin: true,
        autoAcknowledge: true,
      })
      const sending = (async () => {
        for (let sent = 0; sent < total; sent += piece.length) await sum.writeStdin(piece)
        await sum.closeStdin()
      })()
      const chunks: Uint8Array[] = []
      for await (const chunk of sum.output) chunks.push(chunk.data)
      await sending
      expect(Buffer.concat(chunks).toString()).toMatch(/^[0-9a-f]{64} {2}-\nend\n$/)
    },
  },
  {
    id: 'F13',
    what: 'bytes of every value, cut anywhere, arrive exactly; the text has one decoder',
    async run({ me }) {
      const all = await me.shell(
        `exec perl -e '$| = 1; binmode STDOUT; for my $i (0 .. 255) { print chr $i; select undef, undef, undef, 0.001 if $i % 64 == 0 }'`,
      )
      expect([...all.raw]).toEqual(Array.from({ length: 256 }, (_, byte) => byte))
      const euro = await me.shell(
        `exec perl -e '$| = 1; for (1 .. 20) { for my $b (0xe2, 0x82, 0xac) { syswrite STDOUT, chr $b; select undef, undef, undef, 0.002 } }'`,
      )
      expect(euro.forModel).toBe('€'.repeat(20))
      expect(euro.bytes).toBe(60)
    },
  },
  prints(
    'F13',
    'a file with every byte comes back the same',
    `perl -e 'binmode STDOUT; print map { chr } 0 .. 255' | sha256sum`,
    /^40aff2e9d2d8922e47afd4648e6967497158785fbd1da870e7110266bf944880/,
  ),
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
      expect((await me.call('list_directory', { path: 'names' })).status).toBe('completed')
      await me.shell('rm -r names')
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
