/** One row of the table of hostile inputs, as data where that is possible. */
import { expect } from 'vitest'

import type { Stage } from './stage.ts'
import type { ToolCaller, ToolResult } from './tool-call.ts'

export interface Row {
  /** The id in the table that it belongs to; several rows may have the same one, ours beyond the table begin with X. */
  id: string
  what: string
  run(stage: Stage): Promise<void>
  /** Takes seconds or loads the machine: an ordinary run draws some of these, a full one takes all. */
  heavy?: true
  /** Says why this machine or engine cannot run it. */
  skip?(stage: Stage): string | undefined
}

/** A row that the filter alone decides, so that it is played outside of any container as well. */
export interface FilterRow extends Row {
  run(place: FilterPlace): Promise<void>
  skip?(place: FilterPlace): string | undefined
  /** Expected results of its system calls, in the form of {@link systemCalls}. */
  calls?: Record<string, SystemCallAnswer>
}

/** Place in which such a row runs: a sandbox, or this machine under the filter. */
export interface FilterPlace {
  me: { shell(command: string): Promise<Pick<ToolResult, 'code' | 'signal' | 'output'>> }
  /** `uname -m` of it. */
  architecture: string
  /** Absent where it is no sandbox. */
  engine?: Pick<Stage['engine'], 'name'>
}

/** Reason why a row is not played on Kubernetes, for `skip`. */
export function onlyOnDocker(reason: string): (place: FilterPlace) => string | undefined {
  return ({ engine }) => (engine?.name === 'kubernetes' ? reason : undefined)
}

/** The words of a kernel that refuses. */
const REFUSAL =
  /not permitted|denied|Read-only|superuser|must be root|busy|not implemented|No such|failed|Invalid argument|Function not/i

/** Shell text that must fail with a refusal. */
export function closed(id: string, command: string, words: RegExp = REFUSAL): FilterRow {
  return {
    id,
    what: `closed: ${command.length > 90 ? `${command.slice(0, 90)}…` : command}`,
    async run({ me }) {
      const { code, output } = await me.shell(command)
      expect(code, output).not.toBe(0)
      expect(output).toMatch(words)
    },
  }
}

/** Shell text whose whole output, trimmed, is this. */
export function prints(id: string, what: string, command: string, expected: string | RegExp): Row {
  return {
    id,
    what,
    async run({ me }) {
      const { output } = await me.shell(command)
      if (typeof expected === 'string') expect(output.trim()).toBe(expected)
      else expect(output.trim()).toMatch(expected)
    },
  }
}

/** An errno. `closed`: EPERM, or ENOSYS where the engine's own libseccomp does not know a call that is newer. */
export type SystemCallAnswer = 'open' | 'closed' | number

export const EPERM = 1
export const ENOSYS = 38

/**
 * System calls by number (x86-64), and what each must answer. Arguments are chosen so that a kernel without the filter
 * answers something else (sandbox.md has the list): a pass is the filter's work, not an accident.
 */
export function systemCalls(id: string, what: string, calls: Record<string, SystemCallAnswer>): FilterRow {
  return {
    id,
    what,
    calls,
    skip: (stage) => (stage.architecture === 'x86_64' ? undefined : 'the numbers are those of x86-64'),
    async run({ me }) {
      const answers = parseCalls(await me.shell(callText(Object.keys(calls))))
      for (const [call, answer] of Object.entries(answers))
        if (calls[call] === 'closed' && (answer === EPERM || answer === ENOSYS)) answers[call] = 'closed'
      expect(answers).toEqual(calls)
    },
  }
}

const PROGRAM = String.raw`
$| = 1;
for (@ARGV) {
  my ($number, @args) = map { m{^/} ? "$_" : $_ eq "self" ? $$ : $_ eq "page" ? "x" x 4096 : 0 + $_ } split /,/;
  $! = 0;
  my $result = syscall($number, @args, (0) x (5 - @args));
  printf "%s=%s\n", $_, $result >= 0 ? "open" : 0 + $!;
}`

/** A command that makes these calls: `number,argument,…`; `self` is its pid, `page` 4,096 bytes of memory, `/…` a path. */
export function callText(calls: readonly string[]): string {
  return `perl -e '${PROGRAM}' ${calls.join(' ')}`
}

function parseCalls({ output }: Pick<ToolResult, 'output'>): Record<string, SystemCallAnswer> {
  const lines = output.trim().split('\n')
  return Object.fromEntries(
    lines.map((line) => {
      const at = line.lastIndexOf('=')
      const answer = line.slice(at + 1)
      return [line.slice(0, at), answer === 'open' ? 'open' : Number(answer)]
    }),
  )
}

/** The same answer for several calls. */
export function all(calls: string, answer: SystemCallAnswer): Record<string, SystemCallAnswer> {
  return Object.fromEntries(calls.split(' ').map((call) => [call, answer]))
}

/**
 * Shell text that prints every process which is none of its own: `pid ppid state arguments`. By numbers, since a process may call
 * itself what it likes; it takes process 1 and the shim of the shell for theirs, and relays, whose parent is outside.
 */
export const STRANGERS = `ps -e -o pid=,ppid=,stat=,args= | awk -v me=$$ -v shim=$PPID '$1 != 1 && $2 != 0 && $1 != shim && $1 != me && $2 != me'`

/** None is left of what ended before. A shim is gone a moment after its last word, by which a call ends. */
export async function noStrangers(caller: ToolCaller): Promise<void> {
  const { output } = await caller.shell(STRANGERS)
  expect(output.split('\n').filter((line) => line !== '' && !/^ *\d+ +1 /.test(line))).toEqual([])
  await expect.poll(async () => (await caller.shell(STRANGERS)).output, { timeout: 10_000 }).toBe('')
}

/** Starts a call. Resolves with its first output, rejects when it ends without any. */
export async function begun(
  caller: ToolCaller,
  command: string,
  timeoutMs = 60_000,
): Promise<{ ended: Promise<ToolResult>; cancel: () => void }> {
  const first = Promise.withResolvers<() => void>()
  const ended = caller.shell(command, { timeoutMs, onOutput: first.resolve })
  const tooSoon = ended.then((result) => {
    throw new Error(`It ended before it printed anything: ${JSON.stringify(result)}`)
  })
  const cancel = await Promise.race([first.promise, tooSoon])
  // `ended` reports the failure.
  void Promise.allSettled([tooSoon])
  return { ended, cancel }
}

/** Until the shell works again: what is killed at a limit may be on its way out still when the call has ended. */
export async function worksAgain(caller: ToolCaller): Promise<void> {
  const run = async (): Promise<string> =>
    (await caller.shell('seq 100 | xargs -n1 -P20 true && echo works')).output
  await expect.poll(run, { timeout: 40_000, interval: 200 }).toBe('works\n')
}
