/** The events of a session's log that belong to one branch: all that the model may read. Pure. */
import { type SessionEvent, metaOf, sandlotEventOf } from '@sandlot/shared/chat/events'
import { branchTo, placeOf, type PromptPlace } from '@sandlot/shared/transcript/branches'
import { growingFold } from './growing-fold.ts'

interface Fold {
  prompts: PromptPlace[]
  /** Undefined while there is one branch: it is the log itself. */
  branch: Branch | undefined
}

/**
 * The branch of the newest prompt. While a session has one branch, that is the log itself; else a
 * list that grows with it, and is another one for another branch.
 */
export function branchOf(log: readonly SessionEvent[]): readonly SessionEvent[] {
  return read(log).branch?.events ?? log
}

/** All prompts of the log, in the order in which they began. */
export function promptsOf(log: readonly SessionEvent[]): readonly PromptPlace[] {
  return read(log).prompts
}

/** The events of the branch that ends with this prompt. */
export function branchWith(log: readonly SessionEvent[], promptId: string): readonly SessionEvent[] {
  const { prompts } = read(log)
  const branch = new Branch(prompts, promptId)
  for (const event of log) branch.add(event)
  return branch.events
}

const read = growingFold<Fold>(
  () => ({ prompts: [], branch: undefined }),
  (fold, event, place, log) => {
    const happened = sandlotEventOf(event)
    if (happened?.type === 'prompt_started') {
      const before = fold.prompts.at(-1)?.id ?? null
      const begun = placeOf(fold.prompts, metaOf(event).promptId ?? '', happened.follows)
      fold.prompts.push(begun)
      if (begun.follows !== before) {
        fold.branch = new Branch(fold.prompts, begun.id)
        for (const earlier of log.slice(0, place)) fold.branch.add(earlier)
      } else fold.branch?.goOn(begun.id)
    }
    fold.branch?.add(event)
  },
)

class Branch {
  readonly events: SessionEvent[] = []
  readonly #path: Set<string>
  readonly #others: ReadonlySet<string>
  readonly #calls = new Set<string>()

  constructor(prompts: readonly PromptPlace[], id: string) {
    this.#path = new Set(branchTo(prompts, id))
    this.#others = new Set(prompts.map((prompt) => prompt.id).filter((one) => !this.#path.has(one)))
  }

  /** This prompt begins at its end. */
  goOn(promptId: string): void {
    this.#path.add(promptId)
  }

  /** The next event of the log. */
  add(event: SessionEvent): void {
    if (!this.#has(event)) return
    if (event.sessionUpdate === 'tool_call') this.#calls.add(event.toolCallId)
    this.events.push(event)
  }

  #has(event: SessionEvent): boolean {
    const { promptId } = metaOf(event)
    const happened = sandlotEventOf(event)
    // Messages wait for whichever prompt comes next.
    if (happened?.type === 'message_queued' || happened?.type === 'message_unqueued') return true
    // A call ends where it was made, whatever runs then.
    if (happened?.type === 'background_ended') return this.#calls.has(happened.toolCallId)
    return promptId === undefined || !this.#others.has(promptId)
  }
}
