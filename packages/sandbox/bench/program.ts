/**
 * What every bench does: read its arguments, measure its goals one after another, print each, keep
 * what was measured.
 */
import { writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { type Result, asText, type describeMachine } from './report.ts'

export interface Goal<Context> {
  /** As they are chosen with `--only`. */
  ids: readonly string[]
  measure: (context: Context) => Promise<Result[]>
}

export interface BenchArguments<Context> {
  /** Samples of what takes milliseconds. */
  samples: number
  /** How many where a goal is about many. */
  many: number
  /** Of the stores that are searched. */
  messages: number
  chosen: readonly Goal<Context>[]
  /** A file for everything that was measured. */
  json: string | undefined
  /** A page whose chapter is written anew. */
  markdown: string | undefined
}

/**
 * `--samples`, `--<many>`, `--only`, `--json`, `--markdown`, and `--messages` where it has a
 * default. Throws for what is none of them, and for an unknown goal.
 */
export function readArguments<Context>(
  goals: readonly Goal<Context>[],
  {
    samples,
    many,
    messages,
  }: { samples: number; many: 'sandboxes' | 'prompts' | 'streams'; messages?: number },
): BenchArguments<Context> {
  const { values } = parseArgs({
    options: {
      samples: { type: 'string', default: String(samples) },
      [many]: { type: 'string', default: '200' },
      [messages === undefined ? 'only' : 'messages']: { type: 'string' },
      only: { type: 'string' },
      json: { type: 'string' },
      markdown: { type: 'string' },
    },
  })
  const text = (name: string): string | undefined => {
    const value = values[name]
    return typeof value === 'string' ? value : undefined
  }
  return {
    samples: count('--samples', text('samples')),
    many: count(`--${many}`, text(many)),
    messages: count('--messages', text('messages') ?? String(messages ?? 1)),
    chosen: choose(goals, text('only')),
    json: text('json'),
    markdown: text('markdown'),
  }
}

const EXIT_CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const

/** A bench that is interrupted removes what it made before it ends; what it measured is lost. */
export function disposeWhenInterrupted(context: AsyncDisposable): void {
  let ending = false
  for (const signal of Object.keys(EXIT_CODES) as (keyof typeof EXIT_CODES)[])
    process.on(signal, () => {
      if (ending) return
      ending = true
      console.error('Interrupted: removing what was made')
      void context[Symbol.asyncDispose]().then(
        () => process.exit(EXIT_CODES[signal]),
        (error: unknown) => {
          console.error('Not everything could be removed:', error)
          process.exit(1)
        },
      )
    })
}

/**
 * A goal that is missed or cannot be measured is printed, makes the exit code 1, and ends nothing.
 */
export async function measureGoals<Context>(
  chosen: readonly Goal<Context>[],
  context: Context,
): Promise<Result[]> {
  const results: Result[] = []
  for (const { ids, measure } of chosen) {
    try {
      for (const result of await measure(context)) {
        results.push(result)
        if (result.verdicts.some(({ reached }) => !reached)) process.exitCode = 1
        console.log(`${asText(result)}\n`)
      }
    } catch (error) {
      process.exitCode = 1
      console.error(`${ids.join(', ')} could not be measured:`, error)
    }
  }
  return results
}

export async function writeResults(
  file: string | undefined,
  machine: ReturnType<typeof describeMachine>,
  results: readonly Result[],
): Promise<void> {
  if (file !== undefined) await writeFile(file, `${JSON.stringify({ machine, results }, undefined, 2)}\n`)
}

function count(name: string, text: string | undefined): number {
  const number = Number(text)
  if (!Number.isInteger(number) || number < 1)
    throw new Error(`${name} must be a whole number from 1, not "${text}"`)
  return number
}

function choose<Context>(
  goals: readonly Goal<Context>[],
  only: string | undefined,
): readonly Goal<Context>[] {
  if (only === undefined) return goals
  const wanted = only.split(',')
  const known = goals.flatMap(({ ids }) => ids)
  const unknown = wanted.filter((id) => !known.includes(id))
  if (unknown.length > 0)
    throw new Error(`There is no goal ${unknown.join(', ')}. Known: ${known.join(', ')}`)
  return goals.filter(({ ids }) => ids.some((id) => wanted.includes(id)))
}
