/** Splits a call into the parts that are judged separately. */
import { quotePath } from '@sandlot/shared/base/quoted-path'
import { hostBlock } from './hosts.ts'
import { WORKSPACE, absolutePath, isInstructionsFile, isOrdersFile, isOwnFile } from './files.ts'
import type { CallRequest, RuleRequest } from './request.ts'
import type { Loss } from './shell/loss.ts'
import { lossesOf } from './shell/losses.ts'
import { shellParts, shorten } from './shell/shell-parts.ts'
import type { ShellPart } from './shell/parts.ts'

/**
 * The default for a part without a rule: `read` (and parts that need no approval) always runs,
 * `edit` in auto-edit, `act` in yolo, and in auto parts that stay in the sandbox, `open` never.
 */
type Usual = 'read' | 'edit' | 'act' | 'open'

export interface Part {
  /** The text shown to people. */
  text: string
  subject:
    | ShellPart
    | {
        type: 'file'
        access: 'read' | 'write'
        path: string
        below: boolean
        /** The path that the call names, where a symbolic link leads from it to `path`. */
        linkedFrom?: string
      }
    | { type: 'host'; host: string; port: number | undefined }
    | { type: 'tool' }
  usual: Usual
  /** The end of a sentence, for when it asks. */
  because: string
  /** Files that it visibly deletes or overwrites. */
  losses?: readonly Loss[]
  /** Why nothing can allow it. */
  block?: string
}

export function partsOf(request: CallRequest): Part[] {
  if (request.asks.length > 0) return request.asks.flatMap((ask) => partsOfOne(ask, request))
  const { kind, readOnly, needsApproval = true, tool } = request
  const usual = readOnly || !needsApproval ? 'read' : kind === 'edit' ? 'edit' : 'act'
  const because = usual === 'edit' ? 'changes files' : 'is a tool that may do more than read'
  return [{ text: tool, subject: { type: 'tool' }, usual, because }]
}

function partsOfOne(ask: RuleRequest, request: CallRequest): Part[] {
  switch (ask.kind) {
    case 'shell':
      return partsOfLine(ask.command)
    case 'file':
      return [filePart(ask, request)]
    case 'host': {
      const { host, port } = ask
      const block = hostBlock(host)
      const text = port === undefined ? host : `${host}:${port}`
      return [
        {
          text,
          subject: { type: 'host', host, port },
          // No mode widens what the sandbox can reach.
          usual: 'open',
          because: 'is a host outside of the sandbox',
          block,
        },
      ]
    }
  }
}

const OWN = 'is where Sandlot keeps outputs and the state of shells'

function filePart(ask: Extract<RuleRequest, { kind: 'file' }>, { kind }: Pick<CallRequest, 'kind'>): Part {
  const { leadsTo } = ask
  if (leadsTo?.linked === true) return linkedPart(ask, leadsTo.path, kind)
  const path = absolutePath(leadsTo?.path ?? ask.path)
  const subject = { type: 'file', access: ask.access, path, below: ask.below === true } as const
  if (ask.access === 'read') return { text: quotePath(path), subject, usual: 'read', because: 'is read' }
  if (isOwnFile(path)) return { text: quotePath(path), subject, usual: 'act', because: OWN, block: OWN }
  const losses: Loss[] = [{ does: kind === 'delete' ? 'deletes' : 'overwrites', paths: [path] }]
  if (isOrdersFile(path))
    return {
      text: quotePath(path),
      subject,
      usual: 'act',
      because: 'is a file that programs take orders from',
      losses,
    }
  const because = kind === 'delete' ? IS_DELETED : kind === 'move' ? 'is moved' : 'is changed'
  return { text: quotePath(path), subject, usual: kind === 'edit' ? 'edit' : 'act', because, losses }
}

function partsOfLine(command: string): Part[] {
  const parts = shellParts(command)
  const runner = runsDownload(parts)
  const losses = lossesOf(parts, command)
  return parts.map((part, at) => ({
    ...shellPart(part),
    losses: losses[at],
    ...(writesOutside(part, losses[at]) ? { because: OUTSIDE } : {}),
    // The download stands elsewhere in the line, so the whole line is shown.
    ...(at === runner ? { text: shorten(command), because: DOWNLOADS } : {}),
  }))
}

/** The link's target is meant, and the name there may look different. */
function linkedPart(
  ask: Extract<RuleRequest, { kind: 'file' }>,
  target: string,
  kind: CallRequest['kind'],
): Part {
  const linkedFrom = absolutePath(ask.path)
  const path = absolutePath(target)
  const part = filePart({ ...ask, leadsTo: { path, linked: false } }, { kind })
  const both = [path, linkedFrom]
  const what = both.some(isOrdersFile)
    ? 'a file that programs take orders from'
    : both.some(isInstructionsFile)
      ? 'the file with what the agent keeps to'
      : undefined
  return {
    ...part,
    text: `${quotePath(linkedFrom)} → ${quotePath(path)}`,
    subject: { type: 'file', access: ask.access, path, below: ask.below === true, linkedFrom },
    ...(what === undefined || ask.access === 'read' || part.block !== undefined
      ? {}
      : { block: `is changed through a symbolic link, and is ${what}` }),
  }
}

function shellPart(part: ShellPart): Part {
  const { text } = part
  switch (part.type) {
    case 'run':
      return {
        text,
        subject: part,
        usual: part.effect === 'acts' ? 'act' : 'read',
        because: riskWords(part) ?? 'may change something',
      }
    case 'write':
      return { text, subject: part, usual: 'act', because: 'writes a file' }
    case 'read':
      return { text, subject: part, usual: 'read', because: 'reads a file' }
    case 'unknown':
      return { text, subject: part, usual: 'act', because: part.because }
  }
}

// The worst effect of a part of a call, in words, and its gravity: the gravest reason is shown.

type Run = Extract<ShellPart, { type: 'run' }>

/** From the gravest. What is in none of them comes last. */
const DOWNLOADS = 'downloads a program and runs it'
const DISCARDS = 'throws away what is not committed'
/** Words for a loss that git does not make good. */
export const LOSS_WORDS: Record<Loss['does'], string> = {
  deletes: 'deletes what git does not hold',
  overwrites: 'overwrites what git does not hold',
  replaces: 'overwrites what git does not hold',
  moves: 'moves what git does not hold out of the workspace',
  untars: 'overwrites what git does not hold',
  unzips: 'overwrites what git does not hold',
  discards: DISCARDS,
  resets: DISCARDS,
  restores: DISCARDS,
  checks: DISCARDS,
  runs: 'reads with git, and the configuration there may have it run programs',
}
const OUTSIDE = 'writes outside of the workspace'
const DESTROYS = new Set([
  OUTSIDE,
  'deletes without asking',
  'overwrites what others may have pushed',
  'overwrites a disk or a file',
  ...Object.values(LOSS_WORDS).filter((words) => words !== LOSS_WORDS.runs),
])
const DELETES = 'deletes files'
const IS_DELETED = 'is deleted'
export const LOSES_UNKNOWN = 'deletes or overwrites what is not known before it runs'
const GRAVE = new Set([DOWNLOADS, ...DESTROYS, DELETES, IS_DELETED, OUTSIDE, LOSES_UNKNOWN])

const DOWNLOADERS = new Set(['curl', 'wget', 'fetch', 'aria2c'])
const RUNS_UNKNOWN = /^(?:has a shell (?:run|read) what |starts a shell with words that are not known)/
const SHELLS = new Set(['sh', 'bash', 'dash', 'zsh', 'source', '.'])
const INTERPRETERS = new Set(['python', 'python3', 'perl', 'ruby', 'node', 'php'])

/** The irreversible effect of a program; undefined where none is known. */
function riskWords(part: ShellPart): string | undefined {
  if (part.type !== 'run' || part.effect !== 'acts') return undefined
  const [name, ...rest] = part.words.map(({ literal, prefix }) => literal ?? prefix)
  const has = (short: string, ...long: string[]) =>
    rest.some(
      (word) =>
        long.includes(word) || (/^-[a-z]+$/i.test(word) && short.split('').some((one) => word.includes(one))),
    )
  switch (programOf(name)) {
    case 'rm':
      return has('rRf', '--recursive', '--force') ? 'deletes without asking' : DELETES
    case 'rmdir':
    case 'unlink':
      return DELETES
    case 'shred':
      return 'deletes without asking'
    case 'find':
      return rest.includes('-delete') ? 'deletes without asking' : undefined
    case 'dd':
    case 'mkfs':
      return 'overwrites a disk or a file'
    case 'git':
      return graveGit(rest, has)
    default:
      return undefined
  }
}

function graveGit(
  words: readonly string[],
  has: (short: string, ...long: string[]) => boolean,
): string | undefined {
  if (words.includes('push') && has('f', '--force', '--force-with-lease', '--mirror'))
    return 'overwrites what others may have pushed'
  const discards =
    (words.includes('reset') && words.includes('--hard')) || (words.includes('clean') && has('f', '--force'))
  return discards ? DISCARDS : undefined
}

/** The part of `curl … | sh` that runs the download of another part; -1 where there is none. */
function runsDownload(parts: readonly ShellPart[]): number {
  const fetching = parts.filter(
    (part): part is Run => part.type === 'run' && DOWNLOADERS.has(programOf(part.words[0]?.literal) ?? ''),
  )
  if (fetching.length === 0) return -1
  const files = new Set(fetching.flatMap(({ words }) => savedTo(words)))
  return parts.findIndex((part) => {
    if (part.type === 'unknown') return RUNS_UNKNOWN.test(part.because)
    if (part.type !== 'run') return false
    const [name, ...rest] = part.words.map(({ literal }) => literal)
    if (name !== undefined && files.has(plainName(name))) return true
    const [first] = rest.filter((word) => word !== '-')
    const program = programOf(name) ?? ''
    if (first === undefined) return INTERPRETERS.has(program) && rest.length === part.words.length - 1
    return (INTERPRETERS.has(program) || SHELLS.has(program)) && files.has(plainName(first))
  })
}

/** `curl -o FILE`, `wget -O FILE`. */
function savedTo(words: Run['words']): string[] {
  return words.flatMap(({ literal }, at) => {
    const file = /^(?:-\w*[oO]|--output|--output-document)$/.test(literal ?? '')
      ? words[at + 1]?.literal
      : undefined
    return file === undefined ? [] : [plainName(file)]
  })
}

function plainName(path: string): string {
  return path.replace(/^\.\//, '')
}

function programOf(name: string | undefined): string | undefined {
  return name
    ?.split('/')
    .at(-1)
    ?.replace(/^mkfs\..*/, 'mkfs')
}

/** True if the part has an effect that nothing makes good. `because`: the reason of the verdict. */
export function isGrave(part: Part, because: string): boolean {
  return GRAVE.has(part.because) || GRAVE.has(because)
}

/** Temporary files and devices do not outlive the sandbox. */
const PASSES = /^\/(?:tmp|var\/tmp|dev|proc)(?:\/|$)/

function writesOutside(part: ShellPart, losses: readonly Loss[] = []): boolean {
  const targets =
    part.type === 'write'
      ? [part.path]
      : losses.flatMap(({ does, paths = [] }) => (/^(?:overwrites|replaces)$/.test(does) ? paths : []))
  return targets.some((path) => {
    if (path === undefined || !/^(?:\/|(?:\.\/)*\.\.(?:\/|$))/.test(path)) return false
    const absolute = absolutePath(path)
    return !PASSES.test(absolute) && !`${absolute}/`.startsWith(`${WORKSPACE}/`)
  })
}

/** Greater is graver. */
export function riskReason(because: string, subject: Part['subject'], byRule: boolean): number {
  if (because === DOWNLOADS) return 5
  if (DESTROYS.has(because)) return 4
  // A person or an operator said that this must be looked at.
  if (byRule) return 3
  if (subject.type === 'unknown' || subject.type === 'host' || because === DELETES) return 2
  return subject.type === 'read' ? 0 : 1
}
