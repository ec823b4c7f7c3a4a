/** Token counts, from every place and under every name in which providers report them. */
import type { TokenUsage } from '@sandlot/shared/event-meta'
import { isObject, member, numberMember } from './json.ts'

/** The counts in a chunk, or undefined. Null and zeros are how some say that they do not know yet. */
export function usageIn(chunk: unknown, choice: unknown): TokenUsage | undefined {
  const places = [
    member(chunk, 'usage'),
    member(choice, 'usage'),
    member(member(chunk, 'x_groq'), 'usage'),
    member(member(choice, 'delta'), 'usage'),
  ]
  for (const place of places) {
    const usage = readUsage(place)
    if (usage !== undefined) return usage
  }
  return readTimings(member(chunk, 'timings'))
}

/** What is known after more was reported: the last count of each kind, but no zero takes the place of one. */
export function latestUsage(known: TokenUsage, reported: TokenUsage | undefined): TokenUsage {
  const counts = Object.entries(reported ?? {}).filter(
    ([kind, count]) => count !== 0 || known[kind as keyof TokenUsage] === undefined,
  )
  return { ...known, ...Object.fromEntries(counts) }
}

function readUsage(usage: unknown): TokenUsage | undefined {
  if (!isObject(usage)) return undefined
  const first = (...readings: (number | undefined)[]): number | undefined =>
    readings.find((reading) => reading !== undefined)
  const details = usage['prompt_tokens_details'] ?? usage['input_tokens_details']
  const input = first(numberMember(usage, 'prompt_tokens'), inputTokens(usage))
  const output = first(numberMember(usage, 'completion_tokens'), numberMember(usage, 'output_tokens'))
  const cached = first(
    numberMember(details, 'cached_tokens'),
    numberMember(usage, 'prompt_cache_hit_tokens'),
    numberMember(usage, 'cached_tokens'),
    numberMember(usage, 'cache_read_input_tokens'),
    numberMember(usage, 'num_cached_tokens'),
  )
  const reasoning = first(
    numberMember(usage['completion_tokens_details'], 'reasoning_tokens'),
    numberMember(usage['output_tokens_details'], 'reasoning_tokens'),
    numberMember(usage, 'reasoning_tokens'),
  )
  const total = numberMember(usage, 'total_tokens')
  if ((input ?? 0) === 0 && (output ?? 0) === 0 && (total ?? 0) === 0) return undefined
  const beside = countedBeside(total, input, output, cached)
  const written = beside === 0 ? output : (output ?? 0) + beside
  // Beside an output that was counted there are only thoughts.
  const thought = reasoning ?? (beside > 0 && output !== undefined ? beside : undefined)
  return {
    input,
    output: written,
    cached,
    reasoning: thought,
  }
}

/**
 * Tokens that stand in the total alone: xAI's and Gemini's thoughts, which others count in with the output. A difference
 * of just what came from the cache is a total that counts the cache twice.
 */
function countedBeside(total = 0, input = 0, output = 0, cached: number | undefined): number {
  const beside = total - input - output
  return beside > 0 && beside !== cached ? beside : 0
}

/** Under Claude's own names what came from its cache, or went there, is counted beside the input. */
function inputTokens(usage: object): number | undefined {
  const input = numberMember(usage, 'input_tokens')
  if (input === undefined) return undefined
  const beside = ['cache_read_input_tokens', 'cache_creation_input_tokens']
  return beside.reduce((sum, name) => sum + (numberMember(usage, name) ?? 0), input)
}

/** llama.cpp counts here when it was not asked for usage; its prompt count leaves out what was cached. */
function readTimings(timings: unknown): TokenUsage | undefined {
  const fresh = numberMember(timings, 'prompt_n')
  const output = numberMember(timings, 'predicted_n')
  if (fresh === undefined || output === undefined) return undefined
  const cached = numberMember(timings, 'cache_n')
  return { input: fresh + (cached ?? 0), output, cached }
}
