/** The instructions that a prompt keeps to from its start to its end, whatever people change meanwhile, and over a restart. */
import { type SessionEvent, makeSandlotEvent, sandlotEventOf } from '@sandlot/shared/events'

/** What the log says holds now; empty when nothing does. */
function instructionsInLog(log: readonly SessionEvent[]): string | undefined {
  for (const event of log.toReversed()) {
    const happened = sandlotEventOf(event)
    if (happened?.type === 'instructions') return happened.text
  }
  return undefined
}

/**
 * The text for one prompt. A prompt that an earlier process began has what the log says; a new one asks, and says in the
 * log what is new, so that most prompts store nothing.
 */
export async function takeInstructions(ctx: {
  promptId: string
  resumed: boolean
  log: readonly SessionEvent[]
  ask: () => Promise<string>
  store: (events: readonly SessionEvent[]) => Promise<void>
  now: () => number
}): Promise<string> {
  const before = instructionsInLog(ctx.log)
  if (ctx.resumed) return before ?? ''
  const text = await ctx.ask()
  if (text === (before ?? '')) return text
  await ctx.store([makeSandlotEvent({ type: 'instructions', text }, { promptId: ctx.promptId }, ctx.now())])
  return text
}
