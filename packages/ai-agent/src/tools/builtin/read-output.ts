import { setTimeout as sleep } from 'node:timers/promises'
import { SandboxError } from '@sandlot/sandbox/errors'
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import { z } from 'zod'
import { backoffMs } from '@sandlot/shared/async/backoff'
import { JOB_ALIASES, withAliases } from '../argument-aliases.ts'
import { createTerminalCleaner } from '../output/ansi-text.ts'
import { findJob } from '../background/find-job.ts'
import { type JobState, endWords, jobState } from '../background/job-state.ts'
import { type Job, jobsOf, logPath, seenData } from '../background/jobs.ts'
import { createLogSearch } from '../background/log-search.ts'
import { defineTool, textArg, type CallContext, type ToolOutcome } from '../tool.ts'
import { pageRoom } from '../output/line-page.ts'
import { acquireSandbox } from '../sandbox-command/sandboxed-tool-executor.ts'
import type { ReadBytes } from '../output/stored-text.ts'
import { grouped } from '../output/truncate-output.ts'
import { characterStart } from '../output/utf8.ts'
import { statIfExists } from '../workspace-files.ts'

const MAX_WAIT_MS = 60_000
const input = z.strictObject({
  id: z
    .string()
    .min(1)
    .max(64)
    .optional()
    .describe('The id of the background command, for example bg1. Without it all of them are listed.'),
  offset: z
    .int()
    .min(0)
    .optional()
    .describe('The byte of its output to begin with. Default: where the last read_output of it ended.'),
  wait_ms: z
    .int()
    .min(0)
    .max(MAX_WAIT_MS)
    .default(0)
    .describe(
      'Wait up to so many milliseconds for more output (with pattern: for a line that matches), or its end.',
    ),
  pattern: z
    .string()
    .min(1)
    .max(1000)
    .optional()
    .describe('Show only lines that match this regular expression (JavaScript syntax).'),
})

export const readOutput = defineTool({
  name: 'read_output',
  description:
    'Shows what a background command has printed since it was last looked at, and whether it still runs. Waits for more where wait_ms says so.',
  kind: 'read',
  input: withAliases(input, JOB_ALIASES),
  output: seenData.optional(),
  readOnly: true,
  runs: { timeoutMs: MAX_WAIT_MS + 10_000 },
  title: (args) => {
    const id = textArg(args, 'id')
    return id === undefined ? 'List background commands' : `Read the output of ${id}`
  },
  async *execute(args, ctx) {
    if (args.id === undefined && jobsOf(ctx.events()).length === 0)
      return {
        status: 'completed',
        forModel: 'No command was started in the background in this conversation.',
      }
    const job = args.id === undefined ? undefined : findJob(args.id, ctx)
    const sandbox = yield* acquireSandbox(ctx)
    if (job === undefined) return listOf(sandbox, ctx)
    const from = args.offset ?? job.next
    const seen = await waitFor(sandbox, job, from, args, ctx)
    return args.pattern === undefined
      ? pageOf(sandbox, job, from, args.offset !== undefined, seen, pageRoom(ctx.output.limits).chars)
      : matchesOf(job, from, seen)
  },
})

interface Seen {
  state: JobState
  /** Bytes of the log. */
  size: number
  /** With a pattern: the lines that match, from the beginning of the range. */
  matches: string[]
}

/** Looks until there is something to show, it has ended, or the time is up. */
async function waitFor(
  sandbox: Sandbox,
  job: Job,
  from: number,
  args: { wait_ms: number; pattern?: string | undefined },
  ctx: CallContext,
): Promise<Seen> {
  const until = performance.now() + args.wait_ms
  await using search =
    args.pattern === undefined
      ? undefined
      : createLogSearch(readLog(sandbox, job), from, args.pattern, pageRoom(ctx.output.limits))
  for (let looks = 1; ; looks++) {
    // The state first: what it printed before its end is then in the log.
    const state = await jobState(sandbox, job)
    const size = (await statIfExists(sandbox.files.withoutLinks, logPath(job.command)))?.size ?? 0
    const matches = (await search?.find(size, ctx.signal)) ?? []
    const enough = search === undefined ? size > from : matches.length > 0
    const left = until - performance.now()
    if (enough || state.state !== 'running' || left <= 0) return { state, size, matches }
    const pause = backoffMs(looks, { firstMs: 50, longestMs: 1_000 })
    await sleep(Math.min(pause, left), undefined, { signal: ctx.signal })
  }
}

function readLog(sandbox: Sandbox, job: Job): ReadBytes {
  return async (from, to) => {
    try {
      return await sandbox.files.withoutLinks.read(logPath(job.command), { offset: from, length: to - from })
    } catch (error) {
      if (error instanceof SandboxError && error.code === 'not_found') return new Uint8Array()
      throw error
    }
  }
}

function matchesOf(job: Job, from: number, { state, size, matches }: Seen): ToolOutcome {
  const text = matches.length === 0 ? `No line from byte ${from} on matches.` : matches.join('\n')
  return ended(job, state, [text, stateWords(state, size)].join('\n'))
}

/** The new output, or its end where that is more than a page. */
async function pageOf(
  sandbox: Sandbox,
  job: Job,
  from: number,
  asked: boolean,
  { state, size }: Seen,
  most: number,
): Promise<ToolOutcome> {
  // Asked for a place, that place is shown; else the newest says most.
  const begin = asked ? from : Math.max(from, size - most)
  const raw = await readLog(sandbox, job)(begin, begin + most)
  const start = begin === 0 ? 0 : characterStart(raw)
  const decoded = new TextDecoder().decode(raw.subarray(start), { stream: state.state === 'running' })
  const next = begin + start + (state.state === 'running' ? Buffer.byteLength(decoded) : raw.length - start)
  const cleaner = createTerminalCleaner()
  const text = (cleaner.push(decoded) + cleaner.end()).replace(/\n$/, '')
  const skipped =
    begin > from ? [`[${grouped(begin - from)} bytes before this are left out: offset ${from}]`] : []
  const more = next < size ? [`[There is more: go on with offset ${next}]`] : []
  const shown = text === '' ? ['Nothing new was printed.'] : [text]
  const forModel = [...skipped, ...shown, ...more, stateWords(state, size)].join('\n')
  const outcome = ended(job, state, forModel)
  return { ...outcome, data: { background: { ...backgroundOf(job, state), next } } }
}

function backgroundOf(job: Job, state: JobState): { id: string; ended?: true } {
  return { id: job.id, ...(state.state === 'running' ? {} : { ended: true }) }
}

function ended(job: Job, state: JobState, forModel: string): ToolOutcome {
  return { status: 'completed', forModel, data: { background: backgroundOf(job, state) } }
}

function stateWords(state: JobState, size: number): string {
  const how = state.state === 'running' ? 'still running' : endWords(state)
  return `[${how}; ${grouped(size)} bytes in all]`
}

async function listOf(sandbox: Sandbox, ctx: CallContext): Promise<ToolOutcome> {
  const lines: string[] = []
  for (const job of jobsOf(ctx.events())) {
    if (job.elsewhere) {
      lines.push(`${job.id}  belongs to another chat  ${job.line}`)
      continue
    }
    const state = await jobState(sandbox, job)
    const how = job.over || state.state !== 'running' ? pastWords(job, state) : 'running'
    lines.push(`${job.id}  ${how}  ${job.line}`)
  }
  return { status: 'completed', forModel: lines.join('\n') }
}

/** The sandbox forgets how it ended once the log knows. */
function pastWords(job: Job, state: JobState): string {
  return state.state === 'ended' ? endWords(state) : job.over ? 'ended' : 'gone'
}
