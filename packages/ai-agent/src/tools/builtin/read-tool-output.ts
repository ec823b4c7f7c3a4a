import type { OutputInfo } from '@sandlot/shared/chat/call'
import { isOutcome, metaOf, isAnnounced } from '@sandlot/shared/chat/events'
import { z } from 'zod'
import { createTerminalCleaner } from '../output/ansi-text.ts'
import { ToolError } from '../tool-error.ts'
import { defineTool, textArg, type CallContext } from '../tool.ts'
import { createLineMatcher } from '../output/line-matcher.ts'
import { MAX_PAGE_LINES, pageRoom } from '../output/line-page.ts'
import { type ReadBytes, findStoredLines, readStoredLines } from '../output/stored-text.ts'
import { grouped } from '../output/truncate-output.ts'
import { characterStart } from '../output/utf8.ts'

const input = z.strictObject({
  call_id: z
    .string()
    .min(1)
    .max(256)
    .describe('The id of the earlier call, as the notice in its result names it.'),
  offset: z.int().min(1).default(1).describe('Number of the first line to read; the first line is 1.'),
  limit: z
    .int()
    .min(1)
    .max(MAX_PAGE_LINES)
    .default(MAX_PAGE_LINES)
    .describe('How many lines, or with pattern how many matches, to show at most: as many as fit are shown.'),
  pattern: z
    .string()
    .min(1)
    .max(1000)
    .optional()
    .describe('Show only lines that match this regular expression (JavaScript syntax), with their numbers.'),
  ignore_case: z.boolean().default(false).describe('Upper and lower case are the same for pattern.'),
  context: z.int().min(0).max(20).default(0).describe('Lines to show before and after each match.'),
  from_byte: z
    .int()
    .min(0)
    .optional()
    .describe('Read raw text from this byte on instead of lines: for very long outputs or lines.'),
})

export const readToolOutput = defineTool({
  name: 'read_tool_output',
  description:
    'Reads the stored output of an earlier call of this conversation: a range of its lines, the lines that match a pattern, or a range of bytes. ' +
    'For results that were cut.',
  kind: 'read',
  input,
  readOnly: true,
  runs: {
    readsOutputs: true,
    hint: 'Long results are cut. The notice says where all of it is, a file or a call for read_tool_output; read the part you need from there.',
    timeoutMs: 10_000,
  },
  title: (args) => {
    const pattern = textArg(args, 'pattern')
    return pattern === undefined ? 'Read an earlier result' : `Search an earlier result for ${pattern}`
  },
  // oxlint-disable-next-line require-yield
  async *execute(args, ctx) {
    const { read, bytes, notes } = await outputOf(args.call_id, ctx)
    const room = pageRoom(ctx.output.limits)
    if (args.from_byte !== undefined) {
      return {
        status: 'completed',
        forModel: [await textFrom(read, args.from_byte, bytes, room.chars), ...notes].join('\n'),
      }
    }
    if (args.pattern !== undefined) {
      await using matcher = createLineMatcher(args.pattern, args.ignore_case)
      const search = { context: args.context, from: args.offset, limit: args.limit }
      const { lines, next } = await findStoredLines(read, matcher, search, room, ctx.signal)
      const more = next === undefined ? [] : [`[There is more. Go on with offset ${next}.]`]
      const nothing = lines.length === 0 ? [`No line matches ${args.pattern}.`] : lines
      return { status: 'completed', forModel: [...nothing, ...more, ...notes].join('\n') }
    }
    const { lines, next, total } = await readStoredLines(read, args.offset, args.limit, room, ctx.signal)
    if (lines.length === 0 && next === undefined) {
      if (total === 0) return { status: 'completed', forModel: notes[0] ?? 'This output is empty.' }
      throw new ToolError(
        'invalid_arguments',
        `This output has ${total ?? 0} lines; there is no line ${args.offset}.`,
      )
    }
    const more =
      next === undefined
        ? []
        : [
            `[There is more: these are lines ${args.offset}–${next - 1} of ${grouped(bytes)} bytes. Go on with offset ${next}.]`,
          ]
    return { status: 'completed', forModel: [...lines, ...more, ...notes].join('\n') }
  },
})

/**
 * The stored output of a call, or else the text for the model. @throws ToolError for a call that
 * does not exist.
 */
async function outputOf(
  callId: string,
  ctx: CallContext,
): Promise<{ read: ReadBytes; bytes: number; notes: string[] }> {
  const events = ctx.events()
  const outcome = events.find((event) => isOutcome(event) && event.toolCallId === callId)
  const read: ReadBytes = (from, to) => ctx.output.read(from, to, callId)
  if (outcome === undefined || !isOutcome(outcome)) {
    const announced = isAnnounced(events, callId)
    throw new ToolError(
      'invalid_arguments',
      announced
        ? `The call ${callId} has not ended yet; its result comes when it has.`
        : `There was no call with the id ${JSON.stringify(callId)}. ${lastCalls(ctx)}`,
    )
  }
  const info = metaOf(outcome).outputInfo
  if (info?.unstored !== undefined)
    return { read, bytes: info.unstored.from, notes: [unstoredNote(info.bytes, info.unstored)] }
  if (info !== undefined && info.bytes > 0) return { read, bytes: info.bytes, notes: [] }
  const shown = Buffer.from(outcome.rawOutput?.forModel ?? '')
  return { read: async (from, to) => shown.subarray(from, to), bytes: shown.length, notes: [] }
}

function unstoredNote(bytes: number, { from, why }: NonNullable<OutputInfo['unstored']>): string {
  const stored = from === 0 ? 'Nothing' : `Only the first ${grouped(from)} bytes`
  const reason = {
    limit: 'the limit of one output is reached',
    budget: 'the chats of this user have used up their storage',
    disk: 'the disk of the server is nearly full',
  }[why]
  return `[${stored} of the ${grouped(bytes)} bytes of this output could be stored: ${reason}.]`
}

function lastCalls(ctx: CallContext): string {
  const ended = ctx.events().flatMap((event) => (isOutcome(event) ? [event.toolCallId] : []))
  return ended.length === 0
    ? 'No call has ended in this conversation.'
    : `The last that ended are: ${ended.slice(-10).join(', ')}.`
}

/** Text from a byte on, from the next whole character, as much as a result may have. */
async function textFrom(read: ReadBytes, from: number, total: number, most: number): Promise<string> {
  const raw = await read(from, from + most)
  if (raw.length === 0) {
    throw new ToolError('invalid_arguments', `This output has ${total} bytes; there is none at ${from}.`)
  }
  const start = characterStart(raw)
  const decoder = new TextDecoder()
  const cleaner = createTerminalCleaner()
  // A character that is cut at the end comes with the next range.
  const text = decoder.decode(raw.subarray(start), { stream: true })
  const end = from + start + Buffer.byteLength(text)
  const clean = cleaner.push(text) + cleaner.end()
  const more =
    end >= total
      ? ''
      : `\n[There is more: these are bytes ${from}–${end - 1} of ${grouped(total)}. Go on with from_byte ${end}.]`
  return `${clean}${more}`
}
