/**
 * A bench as a program: read the arguments, measure the goals one after another, print each, write the figures.
 *
 *   --samples <n>       samples of what takes milliseconds
 *   --<many> <n>        the number of sandboxes, prompts or streams where a goal is about many (default 200)
 *   --messages <n>      messages that are searched
 *   --only G1,G13       these goals
 *   --json <file>       everything that was measured
 *   --markdown <file>   the same as the bench's chapter of this page; its other chapters stay
 */
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import {
  type Reported,
  type Result,
  asMarkdown,
  asText,
  describeMachine,
  machineLine,
  reported,
  withChapter,
} from './report.ts'

export interface Goal<Context> {
  /** Names for `--only`. */
  ids: readonly string[]
  measure: (context: Context) => Promise<Result[]>
}

export interface BenchArguments {
  samples: number
  many: number
  messages: number
  /** The goals that `--only` leaves. */
  ids: readonly string[]
}

export interface Bench<Context> {
  /** Arguments of `./sandlot bench`. */
  name: string
  goals: readonly Goal<Context>[]
  samples: number
  many?: 'sandboxes' | 'prompts' | 'streams'
  messages?: number
  /** Heading of its chapter, and the text below it. */
  chapter: string
  intro: readonly string[]
  /** Make the context. Servers: their names and versions. An interrupted bench disposes of the stack. */
  open: (
    args: BenchArguments,
    stack: AsyncDisposableStack,
  ) => Promise<{ context: Context; servers?: readonly string[] }>
}

/** A goal that is missed or cannot be measured makes the exit code 1. */
export async function runBench<Context>(bench: Bench<Context>): Promise<void> {
  const { name, goals, chapter, intro, open } = bench
  const { args, json, markdown } = readArguments(bench)
  await using stack = new AsyncDisposableStack()
  disposeWhenInterrupted(stack)
  const { context, servers = [] } = await open(args, stack)
  const machine = describeMachine(servers, args.samples, args.many)
  console.log(`${machineLine(machine)}\n`)
  const chosen = goals.filter(({ ids }) => ids.some((id) => args.ids.includes(id)))
  const results = await measureGoals(chosen, context)
  if (json !== undefined) await writeFile(json, `${JSON.stringify({ machine, results }, undefined, 2)}\n`)
  if (markdown === undefined) return
  const many = bench.many === undefined ? '' : `, ${args.many} ${bench.many} where there are many`
  const lines = [
    `Written by \`./sandlot bench ${name} --markdown docs/benchmarks.md\`. ${intro.join('\n')}`,
    '',
    `${machine.at}, ${machineLine(machine)};`,
    `at most ${args.samples} samples${many}.`,
    ...asMarkdown(results),
  ]
  const page = existsSync(markdown) ? await readFile(markdown, 'utf8') : ''
  await writeFile(markdown, withChapter(page, chapter, lines))
}

/** Throws for an unknown option or goal. */
function readArguments<Context>({ goals, samples, many, messages }: Bench<Context>): {
  args: BenchArguments
  json: string | undefined
  markdown: string | undefined
} {
  const defaults = { samples, ...(many && { [many]: 200 }), ...(messages && { messages }) }
  const names = [...Object.keys(defaults), 'only', 'json', 'markdown']
  const { values } = parseArgs({
    options: Object.fromEntries(names.map((name) => [name, { type: 'string' as const }])),
  })
  const text = (name: string): string | undefined => values[name]
  const counts = new Map(
    Object.entries(defaults).map(([name, fallback]) => [name, count(name, text(name), fallback)]),
  )
  const known = goals.flatMap(({ ids }) => ids)
  const ids = text('only')?.split(',') ?? known
  const unknown = ids.filter((id) => !known.includes(id))
  if (unknown.length > 0)
    throw new Error(`There is no goal ${unknown.join(', ')}. Known: ${known.join(', ')}`)
  return {
    args: {
      samples: counts.get('samples') ?? 1,
      many: counts.get(many ?? '') ?? 1,
      messages: counts.get('messages') ?? 1,
      ids,
    },
    json: text('json'),
    markdown: text('markdown'),
  }
}

function count(name: string, text: string | undefined, fallback: number): number {
  const number = Number(text ?? fallback)
  if (Number.isInteger(number) && number >= 1) return number
  throw new Error(`--${name} must be a whole number from 1, not "${text}"`)
}

const EXIT_CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const

function disposeWhenInterrupted(context: AsyncDisposable): void {
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

export async function measureGoals<Context>(
  chosen: readonly Goal<Context>[],
  context: Context,
): Promise<Reported[]> {
  const results: Reported[] = []
  for (const { ids, measure } of chosen) {
    try {
      for (const result of (await measure(context)).map(reported)) {
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
