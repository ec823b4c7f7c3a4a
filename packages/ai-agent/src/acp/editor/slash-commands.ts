/**
 * Slash commands for users of foreign clients: run at once, without the model, and not logged in
 * the session. Our own page has buttons for these. Only `/compact` works in every client, and is
 * logged.
 */
import type { AvailableCommand } from '@agentclientprotocol/sdk'
import { MODES, mode as modeShape } from '@sandlot/shared/chat/mode'
import type { SessionEvent } from '@sandlot/shared/chat/events'
import type { ServerState } from '../../mcp/servers.ts'
import type { Session } from '../../session/session.ts'
import type { ClientServers } from './client-servers.ts'

interface CommandParts {
  clientServers: Pick<ClientServers, 'states'>
}

interface SlashCommand {
  about: AvailableCommand
  /** It changes the session: later requests on the session wait for it. */
  changes?: true
  /** Resolves with the text to show. */
  run: (session: Session, argument: string, parts: CommandParts) => Promise<string>
}

/** Milliseconds that `/mcp` waits for servers that are being started. */
const STATES_MS = 15_000

const COMMANDS: readonly SlashCommand[] = [
  {
    about: {
      name: 'mode',
      description: 'Say or change what runs without asking',
      input: { hint: MODES.join(' | ') },
    },
    changes: true,
    run: async (session, argument) => {
      if (argument === '') return `The mode is ${session.mode}. There are: ${MODES.join(', ')}.`
      const wanted = modeShape.safeParse(argument)
      if (!wanted.success) return `There is no mode “${argument}”. There are: ${MODES.join(', ')}.`
      await session.setMode(wanted.data)
      return `The mode is ${session.mode}.`
    },
  },
  {
    about: { name: 'usage', description: 'How full the model’s context is, and what the session has cost' },
    run: async (session) => usageText(session.log),
  },
  {
    about: { name: 'mcp', description: 'Which MCP servers there are in this session, and how they stand' },
    run: async (session, _argument, { clientServers }) =>
      serversText(await clientServers.states(session, AbortSignal.timeout(STATES_MS))),
  },
]

/** Unlike the others it is a prompt: see `loop/compact-command.ts`. */
const COMPACT: AvailableCommand = {
  name: 'compact',
  description: 'Make the conversation shorter for the model: a summary in place of what is older',
  input: { hint: 'what the summary must not lose (may be left out)' },
}

/** For `available_commands_update`. */
export const AVAILABLE_COMMANDS: AvailableCommand[] = [COMPACT, ...COMMANDS.map(({ about }) => about)]

/**
 * Starts the command in this message; undefined when there is none. Resolves when its change has
 * taken effect; `result` resolves with the text to show, which may take longer.
 */
export async function beginSlashCommand(
  session: Session,
  text: string,
  parts: CommandParts,
): Promise<{ result: Promise<string> } | undefined> {
  const [, name, argument = ''] = /^\/([a-z]+)(?:\s+([^\n]*))?$/.exec(text.trim()) ?? []
  const command = COMMANDS.find(({ about }) => about.name === name)
  if (command === undefined) return undefined
  const result = command.run(session, argument.trim(), parts)
  if (command.changes === true) await result
  return { result }
}

function usageText(log: readonly SessionEvent[]): string {
  const last = log.findLast((event) => event.sessionUpdate === 'usage_update')
  if (last?.sessionUpdate !== 'usage_update')
    return 'The model’s provider has not counted any tokens in this session yet.'
  const cost = last.cost === undefined ? '' : ` It has cost ${last.cost.amount} ${last.cost.currency}.`
  return `${last.used} of the ${last.size} tokens that the model can hold are used.${cost}`
}

const STATE_WORDS: Record<ServerState['state'], string> = {
  ready: 'ready',
  unavailable: 'cannot be used',
  needs_auth: 'wants you to sign in',
}

function serversText(states: readonly ServerState[]): string {
  if (states.length === 0) return 'There are no MCP servers in this session.'
  const lines = states.map(({ name, state, why, tools, problems }) => {
    const names = tools.map((tool) => tool.name).join(', ')
    const more = [why, state === 'ready' ? names || 'no tools' : undefined, ...problems.slice(0, 3)]
    return `- ${name}: ${[STATE_WORDS[state], ...more.filter((words) => words !== undefined)].join('; ')}`
  })
  return lines.join('\n')
}
