/**
 * Standing instructions: of the operator, the team, the user, and the workspace's AGENTS.md, in
 * that order. Each is bounded, and none contains anything that changes by itself.
 */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { orTimeout } from '@sandlot/shared/async/or-timeout'
import { messageOf } from '@sandlot/shared/base/errors'
import { storableText } from '@sandlot/shared/base/storable-text'
import { SandboxError } from '@sandlot/sandbox/errors'
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import { z } from 'zod'
import type { Project } from '@sandlot/shared/chat/chats'
import { WORKSPACE } from '../tools/workspace-path.ts'
import { decodeExactly, statIfExists } from '../tools/workspace-files.ts'
import { type SessionEvent, makeSandlotEvent, sandlotEventOf } from '@sandlot/shared/chat/events'

/** Bytes of the operator's and of the team's text each. */
const MAX_TEXT = 64 * 1024
/** Bytes of AGENTS.md that are read. */
const MAX_AGENTS_FILE = 32 * 1024
/** Milliseconds that a prompt waits for AGENTS.md: it must not make the first answer slow. */
const PATIENCE_MS = 300

const text = z.union([
  z.string().max(MAX_TEXT),
  /** Relative to the configuration file. */
  z.strictObject({ file: z.string().min(1) }),
])
/** The operator's text, or the operator's and the team's. */
export const instructionsSection = z.union([
  text,
  z.strictObject({ operator: text.optional(), team: text.optional() }),
])
type InstructionsSection = z.output<typeof instructionsSection>

/** Under whom the team's text is kept; no person has an empty id. */
export const TEAM = ''

export interface DeploymentInstructions {
  operator: string
  team: string
}

/**
 * The texts of the section. `folder`: of the configuration file. A file that cannot be read is a
 * problem.
 */
export function readInstructions(
  section: InstructionsSection | undefined,
  folder: string,
  problems: string[],
): DeploymentInstructions {
  const read = (what: z.output<typeof text> | undefined): string => {
    if (what === undefined) return ''
    if (typeof what === 'string') return what
    const path = resolve(folder, what.file)
    try {
      const bytes = readFileSync(path)
      if (bytes.length <= MAX_TEXT) return bytes.toString('utf8')
      problems.push(`instructions: ${path} has more than ${MAX_TEXT} bytes`)
    } catch (error) {
      problems.push(`instructions: cannot read ${path} (${messageOf(error)})`)
    }
    return ''
  }
  const both =
    typeof section === 'object' && !('file' in section) ? section : { operator: section, team: undefined }
  return { operator: read(both.operator), team: read(both.team) }
}

interface InstructionSources {
  deployment: DeploymentInstructions
  /** An administrator's text for the team; it replaces the configuration's. */
  ofTeam?: () => Promise<string>
  /** Administrators' texts for the user's teams and for them, each under its heading. */
  set?: readonly { heading: string; text: string }[]
  /** The user's own text. */
  ofUser: (userId: string) => Promise<string>
  /** The project that the chat is in. */
  project?: Promise<Project | undefined>
  /** The user's sandbox if it is awake; undefined rather than starting one. */
  awake: (userId: string) => Promise<Sandbox | undefined>
}

/** Everything that holds for this user, as one text; empty when there is nothing. */
export async function instructionsFor(
  userId: string,
  { deployment, ofTeam, set = [], ofUser, project, awake }: InstructionSources,
): Promise<string> {
  const [team = '', own, stored, agentsFile] = await Promise.all([
    ofTeam?.(),
    ofUser(userId),
    project,
    orTimeout(readAgentsFile(userId, awake), PATIENCE_MS, ''),
  ])
  const sections = [
    ['From whoever runs this Sandlot', deployment.operator],
    ['From the team', team === '' ? deployment.team : team],
    ...set.map(({ heading, text: said }) => [heading, said] as const),
    ['From the user, for all their conversations', own],
    ...(stored === undefined
      ? []
      : [[`From the user, for the project “${stored.name}”`, ofProject(stored)] as const]),
    ['From AGENTS.md in the workspace', agentsFile],
  ] as const
  return sections
    .map(([title, said]) => [title, storableText(said.replaceAll('\r\n', '\n')).trim()] as const)
    .filter(([, said]) => said !== '')
    .map(([title, said]) => `${title}:\n\n${said}`)
    .join('\n\n')
}

function ofProject({ folder, instructions: said }: Project): string {
  if (folder === '') return said
  return `The folder of this project is ${WORKSPACE}/${folder}; make it if it is not there. Work in it unless you are told otherwise: new files go there.\n\n${said}`
}

/** Empty when there is none, it is not readable text, or the sandbox sleeps. */
async function readAgentsFile(userId: string, awake: InstructionSources['awake']): Promise<string> {
  try {
    const sandbox = await awake(userId)
    if (sandbox === undefined) return ''
    // A link's target may be a file that a rule keeps from the model.
    const files = sandbox.files.withoutLinks
    const stat = await statIfExists(files, 'AGENTS.md')
    if (stat?.kind !== 'file') return ''
    const bytes = await files.read('AGENTS.md', { length: MAX_AGENTS_FILE })
    // A character that the limit cuts is left out.
    const whole = stat.size > bytes.length ? wholeCharacters(bytes) : bytes
    const read = decodeExactly(whole) ?? ''
    const cut =
      stat.size > bytes.length ? `\n[AGENTS.md goes on; these are its first ${MAX_AGENTS_FILE} bytes.]` : ''
    return read.trim() === '' ? '' : `${read.replace(/^\uFEFF/, '')}${cut}`
  } catch (error) {
    // A sandbox that goes away just now has no instructions either.
    if (error instanceof SandboxError) return ''
    throw error
  }
}

function wholeCharacters(bytes: Uint8Array): Uint8Array {
  let end = bytes.length
  while (end > 0 && ((bytes[end - 1] ?? 0) & 0xc0) === 0x80) end--
  return bytes.subarray(0, Math.max(0, end - 1))
}

// ── The instructions of one prompt ──────────────────────────────────────────────────────────────

/** The current instructions by the log; empty when there are none. */
function instructionsInLog(log: readonly SessionEvent[]): string | undefined {
  for (const event of log.toReversed()) {
    const happened = sandlotEventOf(event)
    if (happened?.type === 'instructions') return happened.text
  }
  return undefined
}

/**
 * The text for one prompt. A prompt that an earlier process began has what the log says; a new one
 * asks, and says in the log what is new, so that most prompts store nothing.
 */
export async function takeInstructions(ctx: {
  promptId: string
  resumed: boolean
  log: readonly SessionEvent[]
  ask: () => Promise<string>
  store: (events: readonly SessionEvent[]) => Promise<void>
  now: () => number
}): Promise<string> {
  const before = instructionsInLog(ctx.log)
  if (ctx.resumed) return before ?? ''
  const text = await ctx.ask()
  if (text === (before ?? '')) return text
  await ctx.store([makeSandlotEvent({ type: 'instructions', text }, { promptId: ctx.promptId }, ctx.now())])
  return text
}
