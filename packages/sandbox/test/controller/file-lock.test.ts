/** A lock among processes that may be killed at any time, seen with real ones. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  lutimes,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { afterEach, beforeEach, expect, test } from 'vitest'

import { withFileLock } from '../../src/controller/file-lock.ts'

let folder: string
let file: string
const children: ChildProcess[] = []
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'sandlot-lock-'))
  file = join(folder, 'data')
})
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
  await rm(folder, { recursive: true })
})

/**
 * A process that takes the lock `times` times for `holdMs` each; it says so in the file `story`.
 */
function holder(times: number, holdMs: number): ChildProcess {
  const program = join(import.meta.dirname, 'file-lock-program.ts')
  const options = ['--conditions=sandlot-source', program]
  const child = spawn(process.execPath, [...options, file, String(times), String(holdMs)], {
    stdio: 'inherit',
  })
  children.push(child)
  return child
}

const story = async (): Promise<string[]> =>
  (await readFile(`${file}.story`, 'utf8').catch(() => '')).split('\n').filter((line) => line !== '')

/** Parts of a holder's name. */
async function ownName(): Promise<{ pid: string; start: string; token: string; space: string }> {
  const name = await withFileLock(file, () => readlink(`${file}.lock`))
  const [pid = '', start = '', token = '', ...space] = name.split(' ')
  return { pid, start, token, space: space.join(' ') }
}

const minuteAgo = (): number => Date.now() / 1_000 - 60

test('it is had by one at a time, and after it there is nothing', async () => {
  let inside = 0
  const most: number[] = []
  const work = async (): Promise<void> => {
    most.push(++inside)
    await sleep(1)
    inside--
  }
  await Promise.all(Array.from({ length: 20 }, () => withFileLock(file, work)))
  expect(most).toEqual(Array.from({ length: 20 }, () => 1))
  expect(await readdir(folder)).toEqual([])
})

test('what the work throws comes out, and the lock is free', async () => {
  const failing = withFileLock(file, () => Promise.reject(new Error('no')))
  await expect(failing).rejects.toThrow('no')
  expect(await withFileLock(file, async () => 'free')).toBe('free')
})

test('of a process that lives it is waited for, to the limit; of one that was killed it is broken', async () => {
  const child = holder(1, 3_600_000)
  while ((await story()).length === 0) await sleep(10)
  await expect(withFileLock(file, async () => undefined, 200)).rejects.toThrow(`${file}.lock is held`)
  child.kill('SIGKILL')
  await once(child, 'exit')
  expect(await withFileLock(file, async () => 'free')).toBe('free')
})

test('a reused process id, as after a restart of its container, does not hold it', async () => {
  const { pid, start, space } = await ownName()
  expect(start).toMatch(/^\d+$/)
  await symlink(`${pid} ${Number(start) - 1} aa ${space}`, `${file}.lock`)
  expect(await withFileLock(file, async () => 'free', 200)).toBe('free')
})

test.each(['a link of another machine or container', 'a file of somebody else'])(
  '%s is waited for until it is old',
  async (kind) => {
    const { pid, start, space } = await ownName()
    const isLink = kind.startsWith('a link')
    if (isLink) await symlink(`${pid} ${Number(start) - 1} aa ${space} elsewhere`, `${file}.lock`)
    else await writeFile(`${file}.lock`, '')
    await expect(withFileLock(file, async () => undefined, 200)).rejects.toThrow('is held')
    await (isLink ? lutimes : utimes)(`${file}.lock`, minuteAgo(), minuteAgo())
    expect(await withFileLock(file, async () => 'free', 200)).toBe('free')
    expect(await readdir(folder)).toEqual([])
  },
)

test('a process that breaks it is not disturbed, and one that died of it is no obstacle', async () => {
  const { pid, start, token, space } = await ownName()
  const dead = `${pid} ${Number(start) - 1} aa ${space}`
  await symlink(dead, `${file}.lock`)
  await symlink(`${pid} ${start} ${token} ${space}`, `${file}.lock.break`)
  await expect(withFileLock(file, async () => undefined, 200)).rejects.toThrow('is held')
  expect(await readlink(`${file}.lock`)).toBe(dead)
  await rm(`${file}.lock.break`)
  await symlink(dead, `${file}.lock.break`)
  expect(await withFileLock(file, async () => 'free', 200)).toBe('free')
  expect(await readdir(folder)).toEqual([])
})

test('processes that are killed at any time leave it to one at a time', async () => {
  const running = Array.from({ length: 4 }, () => holder(1_000, 2))
  while ((await story()).length < 20) await sleep(10)
  for (let nth = 0; nth < 12; nth++) {
    const victim = running[nth % 4]
    victim?.kill('SIGKILL')
    if (victim) await once(victim, 'exit')
    running[nth % 4] = holder(1_000, 2)
    const seen = (await story()).length
    while ((await story()).length < seen + 10) await sleep(5)
  }
  // A process killed inside never leaves; no other enters before it has the lock.
  let inside: string | undefined
  for (const line of await story()) {
    const [what, pid] = line.split(' ')
    if (what === 'out') expect(pid, 'who comes out').toBe(inside)
    inside = what === 'in' ? pid : undefined
  }
})
