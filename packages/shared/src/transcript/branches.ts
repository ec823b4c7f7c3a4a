/**
 * The branches of a session. Its log only grows; each prompt names the prompt that it follows, so
 * prompts are a tree, and a branch is the way from its beginning to one of them. Pure.
 */

/** One prompt and the prompt that it follows; null: none, it begins the conversation. */
export interface PromptPlace {
  readonly id: string
  readonly follows: string | null
}

/**
 * The place of a prompt that begins behind these. `follows` as of `prompt_started`: a prompt that
 * names none, as in every log of before, or none that there is, follows the one before it.
 */
export function placeOf(
  prompts: readonly PromptPlace[],
  id: string,
  follows: string | null | undefined,
): PromptPlace {
  const named = follows !== undefined && (follows === null || prompts.some((one) => one.id === follows))
  return { id, follows: named ? follows : (prompts.at(-1)?.id ?? null) }
}

/** This prompt and all that it follows, the first one first. */
export function branchTo(prompts: readonly PromptPlace[], id: string): string[] {
  const byId = new Map(prompts.map((prompt) => [prompt.id, prompt]))
  const path: string[] = []
  for (let at = byId.get(id); at !== undefined; at = byId.get(at.follows ?? '')) path.push(at.id)
  return path.toReversed()
}

/**
 * The branch that a reader sees: with the newest of the prompts that lead through `chosen`; null,
 * or a prompt that is not there: with the newest of all.
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

/** The prompts that follow the same one as this, with it, in the order in which they began. */
export function alternativesOf(prompts: readonly PromptPlace[], id: string): string[] {
  const place = prompts.find((prompt) => prompt.id === id)
  return prompts.filter(({ follows }) => follows === place?.follows).map((prompt) => prompt.id)
}
