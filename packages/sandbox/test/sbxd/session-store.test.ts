import { execFileSync } from 'node:child_process'
import { createHmac } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

import { afterAll, beforeAll, expect, test } from 'vitest'

import { extent, randomFrom, sample, campaign } from '../../../../test/campaign.ts'
import { createLocalProcessBackend } from '../../src/backends/local-process.ts'
import type { SandboxBackend } from '../../src/backend.ts'
import { ByteWriter } from '../../src/sbxd/protocol/bytes.ts'
import { DEFAULT_LIMITS } from '../../src/limits.ts'
import type { ConnectedSandbox } from '../../src/sbxd/client.ts'
import { buildSbxd } from '../support/build-sbxd.ts'
import { Bench, sh, stateKeyOf } from '../contract/harness.ts'

/** Mirrors docker/sandbox/src/sessions/store.c. */
const MAGIC = Buffer.from('sbxd sessions 2\n')
const SLOT = 'abcdefgh'

let folder: string
let backend: SandboxBackend
let bench: Bench
let file: string
let current: ConnectedSandbox
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'sandlot-kept-'))
  const volumes = join(folder, 'volumes')
  backend = createLocalProcessBackend({ sbxd: await buildSbxd(folder), directory: volumes })
  const spec = {
    name: 'kept',
    slot: SLOT,
    uid: 30_000,
    volume: 'kept',
    image: 'none',
    limits: DEFAULT_LIMITS,
    labels: {},
  }
  ;({ bench, sandbox: current } = await Bench.start({
    backend,
    spec: () => spec,
    dispose: () => backend.inventory.close(),
  }))
  file = join(volumes, 'kept', '.tool-outputs', '.sessions')
}, 120_000)
afterAll(async () => {
  await backend.inventory.close()
  rmSync(folder, { recursive: true, force: true })
})

const run = (command: string, session = 'one') => sh(current, command, { session })

/** Another sbxd on the same volume; `between` is done while there is none. */
async function restart(between: () => void = () => {}): Promise<void> {
  const { id } = bench.container
  await backend.stop(id)
  between()
  current = await bench.connect()
}

/** A file with a good seal round these bytes. */
function whole(records: Uint8Array, key = stateKeyOf(SLOT)): Uint8Array {
  const unsealed = Buffer.concat([MAGIC, Buffer.alloc(32), records])
  return Buffer.concat([MAGIC, createHmac('sha256', key).update(unsealed).digest(), records])
}

const record = (name: string, text: string, claimed = Buffer.byteLength(text)): Buffer =>
  new ByteWriter().u8(name.length).bytes(Buffer.from(name)).u32(claimed).bytes(Buffer.from(text)).done()

const one = (text: string): Uint8Array => whole(record('one', text))

const put = (bytes: Uint8Array) => () => {
  rmSync(file, { recursive: true, force: true })
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, bytes)
}

test('what a session changed is written as a difference, for its owner only, and never committed', async () => {
  await run('export SECRET=hush PATH=$PATH:/more; unset LANG; git init -q; true')
  await expect.poll(() => readFileSync(file).includes('SECRET=hush')).toBe(true)
  const text = readFileSync(file).toString('latin1')
  expect(text).toContain('\0LANG\0')
  expect(text).not.toContain('HOME=')
  expect((await run('stat -c %a .tool-outputs/.sessions; git status --porcelain')).out).toBe('600\n')
  await run('rm -rf .git; unset SECRET')
  await expect.poll(() => readFileSync(file).includes('SECRET')).toBe(false)
})

test('a folder that says to git what the user wants keeps saying it', async () => {
  await run('mkdir -p .tool-outputs; echo mine >.tool-outputs/.gitignore; export A=1')
  await expect.poll(() => existsSync(file)).toBe(true)
  await current.reset()
  await expect.poll(() => existsSync(file)).toBe(false)
  expect(readFileSync(join(dirname(file), '.gitignore'), 'utf8')).toBe('mine\n')
  rmSync(dirname(file), { recursive: true })
})

test('a session that changed nothing leaves nothing in the workspace', async () => {
  await current.reset()
  await run('true')
  await run('cd /; cd - >/dev/null; unset OLDPWD', 'two')
  await restart()
  expect((await current.files.list('')).map(({ path }) => path)).not.toContain('.tool-outputs')
})

test('the one that is asked for last is written, and an ordinary end loses nothing', async () => {
  for (let n = 0; n < 20; n += 1) await run(`export N=${n}`)
  await restart()
  expect((await run('echo $N')).out).toBe('19\n')
})

test('many sessions come back in their order, and the oldest goes first', async () => {
  await current.reset()
  const all = Array.from({ length: 64 }, (_, n) => `s${n}`)
  await Promise.all(all.map((name) => run(`export N=${name}`, name)))
  await run('true', 's0')
  await run('export N=again', 's1')
  await restart()
  await run('export N=new', 'new')
  const kept = await Promise.all(['s0', 's1', 'new'].map((name) => run('echo ${N-none}', name)))
  expect(kept.map(({ out }) => out.trim())).toEqual(['s0', 'again', 'new'])
})

const big = Buffer.concat(
  Array.from({ length: 40 }, (_, n) => record(`n${n}`, `/\0${`V${n}=${'x'.repeat(100_000)}\0`.repeat(1)}`)),
)
/** The replacement of the file, and the value of A in the session `one` then. */
const STRANGERS: readonly { title: string; make: () => void; has?: string }[] = [
  { title: 'a good one', make: put(one('/\0A=taken\0')), has: 'taken' },
  {
    title: 'two of one name',
    make: put(whole(Buffer.concat([record('one', '/\0A=first\0'), record('one', '/\0A=second\0')]))),
    has: 'first',
  },
  {
    title: 'a good one, then none',
    make: put(whole(Buffer.concat([record('one', '/\0A=taken\0'), Buffer.from([200])]))),
    has: 'taken',
  },
  {
    title: 'one of another workspace',
    make: put(whole(record('one', '/\0A=1\0'), stateKeyOf('hgfedcba'))),
  },
  {
    title: 'one without a seal, as a command writes it',
    make: put(Buffer.concat([MAGIC, Buffer.alloc(32), record('one', '/\0A=1\0')])),
  },
  { title: 'nothing', make: put(Buffer.alloc(0)) },
  { title: 'only a head', make: put(whole(Buffer.alloc(0))) },
  { title: 'zeros', make: put(Buffer.alloc(4_096)) },
  { title: 'noise', make: put(Buffer.from(Array.from({ length: 9_999 }, (_, n) => (n * 7919) % 251))) },
  { title: 'no end of the last string', make: put(one('/\0A=1')) },
  { title: 'a length beyond the end', make: put(whole(record('one', '/\0A=1\0', 4_000_000_000))) },
  { title: 'a length of nothing', make: put(whole(record('one', '', 0))) },
  { title: 'a name of nothing', make: put(whole(record('', '/\0A=1\0'))) },
  { title: 'a name with a NUL', make: put(whole(record('o\0e', '/\0A=1\0'))) },
  { title: 'a relative directory', make: put(one('deep\0A=1\0')) },
  { title: 'a directory without end', make: put(one(`/${'d'.repeat(5_000)}\0A=1\0`)) },
  { title: 'a variable longer than the system takes', make: put(one(`/\0A=${'x'.repeat(131_072)}\0`)) },
  { title: 'no name before the sign', make: put(one('/\0A=1\0=2\0')) },
  { title: '100,000 names', make: put(one(`/\0A=1\0${'x\0'.repeat(100_000)}`)) },
  { title: '5,000 variables', make: put(one(`/\0A=1\0${'V=1\0'.repeat(5_000)}`)) },
  {
    title: 'more sessions than there may be',
    make: put(whole(Buffer.concat(Array.from({ length: 90 }, (_, n) => record(`n${n}`, '/\0A=1\0'))))),
  },
  { title: 'more bytes than there may be', make: put(whole(big)) },
  {
    title: 'what would break every bash',
    make: put(
      one('/\0BASH_ENV=/etc/passwd\0SHELLOPTS=noexec\0LD_PRELOAD=/nothing\0SANDLOT_SESSION_FD=0\0A=taken\0'),
    ),
    has: 'taken',
  },
  { title: 'eight gigabytes of holes', make: () => (put(one('/\0A=1\0'))(), truncateSync(file, 2 ** 33)) },
  { title: 'a FIFO', make: () => (put(Buffer.alloc(0))(), rmSync(file), execFileSync('mkfifo', [file])) },
  {
    title: 'a directory',
    make: () => (put(Buffer.alloc(0))(), rmSync(file), mkdirSync(join(file, 'in'), { recursive: true })),
  },
  {
    title: 'a link to a good one',
    make: () => (
      put(one('/\0A=1\0'))(),
      writeFileSync(join(folder, 'other'), one('/\0A=1\0')),
      rmSync(file),
      symlinkSync(join(folder, 'other'), file)
    ),
  },
  {
    title: 'a folder that is a link',
    make: () => {
      rmSync(dirname(file), { recursive: true, force: true })
      mkdirSync(join(folder, 'outside'), { recursive: true })
      writeFileSync(join(folder, 'outside', '.sessions'), one('/\0A=1\0'))
      symlinkSync(join(folder, 'outside'), dirname(file))
    },
  },
]

test('whatever stands in its place, commands run, and nothing is taken that no session could have left', async () => {
  const wrong: unknown[] = []
  const clear = (): void => rmSync(dirname(file), { recursive: true, force: true })
  for (const { title, make, has } of sample('kept sessions', STRANGERS, extent(9, STRANGERS.length))) {
    // While there is no sbxd, which writes what a session keeps behind the end of its command.
    await restart(() => {
      clear()
      make()
    })
    const { out, code } = await run('echo "${A-none} ${LD_PRELOAD-no}"; /bin/true')
    const expected = `${has ?? 'none'} ${title.includes('bash') ? '/nothing' : 'no'}\n`
    if (out !== expected || code !== 0) wrong.push({ title, out, code })
  }
  await restart(clear)
  expect(wrong).toEqual([])
})

test('a file that was cut or changed anywhere is taken as if it were not there', async () => {
  const good = Buffer.from(one('/\0A=1\0LANG\0'))
  const random = randomFrom(`${campaign.seed} damage`)
  for (let n = 0; n < extent(5, 200); n += 1) {
    const bad = Buffer.from(good)
    const at = Math.floor(random() * bad.length)
    if (n % 2 === 0) bad.writeUInt8((bad[at] ?? 0) ^ (1 << (n % 8)), at)
    await restart(put(n % 2 === 0 ? bad : bad.subarray(0, at)))
    expect((await run('echo ${A-none}')).out, `${n}: ${at}`).toBe('none\n')
  }
})

test('nothing is written while nothing may grow, and it is not lost for that', async () => {
  await restart(() => rmSync(dirname(file), { recursive: true, force: true }))
  await current.setDiskBudget({ bytes: 0, entries: 0, freeze: true })
  expect((await run('export HELD=1')).session).toBe('kept')
  expect((await run('echo $HELD; ls -A .tool-outputs 2>/dev/null')).out).toBe('1\n')
  await current.setDiskBudget({ bytes: 0, entries: 0 })
  await restart()
  expect((await run('echo $HELD')).out).toBe('1\n')
})

test('what stands in the file runs nothing: neither a function nor a PATH that a command or a tool put there', async () => {
  await run('export HERE=1')
  await expect.poll(() => existsSync(file)).toBe(true)
  const evil = record('one', `/\0BASH_FUNC_ls%%=() { echo evil; }\0PATH=${folder}/evil\0`)
  await restart(put(whole(evil, new Uint8Array(32))))
  expect((await run('ls -d /')).out).toBe('/\n')
})

test('without the key that seals it nothing is read or written', async () => {
  await restart(put(one('/\0A=taken\0')))
  const { id } = bench.container
  await backend.stop(id)
  const before = readFileSync(file)
  current = await bench.connect({ stateKey: undefined })
  expect((await run('echo ${A-none}; export A=mine')).out).toBe('none\n')
  expect((await run('echo $A')).out).toBe('mine\n')
  await backend.stop(id)
  expect(readFileSync(file)).toEqual(before)
  await restart()
  expect((await run('echo $A')).out).toBe('taken\n')
})
