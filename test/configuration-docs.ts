/** Generates the documentation of settings from one list; a test fails when a file is out of date. */
import { CONFIG_NAMES } from '@sandlot/shared/config/names'

/** Settings with conventional names, which `CONFIG_NAMES` does not list. */
const CONVENTIONAL: Record<string, string> = {
  OPENAI_MODEL: 'name of the model; without it the demo model answers',
  OPENAI_API_KEY: 'its key; may be empty for a local server',
  OPENAI_BASE_URL: 'any OpenAI-compatible endpoint (default: OpenAI’s)',
  HOST: 'address to listen on (default 127.0.0.1)',
  PORT: 'port to listen on (default 8002)',
  DATABASE_URL: 'PostgreSQL for chats and accounts, instead of files in SANDLOT_DATA (docs/postgresql.md)',
  LOG_LEVEL: 'trace | debug | info | warn | error (default info)',
  DOCKER_HOST:
    'the engine that runs the sandboxes (default: the local one, installed and started if missing)',
  OTEL_EXPORTER_OTLP_ENDPOINT:
    'where to send spans by OTLP over HTTP, like http://127.0.0.1:4318 (default: none; docs/watching.md)',
  OTEL_EXPORTER_OTLP_HEADERS: 'headers for it: authorization=Bearer%20…',
  OTEL_SERVICE_NAME: 'name of this Sandlot in spans (default sandlot)',
}

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

/** Not for people who run Sandlot. */
const INTERNAL = /^SANDLOT_(TEST_|(ENV_FILE_NAMES|OTHER_SETTINGS)$)/

function settings(): [string, string][] {
  return [
    ...Object.entries(CONVENTIONAL),
    ...Object.entries(CONFIG_NAMES).filter(([name]) => !INTERNAL.test(name)),
  ]
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
