/**
 * Whole conversations over HTTP against the plain loop, without Docker, database or session. Of every request that is sent a
 * strict reader says whether a provider would take it; of every script the endings, outcomes and the last request are known.
 */
import { type SessionEvent, isOutcome, metaOf } from '@sandlot/shared/chat/events'
import { describe, expect, test } from 'vitest'
import { SCRIPTS } from './all.ts'
import { type Played, ends, play } from './run-script.ts'
import { wireProblems } from './wire-problems.ts'

describe('scripts', () => {
  test.each(SCRIPTS.map((script) => [script.name, script] as const))('%s', async (_, script) => {
    const played = await play(script)
    for (const request of [...played.requests, ...played.secondRequests]) {
      expect(wireProblems(request.body)).toEqual([])
    }
    expect(sameTools(played)).toBe(true)
    expect(ends(played.log)).toEqual(script.ends)
    if (script.text !== undefined) expect(played.results.at(-1)?.text).toMatch(script.text)
    if (script.requests !== undefined) expect(played.requests).toHaveLength(script.requests)
    if (script.roles !== undefined) expect(roles(played)).toBe(script.roles)
    if (script.outcomes !== undefined) expect(outcomes(played.log)).toEqual(script.outcomes)
    // Every announced call has exactly one outcome, and what was said ends with words.
    expect(outcomes(played.log).every((outcome) => !outcome.includes(','))).toBe(true)
    expect(played.results.every(({ text }) => text.trim() !== '')).toBe(true)
    script.check?.(played)
  })

  test('there are many, and no two are called the same', () => {
    expect(SCRIPTS.length).toBeGreaterThanOrEqual(60)
    expect(new Set(SCRIPTS.map(({ name }) => name)).size).toBe(SCRIPTS.length)
  })
})

/** Bug 26, bug 29: the same tools in every request. */
function sameTools({ requests }: Played): boolean {
  return new Set(requests.map(({ body }) => JSON.stringify(body.tools))).size <= 1
}

function roles({ requests, secondRequests }: Played): string {
  const last = requests.at(-1) ?? secondRequests.at(-1)
  return (last?.body.messages ?? []).map(({ role }) => role.charAt(0)).join('')
}

/** By call, in the order of their announcement; more than one outcome is joined by a comma. */
function outcomes(log: readonly SessionEvent[]): string[] {
  return log.flatMap((event) => {
    if (event.sessionUpdate !== 'tool_call') return []
    const mine = log.filter((other) => isOutcome(other) && other.toolCallId === event.toolCallId)
    const words = mine.map((one) =>
      one.sessionUpdate === 'tool_call_update'
        ? [one.status, metaOf(one).reason].filter((word) => word !== undefined).join(' ')
        : '',
    )
    return [words.join(', ') || 'none,']
  })
}
