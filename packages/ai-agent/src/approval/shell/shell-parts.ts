/**
 * A command line → its parts. The parser is real; everything that it or we cannot follow becomes an
 * `unknown` part, so that nothing is ever left out. Never throws, and bounded: what is too long or
 * too deep is unknown as a whole.
 */
import { Recent } from '@sandlot/shared/async/recent'
import { messageOf } from '@sandlot/shared/base/errors'
import {
  type Assignment,
  type Command,
  type ParsedScript,
  type Redirection,
  type SyntaxNode,
  forEachChild,
  parse,
} from 'unbash'
import { expansionProblem } from './expansions.ts'
import { READS_ONLY } from './git.ts'
import { type ShellPart, type ScriptReader, MAX_COMMAND_CHARS, MAX_DEPTH, MAX_PARTS } from './parts.ts'
import { provesReadOnly } from './proof.ts'
import { type ArgWord, argWord } from './words.ts'
import { unwrap } from './wrappers.ts'

/** Shown of a part. */
const TEXT_CHARS = 300

/** A call's command is asked about by its rules, again with its paths, and when it runs. */
const known = new Recent<string, readonly ShellPart[]>()

/** Every part of `command`, in no particular order. At least one, unless it is empty. */
export function shellParts(command: string): readonly ShellPart[] {
  return known.get(command, () => {
    const reader = new Reader()
    reader.script(command, 0, 'bash')
    reader.end()
    return reader.parts
  })
}

/**
 * The environment that a command line gets: git runs no other program where all that there is only
 * reads.
 */
export function shellEnvironment(command: string): Readonly<Record<string, string>> | undefined {
  const parts = shellParts(command)
  const reads = parts.every(
    ({ type, ...part }) => type === 'read' || ('effect' in part && part.effect !== 'acts'),
  )
  const hasGit = parts.some(
    (part) => part.type === 'run' && part.words.some(({ literal }) => literal === 'git'),
  )
  return reads && hasGit ? READS_ONLY : undefined
}

class Reader {
  readonly parts: ShellPart[] = []
  /** Names that the line gives a meaning of its own. */
  readonly #functions = new Set<string>()
  /** It makes a list: `x=(a b)`. */
  #makesLists = false
  /** A `declare` with a value that is not known, if there is one. */
  #declares: string | undefined
  #readBy: ScriptReader = 'bash'

  /** Read `source`, of which `readBy` is the shell that will, as bash does. */
  script(source: string, depth: number, readBy: ScriptReader): void {
    const before = this.#readBy
    this.#readBy = readBy
    this.#script(source, depth)
    this.#readBy = before
  }

  /** Facts that are only known when all is read. */
  end(): void {
    // bash reads the text `([i]=v)` as source where the variable is a list already.
    if (this.#makesLists && this.#declares !== undefined)
      this.#unknown(this.#declares, 'declares what bash may read as the values of a list')
  }

  #script(source: string, depth: number): void {
    if (source.length > MAX_COMMAND_CHARS) return this.#unknown(source, 'is too long to be looked into')
    if (depth > MAX_DEPTH)
      return this.#unknown(source, 'is a command in a command, too deep to be looked into')
    if (source.includes('\0')) return this.#unknown(source, 'has a NUL character')
    if (this.#readBy === 'sh' && !readsAlike(source))
      this.#unknown(source, 'is read by sh, which may read it otherwise than bash')
    const hidden = hiddenCharacter(source)
    if (hidden !== undefined) this.#unknown(source, `has an invisible character (${hidden})`)
    try {
      const tree = parse(source)
      this.#collect(tree)
      this.#visit(tree, tree.source ?? source, depth)
    } catch (error) {
      // The parser reports what it does not understand as errors; a throw is a bug of it or of
      // ours.
      this.#unknown(source, `could not be looked into (${messageOf(error).slice(0, 100)})`)
    }
  }

  #add(part: ShellPart): void {
    if (this.parts.length < MAX_PARTS) this.parts.push(part)
    else if (this.parts.length === MAX_PARTS)
      this.parts.push({ type: 'unknown', text: '…', because: 'has more parts than are looked into' })
  }

  #unknown(text: string, because: string): void {
    this.#add({ type: 'unknown', text: shorten(text), because })
  }

  /** Before anything else is judged: a function may be defined behind its first use, in a loop. */
  #collect(node: SyntaxNode): void {
    if (node.type === 'Function') this.#functions.add(node.name.value)
    if (node.type === 'Assignment' && (node.index !== undefined || node.value.type === 'ArrayValue'))
      this.#makesLists = true
    forEachChild(node, (child) => this.#collect(child))
  }

  #visit(node: SyntaxNode, source: string, depth: number): void {
    switch (node.type) {
      case 'Script': {
        const script: ParsedScript = node
        const own = script.source ?? source
        const [error] = script.errors ?? []
        if (error !== undefined) this.#unknown(own, `is not complete bash (${error.message})`)
        return forEachChild(node, (child) => this.#visit(child, own, depth))
      }
      case 'Command':
        this.#command(node, source, depth)
        break
      case 'Assignment':
        this.#assignment(node)
        break
      case 'Redirect':
      case 'HereString':
      case 'HereDoc':
        this.#redirect(node, source)
        break
      case 'For':
      case 'Select':
        this.#sets(node.name.value, source.slice(node.pos, node.name.end))
        break
      case 'Coproc':
        if (node.name !== undefined) this.#sets(node.name.value, `coproc ${node.name.text}`)
        break
      case 'FileDescriptorVariable':
        this.#sets(node.name, `{${node.name}}>`)
        break
      default: {
        const problem = expansionProblem(node)
        if (problem !== undefined) this.#unknown(source.slice(node.pos, node.end), problem)
      }
    }
    forEachChild(node, (child) => {
      if (!isForReadAlone(node, child)) this.#visit(child, source, depth)
    })
  }

  /** `value`: where it is known. */
  #sets(name: string, text: string, value?: string): void {
    if (!isHarmlessSetting(name, value))
      this.#unknown(text, `sets ${name}, which can change what programs do`)
  }

  #assignment(node: Assignment): void {
    const { name, text, value, index } = node
    this.#sets(name, text, value.type === 'Word' ? argWord(value).literal : undefined)
    const elements = value.type === 'ArrayValue' ? value.elements : []
    if (
      (index !== undefined && !/^\d{1,9}$/.test(index.value)) ||
      elements.some((element) => /^\[(?!\d{1,9}\]\+?=)[^]*\]\+?=/.test(element.text))
    )
      this.#unknown(text, 'has an index that is computed when it runs')
  }

  #redirect(node: Redirection, source: string): void {
    const text = source.slice(node.pos, node.end)
    if (node.type !== 'Redirect') return
    const { operator, target } = node
    if (target === undefined) return this.#unknown(text, 'redirects to nothing')
    const word = argWord(target)
    const isDescriptor = operator === '<&' || operator === '>&'
    if (isDescriptor && word.literal !== undefined && /^(\d+-?|-)$/.test(word.literal)) return
    if (word.literal !== undefined && /^\/dev\/(tcp|udp)\//.test(word.literal))
      return this.#unknown(text, 'opens a network connection')
    if (word.literal !== undefined && HARMLESS_TARGETS.has(word.literal)) return
    const reads = operator === '<' || operator === '<&'
    // The file may be /dev/tcp/… all the same.
    if (reads && word.literal === undefined && mayBeBelow('/dev/', word.prefix))
      return this.#unknown(text, 'reads from a place that is not known before it runs')
    const file = { text: shorten(text), path: word.literal }
    this.#add(
      reads
        ? { type: 'read', ...file }
        : { type: 'write', ...file, appends: ['>>', '&>>'].includes(operator) },
    )
  }

  #command(node: Command, source: string, depth: number): void {
    if (node.name === undefined) return
    const words = [argWord(node.name), ...node.args.map(argumentWord)]
    const given = node.redirects.flatMap(inputOf)
    this.#run(words, source.slice(node.pos, node.end), depth, given)
  }

  /** `input`: what a shell that is started here gets to read, where it is known. */
  #run(words: readonly ArgWord[], text: string, depth: number, input: readonly (string | undefined)[]): void {
    const [name] = words
    if (name === undefined) return
    if (depth > MAX_DEPTH) return this.#unknown(text, 'runs a program by way of too many others')
    if (name.literal === undefined) {
      this.#unknown(text, 'runs a program whose name is not known before it runs')
      // `$(true) rm x` runs rm: an expansion may leave nothing behind.
      if (name.loose) this.#run(words.slice(1), text, depth + 1, input)
      return
    }
    if (name.literal === '') return this.#unknown(text, 'has no name')
    const own = this.#functions.has(name.literal)
    if (own) this.#unknown(text, `gives ${name.literal} a meaning of its own`)
    const wrapped = unwrap(words, input)
    const effect = own
      ? 'acts'
      : wrapped === undefined
        ? provesReadOnly(words)
          ? 'proven'
          : 'acts'
        : wrapped.effect
    this.#add({ type: 'run', text: shorten(text), words, effect })
    if (DECLARES.has(name.literal) && words.some(({ literal }) => literal === undefined))
      this.#declares ??= text
    if (wrapped === undefined) return
    for (const [variable, value] of wrapped.sets) this.#sets(variable, text, value)
    for (const problem of wrapped.problems) this.#unknown(text, problem)
    for (const inner of wrapped.commands)
      this.#run(inner, inner.map((word) => word.text).join(' '), depth + 1, [])
    for (const script of wrapped.scripts) this.script(script, depth + 1, wrapped.readBy ?? this.#readBy)
  }
}

const DECLARES = new Set(['declare', 'local', 'readonly'])

/** True if a path with the beginning `prefix` may lie below `folder`. */
function mayBeBelow(folder: string, prefix: string): boolean {
  return folder.startsWith(prefix) || prefix.startsWith(folder)
}

/**
 * `IFS= read -r line`: the one variable that changes words, for the one builtin that does not pass
 * it on.
 */
function isForReadAlone(node: SyntaxNode, child: SyntaxNode): boolean {
  if (node.type !== 'Command' || child.type !== 'Assignment' || node.name?.text !== 'read') return false
  return child.name === 'IFS' && child.value.type === 'Word' && argWord(child.value).literal !== undefined
}

const HARMLESS_TARGETS = new Set(
  '/dev/null /dev/stdout /dev/stderr /dev/stdin /dev/fd/1 /dev/fd/2'.split(' '),
)

function argumentWord(argument: Command['args'][number]): ArgWord {
  if (argument.type === 'Word') return argWord(argument)
  const { text, name, value, index, append } = argument
  if (value.type === 'ArrayValue' || index !== undefined || append === true)
    return { text, literal: undefined, prefix: name, loose: false, several: false }
  const word = argWord(value)
  const literal = word.literal === undefined ? undefined : `${name}=${word.literal}`
  return { text, literal, prefix: `${name}=${word.prefix}`, loose: false, several: false }
}

/**
 * The input of a redirection: its text, or undefined where that is not known. Nothing for all
 * others.
 */
function inputOf(redirect: Redirection): (string | undefined)[] {
  const { descriptor } = redirect
  if (descriptor !== undefined && !(descriptor.type === 'FileDescriptor' && descriptor.value === 0)) return []
  if (redirect.type === 'HereString') {
    return [redirect.target === undefined ? undefined : argWord(redirect.target).literal]
  }
  if (redirect.type === 'HereDoc') {
    const { parts, text } = redirect.body
    // Without quotes round its mark bash takes backslashes out of it.
    const raw = redirect.delimiter?.quoted === true || !text.includes('\\')
    const read = redirect.operator === '<<-' ? text.replaceAll(/^\t+/gm, '') : text
    return [raw && (parts ?? []).every((part) => part.type === 'Literal') ? read : undefined]
  }
  return ['<', '<>', '<&'].includes(redirect.operator) || descriptor !== undefined ? [undefined] : []
}

/**
 * Characters that are not seen, or make a line look like another one. Tabs and line ends are none
 * of them.
 */
const HIDDEN = /(?![\n\t]|\r\n)[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u

function hiddenCharacter(text: string): string | undefined {
  const code = HIDDEN.exec(text)?.[0].codePointAt(0)
  return code === undefined ? undefined : `U+${code.toString(16).toUpperCase().padStart(4, '0')}`
}

export function shorten(text: string): string {
  const one = text.trim()
  return one.length > TEXT_CHARS ? `${one.slice(0, TEXT_CHARS)}…` : one
}

// Constructs that `sh` reads differently from bash, whose reading we assume: in a Debian `[[ a > b
// ]]` is a program and a redirection for it, and `$'\'` ends where bash continues.

const ONLY_IN_BASH = [
  // Quoting of its own, and what computes.
  /\$["'[]/,
  /\[\[/,
  /(?<!\$)\(\(/,
  /[<>]\(/,
  /<<</,
  /&>|\|&/,
  // Quotes within braces or backquotes, where the rules differ.
  /\$\{[^}]*["'\\`$]/,
  /`[^`]*[\\"']/,
]

/** True when nothing in it is known to be read otherwise. */
function readsAlike(script: string): boolean {
  return !ONLY_IN_BASH.some((form) => form.test(script))
}

// Which variables a command line may set without changing what its commands, or later ones, do.

/** Read by programs, and harmless: language, time, colour, width, log level. */
const HARMLESS = new Set(
  'LANG LANGUAGE TZ CI COLUMNS LINES NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE NODE_ENV RUST_BACKTRACE RUST_LOG DEBIAN_FRONTEND PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE GIT_TERMINAL_PROMPT GIT_OPTIONAL_LOCKS'.split(
    ' ',
  ),
)

/** Small letters, and yet read by programs. */
const READ_BY_PROGRAMS = /^(no_proxy|npm_|pnpm_|yarn_|histchars$|auto_resume$)|_proxy$/

/**
 * True when setting this variable cannot change which program runs or what it does: one of the
 * harmless list to a plain word, or a name in small letters, which a script uses for itself.
 * Everything else is not known to be harmless: a language with a path in it names a file, and some
 * programs evaluate what they are given. `value`: where it is known.
 */
function isHarmlessSetting(name: string, value: string | undefined): boolean {
  if (HARMLESS.has(name) || /^LC_[A-Z]+$/.test(name)) return /^[\w.,:@+=-]*$/.test(valueOf(name, value))
  return /^[a-z_][a-z0-9_]*$/.test(name) && name !== '_' && !READ_BY_PROGRAMS.test(name)
}

/** An unknown value is not plain. A time zone has slashes; one that begins with one is a file. */
function valueOf(name: string, value = ' '): string {
  return name === 'TZ' ? value.replaceAll(/(?<=\w)\//g, '') : value
}
