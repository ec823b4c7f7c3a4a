/**
 * A server in a user's own sandbox: a background command whose stdin and stdout go over the
 * sandbox's one stream. The SDK starts processes on this machine only.
 */
import { createHash, randomBytes } from 'node:crypto'
import type { CommandExit, RunningCommand, Sandbox } from '@sandlot/sandbox/sandbox'
import { orTimeout } from '@sandlot/shared/async/or-timeout'
import { messageOf } from '@sandlot/shared/base/errors'
import { type BytePipe, StdinBlockedError, MAX_UNREAD_BYTES, type StderrLog } from './stdio.ts'

interface SandboxProcess {
  sandbox: Sandbox
  /** Unique among this user's servers. */
  server: string
  command: string
  args: readonly string[]
  env: Readonly<Record<string, string>>
  cwd?: string
  stderr: StderrLog
}

const GRACE_MS = 1_000
/** A leftover of an earlier agent ends by itself after this. */
const MAX_AGE_MS = 7_200_000
/** Hex digits of a command's id that identify its server. */
const MARK_DIGITS = 12

/**
 * Rejects with a `SandboxError` when it cannot be started. Kills a leftover process of the same
 * server.
 */
export async function startSandboxProcess(options: SandboxProcess): Promise<BytePipe> {
  const { sandbox, server, command, args, env, cwd, stderr } = options
  const mark = createHash('sha256').update(`mcp ${server}`).digest('hex').slice(0, MARK_DIGITS)
  await killLeftovers(sandbox, mark)
  const running = await sandbox.run({
    id: mark + randomBytes(16).toString('hex').slice(MARK_DIGITS),
    command: [command, ...args],
    env,
    cwd,
    stdin: true,
    background: true,
    maxAgeMs: MAX_AGE_MS,
    autoAcknowledge: true,
  })
  let unread = 0
  let closed = false
  const exit = running.exit.then(
    (end) => endingOf(end, command, stderr.lastLine()),
    (error: unknown) => messageOf(error),
  )
  return {
    stdout: stdoutOf(running, stderr),
    async write(bytes) {
      if (unread > MAX_UNREAD_BYTES) throw new StdinBlockedError()
      unread += bytes.length
      await running.writeStdin(bytes)
      unread -= bytes.length
    },
    async close() {
      closed = true
      // A removed sandbox has ended the command.
      await Promise.allSettled([running.cancel(GRACE_MS)])
      // Its output is not read any more, so its exit may be stuck behind output that does not fit
      // the window.
      await orTimeout(exit, 2 * GRACE_MS, undefined)
    },
    ending: async () => {
      const how = await exit
      return closed ? 'it was stopped' : how
    },
  }
}

async function* stdoutOf(running: RunningCommand, stderr: StderrLog): AsyncGenerator<Uint8Array> {
  try {
    for await (const { stream, data } of running.output) {
      if (stream === 'stderr') stderr.push(data)
      else yield data
    }
  } finally {
    stderr.end()
  }
}

async function killLeftovers(sandbox: Sandbox, mark: string): Promise<void> {
  const known = await sandbox.commands()
  const ours = known.filter(({ id, state }) => state === 'running' && id.startsWith(mark))
  await Promise.all(
    ours.map(async ({ id }) => {
      const left = await sandbox.attach(id, {}, { autoAcknowledge: true })
      if (left === undefined) return
      await left.cancel(0)
      for await (const _ of left.output);
      await Promise.allSettled([left.exit])
    }),
  )
}

function endingOf(exit: CommandExit, command: string, said: string): string {
  const { cause, code, signal } = exit
  if (code === 127) return `its command ${command} was not found in the sandbox`
  const how =
    cause === 'exited'
      ? `it ended with code ${code ?? 0}`
      : cause === 'signal'
        ? `it was ended by ${signal ?? 'a signal'}`
        : cause === 'timeout'
          ? 'it was stopped after two hours'
          : cause === 'oom'
            ? 'it used more memory than the sandbox has'
            : 'it was stopped'
  return said === '' ? how : `${how}, after it said: ${said.slice(0, 200)}`
}
