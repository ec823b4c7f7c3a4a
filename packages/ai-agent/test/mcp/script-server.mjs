// An MCP server by hand, so that it can do what no honest one does. Its tools do what their names say; `--as` adds a
// habit to the whole server.
import { spawn } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { createInterface } from 'node:readline'

const habit = process.argv.includes('--as') ? process.argv[process.argv.indexOf('--as') + 1] : ''
const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
const text = (value) => ({ content: [{ type: 'text', text: value }] })
const object = (properties = {}, more = {}) => ({ type: 'object', properties, ...more })
let tools = [
  {
    name: 'say',
    description: 'Says it again.',
    inputSchema: object(
      { text: { type: 'string' }, times: { type: 'integer' } },
      { required: ['text'], additionalProperties: false },
    ),
    annotations: { readOnlyHint: true },
  },
  { name: 'environment', inputSchema: object() },
  { name: 'user', inputSchema: object() },
  { name: 'progress', inputSchema: object({ steps: { type: 'integer' }, everyMs: { type: 'integer' } }) },
  { name: 'never', inputSchema: object() },
  { name: 'cancelled', inputSchema: object() },
  { name: 'die', inputSchema: object() },
  { name: 'die-once', inputSchema: object() },
  { name: 'large', inputSchema: object({ bytes: { type: 'integer' } }) },
  { name: 'twice', inputSchema: object() },
  { name: 'flood', inputSchema: object({ messages: { type: 'integer' } }) },
  { name: 'fails', inputSchema: object() },
  { name: 'rpc-error', inputSchema: object() },
  {
    name: 'structured',
    inputSchema: object({ wrong: { type: 'boolean' } }),
    outputSchema: object({ count: { type: 'integer' } }, { required: ['count'] }),
  },
  { name: 'everything', inputSchema: object() },
  {
    name: 'number',
    inputSchema: object({ id: { type: 'integer' }, any: {}, back: { type: 'string' } }),
    outputSchema: object({ id: { type: ['integer', 'null'] } }),
  },
  { name: 'pictures', inputSchema: object({ data: { type: 'string' } }) },
  { name: 'change', inputSchema: object({ times: { type: 'integer' } }) },
  { name: 'listed', inputSchema: object() },
  { name: 'child', inputSchema: object() },
  { name: 'stderr', inputSchema: object({ lines: { type: 'integer' } }) },
  { name: 'ask', inputSchema: object() },
  { name: 'send-to', inputSchema: object() },
  { name: 'raw', inputSchema: object() },
]
if (habit === 'bad-tools')
  tools = [
    tools[0],
    { description: 'no name', inputSchema: object() },
    { name: 'no-schema' },
    { name: 'text-schema', inputSchema: 'object' },
    { name: 'array-schema', inputSchema: { type: 'array' } },
    { name: 'again', inputSchema: object() },
    { name: 'again', inputSchema: object() },
    { name: 'line\nbreak', inputSchema: object() },
    { name: '', inputSchema: object() },
    { name: 'n'.repeat(300), inputSchema: object() },
    { name: '日本 ünï 🙂', description: 'd'.repeat(1_000_000), inputSchema: object() },
    { name: 'n'.repeat(100), inputSchema: object() },
    { name: 'huge', inputSchema: object({ a: { type: 'string', description: 'x'.repeat(100_000) } }) },
    {
      name: 'deep',
      inputSchema: object({
        a: Array.from({ length: 200 }).reduce((inner) => ({ type: 'array', items: inner }), {}),
      }),
    },
    { name: 'circle', inputSchema: { type: 'object', $ref: '#' } },
    { name: 'bomb', inputSchema: object({ a: { type: 'string', pattern: '^(a+)+$' } }) },
    {
      name: 'reference',
      inputSchema: {
        $ref: '#/$defs/In',
        $defs: { In: object({ q: { type: 'string' } }, { required: ['q'] }) },
      },
    },
    { name: '__proto__', inputSchema: object() },
  ]

const pending = new Map()
/** `line`: the message as it came. */
function call(id, { name, arguments: args = {}, _meta = {} }, line) {
  const answer = (result) => send({ id, result })
  switch (name) {
    case 'say':
      return answer(text(Array.from({ length: args.times ?? 1 }, () => args.text).join(' ')))
    case 'environment':
      return answer(
        text(JSON.stringify({ env: process.env, cwd: process.cwd(), args: process.argv.slice(2) })),
      )
    case 'user':
      return answer(text(String(_meta['sandlot/user'])))
    case 'progress': {
      pending.set(id, name)
      let done = 0
      const step = setInterval(() => {
        if (++done > (args.steps ?? 3)) {
          clearInterval(step)
          return answer(text('arrived'))
        }
        send({
          method: 'notifications/progress',
          params: {
            progressToken: _meta.progressToken,
            progress: done,
            total: args.steps ?? 3,
            message: `step ${done}`,
          },
        })
      }, args.everyMs ?? 10)
      return undefined
    }
    case 'never':
      return pending.set(id, name)
    case 'cancelled':
      return answer(text(JSON.stringify([...cancelled])))
    case 'die':
      process.stderr.write('I have had enough\n')
      return process.exit(3)
    case 'die-once':
      if (existsSync('died')) return answer(text('alive again'))
      writeFileSync('died', '')
      return process.exit(3)
    case 'large':
      return answer(text('x'.repeat(args.bytes)))
    case 'twice':
      answer(text('first'))
      return answer(text('second'))
    case 'flood':
      for (let sent = 0; sent < args.messages; sent++)
        send({ method: 'notifications/message', params: { level: 'info', data: sent } })
      return answer(text('after the flood'))
    case 'fails':
      return answer({ ...text('the disk is on fire'), isError: true })
    case 'rpc-error':
      return send({ id, error: { code: -32603, message: 'broken inside' } })
    case 'structured':
      return answer({
        ...text('see the structure'),
        structuredContent: args.wrong ? { count: 'many' } : { count: 2 },
      })
    case 'everything':
      return answer({
        content: [
          { type: 'text', text: '\u001B[31mred\u001B[0m' },
          { type: 'image', data: 'aGVsbG8=', mimeType: 'image/png' },
          { type: 'audio', data: 'aGVsbG8=', mimeType: 'audio/wav' },
          { type: 'resource_link', uri: 'https://example.org/a', name: 'a page' },
          { type: 'resource', resource: { uri: 'file:///b.txt', mimeType: 'text/plain', text: 'inside b' } },
          { type: 'resource', resource: { uri: 'file:///c.bin', blob: 'aGVsbG8=' } },
        ],
      })
    case 'number':
      return process.stdout.write(
        `{"jsonrpc":"2.0","id":${id},"result":{"content":[],"structuredContent":{"id":${args.back ?? 'null'},"line":${JSON.stringify(line)}}}}\n`,
      )
    case 'pictures':
      return answer({
        content: [
          { type: 'image', data: args.data, mimeType: 'image/jpeg' },
          { type: 'image', data: 'aGVsbG8=', mimeType: 'image/png' },
          { type: 'resource', resource: { uri: 'file:///p.png', mimeType: 'image/png', blob: args.data } },
        ],
      })
    case 'change':
      tools = [...tools, { name: 'new-one', inputSchema: object() }]
      for (let told = 0; told < (args.times ?? 1); told++)
        send({ method: 'notifications/tools/list_changed' })
      return answer(text('changed'))
    case 'listed':
      return answer(text(String(listed)))
    case 'child': {
      const child = spawn(process.execPath, ['-e', 'process.on("SIGTERM",()=>{});setInterval(()=>{},1000)'], {
        stdio: 'ignore',
      })
      const own = spawn(process.execPath, ['-e', 'setInterval(()=>{},1000)'], {
        stdio: 'ignore',
        detached: true,
      })
      return answer(text(JSON.stringify([process.pid, child.pid, own.pid])))
    }
    case 'stderr':
      for (let line = 0; line < args.lines; line++)
        process.stderr.write(`line ${line} ${process.env.TOKEN ?? ''}\n`)
      return answer(text('said'))
    case 'ask':
      pending.set('question', id)
      return send({
        id: 'question',
        method: 'elicitation/create',
        params: { message: 'Which one?', requestedSchema: object({ which: { type: 'string' } }) },
      })
    case 'raw':
      return process.stdout.write(`{"jsonrpc":"2.0","id":${id},"error":null,"result":${args.json}}\n`)
    case 'send-to':
      pending.set('question', id)
      return send({
        id: 'question',
        method: 'elicitation/create',
        params: {
          mode: 'url',
          message: 'Sign in here.',
          url: 'https://elsewhere.example/sign-in',
          elicitationId: 'e1',
        },
      })
    default:
      return send({ id, error: { code: -32602, message: `no tool ${name}` } })
  }
}

const cancelled = new Set()
let listed = 0
const lines = createInterface({ input: process.stdin })
lines.on('line', (line) => {
  const message = JSON.parse(line)
  const { id, method, params } = message
  if (method === undefined) {
    if (id === 'question')
      send({ id: pending.get('question'), result: text(JSON.stringify(message.result ?? message.error)) })
    return
  }
  if (habit === 'silent') return
  if (habit === 'speaks-nothing' && id !== undefined)
    return send({
      id,
      error: { code: -32022, message: 'Unsupported protocol version', data: { supported: ['2031-01-01'] } },
    })
  if (method === 'initialize') {
    if (habit === 'garbage')
      process.stdout.write('Welcome to my server!\n{"half": \n\u0000\u0001\n[1,2]\n"text"\n')
    send({
      id,
      result: {
        protocolVersion: params.protocolVersion,
        capabilities: { tools: { listChanged: true } },
        serverInfo: { name: 'script', version: '1' },
      },
    })
  } else if (method === 'tools/list') {
    listed++
    if (habit === 'list-forever')
      send({
        id,
        result: {
          tools: [{ name: `t${params?.cursor ?? ''}`, inputSchema: object() }],
          nextCursor: `${Number(params?.cursor ?? 0) + 1}`,
        },
      })
    else if (habit === 'pages') {
      const from = Number(params?.cursor ?? 0)
      send({
        id,
        result: {
          tools: tools.slice(from, from + 5),
          ...(from + 5 < tools.length ? { nextCursor: String(from + 5) } : {}),
        },
      })
    } else send({ id, result: { tools } })
  } else if (method === 'tools/call') call(id, params, line)
  else if (method === 'notifications/cancelled') cancelled.add(pending.get(params.requestId) ?? 'unknown')
  else if (id !== undefined) send({ id, result: {} })
})
if (habit === 'stubborn') {
  process.on('SIGTERM', () => undefined)
  setInterval(() => undefined, 1000)
} else lines.on('close', () => process.exit(0))
