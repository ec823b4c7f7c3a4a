/**
 * Settings of the previous version that are none any more. One that is set stops the start, because
 * what it did would end unnoticed. Remove an entry one version later.
 */

/** By name: purpose, and replacement. */
export const REMOVED_SETTINGS: Readonly<Record<string, string>> = {
  SANDLOT_MAX_CALLS:
    'limited the calls of a prompt; limit its model answers or its time instead (SANDLOT_MAX_TURNS, SANDLOT_MAX_PROMPT_SECONDS)',
  SANDLOT_MAX_TOKENS:
    'limited the tokens of a prompt; limit its cost instead (SANDLOT_MAX_COST), or the tokens of a day (SANDLOT_MAX_TOKENS_PER_DAY)',
  ...Object.fromEntries([
    ...periodLimits('MAX', 'one person'),
    ...periodLimits('TOTAL', 'everybody together'),
  ]),
}

function periodLimits(prefix: string, whose: string): [string, string][] {
  const amounts = { TURNS: 'model answers', CALLS: 'calls', SECONDS: 'running time' }
  return ['DAY', 'MONTH'].flatMap((period) =>
    Object.entries(amounts).map(([amount, words]): [string, string] => [
      `SANDLOT_${prefix}_${amount}_PER_${period}`,
      `limited the ${words} of ${whose} in a ${period.toLowerCase()}; limit tokens or cost instead (SANDLOT_${prefix}_TOKENS_PER_${period}, SANDLOT_${prefix}_COST_PER_${period})`,
    ]),
  )
}
