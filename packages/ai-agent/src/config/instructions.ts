/**
 * Standing instructions: of the operator, the team, the user, and the workspace's files, in that
 * order. Each is bounded, and none contains anything that changes by itself.
 */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { messageOf } from '@sandlot/shared/base/errors'
import { joinInstructions } from '@sandlot/shared/base/instruction-text'
import { z } from 'zod'
import type { Project } from '@sandlot/shared/chat/chats'
import { type SessionEvent, makeSandlotEvent, sandlotEventOf } from '@sandlot/shared/chat/events'
import { type InstructionFile, withoutReadTimes } from '@sandlot/shared/chat/instruction-files'
import { WORKSPACE } from '../tools/workspace-path.ts'
import { type WorkspaceSources, readInstructionFiles } from './instruction-files.ts'

/** Bytes of the operator's and of the team's text each. */
const MAX_TEXT = 64 * 1024

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
  workspace: WorkspaceSources
}

export interface Instructions {
  /** Empty when there are none. */
  text: string
  /** Files of the workspace in it. */
  files?: InstructionFile[]
}

/** Everything that applies to this user, as one text. The same while nothing changes. */
export async function instructionsFor(
  userId: string,
  { deployment, ofTeam, set = [], ofUser, project, workspace }: InstructionSources,
): Promise<Instructions> {
  const folder = Promise.resolve(project).then((known) => known?.folder ?? '')
  const [team = '', own, stored, { sections: ofFiles, files }] = await Promise.all([
    ofTeam?.(),
    ofUser(userId),
    project,
    readInstructionFiles(userId, folder, workspace),
  ])
  const sections = [
    ['From whoever runs this Sandlot', deployment.operator],
    ['From the team', team === '' ? deployment.team : team],
    ...set.map(({ heading, text: said }) => [heading, said] as const),
    ['From the user, for all their conversations', own],
    ...(stored === undefined
      ? []
      : [[`From the user, for the project “${stored.name}”`, ofProject(stored)] as const]),
    ...ofFiles,
  ] as const
  return { text: joinInstructions(sections), files }
}

function ofProject({ folder, instructions: said }: Project): string {
  if (folder === '') return said
  return `The folder of this project is ${WORKSPACE}/${folder}; make it if it is not there. Work in it unless you are told otherwise: new files go there.\n\n${said}`
}

// ── The instructions of one prompt ──────────────────────────────────────────────────────────────

/** The current instructions by the log; undefined when there are none. */
function instructionsInLog(log: readonly SessionEvent[]): string | undefined {
  for (const event of log.toReversed()) {
    const happened = sandlotEventOf(event)
    if (happened?.type === 'instructions') return happened.text
  }
  return undefined
}

/**
 * Loads the instructions of one prompt into the log. A prompt that an earlier process began has the
 * stored ones. A new one asks, and stores only what is new: a known text with the time of an
 * earlier reading stays as it is when a later reading finds the same.
 */
export async function takeInstructions(ctx: {
  promptId: string
  resumed: boolean
  /** Its branch. */
  log: readonly SessionEvent[]
  ask: () => Promise<Instructions>
  store: (events: readonly SessionEvent[]) => Promise<void>
  now: () => number
}): Promise<void> {
  if (ctx.resumed) return
  const before = instructionsInLog(ctx.log) ?? ''
  const { text, files } = await ctx.ask()
  const content = withoutReadTimes(before)
  if (text === before || (content !== before && content === withoutReadTimes(text))) return
  await ctx.store([
    makeSandlotEvent({ type: 'instructions', text, files }, { promptId: ctx.promptId }, ctx.now()),
  ])
}
