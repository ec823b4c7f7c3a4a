/**
 * The rows about system calls outside of any container: this machine’s own programs behind the profile as libseccomp
 * compiles it, and the same calls given to what it compiles for the other architecture.
 */
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { readSeccompProfile } from '../../packages/sandbox/src/backends/docker/seccomp.ts'
import {
  type CompiledFilter,
  type FilterAnswer,
  FilterCompiler,
  ownArchitecture,
} from '../../packages/sandbox/test/backends/docker/seccomp-filter.ts'
import { EPERM, type FilterPlace, type SystemCallAnswer } from './row.ts'
import { filterRows } from './system-calls.ts'

/** Error of a permitted ioctl on a file that is not a terminal. */
const ENOTTY = 25

let compiler: FilterCompiler
let place: FilterPlace
let scratch: string
let arm64: CompiledFilter
/** Names for x86-64, whose numbers the rows have. */
let names: Map<number, string>
beforeAll(async () => {
  const profile = await readSeccompProfile()
  compiler = await FilterCompiler.build()
  arm64 = await compiler.compile(profile, 'aarch64')
  names = await compiler.names('x86_64')
  scratch = await mkdtemp(join(tmpdir(), 'sandlot-filter-'))
  // The user `nobody` runs under the filter, and compiles a program there.
  await chmod(scratch, 0o777)
  place = {
    architecture: ownArchitecture,
    me: { shell: (command) => compiler.shell(profile, command, scratch) },
  }
})
afterAll(async () => {
  await compiler.dispose()
  await rm(scratch, { recursive: true })
})

test('what runs here has the filter, no privilege and no container', async () => {
  const { output } = await place.me.shell(
    'grep -E "^(CapEff|Seccomp|NoNewPrivs):" /proc/self/status; [ /proc/self/ns/pid -ef /proc/$PPID/ns/pid ]; id -u',
  )
  expect(output.replaceAll('\t', ' ')).toMatch(/^CapEff: 0+\nNoNewPrivs: 1\nSeccomp: 2\n[1-9]\d*\n$/)
})

describe('on this machine, in no container', () => {
  for (const row of filterRows)
    test(`${row.id} ${row.what}`, async ({ skip }) => {
      const reason = row.skip?.(place)
      if (reason !== undefined) return skip(reason)
      await row.run(place)
    })
})

describe('as compiled for arm64', () => {
  for (const { id, what, calls } of filterRows) {
    if (calls === undefined) continue
    test(`${id} ${what}`, () => {
      let known = 0
      for (const [call, expected] of Object.entries(calls)) {
        const [number, ...args] = call.split(',')
        // A number that this libseccomp has no name for is of a call newer than it; such are refused by default.
        const name = names.get(Number(number))
        const answer = name === undefined ? undefined : arm64.byName(name, ...args.map(value))
        if (answer === undefined) continue
        known += 1
        expect(answer, `${call} (${name})`).toBe(ofTheFilter(expected))
      }
      // Only newer ones, or calls that arm64 never had, leave nothing to ask.
      expect(known > 0 || Object.values(calls).every((expected) => expected === 'closed')).toBe(true)
    })
  }
})

/** An argument as a row writes it; of memory and of itself the filter sees only some number. */
function value(argument: string): bigint {
  if (argument === 'page') return 0x7f00_0000_1000n
  return argument === 'self' ? 4_711n : BigInt(argument)
}

/** Expected action of the filter for an answer: another errno means that the call reached the kernel. */
function ofTheFilter(expected: SystemCallAnswer): FilterAnswer {
  if (expected === 'closed') return EPERM
  return expected === 'open' || expected === ENOTTY ? 'allow' : expected
}
