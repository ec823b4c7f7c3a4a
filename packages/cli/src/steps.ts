import { messageOf } from '@sandlot/shared/base/errors'

/** A failed step: what happened, the next step in `fix`, and perhaps the last lines of output. */
export class StepError extends Error {
  override readonly name = 'StepError'
  readonly fix: string
  readonly details: string

  constructor(message: string, fix: string, options: { details?: string; cause?: unknown } = {}) {
    super(message, { cause: options.cause })
    this.fix = fix
    this.details = options.details ?? ''
  }
}

/** Output. `live` is a terminal: the line of a step is rewritten when it ends, not repeated. */
interface Terminal {
  write(text: string): void
  live: boolean
}

/** Reports the progress of a step. */
export interface Step {
  /** The current part of a long step. */
  doing: (part: string) => void
  /** Result shown after the title when the step is done. */
  result: (note: string) => void
}

export interface Steps {
  /** Prints the title, runs `work`, prints its duration. Rejects with `ShownError` on failure. */
  run<T>(title: string, work: (step: Step) => Promise<T>): Promise<T>
  /** A line of its own between steps. */
  note(text: string): void
}

/** Clears the line of a terminal. */
const CLEAR = '\r\u001B[2K'

/** Seconds for people: `0.4 s`, `12 s`, `3 min 05 s`. */
export function seconds(ms: number): string {
  if (ms < 9_950) return `${(ms / 1000).toFixed(1)} s`
  const whole = Math.round(ms / 1000)
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, '0')} s`
}

/** Details, message and next step of an error; at least one line. */
export function failureLines(thrown: unknown): string[] {
  const details =
    thrown instanceof StepError && thrown.details !== '' ? thrown.details.trimEnd().split('\n') : []
  return [
    ...details.map((line) => `    ${line}`),
    ...messageOf(thrown)
      .split('\n')
      .map((line) => `  ${line}`),
    ...(thrown instanceof StepError ? [`  → ${thrown.fix}`] : []),
  ]
}

/** Steps shown on `terminal`, with the clock `now` in milliseconds. */
export function createSteps(terminal: Terminal, now: () => number = () => performance.now()): Steps {
  const line = (text: string): void => terminal.write(`${text}\n`)
  return {
    async run(title, work) {
      const started = now()
      terminal.write(terminal.live ? `• ${title} …` : `• ${title}\n`)
      let note = ''
      const end = (mark: string): void => {
        const shown = `${mark} ${title}${note === '' ? '' : `: ${note}`}  ${seconds(now() - started)}`
        line(terminal.live ? `${CLEAR}${shown}` : shown)
      }
      try {
        const result = await work({
          doing: (part) => terminal.write(terminal.live ? `${CLEAR}• ${title} … ${part}` : `  … ${part}\n`),
          result: (text) => {
            note = text
          },
        })
        end('✓')
        return result
      } catch (error) {
        note = ''
        end('✗')
        for (const text of failureLines(error)) line(text)
        throw new ShownError(error)
      }
    },
    note: line,
  }
}

/** A failure that was already printed: the catcher only sets the exit code. */
export class ShownError extends Error {
  override readonly name = 'ShownError'
  constructor(cause: unknown) {
    super(messageOf(cause), { cause })
  }
}
