/**
 * Stores a call's raw output, up to the limit and while there is room; further bytes are only
 * counted and the command runs on. A call has one append under way; bytes that arrive during it go
 * with the next one, so a fast command makes few, large appends.
 */
import type { OutputInfo } from '@sandlot/shared/chat/call'
import { newlinesInBytes } from '../../tools/output/count-newlines.ts'
import { outputUrl, truncateToolOutput, withOwnWords } from '../../tools/output/truncate-output.ts'
import type { CallContext, CallOutput, Policy, ToolCall, ToolOutcome } from '../../tools/tool.ts'

export function saveOutput(limitBytes: number): Policy {
  return (next) =>
    async function* saved(call, ctx) {
      const saver = createSaver(limitBytes, (offset, bytes) => ctx.output.save(offset, bytes))
      const outcome = yield* next(call, { ...ctx, output: { ...ctx.output, save: saver.save } })
      await saver.idle()
      const unstored = saver.unstored()
      if (outcome.outputInfo !== undefined)
        return { ...outcome, outputInfo: { ...outcome.outputInfo, ...unstored } }
      if (saver.total() === 0) return savedText(outcome, call, ctx, limitBytes)
      // The tool did not say what its output was, but the bytes are there to read.
      const counts = { bytes: saver.total(), lines: saver.lines(), truncated: true }
      return {
        ...outcome,
        outputInfo: { ...counts, url: outputUrl(ctx.ids.sessionId, call.callId), ...unstored },
      }
    }
}

/**
 * A text that is longer than the model gets is stored like an output, so that the rest of it can be
 * read.
 */
async function savedText(
  outcome: ToolOutcome,
  call: ToolCall,
  ctx: CallContext,
  limitBytes: number,
): Promise<ToolOutcome> {
  const { callId } = call
  const rest = ctx.output.readable ? { callId } : {}
  const { text, truncated } = truncateToolOutput(outcome.forModel, {
    ...withOwnWords(ctx.output.limits),
    ...rest,
  })
  if (!truncated) return outcome
  const bytes = Buffer.from(outcome.forModel.toWellFormed())
  const noRoom = await ctx.output.save(0, bytes.subarray(0, limitBytes))
  const limited = bytes.length > limitBytes ? unstoredFrom(limitBytes, 'limit') : {}
  const unstored = noRoom === undefined ? limited : unstoredFrom(0, noRoom)
  const lines = newlinesInBytes(bytes) + (bytes.at(-1) === 10 ? 0 : 1)
  const url = outputUrl(ctx.ids.sessionId, callId)
  return {
    ...outcome,
    forModel: text,
    outputInfo: { bytes: bytes.length, lines, truncated, url, ...unstored },
  }
}

interface Saver {
  save: CallOutput['save']
  idle(): Promise<void>
  /** Bytes produced, stored or not. */
  total(): number
  lines(): number
  unstored(): Pick<OutputInfo, 'unstored'>
}

function unstoredFrom(
  from: number,
  why: NonNullable<OutputInfo['unstored']>['why'],
): Pick<OutputInfo, 'unstored'> {
  return { unstored: { from, why } }
}

function createSaver(limitBytes: number, append: CallOutput['save']): Saver {
  let total = 0
  let lines = 0
  let batch: { from: number; end: number; parts: Uint8Array[] } | undefined
  /** The append under way, and the one for output that arrives during it. */
  let current: Promise<undefined> = Promise.resolve(undefined)
  let following: Promise<undefined> | undefined
  let cut: Pick<OutputInfo, 'unstored'> | undefined

  const flush = async (): Promise<undefined> => {
    current = following ?? current
    following = undefined
    const full = batch
    batch = undefined
    // After a missing part, later ones are dropped.
    if (full === undefined || cut !== undefined) return
    const [first = new Uint8Array(), ...more] = full.parts
    const noRoom = await append(full.from, more.length === 0 ? first : Buffer.concat(full.parts))
    if (noRoom !== undefined) cut = unstoredFrom(full.from, noRoom)
  }

  return {
    save(offset, bytes) {
      lines += newlinesInBytes(bytes)
      total = Math.max(total, offset + bytes.length)
      const room = bytes.subarray(0, Math.max(0, limitBytes - offset))
      if (room.length === 0) return Promise.resolve(undefined)
      batch ??= { from: offset, end: offset, parts: [] }
      if (offset !== batch.end)
        return Promise.reject(new RangeError(`output goes from ${batch.end} to ${offset}`))
      batch.parts.push(room)
      batch.end += room.length
      following ??= current.then(flush)
      return following
    },
    idle: () => following ?? current,
    total: () => total,
    lines: () => lines,
    unstored: () => cut ?? (total > limitBytes ? unstoredFrom(limitBytes, 'limit') : {}),
  }
}
