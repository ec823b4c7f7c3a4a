/** Where settings are documented: both places are written from one list, and a test says when they were not. */
import { CONFIG_NAMES } from '@sandlot/shared/config-names'

/** Settings with conventional names, which are not ours to list in `CONFIG_NAMES`. */
const CONVENTIONAL: Record<string, string> = {
  OPENAI_MODEL: 'name of the model; without it the demo model answers',
  OPENAI_API_KEY: 'its key; may be empty for a local server',
  OPENAI_BASE_URL: 'any OpenAI-compatible endpoint (default: OpenAI’s)',
  HOST: 'address to listen on (default 127.0.0.1)',
  PORT: 'port to listen on (default 8002)',
  LOG_LEVEL: 'trace | debug | info | warn | error (default info)',
  DOCKER_HOST:
    'the engine that runs the sandboxes (default: the local one, installed and started where there is none)',
}

/** Not for people who run Sandlot. */
const INTERNAL = /^SANDLOT_TEST_/

function settings(): [string, string][] {
  return [
    ...Object.entries(CONVENTIONAL),
    ...Object.entries(CONFIG_NAMES).filter(([name]) => !INTERNAL.test(name)),
  ]
}

export const TABLE_START = '<!-- settings: written by test/write-docs.ts -->'
export const TABLE_END = '<!-- /settings -->'

/** The table of the README, between its markers. */
export function settingsTable(): string {
  const rows = settings().map(([name, meaning]) => `| \`${name}\` | ${meaning.replaceAll('|', '·')} |`)
  return ['| name | meaning |', '| --- | --- |', ...rows].join('\n')
}

/** `README.md` with its table written again. */
export function withSettingsTable(readme: string): string {
  const start = readme.indexOf(TABLE_START)
  const end = readme.indexOf(TABLE_END)
  if (start < 0 || end < start) throw new Error(`README.md needs the markers ${TABLE_START} and ${TABLE_END}`)
  return `${readme.slice(0, start)}${TABLE_START}\n${settingsTable()}\n${readme.slice(end)}`
}

/** `.env.example`: every setting, none of them set. */
export function envExample(): string {
  const lines = settings().map(([name, meaning]) => `# ${meaning}\n#${name}=\n`)
  return [
    '# Copy to .env and take the # away where you want something else. Everything works with nothing set.\n',
    '# NAME_FILE=/path instead of NAME=value reads the value from a file. Written by test/write-docs.ts.\n\n',
    lines.join('\n'),
  ].join('')
}
