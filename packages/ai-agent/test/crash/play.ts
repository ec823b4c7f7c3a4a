/** Plays a script: its client against a session, its model against requests. */
import { writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Session } from '../../src/session/session.ts'
import type { FakeAnswer } from '../support/fake-provider.ts'
import type { AskedFor, CrashScript } from './scripts.ts'

/**
 * Send, do what the script says, wait until every message's prompt has ended and nothing runs. Rejects as soon as a prompt
 * breaks off, or ends with an error.
 */
export async function playClient(script: CrashScript, session: Session, untilFile: string): Promise<void> {
  const ends: Promise<unknown>[] = []
  const broken = Promise.withResolvers<never>()
  const over = new AbortController()
  const idle = async (): Promise<void> => {
    while (session.running) await sleep(2)
  }
  const acted = script.client({
    session,
    release: () => writeFileSync(untilFile, ''),
    async send(requestId, text, options = {}) {
      const { done } = await session.prompt(text, { ...options, requestId })
      const end = done.then(async ({ reason }) => {
        if (reason !== 'error') return
        over.abort()
        await idle()
        throw new PromptFailed()
      })
      end.catch(broken.reject)
      ends.push(end)
    },
    async until(wanted) {
      while (!over.signal.aborted && !wanted(session.log)) await sleep(2)
      // Somebody else may play now.
      if (over.signal.aborted) await new Promise<never>(() => undefined)
    },
  })
  try {
    await Promise.race([acted, broken.promise])
    await Promise.all(ends)
  } finally {
    over.abort()
  }
  await idle()
}

/** A prompt of the client's ended with an error; nothing runs any more. */
export class PromptFailed extends Error {
  override readonly message = 'A prompt ended with an error.'
}

/** The answers of a script as one function of the request. */
export function answersOf(script: CrashScript): (request: { body: AskedFor }) => FakeAnswer {
  const asked = new Map<number, number>()
  return ({ body }) => {
    const assistants = body.messages.filter(({ role }) => role === 'assistant').length
    const times = (asked.get(assistants) ?? 0) + 1
    asked.set(assistants, times)
    return script.answer(assistants, times, body)
  }
}
