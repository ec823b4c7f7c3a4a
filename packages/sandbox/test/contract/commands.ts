import { createHash, randomBytes } from 'node:crypto'

import { expect } from 'vitest'

import type { Suite } from '../support/contract.ts'
import { finish, newId, sh } from './harness.ts'

const sha = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

const byText = (a: string | undefined, b: string | undefined): number => ((a ?? '') < (b ?? '') ? -1 : 1)

export function commandTests({ it, sandbox }: Suite): void {
  it('separates stdout and stderr and reports the exit code', async () => {
    const result = await sh(sandbox(), 'echo out; echo err >&2; exit 3')
    expect(result).toMatchObject({
      cause: 'exited',
      code: 3,
      out: 'out\n',
      err: 'err\n',
      bytes: { stdout: 4, stderr: 4 },
    })
  })

  it('merges both streams in the order of writing', async () => {
    const result = await sh(sandbox(), 'for i in 1 2 3; do echo $i; echo $i >&2; done', { merge: true })
    expect(result).toMatchObject({ out: '1\n1\n2\n2\n3\n3\n', err: '', bytes: { stderr: 0 } })
  })

  it('runs text with bash and an argument vector as it is', async () => {
    expect((await sh(sandbox(), '[[ ab == a* ]] && echo ${BASH_VERSION:+bash}')).out).toBe('bash\n')
    expect((await sh(sandbox(), ['printf', '%s|', '$(id)', 'a b', '', '"\'', '\n'])).out).toBe(
      '$(id)|a b||"\'|\n|',
    )
  })

  it('starts in the workspace, or where cwd says', async () => {
    const box = sandbox()
    await box.files.mkdir('deep/er')
    expect((await sh(box, 'pwd')).out).toBe(`${box.workspace}\n`)
    expect((await sh(box, 'pwd', { cwd: 'deep/er' })).out).toBe(`${box.workspace}/deep/er\n`)
    expect((await sh(box, 'pwd', { cwd: '/' })).out).toBe('/\n')
  })

  it('has the short environment and what the request adds', async () => {
    const { out } = await sh(sandbox(), ['env'], { env: { ADDED: 'a=b\nc', TERM: 'dumb' } })
    const names = out.split('\n').map((line) => line.split('=')[0])
    expect(
      names.filter((name) => name && !['c', 'HOSTNAME', 'SHELL'].includes(name)).toSorted(byText),
    ).toEqual(['ADDED', 'HOME', 'LANG', 'PATH', 'SANDBOX', 'TERM', 'TZ'])
    expect(out).toContain('ADDED=a=b\nc\n')
    expect(out).toContain('TERM=dumb\n')
  })

  it('starts a command with the usual signals, descriptors and no core files', async () => {
    const { out } = await sh(
      sandbox(),
      'grep -E "^Sig(Blk|Ign)" /proc/self/status; ls -l /proc/self/fd | wc -l; ulimit -c',
      { cwd: '/' },
    )
    expect(out).toMatch(/SigBlk:\s0+\nSigIgn:\s0+\n5\n0\n|SigBlk:\s0+\nSigIgn:\s0+\n[56]\n0\n/)
  })

  it('gives a command without stdin an empty one', async () => {
    expect(await sh(sandbox(), 'cat; echo done')).toMatchObject({ out: 'done\n', code: 0 })
  })

  it('passes stdin through unchanged, however large, and closes it', async () => {
    const data = randomBytes(3_000_001)
    const command = await sandbox().run({
      id: newId(),
      command: 'sha256sum',
      stdin: true,
      autoAcknowledge: true,
    })
    for (let at = 0; at < data.length; at += 700_001)
      await command.writeStdin(data.subarray(at, at + 700_001))
    await command.closeStdin()
    expect((await finish(command)).out).toBe(`${sha(data)}  -\n`)
  })

  it('holds a writer back whose command does not read, and lets go at its end', async () => {
    const command = await sandbox().run({
      id: newId(),
      command: 'read -r line; echo "$line"',
      stdin: true,
      autoAcknowledge: true,
    })
    const writing = command.writeStdin(Buffer.concat([Buffer.from('first\n'), Buffer.alloc(4_000_000)]))
    const outcome = writing.then(
      () => 'written',
      (error: unknown) => error,
    )
    expect(await finish(command)).toMatchObject({ out: 'first\n', code: 0 })
    // Unread output is discarded, so the rest may still be read before the end is known.
    if ((await outcome) !== 'written') expect(await outcome).toMatchObject({ code: 'cancelled' })
  })

  it('delivers large binary output whole, with dense offsets', async () => {
    const command = await sandbox().run({
      id: newId(),
      command: 'head -c 8000003 /dev/urandom | tee >(sha256sum >&2)',
      autoAcknowledge: true,
    })
    const hash = createHash('sha256')
    let next = 0
    let printed = ''
    for await (const { stream, offset, data } of command.output) {
      if (stream === 'stderr') printed += Buffer.from(data).toString()
      else {
        expect(offset).toBe(next)
        next += data.length
        hash.update(data)
      }
    }
    expect((await command.exit).bytes.stdout).toBe(8_000_003)
    expect(next).toBe(8_000_003)
    expect(printed).toBe(`${hash.digest('hex')}  -\n`)
  })

  it('keeps every one of many tiny writes to alternating streams', async () => {
    const count = 20_000
    const result = await sh(sandbox(), `for ((i = 0; i < ${count}; i++)); do printf x; printf y >&2; done`)
    expect(result.out).toBe('x'.repeat(count))
    expect(result.err).toBe('y'.repeat(count))
  })

  it('stops a command whose output is not read, and continues when it is', async () => {
    const box = sandbox()
    const command = await box.run({
      id: newId(),
      command: 'head -c 12000000 /dev/zero; echo x > flood-done',
      autoAcknowledge: true,
    })
    await expect(sh(box, 'sleep 0.3; test -e flood-done')).resolves.toMatchObject({ code: 1 })
    expect((await finish(command)).bytes.stdout).toBe(12_000_000)
    await expect(sh(box, 'test -e flood-done')).resolves.toMatchObject({ code: 0 })
  })

  it('stops a command whose output is not acknowledged, and continues when it is', async () => {
    const box = sandbox()
    const command = await box.run({
      id: newId(),
      command: 'head -c 6000000 /dev/zero; echo x > acknowledged-done',
    })
    let acknowledged = 0
    let checked = false
    for await (const { offset, data } of command.output) {
      const taken = offset + data.length
      if (!checked && taken > 900_000) {
        await expect(sh(box, 'sleep 0.2; test -e acknowledged-done')).resolves.toMatchObject({ code: 1 })
        checked = true
      }
      // Without these it would stop after the window; the end is left for later.
      if (checked && taken - acknowledged > 300_000 && taken < 6_000_000)
        command.acknowledge({ stdout: (acknowledged = taken) })
    }
    const exit = await command.exit
    expect((await box.commands()).map(({ id }) => id)).toContain(command.id)
    command.acknowledge(exit.bytes)
    expect((await box.commands()).map(({ id }) => id)).not.toContain(command.id)
  })

  it('runs many commands at once', async () => {
    const results = await Promise.all(
      Array.from({ length: 60 }, (_, i) => sh(sandbox(), `sleep 0.1; echo ${i}`)),
    )
    expect(results.map(({ out }) => out)).toEqual(results.map((_, i) => `${i}\n`))
  })

  it('passes a long request in pieces', async () => {
    const args = Array.from({ length: 6 }, (_, i) => String(i).repeat(100_000))
    const { out } = await sh(sandbox(), ['/bin/bash', '-c', 'printf %s "$@" | wc -c', 'sh', ...args])
    expect(out.trim()).toBe('600000')
  })

  it('writes a long output to a file as well, from the first byte', async () => {
    const box = sandbox()
    const spool = { afterBytes: 1_000, maxBytes: 150_000 }
    const long = await sh(box, 'seq 1 100000', { merge: true, spool })
    expect(long.spoolFile).toMatch(new RegExp(`^${box.workspace}/\\.tool-outputs/[0-9a-f]{32}\\.txt$`))
    const kept = await box.files.read(long.spoolFile ?? '')
    expect(Buffer.from(kept).toString()).toBe(long.out.slice(0, 150_000))
    expect(await sh(box, 'seq 1 10', { merge: true, spool })).not.toHaveProperty('spoolFile')
  })

  it('writes the long output of every command while files are written', async () => {
    const box = sandbox()
    const spool = { afterBytes: 100, maxBytes: 150_000 }
    const enough = new AbortController()
    const writes = (async () => {
      for (let i = 0; !enough.signal.aborted; i += 1)
        await box.files.write(`beside-${i % 8}`, Buffer.from('x'))
    })()
    const missing: string[] = []
    for (let i = 0; i < 150; i += 1) {
      const { spoolFile } = await sh(box, ['seq', '1', '100'], { merge: true, spool })
      if (spoolFile === undefined) missing.push(`command ${i}`)
      else await box.files.remove(spoolFile)
    }
    enough.abort()
    await writes
    expect(missing).toEqual([])
  })

  it('measures what a command used', async () => {
    const exit = await sh(sandbox(), 'i=0; while ((i < 100000)); do ((i++)); done; exit 0')
    expect(exit.userMs + exit.systemMs).toBeGreaterThan(10)
    expect(exit.maxRssKb).toBeGreaterThan(500)
    expect(exit.durationMs).toBeGreaterThan(10)
  })

  it('counts page faults', async () => {
    expect((await sh(sandbox(), 'seq 1 1000')).usage?.minorFaults).toBeGreaterThan(0)
  })
}
