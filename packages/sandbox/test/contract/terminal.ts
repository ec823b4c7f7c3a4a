import { createHash, randomBytes, randomInt } from 'node:crypto'

import { expect } from 'vitest'

import { extent } from '../../../../test/campaign.ts'
import type { RunRequest } from '../../src/sandbox.ts'
import type { Suite } from '../support/contract.ts'
import { Bench, marker, newId, sh, survivors } from './harness.ts'
import { openScreen } from './screen.ts'

const SIZE = { rows: 31, columns: 97 }
/** A shell as in a window, without anybody's settings. The prompt is not in what is typed. */
const BASH = ['bash', '--norc', '--noprofile', '-i']
const QUIET = { PS1: 'ready> ', HISTFILE: '' }

export function terminalTests({ it, sandbox, fixture }: Suite): void {
  const run = (command: RunRequest['command'], options: Partial<RunRequest> = {}) =>
    sh(sandbox(), command, { terminal: SIZE, ...options })
  const open = (command: RunRequest['command'] = BASH) =>
    openScreen(sandbox(), { command, terminal: SIZE, env: QUIET })

  it('is a terminal: all three descriptors, controlling, of the given size', async () => {
    const { out, err, code } = await run(
      'for i in 0 1 2; do test -t $i && echo "$i is"; done; stty size; echo $TERM; echo direct >/dev/tty; tty',
    )
    expect(out).toMatch(/^0 is\r\n1 is\r\n2 is\r\n31 97\r\nxterm-256color\r\ndirect\r\n\/dev\/pts\/\d+\r\n$/)
    expect([err, code]).toEqual(['', 0])
  })

  it('echoes, edits lines and whole characters, and ends the input by a key', async () => {
    const screen = await open('cat; echo ended')
    await screen.type('grüß\x7f\x7fn\n')
    await screen.sees('grn\r\n')
    await screen.command.closeStdin()
    expect((await screen.end()).code).toBe(0)
    expect(screen.text().endsWith('grn\r\nended\r\n')).toBe(true)
  })

  it('ends an input whose last line is not finished', async () => {
    const screen = await open('stty -echo; echo ready; cat | od -c')
    await screen.sees('ready\r\n')
    await screen.type('abc')
    await screen.command.closeStdin()
    expect((await screen.end()).code).toBe(0)
    expect(screen.text()).toContain('a   b   c')
  })

  it('lets ^C reach what runs in the foreground, and ^Z, fg and bg work', async () => {
    const screen = await open()
    await screen.sees('ready> ')
    // One process from its first word on: what bash has forked and not yet replaced may lose a
    // signal.
    await screen.type(`sh -c 'echo st""arted; exec sleep 300'\n`)
    await screen.sees('started\r\n')
    await screen.type('\x03')
    // Only now: what is typed before the interrupt is handled may be thrown away with it.
    await screen.sees('ready> ')
    await screen.type('echo "code $?"; echo be""gin; sed -u "s/^/got /"\n')
    await screen.sees('code 130\r\nbegin\r\n')
    await screen.type('one\n')
    await screen.sees('got one\r\n')
    await screen.type('\x1a')
    await screen.sees('Stopped')
    await screen.sees('ready> ')
    await screen.type('jobs; fg\n')
    await screen.sees('Stopped')
    await screen.type('two\n')
    await screen.sees('got two\r\n')
    await screen.type('\x03')
    await screen.sees('ready> ')
    await screen.type('echo "after $?"; exit 5\n')
    await screen.sees('after 130\r\n')
    expect((await screen.end()).code).toBe(5)
  })

  it('notifies the foreground when its size changes', async () => {
    const screen = await open('trap "stty size; exit 6" WINCH; echo ready; while :; do sleep 0.02; done')
    await screen.sees('ready')
    await screen.command.resize({ rows: 50, columns: 132 })
    expect((await screen.end()).code).toBe(6)
    expect(screen.text()).toContain('50 132\r\n')
  })

  it('delivers everything that was shown before the end', async () => {
    const lines = extent(30_000, 300_000)
    const expected = Array.from({ length: lines }, (_, i) => `${i + 1}\r\n`).join('')
    for (const command of [['seq', `${lines}`], `seq ${lines} & wait`]) {
      const { out, bytes } = await run(command)
      expect(bytes).toEqual({ stdout: expected.length, stderr: 0 })
      expect(out === expected).toBe(true)
    }
    // Many short ones: the last bytes are written in the moment of the end.
    for (let i = 0; i < extent(20, 200); i++) expect((await run(['echo', `${i}`])).out).toBe(`${i}\r\n`)
  })

  it('takes a large input unchanged, as fast as it is read', async () => {
    const data = randomBytes(extent(300_000, 3_000_000))
    const screen = await open(`stty raw -echo; printf ready; head -c ${data.length} | sha256sum; stty sane`)
    await screen.sees('ready')
    await screen.command.writeStdin(data)
    await screen.end()
    expect(screen.text()).toContain(createHash('sha256').update(data).digest('hex'))
  })

  it('continues for another controller at every byte', async () => {
    const { bench: mine, sandbox: first } = await Bench.start(fixture())
    const id = newId()
    const expected = Array.from({ length: 20_000 }, (_, i) => `${i + 1}\r\n`).join('')
    const size = expected.length
    await first.run({ id, command: 'stty -echo; seq 20000; read -r x; echo "got $x"', terminal: SIZE })
    let text = ''
    let current = first
    /** Another controller continues, up to this many bytes at least, or to the end. */
    const follow = async (wanted: number, typed?: string): Promise<void> => {
      await current.close()
      current = await mine.connect()
      const known = await current.commands()
      expect(known).toEqual([{ id, terminal: true, background: false, state: 'running' }])
      const command = await current.attach(id, { stdout: text.length })
      if (!command) throw new Error('The command is gone')
      if (typed !== undefined) await command.writeStdin(Buffer.from(typed))
      if (text.length >= wanted) return
      for await (const chunk of command.output) {
        expect(chunk.offset).toBe(text.length)
        // The rest of a piece is discarded here, and sent again to the next one.
        text += Buffer.from(chunk.data.subarray(0, wanted - text.length)).toString()
        command.acknowledge({ stdout: text.length })
        if (text.length >= wanted) break
      }
    }
    const cuts = extent(3, 20)
    for (let cut = 0; cut < cuts; cut++) await follow(Math.min(size, text.length + randomInt(1, 12_000)))
    await follow(size)
    await follow(size, 'a li')
    await follow(Infinity, 'ne\n')
    expect(text === `${expected}got a line\r\n`).toBe(true)
    await current.close()
    await mine.remove()
  })

  it('may be closed and opened again by a command', async () => {
    const { out } = await run('exec <&- >&- 2>&-; sleep 0.1; exec <>/dev/tty >&0 2>&0; echo back; stty size')
    expect(out).toBe('back\r\n31 97\r\n')
  })

  it('hangs up when it is cancelled, and leaves no process', async () => {
    const m = marker()
    const screen = await open()
    await screen.sees('ready> ')
    await screen.type(`sleep ${m} & setsid sleep ${m} & (trap "" HUP TERM; sleep ${m}) &\n`)
    await screen.type('echo "all ""there"\n')
    await screen.sees('all there')
    await screen.type('sleep 300\n')
    await screen.command.cancel(100)
    expect((await screen.end()).cause).toBe('cancel')
    expect(await survivors(sandbox(), m)).toEqual([])
  })

  it('lets a program clean up when it is hung up', async () => {
    const screen = await open('trap "echo bye >left; exit 4" HUP; echo ready; while :; do sleep 0.02; done')
    await screen.sees('ready')
    await screen.command.cancel(20_000)
    expect(await screen.end()).toMatchObject({ cause: 'cancel', code: 4 })
    expect((await sh(sandbox(), 'cat left')).out).toBe('bye\n')
  })

  it('ends at its timeout, whatever it shows unread', async () => {
    const m = marker()
    const command = await sandbox().run({
      id: newId(),
      command: `sleep ${m} & yes`,
      terminal: SIZE,
      timeoutMs: 300,
    })
    // sbxd ends it; the rest of what it had shown comes as it is taken.
    let bytes = 0
    for await (const chunk of command.output) {
      bytes = chunk.offset + chunk.data.length
      command.acknowledge({ stdout: bytes })
    }
    const exit = await command.exit
    expect(exit).toMatchObject({ cause: 'timeout', bytes: { stdout: bytes } })
    command.acknowledge(exit.bytes)
    expect(await survivors(sandbox(), m)).toEqual([])
  })

  it('is not shared: each command has its own, and one without has none', async () => {
    const [a, b] = [await open('tty; read -r x'), await open('tty; read -r x')]
    await a.sees('/dev/pts/')
    await b.sees('/dev/pts/')
    expect(a.text()).not.toBe(b.text())
    expect((await sh(sandbox(), 'true </dev/tty')).code).toBe(1)
    for (const screen of [a, b]) {
      await screen.type('\n')
      expect((await screen.end()).code).toBe(0)
    }
  })

  it('refuses a size that is none', async () => {
    for (const terminal of [
      { rows: 0, columns: 80 },
      { rows: 24, columns: 65_536 },
      { rows: 24.5, columns: 80 },
    ])
      await expect(run('true', { terminal })).rejects.toMatchObject({ code: 'invalid_arguments' })
  })
}
