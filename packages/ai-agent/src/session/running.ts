/** The prompt that runs in a session. */
import type { Mode } from '@sandlot/shared/chat/mode'
import type { OnBehalf } from './access.ts'
import type { JudgedBy, ToolCall } from '../tools/tool.ts'

/** One running prompt. */
export class Running {
  readonly promptId: string
  /** No client can answer an approval. */
  readonly unattended: boolean
  /** The highest mode that it runs in, whatever the session's is. */
  readonly modeCeiling: Mode
  /** The user whose limits it counts for; absent: the owner. */
  readonly chargedTo: string | undefined
  /** An administrator stopped it. */
  stoppedByAdministrator = false
  /** Aborted by Stop. */
  readonly stop = new AbortController()
  /** Resolves when the loop has ended or the session is released. */
  driven: Promise<void> = Promise.resolve()
  /** Calls that were judged, for when the rules have changed. */
  readonly judged = new Map<string, { call: ToolCall; by: JudgedBy | undefined }>()
  readonly #cancels = new Map<string, AbortController>()

  constructor(promptId: string, unattended: boolean, { modeCeiling = 'yolo', chargedTo }: OnBehalf = {}) {
    this.promptId = promptId
    this.unattended = unattended
    this.modeCeiling = modeCeiling
    this.chargedTo = chargedTo
  }

  /** Aborts when only this call is cancelled. */
  cancelOf(callId: string): AbortController {
    let controller = this.#cancels.get(callId)
    if (controller === undefined) {
      controller = new AbortController()
      this.#cancels.set(callId, controller)
    }
    return controller
  }
}
