import { randomBytes } from 'node:crypto'

import { expect } from 'vitest'

import type { Suite } from '../support/contract.ts'
import { Bench, newId, sh } from './harness.ts'

const bytes = (text: string): Uint8Array => Buffer.from(text)
const text = (data: Uint8Array): string => Buffer.from(data).toString()

export function fileTests({ it, sandbox, fixture }: Omit<Suite, 'alone'>): void {
  it('writes with parents, reads, and stats a file', async () => {
    const { files, workspace } = sandbox()
    await files.write('a/b/c.txt', bytes('hello'))
    expect(text(await files.read('a/b/c.txt'))).toBe('hello')
    expect(text(await files.read(`${workspace}/a/./b//c.txt`, { offset: 1, length: 3 }))).toBe('ell')
    expect(text(await files.read('a/b/c.txt', { offset: 99 }))).toBe('')
    const stat = await files.stat('a/b/c.txt')
    expect(stat).toMatchObject({ path: 'a/b/c.txt', kind: 'file', size: 5, mode: 0o644 })
    expect(Math.abs(stat.modifiedAt - Date.now())).toBeLessThan(3_600_000)
    expect(await files.stat('')).toMatchObject({ path: '', kind: 'directory' })
  })

  it('reports files of any date', async () => {
    const { files } = sandbox()
    const dates = { early: '1901-12-14', before: '1969-12-31 23:59:59.5 UTC', late: '2446-05-10' }
    for (const [name, date] of Object.entries(dates))
      expect(await sh(sandbox(), ['touch', '-d', date, `dates-${name}`])).toMatchObject({ code: 0 })
    expect(await files.stat('dates-early')).toMatchObject({ size: 0, modifiedAt: 0 })
    expect(await files.stat('dates-before')).toMatchObject({ modifiedAt: 0 })
    expect((await files.stat('dates-late')).modifiedAt).toBeGreaterThan(Date.parse('2038-01-01'))
    const listed = (await files.list('')).map(({ path }) => path)
    expect(listed).toEqual(expect.arrayContaining(['dates-before', 'dates-early', 'dates-late']))
  })

  it('writes and reads files of any size', async () => {
    const { files } = sandbox()
    for (const size of [0, 1, 57_344, 57_345, 65_472, 65_473, 3_000_000]) {
      const data = randomBytes(size)
      await files.write('any-size', data)
      expect(Buffer.compare(await files.read('any-size'), data)).toBe(0)
    }
    const all = await files.list('')
    expect(all.some(({ path }) => path.includes('staging'))).toBe(false)
  })

  it('writes a file in pieces: it is there when it is whole, and nothing stays of one that was given up', async () => {
    const { files } = sandbox()
    const data = randomBytes(500_000)
    // Other suites keep theirs there too.
    const unfinished = () => files.list('.tool-outputs').catch(() => [])
    const before = await unfinished()
    const writer = files.writer('in/pieces', { isNew: true })
    for (let at = 0; at < 400_000; at += 100_000) await writer.write(data.subarray(at, at + 100_000))
    expect(writer.written).toBe(400_000)
    await expect(files.stat('in/pieces')).rejects.toMatchObject({ code: 'not_found' })
    await writer.commit(data.subarray(400_000))
    expect(Buffer.compare(await files.read('in/pieces'), data)).toBe(0)
    await expect(writer.write(data)).rejects.toMatchObject({ code: 'invalid_arguments' })
    const given = files.writer('in/given-up')
    await given.write(data)
    await given.abort()
    await expect(files.stat('in/given-up')).rejects.toMatchObject({ code: 'not_found' })
    expect(await unfinished()).toEqual(before)
  })

  it('replaces nothing when asked not to, also not a file created in between', async () => {
    const { files } = sandbox()
    await files.write('taken', bytes('first'))
    const isNew = true
    await expect(files.writer('taken', { isNew }).commit(bytes('x'))).rejects.toMatchObject({
      code: 'exists',
    })
    const late = files.writer('late', { isNew })
    await late.write(bytes('mine'))
    await files.write('late', bytes('theirs'))
    await expect(late.commit()).rejects.toMatchObject({ code: 'exists' })
    await files.mkdir('folder/full')
    for (const to of ['taken', 'folder'])
      await expect(files.rename('late', to, { isNew })).rejects.toMatchObject({ code: 'exists' })
    await files.rename('late', 'free', { isNew })
    expect(text(await files.read('free'))).toBe('theirs')
    expect(text(await files.read('taken'))).toBe('first')
  })

  it('keeps the mode of a file that it replaces', async () => {
    await sh(sandbox(), 'echo old > tool.sh; chmod 755 tool.sh')
    await sandbox().files.write('tool.sh', bytes('#!/bin/sh\necho new\n'))
    expect((await sh(sandbox(), './tool.sh')).out).toBe('new\n')
  })

  it('replaces a file as a whole: a reader sees the old or the new one', async () => {
    const { files } = sandbox()
    const [a, b] = [Buffer.alloc(300_000, 'a'), Buffer.alloc(300_000, 'b')]
    await files.write('whole', a)
    const watch = await sandbox().run({
      id: newId(),
      command:
        'until test -e whole-stop; do sort -u <(fold -w1 whole | sort -u) | tr -d "\\n"; echo; done | sort | uniq',
      autoAcknowledge: true,
    })
    for (let i = 0; i < 10; i += 1) await files.write('whole', i % 2 ? a : b)
    await files.write('whole-stop', bytes(''))
    let seen = ''
    for await (const chunk of watch.output) seen += text(chunk.data)
    expect(seen.split('\n').filter((line) => line !== '' && line !== 'a' && line !== 'b')).toEqual([])
  })

  it('lists directories of any size, sorted', async () => {
    await sh(
      sandbox(),
      'mkdir -p many; cd many; seq -f "a-rather-long-name-for-a-file-%05g" 1 3000 | xargs touch; ln -s x link; mkdir dir; mkfifo fifo',
    )
    const entries = await sandbox().files.list('many')
    expect(entries).toHaveLength(3_003)
    expect(entries.map(({ path }) => path)).toEqual(entries.map(({ path }) => path).toSorted())
    expect(Object.fromEntries(entries.slice(-3).map(({ path, kind }) => [path, kind]))).toEqual({
      'many/dir': 'directory',
      'many/fifo': 'other',
      'many/link': 'symlink',
    })
  })

  it('lists as much as fits into memory, and no more, however long the paths are', async () => {
    // So many entries below a path of 3,824 characters have just less than 8 MiB of paths.
    const deep = Array.from({ length: 15 }, (_, n) => String(n).padStart(254, 'd')).join('/')
    await sandbox().files.mkdir(deep)
    const make = (from: number, to: number) =>
      sh(sandbox(), `cd ${deep} && seq -f "%09g" ${from} ${to} | xargs touch`)
    expect(await make(1, 2_100)).toMatchObject({ code: 0, err: '' })
    expect(await sandbox().files.list(deep)).toHaveLength(2_100)
    expect(await make(2_101, 2_200)).toMatchObject({ code: 0, err: '' })
    await expect(sandbox().files.list(deep)).rejects.toMatchObject({
      code: 'too_large',
      message: expect.stringContaining('8 MiB'),
    })
    await sandbox().files.remove(deep.slice(0, deep.indexOf('/')), { recursive: true })
  })

  it('makes, renames and removes', async () => {
    const { files } = sandbox()
    await files.mkdir('m/n')
    await files.mkdir('m/n')
    await files.write('m/n/f', bytes('x'))
    await files.rename('m/n/f', 'm/g')
    expect(text(await files.read('m/g'))).toBe('x')
    await expect(files.remove('m')).rejects.toMatchObject({ code: 'exists' })
    await files.remove('m/g')
    await files.remove('m/n')
    await files.remove('m', { recursive: true })
    await expect(files.stat('m')).rejects.toMatchObject({ code: 'not_found' })
    await expect(files.remove('m')).rejects.toMatchObject({ code: 'not_found' })
  })

  it('removes a tree deeper than any path', async () => {
    await sh(
      sandbox(),
      `perl -e 'mkdir "pit"; chdir "pit"; for (1 .. 600) { mkdir "ddddddddd"; open my $f, ">", "f"; chdir "ddddddddd" }'`,
    )
    await sandbox().files.remove('pit', { recursive: true })
    await expect(sandbox().files.stat('pit')).rejects.toMatchObject({ code: 'not_found' })
  })

  it('removes a tree whose folders are closed, as tools leave them that protect their caches', async () => {
    await sh(
      sandbox(),
      'mkdir -p cache/a/b/c cache/d; touch cache/a/b/c/f cache/d/f cache/g; chmod 000 cache/a/b; chmod 555 cache/a cache/d cache',
    )
    await sandbox().files.remove('cache', { recursive: true })
    await expect(sandbox().files.stat('cache')).rejects.toMatchObject({ code: 'not_found' })
  })

  it('has an end with a tree that is filled as fast as it is emptied', async () => {
    const { files } = sandbox()
    const filler = await sandbox().run({
      id: newId(),
      command: `exec perl -e 'mkdir "filled"; $| = 1; print "on\n"; while (1) { for (1 .. 50) { mkdir "filled/$_"; mkdir "filled/$_/in" } }'`,
      autoAcknowledge: true,
    })
    for await (const _ of filler.output) break
    // Gone for a moment, or not to be had; one or the other is said.
    await files.remove('filled', { recursive: true }).catch((error: unknown) => {
      expect(error).toMatchObject({ code: 'limit_reached' })
    })
    await filler.cancel(0)
    await filler.exit.catch(() => {})
    await files.remove('filled', { recursive: true })
    await expect(files.stat('filled')).rejects.toMatchObject({ code: 'not_found' })
  })

  const outside = ['../x', '../../etc/shadow', '/etc/passwd', 'a/../../x', '/workspace-other/x', 'a/./../b']
  for (const path of outside) {
    it(`refuses the path ${path}`, async () => {
      await expect(sandbox().files.read(path)).rejects.toMatchObject({ code: 'path_outside' })
      await expect(sandbox().files.write(path, bytes('x'))).rejects.toMatchObject({ code: 'path_outside' })
      await expect(sandbox().files.list(path)).rejects.toMatchObject({ code: 'path_outside' })
      await expect(sandbox().files.remove(path, { recursive: true })).rejects.toMatchObject({
        code: 'path_outside',
      })
    })
  }

  it('takes names as they are that mean another place to shells and to Windows', async () => {
    const { files } = sandbox()
    await sh(sandbox(), String.raw`mkdir odd; cd odd; mkdir '~'; touch '~/x' 'a\..\b' 'C:\x' '~$a.docx'`)
    const names = ['C:\\x', 'a\\..\\b', '~', '~$a.docx']
    expect((await files.list('odd')).map(({ path }) => path)).toEqual(names.map((name) => `odd/${name}`))
    for (const name of names) await files.rename(`odd/${name}`, name)
    await files.write('a\\..\\b', bytes('one'))
    expect(text(await files.read('a\\..\\b'))).toBe('one')
    expect(await files.stat('~/x')).toMatchObject({ kind: 'file' })
    for (const name of names) await files.remove(name, { recursive: true })
    await files.remove('odd')
  })

  it('refuses paths that cannot be', async () => {
    for (const path of ['a\0b', 'x/'.repeat(2_500), '\ud800']) {
      await expect(sandbox().files.stat(path)).rejects.toMatchObject({ code: 'invalid_arguments' })
    }
    await expect(sandbox().files.write('n'.repeat(300), bytes('x'))).rejects.toMatchObject({
      code: 'invalid_arguments',
    })
    await expect(sandbox().files.remove('')).rejects.toMatchObject({ code: 'invalid_arguments' })
  })

  it('does not follow links out of the workspace, and follows those inside', async () => {
    const { files } = sandbox()
    await sh(
      sandbox(),
      'mkdir -p links/in; ln -s / links/root; ln -s ../../../.. links/up; ln -s in links/dir; ln -s in/real links/file; ln -s /etc/passwd links/abs',
    )
    for (const path of ['links/root/etc/passwd', 'links/up/etc/passwd', 'links/abs']) {
      await expect(files.read(path)).rejects.toMatchObject({ code: 'path_outside' })
      await expect(files.write(path, bytes('x'))).rejects.toMatchObject({ code: 'path_outside' })
    }
    await files.write('links/dir/real', bytes('one'))
    await files.write('links/file', bytes('two'))
    expect(text(await files.read('links/in/real'))).toBe('two')
    expect(await files.stat('links/file')).toMatchObject({ kind: 'symlink' })
    await files.remove('links', { recursive: true })
    expect((await sh(sandbox(), 'test -d /etc')).code).toBe(0)
  })

  it('says where a path leads, through links and beyond what exists', async () => {
    const { files } = sandbox()
    await sh(
      sandbox(),
      'mkdir -p where/real/.git; cd where; ln -s real/.git notes; ln -s ../where up; ln -s missing/new dangling; ln -s / root; ln -s loop loop; touch real/file',
    )
    const led: Record<string, string> = {
      '': '',
      where: 'where',
      'where/notes/config': 'where/real/.git/config',
      'where/notes/hooks/a/b': 'where/real/.git/hooks/a/b',
      'where/up/up/notes': 'where/real/.git',
      'where/dangling': 'where/missing/new',
      'where/dangling/deep': 'where/missing/new/deep',
      'where/real/file': 'where/real/file',
      'where/none/at/all': 'where/none/at/all',
    }
    for (const [path, to] of Object.entries(led)) expect(await files.resolve(path), path).toBe(to)
    for (const path of ['where/root/etc', 'where/loop/x', '../x'])
      await expect(files.resolve(path), path).rejects.toMatchObject({ code: 'path_outside' })
    await expect(files.resolve('where/real/file/x')).rejects.toMatchObject({ code: 'not_regular' })
    await files.remove('where', { recursive: true })
  })

  it('reports changes since a snapshot, nearest to the top first', async () => {
    const { files } = sandbox()
    await sh(
      sandbox(),
      'mkdir -p seen/deep/er seen/.git .tool-outputs; cd seen; echo 1 > kept; echo 1 > grown; echo 1 > same-size; echo 1 > gone; echo 1 > deep/er/gone',
    )
    const snapshot = await files.snapshot()
    expect(snapshot.files).toBeGreaterThanOrEqual(5)
    expect(snapshot.repositories).toContain('seen')
    await sh(
      sandbox(),
      'cd seen; echo 22 > grown; echo 2 > same-size; rm gone deep/er/gone; ln -s kept link; mkdir empty; touch deep/er/new "$(printf "new\\nline")"; ' +
        'touch .git/index ../.tool-outputs/x; mv deep/er deep/re',
    )
    const { files: changed, more } = await snapshot.changes()
    expect(changed.map(({ kind, path, size }) => `${kind} ${path} ${size}`)).toEqual([
      'removed seen/gone 2',
      'changed seen/grown 3',
      'created seen/link 4',
      'created seen/new\nline 0',
      'changed seen/same-size 2',
      'removed seen/deep/er/gone 2',
      'created seen/deep/re/new 0',
    ])
    expect(more).toBe(0)
    await expect(snapshot.changes()).rejects.toMatchObject({ code: 'not_found' })
    await sh(sandbox(), 'rm -rf seen .tool-outputs')
  })

  it('keeps the latest sixteen snapshots, each with what was there then', async () => {
    const { files } = sandbox()
    const snapshots = []
    for (let n = 0; n < 17; n++) {
      snapshots.push(await files.snapshot())
      await files.write(`numbered/${n}`, bytes('x'))
    }
    await expect(snapshots[0]?.changes()).rejects.toMatchObject({ code: 'not_found' })
    const [second, last] = [await snapshots[1]?.changes(), await snapshots.at(-1)?.changes()]
    expect(second?.files).toHaveLength(16)
    expect(last?.files).toEqual([{ kind: 'created', path: 'numbered/16', size: 1 }])
    await files.remove('numbered', { recursive: true })
  })

  it('counts changes that are too many to name', async () => {
    const { files } = sandbox()
    const snapshot = await files.snapshot()
    await sh(
      sandbox(),
      'mkdir -p many/of-them; seq -f "many/of-them/%.0f" 5000 | xargs touch; echo > many/top',
    )
    const { files: told, more } = await snapshot.changes()
    expect(told[0]).toEqual({ kind: 'created', path: 'many/top', size: 1 })
    expect(told.length).toBeGreaterThan(1_000)
    expect(told.length + more).toBe(5_001)
    await sh(sandbox(), 'rm -rf many')
  })

  it('reports in which of the watched directories any process changed something', async () => {
    const { files } = sandbox()
    await sh(sandbox(), 'mkdir -p watched/in watched/other/below; echo 1 > watched/in/file')
    const stop = new AbortController()
    const watching = (all: typeof files, paths: readonly string[]) => {
      const told = all.watch(paths, stop.signal)
      return told[Symbol.asyncIterator]()
    }
    const told = watching(files, ['watched/in', 'watched/other', 'watched/none'])
    const next = async () => (await told.next()).value
    expect(await next()).toEqual(['watched/in', 'watched/other', 'watched/none'])
    for (const change of [
      'echo 2 >> watched/in/file',
      'touch watched/in/new',
      'mv watched/in/new watched/in/newer',
      'rm watched/in/newer',
      'chmod 600 watched/in/file',
      'touch watched/other/below/unseen; mkdir watched/in/sub',
    ]) {
      await sh(sandbox(), change)
      expect(await next(), change).toEqual(['watched/in'])
    }
    await files.write('watched/other/mine', bytes('x'))
    expect(await next()).toEqual(['watched/other'])
    await sh(sandbox(), 'rm -r watched/in')
    expect(await next()).toEqual(['watched/in'])

    // Another set takes its place, and a link is never followed.
    await sh(sandbox(), 'mkdir watched/real; ln -s real watched/link')
    const second = watching(files.withoutLinks, ['watched/link', 'watched/other'])
    await second.next()
    expect(await told.next()).toEqual({ done: true, value: undefined })
    await sh(sandbox(), 'touch watched/real/unseen watched/other/seen')
    expect((await second.next()).value).toEqual(['watched/other'])
    stop.abort()
    expect((await second.next()).done).toBe(true)
    await sh(sandbox(), 'rm -rf watched')
  })

  it('follows no link where none may be, wherever it stands on the way', async () => {
    const { files } = sandbox()
    await sh(
      sandbox(),
      'mkdir -p strict/real/in; cd strict; echo old > real/file; ln -s real dir; ln -s file real/last; ln -s gone real/dangling',
    )
    const strict = files.withoutLinks
    const changed = { code: 'path_changed' }
    for (const path of ['strict/dir/file', 'strict/real/last', 'strict/real/dangling', 'strict/dir/new/er']) {
      await expect(strict.read(path), path).rejects.toMatchObject(changed)
      await expect(strict.write(path, bytes('new')), path).rejects.toMatchObject(changed)
    }
    await expect(strict.list('strict/dir')).rejects.toMatchObject(changed)
    await expect(strict.stat('strict/dir/file')).rejects.toMatchObject(changed)
    await expect(strict.mkdir('strict/dir/made')).rejects.toMatchObject(changed)
    await expect(strict.remove('strict/dir/file')).rejects.toMatchObject(changed)
    await expect(strict.rename('strict/dir/file', 'strict/real/f')).rejects.toMatchObject(changed)
    expect((await sh(sandbox(), 'cd strict/real; cat file; ls -A')).out).toBe(
      'old\ndangling\nfile\nin\nlast\n',
    )
    await expect(strict.stat('strict/real/last')).rejects.toMatchObject(changed)
    await strict.remove('strict/real/dangling')
    await strict.write('strict/real/in/a/b', bytes('made'))
    expect(text(await strict.read('strict/real/in/a/b'))).toBe('made')
    await files.remove('strict', { recursive: true })
  })

  it('writes nothing outside while directory and link are swapped', async () => {
    const swap = await sandbox().run({
      id: newId(),
      command:
        'out=/tmp/sandlot-outside-$$; mkdir -p race $out; echo ready; cd race; exec 2>/dev/null; ' +
        'until test -e ../race-stop; do rm -rf dir; ln -sT $out dir; rm dir; mkdir dir; done; ls -A $out | wc -l; rm -rf $out',
      autoAcknowledge: true,
    })
    const output = swap.output[Symbol.asyncIterator]()
    await output.next()
    const codes = new Set<unknown>()
    for (let i = 0; i < 300; i += 1) {
      try {
        await sandbox().files.write(`race/dir/f${i % 10}`, bytes('x'))
        codes.add('written')
      } catch (error) {
        codes.add(error instanceof Error && 'code' in error ? error.code : error)
      }
    }
    await sandbox().files.write('race-stop', bytes(''))
    let rest = ''
    for (let next = await output.next(); !next.done; next = await output.next()) rest += text(next.value.data)
    expect(rest.trim()).toBe('0')
    expect(
      [...codes].every((code) =>
        ['written', 'path_outside', 'not_found', 'exists', 'limit_reached'].includes(String(code)),
      ),
    ).toBe(true)
  })

  it('refuses what is not a regular file, at once', async () => {
    const { files } = sandbox()
    await sh(
      sandbox(),
      'mkdir -p odd/dir; cd odd; mkfifo fifo; python3 -c "import socket; socket.socket(socket.AF_UNIX).bind(\'socket\')" || true',
    )
    for (const path of ['odd/fifo', 'odd/dir', 'odd/socket', 'odd/dir/', '']) {
      await expect(files.read(path)).rejects.toMatchObject({
        code: expect.stringMatching(/^not_(regular|found)$/),
      })
      if (path !== 'odd/socket')
        await expect(files.write(path, bytes('x'))).rejects.toMatchObject({ code: 'not_regular' })
    }
    await expect(files.write('odd/fifo/x', bytes('x'))).rejects.toMatchObject({ code: 'not_regular' })
  })

  it('does not read a huge file whole, but in ranges', async () => {
    await sh(
      sandbox(),
      'truncate -s 3G sparse; printf end | dd of=sparse bs=1 seek=3000000000 conv=notrunc 2>/dev/null',
    )
    await expect(sandbox().files.read('sparse')).rejects.toMatchObject({ code: 'too_large' })
    expect(text(await sandbox().files.read('sparse', { offset: 3_000_000_000, length: 3 }))).toBe('end')
  })

  it('says permission where there is none', async () => {
    const { out } = await sh(sandbox(), 'id -u')
    if (out.trim() === '0') return
    await sh(sandbox(), 'echo x > closed; chmod 0 closed')
    await expect(sandbox().files.read('closed')).rejects.toMatchObject({ code: 'permission' })
  })

  it('answers files while a command floods its output', async () => {
    const flood = await sandbox().run({ id: newId(), command: 'yes', autoAcknowledge: true })
    await sandbox().files.write('meanwhile', bytes('x'))
    expect(text(await sandbox().files.read('meanwhile'))).toBe('x')
    await flood.cancel(0)
    for await (const _ of flood.output);
  })

  it('sweeps what a supervisor left half-written when it died', async () => {
    const { bench, sandbox: own } = await Bench.start(fixture())
    await sh(
      own,
      'mkdir -p .tool-outputs; echo half > .tool-outputs/.staging-7; echo keep > .tool-outputs/keep.txt',
    )
    await own.close()
    await fixture().backend.stop(bench.container.id)
    const again = await bench.connect()
    expect((await again.files.list('.tool-outputs')).map(({ path }) => path)).toEqual([
      '.tool-outputs/keep.txt',
    ])
    await again.close()
    await bench.remove()
  })
}
