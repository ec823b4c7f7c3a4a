/**
 * Settings of the previous version that are none any more. One that is set stops the start, because
 * its limit would silently no longer apply. Remove an entry one version later.
 */

/** By name: purpose, and replacement. */
export const REMOVED_SETTINGS: Readonly<Record<string, string>> = {
  SANDLOT_BUILTIN_TOOLS:
    'listed the built-in tools to offer; list them in the configuration file: {"tools": {"*": {"enabled": false}, "<tool>": {"enabled": true}}}',
  SANDLOT_MODEL_PROGRESS_SECONDS:
    'limited how long a model may send only keep-alives; that is now twice SANDLOT_MODEL_IDLE_SECONDS',
  SANDLOT_SANDBOX_PROFILE: 'let everybody trace; set SANDLOT_SANDBOX_DEBUG_USERS=* instead',
  SANDLOT_SANDBOX_OPEN_FILES: 'limited the open files of a process in a sandbox; that is always 4096 now',
  SANDLOT_HOST_FILES_FREE: 'kept inodes of the host free; that is always 10000 now',
  SANDLOT_EGRESS_CONNECTIONS: 'limited the connections of a user at once; that is always 256 now',
  SANDLOT_ENGINE_MAX_VOLUMES: 'limited the volumes of the engine; the gate always permits 10000 now',
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
