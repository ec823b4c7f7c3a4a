/** Invariants after any number of crashes, once the last life has run to its end. */
import { messageOf } from '@sandlot/shared/base/errors'
import { type SessionEvent, isOutcome, metaOf, sandlotEventOf, seqOf } from '@sandlot/shared/chat/events'
import { emptyTranscript, foldTranscript } from '@sandlot/shared/transcript/transcript'
import { expect } from 'vitest'
import { modelMessages } from '../../src/history/model-messages.ts'
import type { ModelMessage } from '../../src/model/model.ts'
import { SYSTEM, happened, outcomes } from '../support/agent-fixture.ts'
import { type CrashBench, SESSION } from './bench.ts'

/** Go on after a case that failed: of a campaign one wants to know all. */
export async function eachPlace(
  places: readonly number[],
  run: (place: number) => Promise<void>,
): Promise<void> {
  const failed: Error[] = []
  for (const place of places) {
    try {
      await run(place)
    } catch (cause) {
      failed.push(new Error(`at point ${place + 1}: ${messageOf(cause)}`, { cause }))
    }
  }
  if (failed.length === 0) return
  const [first] = failed
  const all = failed.map(({ message }) => message).join('\n')
  throw new Error(`${failed.length} of ${places.length} failed:\n${all}`, { cause: first })
}

/** The model's final history of the uncrashed run. */
export async function finalHistory(bench: CrashBench): Promise<ModelMessage[]> {
  return bench.read(async (_store, log) => modelMessages(log, SYSTEM))
}

/**
 * `expected`: the model's final history; absent: another one, because the store's failure was part
 * of it.
 */
export async function checkAfterCrashes(
  bench: CrashBench,
  expected?: readonly ModelMessage[],
): Promise<void> {
  const { script } = bench
  await bench.read(async (store, log, sandbox) => {
    expect(log.map(seqOf)).toEqual(log.map((_, place) => place + 1))
    expect(await store.sessions.get(SESSION)).toMatchObject({ runningPromptId: null, waiting: 0 })

    const announced = log.flatMap((event) => (event.sessionUpdate === 'tool_call' ? [event.toolCallId] : []))
    expect(new Set(announced).size).toBe(announced.length)
    const ended = outcomes(log)
    expect(Object.keys(ended).toSorted()).toEqual(announced.toSorted())
    for (const [callId, all] of Object.entries(ended)) expect(all, callId).toHaveLength(1)
    const lost = log.filter(isOutcome).filter((event) => metaOf(event).reason === 'unknown_effect')
    const unknown = lost.map(({ toolCallId }) => toolCallId)
    for (const { toolCallId, rawOutput } of lost) {
      expect(script.mayBeUnknown ?? [], rawOutput?.forModel).toContain(toolCallId)
    }

    const started = happenedIn(log, 'prompt_started')
    const ends = happenedIn(log, 'prompt_ended')
    expect(ends).toEqual(started)
    if (expected !== undefined)
      expect(happened(log, 'prompt_ended').at(-1)?.reason).toBe(script.ends ?? 'completed')
    const requestIds = happened(log, 'prompt_started').flatMap(({ requestId }) => requestId ?? [])
    expect(new Set(requestIds).size).toBe(requestIds.length)

    for (const [callId, text] of Object.entries(expected === undefined ? {} : (script.outputs ?? {}))) {
      const bytes = await store.outputs.read(SESSION, callId, 0, Number.MAX_SAFE_INTEGER)
      expect(new TextDecoder().decode(bytes)).toBe(text)
      expect(await store.outputs.get(SESSION, callId)).toMatchObject({
        complete: true,
        storedBytes: bytes.length,
        totalBytes: bytes.length,
      })
    }

    const messages = modelMessages(log, SYSTEM)
    const { variable = [] } = script
    if (expected !== undefined)
      expect(excused(messages, unknown, variable)).toEqual(excused(expected, unknown, variable))
    const { entries, prompt, queued } = log.reduce(foldTranscript, emptyTranscript())
    expect({ prompt, queued }).toEqual({ prompt: null, queued: [] })
    for (const entry of entries) if (entry.type === 'message') expect(entry.settled).toBe(true)

    const journal = await bench.journal(sandbox)
    // Nobody knows what became of a call that broke off, but twice it ran in no case.
    for (const count of countOf(journal, script.once)) {
      expect(count).toBeLessThanOrEqual(1)
      if (expected !== undefined && unknown.length === 0) expect(count).toBe(1)
    }
    for (const count of countOf(journal, script.atMostOnce ?? [])) expect(count).toBeLessThanOrEqual(1)
    if (expected !== undefined)
      for (const count of countOf(journal, script.atLeastOnce ?? [])) expect(count).toBeGreaterThan(0)
    // A command that was stopped gets a moment to go. One in the background runs until the script stops it.
    const running = async () =>
      (await sandbox?.commands())?.filter(
        ({ state, background }) => state === 'running' && (expected !== undefined || !background),
      ) ?? []
    await expect.poll(running).toEqual([])
  })
}

function happenedIn(log: readonly SessionEvent[], type: string): (string | undefined)[] {
  return log.filter((event) => sandlotEventOf(event)?.type === type).map((event) => metaOf(event).promptId)
}

/**
 * Without the results that may rightly differ: variable ones, and all from the first call whose effect nobody knows,
 * since later ones may see the effect or not.
 */
function excused(
  messages: readonly ModelMessage[],
  unknown: readonly string[],
  variable: readonly string[],
): ModelMessage[] {
  const first = messages.findIndex((message) => message.role === 'tool' && unknown.includes(message.callId))
  return messages.map((message, place) => {
    if (message.role !== 'tool') return message
    const may = variable.includes(message.callId) || (first !== -1 && place >= first)
    return may ? { ...message, content: '' } : message
  })
}

function countOf(lines: readonly string[], wanted: readonly string[]): number[] {
  return wanted.map((line) => lines.filter((other) => other === line).length)
}
