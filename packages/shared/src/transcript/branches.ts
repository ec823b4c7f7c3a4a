/**
 * Branches of a session. Its log only grows; each prompt names its predecessor, so prompts form a
 * tree, and a branch is a path from the root. Pure.
 */

/** A prompt and its predecessor; null: it begins the conversation. */
export interface PromptPlace {
  readonly id: string
  readonly follows: string | null
}

/**
 * The place of the next prompt. `follows` as of `prompt_started`: absent (as in older logs) or
 * unknown, the predecessor is the last prompt.
 */
export function placeOf(
  prompts: readonly PromptPlace[],
  id: string,
  follows: string | null | undefined,
): PromptPlace {
  const named = follows !== undefined && (follows === null || prompts.some((one) => one.id === follows))
  return { id, follows: named ? follows : (prompts.at(-1)?.id ?? null) }
}

/** This prompt and its predecessors, from the first on. */
export function branchTo(prompts: readonly PromptPlace[], id: string): string[] {
  const byId = new Map(prompts.map((prompt) => [prompt.id, prompt]))
  const path: string[] = []
  for (let at = byId.get(id); at !== undefined; at = byId.get(at.follows ?? '')) path.push(at.id)
  return path.toReversed()
}

/**
 * The visible branch: to the newest prompt after `chosen`; null or unknown: to the newest of all.
 */
export function shownBranch(prompts: readonly PromptPlace[], chosen: string | null): string[] {
  const through = new Set([chosen])
  let newest = prompts.at(-1)?.id
  if (prompts.some(({ id }) => id === chosen)) {
    for (const { id, follows } of prompts) {
      if (follows !== null && through.has(follows)) through.add(id)
      if (through.has(id)) newest = id
    }
  }
  return newest === undefined ? [] : branchTo(prompts, newest)
}

/** Prompts with the same predecessor, including this one, in order of their start. */
export function alternativesOf(prompts: readonly PromptPlace[], id: string): string[] {
  const place = prompts.find((prompt) => prompt.id === id)
  return prompts.filter(({ follows }) => follows === place?.follows).map((prompt) => prompt.id)
}
