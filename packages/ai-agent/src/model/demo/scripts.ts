/** Requests that the demo model understands, and the script that answers each. */
import {
  type DemoAnswer,
  type DemoCall,
  type DoneCall,
  type Script,
  explainFailure,
  hasFailed,
  HOW_TO_CONFIGURE,
  LABEL,
  primesBelow,
  quoted,
} from './script.ts'
import { tourScript } from './tour.ts'

const ABILITIES = `${LABEL} I only follow a script, but what I do in your sandbox is real. Try one of these:

- \`demo\`: a short tour of everything
- \`run df -h\`, or any other command
- \`make a file hello.py that prints the primes below 50 and run it\`
- \`create a file called test.txt with content "hello"\`
- \`read hello.py\`
- \`what is in my workspace?\`

${HOW_TO_CONFIGURE}`

/** Some patterns take time with the square of a text's length. */
const MAX_CHARS = 2_000

/** Never throws: what is not understood is answered with what is. */
export function scriptFor(text: string): Script {
  const request = text.length > MAX_CHARS ? '' : withoutCourtesy(text)
  for (const read of READERS) {
    const script = read(request)
    if (script !== undefined) return script
  }
  return () => ({ text: ABILITIES, calls: [] })
}

function withoutCourtesy(text: string): string {
  return text
    .trim()
    .replace(
      /^(?:hey|hi|hello|ok|now|please|(?:can|could) you)[,!]? (?:(?:can|could) you )?(?:please )?/i,
      '',
    )
    .replace(/,? please[.?!]*$/i, '')
}

type Reader = (text: string) => Script | undefined

/** Tried in this order. */
const READERS: readonly Reader[] = [tour, run, write, read, list]

const FILE = String.raw`["'\`]?([\w./~@+-]*\w\.[A-Za-z]\w{0,9})["'\`]?`

function tour(text: string): Script | undefined {
  const wanted =
    /^(?:(?:run|start|do|give me|show me) (?:a|the) )?(?:demo|tour)\b/i.test(text) ||
    /^show (?:me |us )?(?:around\b|what (?:you|sandlot) can do)/i.test(text)
  return wanted ? tourScript : undefined
}

function run(text: string): Script | undefined {
  const command =
    /^\$ ([^]+)$/.exec(text)?.[1] ??
    /^(?:run|execute) (?:the command )?`([^`]+)`/i.exec(text)?.[1] ??
    /^(?:run|execute) (?!(?:an?|the|my|all|some|your|it|that)\b)([^`]+?)(?: and tell me\b[^]*)?$/i.exec(
      text,
    )?.[1]
  return command === undefined
    ? undefined
    : steps([{ text: '', calls: [shell(interpreted(command))] }], ([ran]) => outputOf(ran))
}

function write(text: string): Script | undefined {
  const [, path, what] =
    new RegExp(
      `^(?:create|make|write) (?:a |the )?(?:new )?(?:file |script )?(?:called |named )?${FILE} ([^]+)$`,
      'i',
    ).exec(text) ?? []
  if (path === undefined || what === undefined) return undefined
  const primes = /^that prints the primes below (\d{1,4})\b/i.exec(what)?.[1]
  const content =
    primes !== undefined && path.endsWith('.py')
      ? primesBelow(Number(primes))
      : /^(?:with|containing) (?:(?:the )?(?:content|text) )?["“]([^"”]*)["”]/i.exec(what)?.[1]
  if (content === undefined) return undefined

  const writing = { text: `I write \`${path}\`.`, calls: [call('write_file', { path, content })] }
  if (!/\band run it[.!]?$/i.test(what))
    return steps([writing], () => `I created the file \`${path}\`. It says:\n\n${quoted(content, 40)}`)
  const running = { text: 'Now I run it.', calls: [shell(interpreted(path))] }
  return steps([writing, running], ([, ran]) => `I created \`${path}\` and ran it. ${outputOf(ran)}`)
}

function read(text: string): Script | undefined {
  const path = new RegExp(`^(?:read|show|open|cat) (?:me )?(?:the file )?${FILE}[.!]?$`, 'i').exec(text)?.[1]
  return path === undefined
    ? undefined
    : steps(
        [{ text: '', calls: [call('read_file', { path })] }],
        ([file]) => `This is what \`${path}\` gave:\n\n${quoted(file?.result ?? '', 60)}`,
      )
}

function list(text: string): Script | undefined {
  const asked =
    /^(?:what(?:['’]s| is) in (?:my|the) workspace|(?:list|show)(?: me)?(?: the| my)? files(?: in (?:my|the) workspace)?)[.?!]*$/i
  return asked.test(text)
    ? steps([{ text: 'I have a look.', calls: [call('list_directory', { path: '.' })] }], ([listed]) =>
        quoted(listed?.result ?? '', 60),
      )
    : undefined
}

/**
 * Takes one action a turn and stops at the first call that fails; `end` is the answer when all have
 * worked.
 */
function steps(actions: readonly DemoAnswer[], end: (calls: DoneCall[]) => string): Script {
  return ({ turns, first }): DemoAnswer => {
    const done = turns.flatMap((turn) => turn.calls)
    const failed = done.find(hasFailed)
    const next = actions[turns.length]
    if (failed === undefined && next !== undefined) return next
    const text = failed === undefined ? end(done) : explainFailure(failed)
    return { text: first ? `${text}\n\n*${LABEL.replaceAll('*', '')} ${HOW_TO_CONFIGURE}*` : text, calls: [] }
  }
}

function call(name: string, args: Record<string, unknown>): DemoCall {
  return { name, args }
}

function shell(command: string): DemoCall {
  return call('run_shell_command', { command })
}

const INTERPRETERS: Record<string, string> = { py: 'python3', js: 'node', sh: 'bash' }

/** A script's name becomes the command that runs it. */
function interpreted(command: string): string {
  const extension = /^[\w./-]+\.(py|js|sh)$/.exec(command)?.[1] ?? ''
  const interpreter = INTERPRETERS[extension]
  return interpreter === undefined ? command : `${interpreter} ${command}`
}

function outputOf(ran: DoneCall | undefined): string {
  const output = ran?.result.trim() ?? ''
  if (output.includes('printed nothing')) return 'It worked and printed nothing.'
  const cut = output.includes('left out here')
    ? '\n\nThat was long; the whole output is in the card above.'
    : ''
  return `It printed:\n\n${quoted(output)}${cut}`
}
