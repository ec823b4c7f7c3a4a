/**
 * Intents that the demo model understands. Plain patterns, tried in order; the first match wins.
 */
import { languageOf } from './programs.ts'

export type Intent =
  | { type: 'tour' }
  | { type: 'greeting' }
  | { type: 'help' }
  | { type: 'thanks' }
  | { type: 'run'; command: string }
  /** Run the file that was written last, or the one that is named. */
  | { type: 'run_file'; path: string | undefined }
  | { type: 'write'; path: string; content: string; run: boolean }
  /** A program in words: the scripts know a few. */
  | { type: 'program'; path: string; asked: string; run: boolean }
  | { type: 'folder'; path: string }
  | { type: 'read'; path: string | undefined }
  | { type: 'edit'; path: string; from: string; to: string }
  | { type: 'list'; path: string }
  | { type: 'glob'; pattern: string }
  | { type: 'search'; pattern: string; path: string | undefined }
  | { type: 'echo'; text: string }
  | { type: 'delete'; path: string }
  | { type: 'unknown' }

const QUOTE = '["\'“”‘’`]'
const FILE = String.raw`[\w./~@+-]*[\w]\.[A-Za-z]\w{0,9}`
const PATH = String.raw`[\w./~@+-]*\w`

type Reader = (text: string) => Intent | undefined

/** Each pattern here tries such a run from each of its places: a request has none. */
const LONG_RUN = /[?\s]{200}/
/** Some patterns take time with the square of a text's length: 0.1 s for this one. */
const MAX_CHARS = 20_000

/** Reads a prompt. Never throws; what it does not understand is `unknown`. */
export function readIntent(text: string): Intent {
  if (text.length > MAX_CHARS || LONG_RUN.test(text)) return { type: 'unknown' }
  const plain = withoutCourtesy(text)
  for (const read of READERS) {
    const intent = read(plain)
    if (intent !== undefined) return intent
  }
  return { type: 'unknown' }
}

function withoutCourtesy(text: string): string {
  // "Can you run ls?" is no question about "ls?".
  const statement = /\b(?:can|could|would|will) you\b/i.test(text) ? text.replace(/[?\s]+$/, '') : text
  return statement
    .trim()
    .replace(/^(?:(?:please|ok|okay|now|then|hey|hi|hello|and)[,!]?\s+(?=\S+\s+\S))+/i, '')
    .replace(/^(?:can|could|would|will) you\s+(?:please\s+)?/i, '')
    .replace(/^i(?:'d| would) like you to\s+|^i want you to\s+|^let'?s\s+/i, '')
    .replace(/,?\s+(?:please|for me)(?=[.?!]*$)/i, '')
    .trim()
}

const READERS: readonly Reader[] = [
  tour,
  smallTalk,
  explicitCommand,
  folder,
  write,
  edit,
  count,
  runFile,
  runCommand,
  glob,
  search,
  list,
  read,
  remove,
  echo,
  bareCommand,
]

function tour(text: string): Intent | undefined {
  const wanted =
    /^(?:(?:give|show) (?:me|us) (?:a|the) )?(?:demo|tour)\b/i.test(text) ||
    /^(?:run|start|do) (?:a|the) (?:demo|tour)\b/i.test(text) ||
    /^show (?:me |us )?(?:off\b|around\b|what (?:you|this|it|sandlot) can do)/i.test(text)
  return wanted ? { type: 'tour' } : undefined
}

function smallTalk(text: string): Intent | undefined {
  if (
    /^(?:help|what can (?:you|i|sandlot) do|what (?:are|is) (?:you|this))(?: here| for me)?[\s.!?]*$/i.test(
      text,
    )
  )
    return { type: 'help' }
  if (
    /^(?:hi|hello|hey|good (?:morning|evening|afternoon)|hallo|yo)(?: there| sandlot)?[\s.!?]*$/i.test(text)
  )
    return { type: 'greeting' }
  if (/^(?:thanks|thank you|thx|great|nice|cool|perfect|well done)\b[^?]{0,40}$/i.test(text))
    return { type: 'thanks' }
  return undefined
}

/** `$ command`, or "run" with the command in backticks or a code block. */
function explicitCommand(text: string): Intent | undefined {
  const prompt = /^\$\s+([^]+)$/.exec(text)?.[1]
  if (prompt !== undefined) return { type: 'run', command: prompt.trim() }
  if (!/^(?:run|execute|try|do|use|call)\b/i.test(text) && !/^`[^`]+`$/.test(text)) return undefined
  const block = /```[a-z]*\n([^]+?)```/i.exec(text)?.[1] ?? /`([^`]+)`/.exec(text)?.[1]
  if (block === undefined) return undefined
  const command = block.trim()
  return new RegExp(`^${FILE}$`).test(command) && languageOf(command) !== undefined
    ? { type: 'run_file', path: command }
    : { type: 'run', command }
}

function folder(text: string): Intent | undefined {
  const path = new RegExp(
    `^(?:create|make|add) (?:a |the )?(?:new )?(?:folder|directory)(?: called| named)? ${QUOTE}?(${PATH})`,
    'i',
  ).exec(text)?.[1]
  return path === undefined ? undefined : { type: 'folder', path }
}

function write(text: string): Intent | undefined {
  if (!/^(?:create|make|write|add|save|generate|put|build)\b/i.test(text)) return undefined
  const run =
    /\b(?:and|then)\b[^"“`]{0,12}\b(?:run|execute|start) (?:it|that|the (?:file|script|program))\b/i.test(
      text,
    )
  const path = pathToWrite(text)
  if (path === undefined) return undefined

  const block = /```[a-z]*\n([^]*?)```/i.exec(text)?.[1]
  if (block !== undefined) return { type: 'write', path, content: block, run }
  const said = text.replace(
    /[,;]?\s+(?:and|then)(?: then)? (?:run|execute|start) (?:it|that|the (?:file|script|program))\b.*$/is,
    '',
  )
  const asked =
    /\b(?:that|which|to) (?:prints?|shows?|lists?|outputs?|computes?|calculates?|writes?|counts?)\s+([^]+)$/i.exec(
      said,
    )
  if (asked?.[1] !== undefined && languageOf(path) !== undefined) {
    return { type: 'program', path, asked: asked[1].replace(/[.!]+$/, '').trim(), run }
  }
  const content = contentOf(said)
  if (content !== undefined) return { type: 'write', path, content, run }
  // "a hello world script x.py": what it is for stands before the name.
  return languageOf(path) === undefined
    ? { type: 'write', path, content: '', run }
    : { type: 'program', path, asked: said, run }
}

function pathToWrite(text: string): string | undefined {
  const named = new RegExp(
    `\\b(?:called|named|to|into|in|file|script|program) ${QUOTE}?(${FILE})${QUOTE}?`,
    'i',
  ).exec(text)?.[1]
  const any = new RegExp(`(?:^|\\s)${QUOTE}?(${FILE})${QUOTE}?(?=[\\s,.:;]|$)`).exec(text)?.[1]
  const bare = new RegExp(`\\bfile (?:called |named )${QUOTE}?(${PATH})`, 'i').exec(text)?.[1]
  return named ?? any ?? bare
}

function contentOf(text: string): string | undefined {
  const marker =
    /\b(?:with|containing|that (?:says|contains|reads|has)|saying|whose content is)\b\s*(?:(?:the|a|its)\s+)?(?:(?:contents?|text|words?|lines?|message)\b)?\s*(?:of|is|:|=)?\s*/i.exec(
      text,
    )
  if (marker !== null) {
    const rest = text.slice(marker.index + marker[0].length)
    const inQuotes = /^(["“'‘`])([^]*)(["”'’`])/.exec(rest)
    return inQuotes?.[2] ?? (rest.trim() === '' ? undefined : rest.trim())
  }
  // write "hello" to test.txt
  return (
    /^\w+ ["“'‘`]([^]+?)["”'’`] (?:to|into|in)\b/i.exec(text)?.[1] ??
    /^(?:write|put|save) ([^]+?) (?:to|into|in) (?:a |the )?(?:file )?\S+$/i.exec(text)?.[1]
  )
}

function edit(text: string): Intent | undefined {
  const found = new RegExp(
    `^(?:replace|change|rename|turn) ${QUOTE}?([^]+?)${QUOTE}? (?:with|to|by|into) ${QUOTE}?([^]*?)${QUOTE}? in (?:the file |file )?${QUOTE}?(${PATH})${QUOTE}?[.!]?$`,
    'i',
  ).exec(text)
  const [, from, to, path] = found ?? []
  return from === undefined || to === undefined || path === undefined
    ? undefined
    : { type: 'edit', path, from, to }
}

function count(text: string): Intent | undefined {
  const to = /^count (?:slowly )?(?:from 1 )?to (\d{1,4})\b/i.exec(text)?.[1]
  if (to !== undefined)
    return { type: 'run', command: `for i in $(seq 1 ${to}); do echo "$i"; sleep 1; done` }
  const seconds = /^(?:sleep|wait)(?: for)? (\d{1,5})(?:\s*(?:s|secs?|seconds?))?[.!]?$/i.exec(text)?.[1]
  return seconds === undefined ? undefined : { type: 'run', command: `sleep ${seconds}` }
}

function runFile(text: string): Intent | undefined {
  if (/^(?:run|execute|start) (?:it|that|this|them|the (?:file|script|program))(?: again)?[.!]?$/i.test(text))
    return { type: 'run_file', path: undefined }
  const path = new RegExp(
    `^(?:run|execute|start) (?:the )?(?:file |script |program )?${QUOTE}?(${FILE})${QUOTE}?[.!]?$`,
    'i',
  ).exec(text)?.[1]
  return path === undefined || languageOf(path) === undefined ? undefined : { type: 'run_file', path }
}

function runCommand(text: string): Intent | undefined {
  const rest = /^(?:run|execute) (?:(?:the |this )?(?:shell )?command:? )?([^]+)$/i.exec(text)?.[1]?.trim()
  if (rest === undefined || /^(?:a|an|the|my|all|some|your)\b/i.test(rest)) return undefined
  const command = new RegExp(`^${QUOTE}([^]+)${QUOTE}$`).exec(rest)?.[1] ?? rest
  return { type: 'run', command }
}

const EXTENSIONS: Record<string, string> = {
  python: 'py',
  javascript: 'js',
  typescript: 'ts',
  markdown: 'md',
  text: 'txt',
  shell: 'sh',
  json: 'json',
  html: 'html',
  css: 'css',
  c: 'c',
}

function glob(text: string): Intent | undefined {
  if (!/^(?:find|list|show|search|which|where|are there)\b/i.test(text)) return undefined
  const pattern = /(?:^|\s)["'`]?([\w./-]*\*[\w./*?-]*)["'`]?/.exec(text)?.[1]
  if (pattern !== undefined)
    return { type: 'glob', pattern: pattern.includes('/') ? pattern : `**/${pattern}` }
  const kind = /\b(python|javascript|typescript|markdown|text|shell|json|html|css|c) files\b/i.exec(text)?.[1]
  const extension = EXTENSIONS[kind?.toLowerCase() ?? '']
  if (extension !== undefined) return { type: 'glob', pattern: `**/*.${extension}` }
  const named = new RegExp(`\\bfiles? (?:called|named) ${QUOTE}?(${PATH})`, 'i').exec(text)?.[1]
  return named === undefined ? undefined : { type: 'glob', pattern: `**/${named}` }
}

function search(text: string): Intent | undefined {
  const found = new RegExp(
    `^(?:search|grep|look|find)\\s+(?:(?:the |my )?(?:files|workspace|code)\\s+)?(?:for\\s+)?(?:the (?:text|word) )?${QUOTE}?([^]+?)${QUOTE}?(?:\\s+in\\s+(?:the |my )?(?:(?:workspace|files|code)|${QUOTE}?(${PATH})${QUOTE}?))?[.?!]?$`,
    'i',
  ).exec(text)
  const pattern = found?.[1]
  return pattern === undefined ? undefined : { type: 'search', pattern, path: found?.[2] }
}

function list(text: string): Intent | undefined {
  if (/^(?:ls|dir)[\s.]*$/i.test(text)) return { type: 'list', path: '.' }
  const inFolder = new RegExp(
    `^(?:list|show)(?: me)?(?: all| the)? (?:files|contents?) (?:in|of) (?:the )?(?:folder |directory )?${QUOTE}?(${PATH})${QUOTE}?[?.!]?$`,
    'i',
  ).exec(text)?.[1]
  const inside = /\b(?:workspace|(?:this|current) (?:folder|directory)|here)\b/i.test(text)
  if (inFolder !== undefined && !/^(?:workspace|my|here|this)$/i.test(inFolder))
    return { type: 'list', path: inFolder }
  const asks = /^(?:what(?:'s|s)?|list|show|which|tell me what)\b/i.test(text)
  return asks && (inside || /\b(?:files|folders|directory)\b/i.test(text))
    ? { type: 'list', path: '.' }
    : undefined
}

function read(text: string): Intent | undefined {
  if (/^(?:read|show|open|print|display) (?:it|that|the file)(?: again)?[.!]?$/i.test(text))
    return { type: 'read', path: undefined }
  const path =
    new RegExp(
      `^(?:read|show|open|print|display|cat|view|see)(?: me)?(?: the)?(?: file| contents? of(?: the file)?)? ${QUOTE}?(${FILE})${QUOTE}?[.?!]?$`,
      'i',
    ).exec(text)?.[1] ??
    new RegExp(
      `^what(?:'s| is| does) (?:in |inside )?(?:the file )?${QUOTE}?(${FILE})${QUOTE}?(?: say| contain)?[.?!]?$`,
      'i',
    ).exec(text)?.[1] ??
    new RegExp(`^(?:read|open|cat) (?:the )?(?:file )?${QUOTE}?(${PATH})${QUOTE}?[.!]?$`, 'i').exec(text)?.[1]
  return path === undefined ? undefined : { type: 'read', path }
}

function remove(text: string): Intent | undefined {
  const path = new RegExp(
    `^(?:delete|remove) (?:the )?(?:file |folder |directory )?${QUOTE}?(${PATH})${QUOTE}?[.!]?$`,
    'i',
  ).exec(text)?.[1]
  return path === undefined ? undefined : { type: 'delete', path }
}

function echo(text: string): Intent | undefined {
  const said = new RegExp(`^(?:echo|say|repeat) ${QUOTE}?([^]+?)${QUOTE}?$`, 'i').exec(text)?.[1]
  return said === undefined ? undefined : { type: 'echo', text: said }
}

const COMMANDS = new Set(
  'awk bash cat cd chmod cp curl cut date df diff du env file find free gcc git grep gzip head hostname id jq ln ls lscpu make mkdir mv nl node npm npx nproc pip pip3 printf ps pwd python python3 rg rm sed seq sleep sort sqlite3 stat tail tar tee touch tr tree uname uniq unzip uptime wc wget which whoami xz zip'.split(
    ' ',
  ),
)

/** A prompt that is itself a command line. */
function bareCommand(text: string): Intent | undefined {
  const [word = ''] = text.split(/\s/, 1)
  // "find me a good restaurant" is no command, "find . -name x" is.
  if (/^(?:for|while|if)\b[^]*;\s*(?:do|then)\b/.test(text)) return { type: 'run', command: text }
  const isProse =
    /[?]$/.test(text) || /^(?:find|make|file|cut|sort|head|date|which) (?:me|a|an|the|my|it|us)\b/i.test(text)
  return COMMANDS.has(word) && !isProse ? { type: 'run', command: text } : undefined
}
