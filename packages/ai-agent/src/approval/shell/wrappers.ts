/**
 * Programs that run another one: what they would run, so that it is judged too. What a wrapper is
 * given that is not listed here is a problem, and a problem asks.
 */
import { findRuns } from './find.ts'
import { type Options, knownOf } from './options.ts'
import { type ScriptReader, type Wrapped, nothing } from './parts.ts'
import { type ArgWord, ANYTHING, mayBeOption, systemName } from './words.ts'

interface Shape {
  options?: Options
  /** Words between the options and the command: `timeout 5 cmd` has one. */
  before?: number
  /** The wrapper itself has an effect: `sudo`, `ssh`. */
  acts?: true
  /** The rest is joined with blanks and read by this shell. */
  joined?: ScriptReader | 'this'
  /** `NAME=value` may stand before the command. */
  assigns?: true
  /** It adds words of its own behind the command. */
  appends?: true
}

const SHAPES: Readonly<Record<string, Shape>> = {
  timeout: { options: '-fpv -ks= foreground preserve-status verbose kill-after= signal=', before: 1 },
  nice: { options: '-n= adjustment=' },
  ionice: { options: '-t -cn= class= classdata=' },
  nohup: {},
  setsid: { options: '-cfw ctty fork wait' },
  stdbuf: { options: '-ioe= input= output= error=' },
  unbuffer: { options: '-p' },
  chronic: {},
  taskset: { before: 1 },
  exec: { options: '-cl -a=' },
  builtin: {},
  time: { options: '-pv' },
  xargs: {
    // The value of --max-lines may be left out, so the next word is never it.
    options:
      '-0rtx -nPLsdaE= null no-run-if-empty verbose exit max-lines max-args= max-procs= max-chars= delimiter= arg-file=',
    appends: true,
  },
  watch: { options: '-bcdegptx -n=', joined: 'sh' },
  eval: { joined: 'this' },
  sudo: { options: '-AbEHKknPS -ugpCThr=', acts: true, assigns: true },
  doas: { options: '-Lns -uC=', acts: true },
  // Not -o, -F and -J, which name programs of their own.
  ssh: {
    options: '-46AaCfGgKkMNnqsTtVvXxYy -BbcDEeIiLlmOpQRSWw=',
    before: 1,
    joined: 'sh',
    acts: true,
  },
  chroot: { before: 1, acts: true },
  flock: { options: '-sxnuo -wE=', before: 1, acts: true },
  strace: { options: '-fqvyT -eops=', acts: true },
  busybox: {},
  toybox: {},
}

/** Those that are too rare, or too strange, to be followed. */
const RUNS_OTHERS =
  /^(su|runuser|pkexec|sg|newgrp|capsh|setpriv|chrt|choom|prlimit|numactl|firejail|bwrap|faketime|dbus-run-session|systemd-inhibit|parallel|sem|script|expect|screen|tmux|at|batch|crontab|systemd-run|unshare|nsenter|ld\.so|ld-linux.*|gdb|valgrind|ltrace|fakeroot|proot|entr|run-parts|start-stop-daemon|hyperfine|xvfb-run|setarch|linux(32|64)|i386|x86_64|mapfile|readarray|complete|compgen|bind|coproc)$/

const SHELLS: ReadonlyMap<string, ScriptReader> = new Map([
  ['bash', 'bash'],
  ['rbash', 'bash'],
  ['sh', 'sh'],
  ['dash', 'sh'],
  ['ash', 'sh'],
])
/** They read another language: what our parser finds in it may not be all. */
const OTHER_SHELLS = new Set('zsh ksh mksh ksh93 fish tcsh csh pwsh nu elvish xonsh'.split(' '))

/** Commands that `words` would run in turn; undefined when it runs nothing else that we know of. */
export function unwrap(
  words: readonly ArgWord[],
  input: readonly (string | undefined)[],
): Wrapped | undefined {
  const [head, ...rest] = words
  const name = head?.literal?.split('/').at(-1) ?? ''
  const wrapped = unwrapped(name, words, rest, input)
  // In another folder it is another program, whatever it is called.
  return wrapped === undefined || systemName(head?.literal) !== undefined
    ? wrapped
    : { ...wrapped, effect: 'acts' }
}

function unwrapped(
  name: string,
  words: readonly ArgWord[],
  rest: readonly ArgWord[],
  input: readonly (string | undefined)[],
): Wrapped | undefined {
  const readBy = SHELLS.get(name)
  if (readBy !== undefined) return shell(rest, input, readBy)
  if (OTHER_SHELLS.has(name))
    return { ...shell(rest, input, 'sh'), effect: 'acts', problems: ['starts a shell of another language'] }
  switch (name) {
    case 'env':
      return assigning('env', rest, ENV)
    case 'command':
      return command(rest)
    case 'find':
      return findRuns(words)
    case 'trap':
      return trap(rest)
    case 'xargs':
      return xargs(rest)
    case 'source':
    case '.':
      return { ...nothing('acts'), problems: ['runs a file in this shell'] }
    case 'alias':
    case 'enable':
    case 'hash':
    case 'unalias':
      return rest.length === 0 ? undefined : { ...nothing('acts'), problems: ['changes what names mean'] }
    default:
      if (RUNS_OTHERS.test(name))
        return { ...nothing('acts'), problems: ['runs commands in a way that is not looked into'] }
      return Object.hasOwn(SHAPES, name) ? plain(name, rest) : undefined
  }
}

function plain(name: string, rest: readonly ArgWord[]): Wrapped {
  const shape = SHAPES[name] ?? {}
  if (shape.assigns === true) return assigning(name, rest, shape)
  const effect = shape.acts === true ? 'acts' : 'carries'
  const start = afterOptions(rest, shape.options)
  if (typeof start !== 'number') return { ...nothing(effect), problems: [`gives ${name} ${start.problem}`] }
  const from = start + (shape.before ?? 0)
  const inner = rest.slice(from)
  // The words before the command must stay what they are, or the command begins elsewhere.
  if (rest.slice(start, from).some((word) => word.several))
    return {
      ...nothing(effect),
      problems: ['has words that are not known before it runs'],
      commands: [inner],
    }
  if (inner.length === 0) return name === 'exec' ? nothing('carries') : nothing('acts')
  if (shape.joined !== undefined) return joined(effect, inner, shape.joined)
  return { ...nothing(effect), commands: [shape.appends === true ? [...inner, ANYTHING] : inner] }
}

function joined(
  effect: Wrapped['effect'],
  words: readonly ArgWord[],
  readBy: ScriptReader | 'this',
): Wrapped {
  if (words.some((word) => word.literal === undefined))
    return {
      ...nothing(effect),
      problems: ['has a shell read what is not known before it runs'],
      commands: [words],
    }
  return {
    ...nothing(effect),
    scripts: [words.map((word) => word.literal).join(' ')],
    ...(readBy === 'this' ? {} : { readBy }),
  }
}

/** The rest of them would be the command. */
const SEVERAL = { problem: 'a value that may become several words' }

/** The index of the first word that is no option, or what is wrong. */
function afterOptions(words: readonly ArgWord[], options = ''): number | { problem: string } {
  const { flags, valued, long } = knownOf(options)
  for (let at = 0; at < words.length; at++) {
    const word = words[at]
    if (word === undefined) break
    if (word.literal === undefined) {
      if (!mayBeOption(word)) return at
      return { problem: 'a word that may be an option' }
    }
    const text = word.literal
    if (text === '--') return at + 1
    if (!text.startsWith('-') || text === '-') return at
    if (text.startsWith('--')) {
      const [option = '', value] = text.split('=', 2)
      const takes = long.get(option.slice(2))
      if (takes === '' && value === undefined) continue
      if (takes !== '=') return { problem: `the option ${text}` }
      if (value === undefined && words[++at]?.several === true) return SEVERAL
      continue
    }
    const valueAt = Array.from(text.slice(1)).findIndex((letter) => valued.includes(letter))
    const bare = valueAt < 0 ? text.slice(1) : text.slice(1, valueAt + 1)
    if (Array.from(bare).some((letter) => !flags.includes(letter)) && !/^-\d+$/.test(text))
      return { problem: `the option ${text}` }
    if (valueAt >= 0 && valueAt + 2 === text.length && words[++at]?.several === true) return SEVERAL
  }
  return words.length
}

const ENV: Shape = { options: '-i0v -uC= ignore-environment null debug unset= chdir=' }

/** `env` and `sudo`: settings may stand before the command. */
function assigning(program: string, rest: readonly ArgWord[], shape: Shape): Wrapped {
  const effect = shape.acts === true ? 'acts' : 'carries'
  const start = afterOptions(rest, shape.options)
  if (typeof start !== 'number')
    return { ...nothing('acts'), problems: [`gives ${program} ${start.problem}`] }
  const sets: Wrapped['sets'] = []
  // `env - command` is `env -i command`.
  for (let at = rest[start]?.literal === '-' ? start + 1 : start; at < rest.length; at++) {
    const word = rest[at]
    if (word === undefined) break
    const name = word.prefix.match(/^([A-Za-z_]\w*)=/)?.[1]
    if (name !== undefined && !word.several) {
      sets.push([name, word.literal?.slice(name.length + 1)])
      continue
    }
    if (word.prefix.includes('=') || (word.literal === undefined && word.prefix === ''))
      return {
        ...nothing('acts'),
        sets,
        problems: [`gives ${program} a word that is not known before it runs`],
        commands: [rest.slice(at)],
      }
    return { ...nothing(effect), sets, commands: [rest.slice(at)] }
  }
  // Without a command env prints the environment.
  return { ...nothing(effect === 'acts' ? 'acts' : 'proven'), sets }
}

function command(rest: readonly ArgWord[]): Wrapped {
  if (/^-[vV]+$/.test(rest[0]?.literal ?? '')) return nothing('proven')
  const start = afterOptions(rest, '-p')
  if (typeof start !== 'number') return { ...nothing('acts'), problems: [`gives command ${start.problem}`] }
  const inner = rest.slice(start)
  return inner.length === 0 ? nothing('proven') : { ...nothing('carries'), commands: [inner] }
}

/** The start of the command, or a replacing option among those before it. */
const REPLACING = `${SHAPES['xargs']?.options} -i -I=`

function xargs(rest: readonly ArgWord[]): Wrapped {
  const start = afterOptions(rest, REPLACING)
  // The same letters behind the command's name are the command's.
  const own = typeof start === 'number' ? rest.slice(0, start) : rest
  return own.some(({ prefix }) => /^-[0-9a-zA-Z]*[Ii]|^--replace/.test(prefix))
    ? xargsReplacing(rest, own)
    : plain('xargs', rest)
}

/** With -I or -i a word of the command is replaced, wherever it stands. */
function xargsReplacing(rest: readonly ArgWord[], own: readonly ArgWord[]): Wrapped {
  const at = own.findIndex(({ literal }) => literal !== undefined && /^(-I|-i|--replace(=|$))/.test(literal))
  const option = own[at]?.literal ?? ''
  const mark = option === '-I' ? rest[at + 1]?.literal : option.replace(/^(-I|-i|--replace=?)/, '') || '{}'
  if (at < 0 || mark === undefined)
    return { ...plain('xargs', rest), problems: ['gives xargs options that are not known'] }
  const others = [...rest.slice(0, at), ...rest.slice(at + (option === '-I' ? 2 : 1))]
  const wrapped = plain('xargs', others)
  const replaced = (word: ArgWord): ArgWord => {
    const known = word.literal?.indexOf(mark) ?? -1
    if (known < 0) return word
    return { ...word, literal: undefined, prefix: word.literal?.slice(0, known) ?? '' }
  }
  return { ...wrapped, commands: wrapped.commands.map((words) => words.slice(0, -1).map(replaced)) }
}

// ── Shells that are started with something to run ───────────────────────────────────────────────

/** Options that `-o` and `-O` may set: none that changes how a line is read. */
const SETTABLE = new Set(
  'errexit nounset xtrace verbose pipefail noclobber noglob nullglob failglob globstar dotglob nocaseglob extglob inherit_errexit'.split(
    ' ',
  ),
)

/**
 * `bash [flags] -c script args`, `bash <<< script`. A file that a shell runs is a program like any
 * other. `input`: what the shell gets to read.
 */
function shell(
  rest: readonly ArgWord[],
  input: readonly (string | undefined)[],
  readBy: ScriptReader,
): Wrapped {
  return { ...started(rest, input), readBy }
}

function started(rest: readonly ArgWord[], input: readonly (string | undefined)[]): Wrapped {
  for (let at = 0; at < rest.length; at++) {
    const word = rest[at]
    if (word?.literal === undefined)
      return { ...nothing('acts'), problems: ['starts a shell with words that are not known'] }
    const text = word.literal
    if (text === '--version' || text === '--help') return nothing('proven')
    if (text === '--norc' || text === '--noprofile' || text === '--posix' || /^[-+][euxv]+$/.test(text))
      continue
    if (/^[-+][euxv]*[oO]$/.test(text)) {
      const option = rest[++at]?.literal
      if (option === undefined || !SETTABLE.has(option))
        return { ...nothing('acts'), problems: [`starts a shell with ${text} ${option ?? ''}`.trimEnd()] }
      continue
    }
    if (/^-[euxv]*c[euxv]*$/.test(text)) {
      const script = rest[at + 1]
      if (script?.literal === undefined)
        return { ...nothing('acts'), problems: ['has a shell run what is not known before it runs'] }
      // Also `bash -c -- script`, which is rare enough to ask.
      if (script.literal.startsWith('-'))
        return { ...nothing('acts'), problems: ['gives a shell options behind -c'] }
      return { ...nothing('carries'), scripts: [script.literal] }
    }
    if (text === '-s' || text === '-') return reads(input)
    if (text.startsWith('-') || text.startsWith('+'))
      return { ...nothing('acts'), problems: [`starts a shell with the option ${text}`] }
    // A file is a program like any other, unless it is what the shell would read anyway.
    return /^\/(dev\/stdin|(dev|proc\/self)\/fd\/0)$/.test(text) ? reads(input) : nothing('acts')
  }
  return reads(input)
}

function reads(input: readonly (string | undefined)[]): Wrapped {
  const [only] = input
  if (input.length !== 1 || only === undefined)
    return { ...nothing('acts'), problems: ['has a shell run what it reads'] }
  return { ...nothing('carries'), scripts: [only] }
}

function trap(rest: readonly ArgWord[]): Wrapped {
  const [action] = rest
  if (rest.length === 0) return nothing('proven')
  if (action?.literal === undefined || action.literal.startsWith('-'))
    return { ...nothing('acts'), problems: ['sets a trap that is not known before it runs'] }
  return { ...nothing('carries'), scripts: action.literal === '' ? [] : [action.literal] }
}
