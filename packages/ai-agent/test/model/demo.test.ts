import { describe, expect, test } from 'vitest'
import { createDemoModel } from '../../src/model/demo/demo.ts'
import type {
  ModelAnswer,
  ModelCall,
  ModelChunk,
  ModelMessage,
  ModelRequest,
  ModelTool,
} from '../../src/model/model.ts'

const TOOL_NAMES = [
  'run_shell_command',
  'read_file',
  'write_file',
  'edit_file',
  'list_directory',
  'glob',
  'search_text',
  'update_plan',
  'echo',
]
const tools: ModelTool[] = TOOL_NAMES.map((name) => ({ name, description: '', parameters: {} }))
const never = new AbortController().signal

async function ask(
  messages: ModelMessage[],
  offered = tools,
): Promise<{ answer: ModelAnswer; pieces: string[] }> {
  const pieces: string[] = []
  const request = { messages, tools: offered }
  const answer = await createDemoModel({ pace: 0 }).stream(request, never, (piece) => {
    if (piece.type === 'text') pieces.push(piece.text)
  })
  return { answer, pieces }
}

/** Plays a whole prompt; `result` stands for the tools. Returns every answer, and leaves the history in `messages`. */
async function play(
  messages: ModelMessage[],
  text: string,
  result: (call: ModelCall) => string,
): Promise<ModelAnswer[]> {
  messages.push({ role: 'user', content: text })
  const answers: ModelAnswer[] = []
  for (let turn = 0; turn < 20; turn++) {
    const { answer, pieces } = await ask(messages)
    expect(pieces.join('')).toBe(answer.text)
    answers.push(answer)
    messages.push({ role: 'assistant', content: answer.text, calls: answer.calls })
    if (answer.calls.length === 0) return answers
    for (const call of answer.calls) messages.push({ role: 'tool', callId: call.id, content: result(call) })
  }
  throw new Error('The demo model does not come to an end.')
}

const works = (call: ModelCall): string =>
  call.name === 'write_file' ? 'Wrote 5 bytes to /workspace/x' : `result of ${call.name}`
const callsOf = (answers: ModelAnswer[]) =>
  answers.flatMap((answer) => answer.calls.map(({ name, args }) => ({ name, args })))
const ending = (answers: ModelAnswer[]): string => answers.at(-1)?.text ?? ''

describe('what people ask', () => {
  test('create a file called test.txt with content "hello": one write, and a text that names it', async () => {
    const answers = await play([], 'create a file called test.txt with content "hello"', works)
    expect(callsOf(answers)).toEqual([{ name: 'write_file', args: { path: 'test.txt', content: 'hello' } }])
    expect(ending(answers)).toContain('test.txt')
  })

  test('make a file hello.py that prints the primes below 50 and run it', async () => {
    const answers = await play(
      [],
      'make a file hello.py that prints the primes below 50 and run it',
      (call) => (call.name === 'write_file' ? 'Wrote 120 bytes to hello.py' : '[2, 3, 5, 7]'),
    )
    expect(callsOf(answers)).toEqual([
      { name: 'write_file', args: { path: 'hello.py', content: expect.stringContaining('range(50)') } },
      { name: 'run_shell_command', args: { command: 'python3 hello.py' } },
    ])
    expect(ending(answers)).toContain('hello.py')
    expect(ending(answers)).toContain('[2, 3, 5, 7]')
  })

  test.each([
    ['run `df -h`', 'run_shell_command', { command: 'df -h' }],
    ['please run df -h', 'run_shell_command', { command: 'df -h' }],
    ['Run df -h and tell me what it says.', 'run_shell_command', { command: 'df -h' }],
    ['hey, can you run ls -la please?', 'run_shell_command', { command: 'ls -la' }],
    ['$ uname -a', 'run_shell_command', { command: 'uname -a' }],
    ['run hello.py', 'run_shell_command', { command: 'python3 hello.py' }],
    ['What is in my workspace?', 'list_directory', { path: '.' }],
    ['read hello.py', 'read_file', { path: 'hello.py' }],
  ])('%s', async (text, name, args) => {
    const answers = await play([], text, works)
    expect(callsOf(answers)).toEqual([{ name, args }])
    expect(ending(answers)).not.toBe('')
  })

  test('what it does not understand gets an honest answer with suggestions', async () => {
    for (const text of [
      'what is the meaning of life?',
      '',
      '🤷',
      'run the tests',
      'delete a.txt',
      'write x.py',
    ]) {
      const answers = await play([], text, works)
      expect(answers).toHaveLength(1)
      expect(ending(answers)).toMatch(/demo model: no AI model is configured/)
      expect(ending(answers)).toMatch(/administrator adds one under Settings, Models/)
    }
  })

  test('it says that it is a demo in the first prompt of a session', async () => {
    const messages: ModelMessage[] = []
    expect(ending(await play(messages, 'run `true`', works))).toMatch(/demo model/)
    expect(ending(await play(messages, 'run `true`', works))).not.toMatch(/demo model/)
  })

  test('a failing command is explained, and what follows it is not done', async () => {
    const answers = await play([], 'make a file x.py that prints the primes below 9 and run it', (call) =>
      call.name === 'write_file'
        ? 'Wrote 1 bytes to x.py'
        : 'bash: python3: command not found\n[exit code 127]',
    )
    expect(ending(answers)).toMatch(/exit code 127/)
    expect(ending(answers)).toMatch(/no command of that name/)
    const denied = await play(
      [],
      'make a file x.py that prints the primes below 9 and run it',
      () => 'The user did not allow this call, so it was not run.',
    )
    expect(denied).toHaveLength(2)
    expect(ending(denied)).toMatch(/did not allow/)
  })

  test('output that ends in a list is no failure', async () => {
    expect(ending(await play([], 'run `python3 x.py`', () => '[2, 3, 5]'))).toContain('It printed')
  })
})

describe('the tour', () => {
  const NOTICE =
    '[… The middle of this output is left out here. All of it is in /workspace/.tool-outputs/00ff.txt: read parts with read_file …]'
  const sandbox = (call: ModelCall): string => {
    const { command = '' } = call.args as { command?: string }
    if (command.startsWith('seq')) return `line 1\n${NOTICE}\nline 20000`
    if (command.startsWith('cat')) return 'cat: x: No such file or directory\n[exit code 1]'
    return works(call)
  }

  test('has a plan, calls side by side, a cut output that is read from its file, and a failure explained', async () => {
    const words = 'Show me what you can do: a plan, files, a command that asks first, and a failure.'
    const answers = await play([], words, sandbox)
    const calls = callsOf(answers)
    expect(calls[0]?.name).toBe('update_plan')
    const sideBySide = answers.find((answer) => answer.calls.length >= 4)
    expect(sideBySide?.calls.map((call) => call.name)).toEqual(
      expect.arrayContaining(['list_directory', 'read_file', 'search_text', 'glob']),
    )
    expect(calls).toContainEqual({
      name: 'read_file',
      args: expect.objectContaining({ path: '/workspace/.tool-outputs/00ff.txt' }),
    })
    expect(answers.some((answer) => /No such file or directory/.test(answer.text))).toBe(true)
    const plans = calls.filter((call) => call.name === 'update_plan')
    const last = plans.at(-1)?.args as { entries: { status: string }[] }
    expect(last.entries.map((entry) => entry.status)).toEqual(last.entries.map(() => 'completed'))
    expect(ending(answers)).toMatch(/That was the tour/)
  })

  test('comes to its end also when everything is denied, or nothing is cut', async () => {
    const denied = await play([], 'demo', () => 'The user did not allow this call, so it was not run.')
    expect(ending(denied)).toMatch(/That was the tour/)
    expect(ending(await play([], 'demo', works))).toMatch(/That was the tour/)
  })

  test('goes on after a restart: the same history gives the same answer', async () => {
    const messages: ModelMessage[] = []
    await play(messages, 'demo', sandbox)
    for (let cut = 1; cut < messages.length; cut++) {
      const next = messages[cut]
      if (next?.role !== 'assistant') continue
      const { answer } = await ask(messages.slice(0, cut))
      expect({ content: answer.text, calls: answer.calls }).toEqual({
        content: next.content,
        calls: next.calls,
      })
    }
  })
})

test('call ids are unique in a session', async () => {
  const messages: ModelMessage[] = []
  await play(messages, 'demo', works)
  await play(messages, 'run `true`', works)
  const ids = messages.flatMap((message) =>
    message.role === 'assistant' ? message.calls.map((call) => call.id) : [],
  )
  expect(new Set(ids).size).toBe(ids.length)
})

test('a message that joins in the middle is answered next', async () => {
  const { answer } = await ask([
    { role: 'user', content: 'demo' },
    { role: 'assistant', content: 'x', calls: [{ id: 'c', name: 'echo', args: {} }] },
    { role: 'tool', callId: 'c', content: 'x' },
    { role: 'user', content: 'run `true`' },
  ])
  expect(answer.calls.map((call) => call.args)).toEqual([{ command: 'true' }])
})

test('without tools, or without the one it needs, it says so', async () => {
  const messages: ModelMessage[] = [{ role: 'user', content: 'run `true`' }]
  const none = await ask(messages, [])
  expect(none.answer).toMatchObject({ calls: [], text: expect.stringContaining('switched off') })
  const some = await ask(messages, [{ name: 'echo', description: '', parameters: {} }])
  expect(some.answer).toMatchObject({ calls: [], text: expect.stringContaining('run_shell_command') })
})

test('it speaks in small pieces, and Stop ends it at once with the reason', async () => {
  const stop = new AbortController()
  const request: ModelRequest = { messages: [{ role: 'user', content: 'hi' }] }
  const first = createDemoModel({ pace: 5_000 }).stream(request, stop.signal, () => expect.unreachable())
  stop.abort('cancelled')
  await expect(first).rejects.toBe('cancelled')

  const later = new AbortController()
  const pieces: ModelChunk[] = []
  const paced = createDemoModel({ pace: 1 }).stream(request, later.signal, (piece) => {
    pieces.push(piece)
    later.abort('cancelled')
  })
  await expect(paced).rejects.toBe('cancelled')
  expect(pieces).toEqual([{ type: 'text', text: expect.stringMatching(/^\S+$/) }])
})

test.each([' ', '\n', '?', 'to ', 'a', 'create ', '"', '`', 'file x.txt with ', 'x.'])(
  'a very long text of %j is read in no time',
  async (part) => {
    for (const before of ['', 'please ', 'run ', 'create a file x.txt with '])
      for (const length of [1_900, 1_000_000]) {
        const text = `${before}${part.repeat((length - 100) / part.length)}!x`
        const started = performance.now()
        await ask([{ role: 'user', content: text }])
        expect(performance.now() - started).toBeLessThan(1_000)
      }
  },
)
