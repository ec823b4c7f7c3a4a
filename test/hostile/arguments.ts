/** Class F: environment, arguments and bytes on their way into a command and out of it. */
import { randomBytes } from 'node:crypto'

import { expect } from 'vitest'

import type { Sandbox } from '../../packages/sandbox/src/sandbox.ts'
import { extent } from '../campaign.ts'
import { prints, type Row } from './row.ts'

const id = (): string => randomBytes(16).toString('hex')

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
  {
    id: 'F10',
    what: 'environment: what cannot be is refused, the rest is the command’s own business',
    async run({ sandbox, me }) {
      const box = await sandbox()
      for (const [name, value] of [
        ['A=B', 'x'],
        ['', 'x'],
        ['A', 'x\0y'],
        ['A\0', 'x'],
        ['A', 'x'.repeat(2_000_000)],
      ] as const)
        await expect(box.run({ id: id(), command: ['true'], env: { [name]: value } })).rejects.toMatchObject({
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
      const said = await runRaw(box, ['/bin/bash', '-c', 'echo "$LINES"'], env)
      // The place of the loader's message depends on which stream is read first.
      expect(said.replace(/^ERROR: ld\.so.*\n/gm, '')).toMatch(/sourced\na\nb\n/)
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
      expect((await me.shell('echo a\r\necho b')).output).toBe('a\nb\n')
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
]
