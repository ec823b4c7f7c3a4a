/** Generates documentation and compose blocks from settings; a test fails when a file is out of date. */
import { REMOVED_SETTINGS } from '@sandlot/shared/config/removed-settings'
import { settingMeaning, SETTINGS } from '@sandlot/shared/config/settings'
import { type ChildName, namesFor } from '../packages/cli/src/processes/child-env.ts'

/** The dozen that most deployments set, for the README; `docs/settings.md` has all. */
const COMMON = new Set([
  'OPENAI_MODEL',
  'OPENAI_API_KEY',
  'OPENAI_BASE_URL',
  'HOST',
  'PORT',
  'SANDLOT_PUBLIC_URL',
  'SANDLOT_DATA',
  'SANDLOT_CONFIG',
  'SANDLOT_DEFAULT_MODE',
  'SANDLOT_SANDBOX_NETWORK',
  'SANDLOT_EGRESS_ALLOW',
  'SANDLOT_SANDBOX_MEMORY_MB',
])

function settings(): [string, string][] {
  return Object.entries(SETTINGS).flatMap(([name, { internal }]): [string, string][] =>
    internal === true ? [] : [[name, settingMeaning(name) ?? '']],
  )
}

/** Variables that compose does not pass on by their names, and why. */
export const NOT_BY_COMPOSE: Record<string, string> = {
  SANDLOT_DATA: 'the folder of each process in the volume "data"',
  SANDLOT_AGENT_URL: 'the agent’s socket in that volume',
  SANDLOT_REPLICA: 'the name of the container',
  SANDLOT_SANDBOX: 'no other backend works in a container',
  HOST: 'PORT is published on loopback by compose',
  DOCKER_HOST: 'the gate’s socket',
  DOCKER_CERT_PATH: 'the engine is reached by its socket',
  DOCKER_TLS_VERIFY: 'the engine is reached by its socket',
}

/** True for a variable that compose passes on to this process. */
export function isPassedByCompose(name: string): boolean {
  // On a cluster the chart does what compose does.
  const isOfCluster = /^(SANDLOT_)?KUBE/.test(name)
  return !(name in NOT_BY_COMPOSE) && !isOfCluster && SETTINGS[name]?.internal !== true
}

/**
 * `compose.yaml` with the variables of each process rewritten: those that lines above the marker in
 * its block do not set.
 */
export function withVariables(compose: string): string {
  const block =
    /^( {4}environment:\n((?: {6}.*\n)*?)) {6}# variables of ([\w-]+):.*\n[^]*?^ {6}# \/variables\n/gm
  return compose.replaceAll(block, (_, head: string, own: string, child: ChildName) => {
    const set = new Set([...own.matchAll(/^ {6}(\w+):/gm)].map(([, name = '']) => name))
    // Passed on to one process, which then refuses to start.
    const removed = child === 'ai-agent' ? Object.keys(REMOVED_SETTINGS) : []
    const lines = [...namesFor(child), ...removed]
      .filter((name) => isPassedByCompose(name) && !set.has(name) && !set.has(`${name}_FILE`))
      .map((name) => `      ${name}: '\${${name}:-}'\n`)
    const opening = `      # variables of ${child}: written by test/write-docs.ts\n`
    return `${head}${opening}${lines.join('')}      # /variables\n`
  })
}

/** Names with their meanings, as a list. */
export function listOf(rows: readonly (readonly [string, string])[]): string {
  return rows.map(([name, meaning]) => `- \`${name}\`: ${meaning}`).join('\n')
}

/** `README.md` with its list of settings rewritten. */
export function withSettings(readme: string): string {
  return withList(readme, 'settings', listOf(settings().filter(([name]) => COMMON.has(name))))
}

/** A document with the list between its markers rewritten. */
export function withList(text: string, name: string, list: string): string {
  const opening = `<!-- ${name}: written by test/write-docs.ts -->`
  const start = text.indexOf(opening)
  const end = text.indexOf(`<!-- /${name} -->`)
  if (start < 0 || end < start) throw new Error(`The markers of the list of ${name} are missing: ${opening}`)
  return `${text.slice(0, start)}${opening}\n${list}\n${text.slice(end)}`
}

const OPENING = `# Settings

<!-- Written by test/write-docs.ts. -->

Environment variables, or lines of a file \`.env\` in the folder of Sandlot (with compose \`docker/.env\`). All are optional.
\`NAME_FILE=/path\` reads a value from a file. An unknown \`SANDLOT_\` name stops the start, with a suggestion. A limit of 0 is no limit; days and months
are UTC.
`

const CLOSING = `
## The configuration file

Structured settings are JSON: \`sandlot.json\` in the data folder, or the file that \`SANDLOT_CONFIG\` names. Errors in it stop the start and are
listed with their position. Variables apply to everything; the file sets exceptions for single tools, models and people, and **wins** there (only
\`SANDLOT_TOOLS_ENABLED=false\` overrides its section \`tools\`). Every section is optional:

- [\`models\`](models.md#the-configuration-file): details of the main model, models that a chat may choose, and fallbacks
- [\`prices\`](models.md#prices): the price of a model
- [\`limits\`](people.md#from-the-configuration-file): limits of single people, imported once
- [\`rules\`](approvals.md#rules): what is denied, asked about or allowed for everyone, and how long answers may be remembered
- [\`tools\`](tools.md): single tools: enabled, time limits, rates
- [\`users\`, \`teams\`](people.md#from-the-configuration-file): tools, highest mode and network of single people and teams, imported once
- [\`instructions\`](chat.md#instructions): instructions from the operator and the team
- [\`mcpServers\`](mcp.md): servers that add tools

With compose the file is \`docker/config/sandlot.json\`. \`docker/config/agent.env\` may hold more \`NAME=value\` lines for the agent alone, such as
keys that \`sandlot.json\` refers to; \`docker/.env\` wins. Both must be readable for user 10001. After a change:
\`docker compose -f docker/compose.yaml restart ai-agent\`.
`

/** `docs/settings.md`: every setting, and the sections of the configuration file. */
export function settingsReference(): string {
  return `${OPENING}\n${listOf(settings())}\n${CLOSING}`
}

/** `.env.example`: every setting, none of them set. */
export function envExample(): string {
  const lines = settings().map(([name, meaning]) => `# ${meaning}\n#${name}=\n`)
  return [
    '# Copy to .env and uncomment what you want to change. Everything works with nothing set.\n',
    '# NAME_FILE=/path instead of NAME=value reads the value from a file. A limit of 0 is no limit; days and months are UTC.\n',
    '# Written by test/write-docs.ts.\n\n',
    lines.join('\n'),
  ].join('')
}
