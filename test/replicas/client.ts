/** A person by the HTTP API, who repeats a request at the next service when one does not answer, as a script should. */
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '@sandlot/shared/base/errors'
import { type SessionEvent, metaOf, seqOf } from '@sandlot/shared/chat/events'
import type { ServerFrame } from '@sandlot/shared/chat/frames'
import { newId } from '@sandlot/shared/base/ids'
import { eventually } from '../e2e/processes.ts'

const AGAIN_MS = 200
const PATIENCE_MS = 90_000

export interface Person {
  id: string
  cookie: string
}

/** The addresses of all services; a request goes to the first one that answers. */
export class Client {
  readonly #services: readonly string[]
  readonly #person: Person

  constructor(services: readonly string[], person: Person) {
    this.#services = services
    this.#person = person
  }

  /** At the service with this number alone. */
  fetch(
    service: number,
    path: string,
    init: { method?: string; body?: string; headers?: Record<string, string> } = {},
  ): Promise<Response> {
    const origin = this.#services[service] ?? ''
    const headers = { cookie: this.#person.cookie, origin, 'content-type': 'application/json' }
    return fetch(`${origin}${path}`, { ...init, headers: { ...headers, ...init.headers } })
  }

  /** The JSON of the first service that has an answer. */
  get<T>(path: string): Promise<T> {
    return eventually(
      `an answer to ${path}`,
      async () => {
        for (const service of this.#services.keys()) {
          const answer = await this.fetch(service, path).catch(() => undefined)
          if (answer?.ok === true) return (await answer.json()) as T
        }
        return undefined
      },
      PATIENCE_MS,
    )
  }

  /** Sends a message, and follows what comes of it to its end, over any number of connections. */
  say(message: string, { mode = 'yolo', first = 0 }: { mode?: string; first?: number } = {}): Said {
    return new Said(
      this,
      this.#services.length,
      { message, mode, requestId: newId('r'), approvals: 'wait' },
      first,
    )
  }
}

/** One prompt as its reader sees it. */
export class Said {
  /** Settled events by their numbers. */
  readonly events = new Map<number, SessionEvent>()
  /** Why a connection ended before the prompt had, one for each. */
  readonly interruptions: string[] = []
  /** Resolves when the prompt has ended. */
  readonly done: Promise<void>
  sessionId = ''
  /** Output and text so far. */
  text = ''

  constructor(client: Client, services: number, body: object, first: number) {
    this.done = this.#follow(client, services, body, first)
    // A caller that awaits `done` receives the reason.
    this.done.catch(() => undefined)
  }

  /** Resolves when this was printed, said or asked. */
  saw(words: string): Promise<true> {
    return Promise.race([
      eventually(
        `"${words}" in ${this.text.slice(-300)}`,
        () => this.text.includes(words) || undefined,
        PATIENCE_MS,
      ),
      this.done.then(() => true as const),
    ])
  }

  async #follow(client: Client, services: number, body: object, first: number): Promise<void> {
    const until = performance.now() + PATIENCE_MS
    for (let attempt = first; ; attempt++) {
      try {
        if (await this.#attempt(client, attempt % services, body)) return
        this.interruptions.push('the stream ended')
      } catch (error) {
        this.interruptions.push(messageOf(error))
      }
      if (performance.now() > until)
        throw new Error(`no end of the prompt was seen: ${[...new Set(this.interruptions)].join('; ')}`)
      await sleep(AGAIN_MS)
    }
  }

  async #attempt(client: Client, service: number, body: object): Promise<boolean> {
    const answer = await client.fetch(service, '/api/chat', {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { accept: 'text/event-stream', 'last-event-id': String(Math.max(0, ...this.events.keys())) },
    })
    if (!answer.ok || answer.body === null) throw new Error(await answer.text())
    let rest = ''
    for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) {
      const messages = (rest + piece).split('\n\n')
      rest = messages.pop() ?? ''
      for (const message of messages) {
        const data = /^data: (.*)$/m.exec(message)?.[1]
        if (data !== undefined && this.#read(JSON.parse(data) as ServerFrame)) return true
      }
    }
    return false
  }

  /** True: it was the last frame. */
  #read(frame: ServerFrame): boolean {
    if (frame.type === 'ai_chat_accepted') this.sessionId = frame.sessionId
    if (frame.type === 'ai_chat_error') throw new Error(`${frame.code}: ${frame.message}`)
    if (frame.type === 'ai_chat_event') {
      const seq = seqOf(frame.event)
      if (seq !== undefined) this.events.set(seq, frame.event)
      this.text += JSON.stringify(frame.event)
      if (metaOf(frame.event).event?.type === 'prompt_ended') return true
    }
    return frame.type === 'ai_chat_done'
  }
}
