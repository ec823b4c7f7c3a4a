import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createHash } from 'node:crypto'
import { getEventListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { type SessionEvent, isLive, isOutcome, metaOf } from '@sandlot/shared/chat/events'
import { beforeEach, describe, expect, test } from 'vitest'
import { SandboxError } from '@sandlot/sandbox/errors'
import type { Sandbox } from '@sandlot/sandbox/sandbox'
import { createPolicies } from '../../../src/calls/policies/index.ts'
import { SHUTDOWN } from '../../../src/tools/tool-error.ts'
import { commandId } from '../../../src/tools/sandbox-command/command-id.ts'
import { TestBatch } from '../../calls/test-batch.ts'
import { openLocalSandboxes } from '../local-sandboxes.ts'
import { useSandboxes } from '../use-sandboxes.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const local = useSandboxes()
let batch: TestBatch
beforeEach(async () => {
  batch = new TestBatch({ sandboxes: () => local.sandboxes })
  await (await local.sandboxes.acquire('u_test')).reset()
})

const shell = (command: string, more = {}) => batch.call('run_shell_command', { command, ...more }, 'c1')
const output = (): string => batch.outputs.get('c1')?.toString() ?? ''
const liveText = (): string =>
  batch.events.flatMap((event) => (isLive(event) ? [metaOf(event).output?.data ?? ''] : [])).join('')
const started = (event: SessionEvent): boolean => metaOf(event).attempt !== undefined
const hasOutput = (event: SessionEvent): boolean => isLive(event) && metaOf(event).output !== undefined
const ownId = () =>
  commandId({ sessionId: 's_test', promptId: batch.promptId, turn: 1, callId: 'c1', attempt: 1 })
/** The state of our command in sbxd. */
const known = async () => {
  const commands = await (await local.sandboxes.acquire('u_test')).commands()
  return commands.filter(({ id }) => id === ownId())
}

describe('how a command ends', () => {
  test('output and success', async () => {
    expect(await shell('echo out; echo err >&2; echo end')).toMatchObject({
      status: 'completed',
      forModel: 'out\nerr\nend',
      exit: { code: 0 },
      outputInfo: { bytes: 12, lines: 3, truncated: false, url: '/api/sessions/s_test/outputs/c1' },
    })
    expect(output()).toBe('out\nerr\nend\n')
    expect(liveText()).toBe('out\nerr\nend\n')
    expect(batch.story()).toEqual(['announced c1', 'in_progress c1', 'completed c1'])
  })

  test('a command that fails is completed, with its exit code', async () => {
    const outcome = await shell('echo oops; exit 3')
    expect(outcome).toMatchObject({ status: 'completed', forModel: 'oops\n[exit code 3]', exit: { code: 3 } })
    expect(outcome.content).toEqual([{ type: 'content', content: { type: 'text', text: 'oops' } }])
  })

  test('a command that is killed by a signal is completed, with the signal', async () => {
    expect(await shell('kill -SEGV $$')).toMatchObject({ status: 'completed', exit: { signal: 'SIGSEGV' } })
  })

  test('nothing listens any more to the signal of a call that is over: else it would be kept for ever', async () => {
    const signals: AbortSignal[] = []
    batch = new TestBatch({
      sandboxes: () => local.sandboxes,
      policies: (settings) => [
        ...createPolicies(settings),
        (next) => (call, ctx) => {
          signals.push(ctx.signal)
          return next(call, ctx)
        },
      ],
    })
    await shell('echo out')
    expect(signals.map((signal) => getEventListeners(signal, 'abort'))).toEqual([[]])
  })

  test('a silent success says so', async () => {
    const outcome = await shell('true')
    expect(outcome.forModel).toBe('The command succeeded (exit code 0) and printed nothing.')
    expect(outcome).not.toHaveProperty('outputInfo')
  })

  test('what cannot be seen is not called nothing', async () => {
    const command = `head -c 300000 /dev/zero | tr '\\0' '\\r'`
    const outcome = await batch.call('run_shell_command', { command })
    expect(outcome.forModel).toBe(
      'The command succeeded (exit code 0) and printed 300,000 bytes, none of which can be seen.',
    )
  })

  test('colours are for the screen, plain text for the model', async () => {
    const outcome = await shell(String.raw`printf '\e[31mred\e[0m\n10%%\r100%%\n'`)
    expect(outcome.forModel).toBe('red\n100%')
    expect(outcome.content).toEqual([
      { type: 'content', content: { type: 'text', text: '\x1b[31mred\x1b[0m\n10%\r100%' } },
    ])
  })

  test('at its limit it is ended with everything it started, and keeps what it printed', async () => {
    const outcome = await shell('echo before; sleep 100 & sleep 100', { timeout_ms: 1000 })
    expect(outcome).toMatchObject({ status: 'failed', reason: 'timeout' })
    expect(outcome.forModel).toMatch(/^before\n\[The command did not end within its limit of 1000 ms/)
  })

  test('Stop ends it and everything it started, and keeps what it printed', async () => {
    const running = batch.run(
      [{ id: 'c1', name: 'run_shell_command', args: { command: 'sleep 100 & echo $$ $!; wait' } }],
      (event) => {
        if (hasOutput(event)) batch.stop.abort('cancelled')
      },
    )
    const [outcome] = await running
    const pids = output().trim()
    expect(outcome).toMatchObject({ status: 'failed', reason: 'cancelled' })
    const [printed, receipt] = outcome?.forModel.split('\n') ?? []
    expect(printed).toBe(pids)
    expect(receipt).toMatch(
      /^\[The user cancelled the command; it and everything it had started was ended, 2 processes in \d+(\.\d)? m?s\.]$/,
    )
    const left = await new TestBatch({ sandboxes: () => local.sandboxes }).call('run_shell_command', {
      command: `ps -o args= -p ${pids.replace(' ', ',')}`,
    })
    expect(left.forModel).not.toContain('sleep')
  })

  test('a command that ignores TERM is killed all the same', async () => {
    const [outcome] = await batch.run(
      [
        {
          id: 'c1',
          name: 'run_shell_command',
          args: { command: `trap '' TERM; echo on; while :; do sleep 0.05; done` },
        },
      ],
      (event) => {
        if (hasOutput(event)) batch.cancelOf('c1').abort('cancelled')
      },
    )
    expect(outcome).toMatchObject({
      status: 'failed',
      reason: 'cancelled',
      forModel: expect.stringMatching(/^on\n/),
    })
  })

  test('what cannot start is a typed refusal', async () => {
    expect(await shell('pwd', { cwd: 'nowhere' })).toMatchObject({ status: 'failed' })
    expect(await shell(`: ${'x'.repeat(200_000)}`)).toMatchObject({
      status: 'failed',
      reason: 'invalid_arguments',
    })
    expect(await shell('pwd', { cwd: '../..' })).toMatchObject({
      status: 'failed',
      reason: 'path_outside',
    })
    expect(await shell('echo \ud800')).toMatchObject({ status: 'failed', reason: 'invalid_arguments' })
  })

  test('goes on where the last command of the chat stopped, and says when that is gone', async () => {
    expect((await shell('mkdir -p deep/er; cd deep/er; export WHO=me')).status).toBe('completed')
    const sub = await batch.call('run_shell_command', { command: 'pwd; echo $WHO' }, 'c2')
    expect(sub.forModel).toMatch(/\/deep\/er\nme$/)
    const root = await batch.call(
      'run_shell_command',
      { command: 'pwd; rm -r deep', cwd: '/workspace' },
      'c3',
    )
    expect(root.forModel).not.toContain('deep')
    await batch.call('run_shell_command', { command: 'mkdir gone; cd gone; rmdir ../gone' }, 'c4')
    const lost = await batch.call('run_shell_command', { command: 'true' }, 'c5')
    expect(lost.forModel).toContain('[The directory where the last command stopped is gone')
  })

  test('nothing of a command is read by the controller', async () => {
    const text = `'"$(echo pwned) \`id\` \\n %s $HOME é`
    const quoted = `'${text.replaceAll("'", `'\\''`)}'`
    expect((await shell(`printf '%s' ${quoted}`)).forModel).toBe(text)
  })
})

describe('long output', () => {
  test('is cut for the model, whole in the store, and in the file that the notice names', async () => {
    const outcome = await shell('seq 1 20000')
    const sandbox = await local.sandboxes.acquire('u_test')
    const id = ownId()
    const file = `${sandbox.workspace}/.tool-outputs/${id}.txt`
    expect(outcome.outputInfo).toMatchObject({ bytes: 108_894, lines: 20_000, truncated: true, file })
    expect(outcome.forModel.length).toBeLessThanOrEqual(10_000)
    expect(outcome.forModel).toMatch(/^1\n2\n[^]*\n20000$/)
    expect(outcome.forModel).toContain(file)
    expect(createHash('sha256').update(output()).digest('hex')).toBe(
      createHash('sha256')
        .update(Array.from({ length: 20_000 }, (_, index) => `${index + 1}\n`).join(''))
        .digest('hex'),
    )
    const page = await batch.call('read_file', { path: file, offset: 15_000, limit: 2 }, 'c2')
    expect(page.forModel).toMatch(/^15000\t15000\n15001\t15001\n/)
  })

  test('beyond the limit it is counted, not stored, and the command runs to its end', async () => {
    batch = new TestBatch({ sandboxes: () => local.sandboxes, settings: { outputLimitBytes: 100_000 } })
    const outcome = await shell('head -c 3000000 /dev/zero | tr "\\0" x; exit 4')
    expect(outcome).toMatchObject({
      status: 'completed',
      exit: { code: 4 },
      outputInfo: { bytes: 3_000_000, truncated: true },
    })
    expect(output().length).toBe(100_000)
  })

  test('needs no memory for what passes through', async () => {
    batch = new TestBatch({ sandboxes: () => local.sandboxes, settings: { outputLimitBytes: 1000 } })
    collectGarbage()
    const before = process.memoryUsage().arrayBuffers
    const grown = (): number => process.memoryUsage().arrayBuffers - before
    let most = 0
    const call = {
      id: 'c1',
      name: 'run_shell_command',
      args: { command: 'head -c 100663296 /dev/zero | tr "\\0" x' },
    }
    const [outcome] = await batch.run([call], () => {
      // What is garbage may lie about for long in a process with a large heap.
      if (grown() > 25_000_000) collectGarbage()
      most = Math.max(most, grown())
    })
    expect(outcome).toMatchObject({ status: 'completed', outputInfo: { bytes: 100_663_296 } })
    expect(most).toBeLessThan(50_000_000)
  }, 120_000)

  test('invalid bytes and characters across borders are stored as they are', async () => {
    const outcome = await shell(String.raw`for i in $(seq 1 3000); do printf '€\377'; done`)
    expect(batch.outputs.get('c1')).toEqual(
      Buffer.concat(Array.from({ length: 3000 }, () => Buffer.from([0xe2, 0x82, 0xac, 0xff]))),
    )
    expect(outcome.forModel.startsWith('€\uFFFD€\uFFFD')).toBe(true)
  })
})

describe('a restart of the controller', () => {
  const ticking = {
    id: 'c1',
    name: 'run_shell_command',
    args: { command: 'for i in 1 2 3 4 5 6; do echo tick $i; sleep 0.2; done' },
  }
  const ticks = 'tick 1\ntick 2\ntick 3\ntick 4\ntick 5\ntick 6'

  test('takes a running command up again: once run, no byte lost or doubled', async () => {
    await batch.run([ticking], (event) => !hasOutput(event))
    expect(batch.settled()).toEqual([])
    await local.restartController()
    const [outcome] = await batch.run([ticking])
    expect(outcome).toMatchObject({ status: 'completed', forModel: ticks })
    expect(output()).toBe(`${ticks}\n`)
    expect(batch.story()).toEqual(['announced c1', 'in_progress c1', 'completed c1'])
  })

  test('finds the end of a command that ended meanwhile', async () => {
    await batch.run([ticking], (event) => !hasOutput(event))
    await local.restartController()
    await sleep(1500)
    const [outcome] = await batch.run([ticking])
    expect(outcome).toMatchObject({ status: 'completed', forModel: ticks, exit: { code: 0 } })
  })

  test('starts a command that was announced and never sent, under the same attempt', async () => {
    await batch.run([ticking], (event) => !started(event))
    expect(output()).toBe('')
    await local.restartController()
    const [outcome] = await batch.run([ticking])
    expect(outcome).toMatchObject({ status: 'completed', forModel: ticks })
    expect(batch.log.filter(started)).toHaveLength(1)
  })

  test('a shutdown ends nothing and logs nothing', async () => {
    const running = batch.run([ticking], (event) => {
      if (hasOutput(event)) batch.stop.abort(SHUTDOWN)
    })
    await expect(running).rejects.toBe(SHUTDOWN)
    expect(batch.settled()).toEqual([])
    expect(await known()).toMatchObject([{ state: 'running' }])
  })

  test('how it ended is kept until its outcome is stored, and not longer', async () => {
    await batch.run([{ ...ticking, args: { command: 'echo once >> ran; echo done' } }], async (event) => {
      if (metaOf(event).timing === undefined) return true
      expect(await known()).toMatchObject([{ state: 'ended' }])
      // The outcome is lost: the process dies before it is stored.
      batch.log.pop()
      return false
    })
    await local.restartController()
    const [outcome] = await batch.run([{ ...ticking, args: { command: 'echo once >> ran; echo done' } }])
    expect(outcome).toMatchObject({ status: 'completed', forModel: 'done' })
    await expect.poll(known).toEqual([])
    expect((await batch.call('run_shell_command', { command: 'cat ran; rm ran' }, 'c2')).forModel).toBe(
      'once',
    )
  })

  const loses = 'echo once >> ran; echo line 1; echo line 2; exit 3'
  const losesCall = { id: 'c1', name: 'run_shell_command', args: { command: loses } }

  test.each([
    { lost: 'its start and all after it', from: started, outputTo: 0 },
    { lost: 'its end', from: isOutcome, outputTo: 14 },
    { lost: 'its end and a part of its output', from: isOutcome, outputTo: 7 },
  ])('a command of which the store has lost $lost does not run again', async ({ from, outputTo }) => {
    await batch.run([losesCall])
    await expect.poll(known).toEqual([])
    batch.log.splice(batch.log.findIndex(from))
    batch.outputs.set('c1', Buffer.from(output().slice(0, outputTo)))
    await local.restartController()
    const [outcome] = await batch.run([losesCall])
    expect(outcome).toMatchObject({ status: 'completed', exit: { code: 3 } })
    if (outputTo === 14) expect(outcome?.forModel).toBe('line 1\nline 2\n[exit code 3]')
    else expect(outcome?.forModel).toMatch(/output .*is gone.* whole was 14 bytes.*\n\[exit code 3\]$/)
    expect((await batch.call('run_shell_command', { command: 'cat ran; rm ran' }, 'c2')).forModel).toBe(
      'once',
    )
  })

  test('the lost output of a command is named where the sandbox has a file of it', async () => {
    const call = { ...losesCall, args: { command: 'seq 1 5000' } }
    await batch.run([call])
    await expect.poll(known).toEqual([])
    batch.log.splice(batch.log.findIndex(started))
    batch.outputs.clear()
    const [outcome] = await batch.run([call])
    expect(outcome?.forModel).toContain(`.tool-outputs/${ownId()}.txt`)
  })

  test('a command that only reads can be made again where its output is lost', async () => {
    const call = { id: 'c1', name: 'glob', args: { pattern: '*' } }
    await batch.call('run_shell_command', { command: 'touch found' }, 'c0')
    await batch.run([call])
    await expect.poll(known).toEqual([])
    batch.log.splice(batch.log.findLastIndex(started))
    const [outcome] = await batch.run([call])
    expect(outcome).toMatchObject({ status: 'failed', reason: 'interrupted' })
  })

  test('a stream that is lost in the middle is taken up again', async () => {
    const [outcome] = await batch.run([ticking], async (event) => {
      if (hasOutput(event) && metaOf(event).output?.offset === 0) await local.restartController()
    })
    expect(outcome).toMatchObject({ status: 'completed', forModel: ticks })
    expect(output()).toBe(`${ticks}\n`)
  })

  test('bytes of another controller inside of its START cost the stream, and the command runs once', async () => {
    const marker = 'broken-once'
    const broken: number[] = []
    const own = await openLocalSandboxes({}, (piece) => {
      const at = piece.indexOf(marker)
      if (at === -1 || broken.push(at) > 1) return piece
      return Buffer.concat([piece.subarray(0, at), Buffer.from('late'), piece.subarray(at)])
    })
    try {
      batch = new TestBatch({ sandboxes: () => own.sandboxes })
      expect(await shell(`echo ${marker} | tee -a ran`)).toMatchObject({
        status: 'completed',
        forModel: marker,
      })
      expect(broken).toHaveLength(2)
      expect((await batch.call('run_shell_command', { command: 'cat ran' }, 'c2')).forModel).toBe(marker)
    } finally {
      await own.dispose()
    }
  })

  test('a stream that is lost at the start: Stop while another is opened, and the command never runs', async () => {
    const runs: string[] = []
    const acquire = async (userId: string): Promise<Sandbox> => {
      const real = await local.sandboxes.acquire(userId)
      const isFirst = runs.length === 0
      if (!isFirst) batch.stop.abort('cancelled')
      return {
        id: real.id,
        bootId: real.bootId,
        workspace: real.workspace,
        files: real.files,
        ports: real.ports,
        run: (request) => {
          runs.push(request.id)
          return isFirst
            ? Promise.reject(new SandboxError('sandbox_lost', 'The stream broke.'))
            : real.run(request)
        },
        attach: (...args) => real.attach(...args),
        commands: () => real.commands(),
        reset: () => real.reset(),
        stat: () => real.stat(),
        disk: undefined,
      }
    }
    batch = new TestBatch({ sandboxes: () => ({ ...local.sandboxes, acquire }) })
    expect(await shell('sleep 100')).toMatchObject({ status: 'failed', reason: 'cancelled' })
    expect(runs).toEqual([ownId()])
  })
})

describe('a restart of the sandbox', () => {
  const writing = { id: 'c1', name: 'run_shell_command', args: { command: 'echo x >> effect; sleep 100' } }

  test('a command of another boot never runs again', async () => {
    await batch.run([writing], (event) => !started(event))
    await local.restartSandbox('u_test')
    const [outcome] = await batch.run([writing])
    expect(outcome).toMatchObject({ status: 'failed', reason: 'unknown_effect' })
    expect((await batch.call('run_shell_command', { command: 'cat effect' }, 'c2')).forModel).toContain(
      'No such file',
    )
  })

  test('a command whose sandbox is stopped was ended from outside', async () => {
    const [outcome] = await batch.run(
      [{ ...writing, args: { command: 'echo on; sleep 100' } }],
      async (event) => {
        if (hasOutput(event)) await local.restartSandbox('u_test')
      },
    )
    expect(outcome).toMatchObject({
      status: 'failed',
      forModel: expect.stringMatching(/^on\n\[The command was ended from outside/),
    })
  })

  test('a command whose sandbox goes away is over', async () => {
    const supervisor = '$(ps -o ppid= -p $PPID)'
    const outcome = await shell(`echo on; sleep 0.2; kill -KILL ${supervisor}; sleep 100`)
    expect(outcome).toMatchObject({
      status: 'failed',
      reason: 'sandbox_lost',
      forModel: expect.stringMatching(/^on\n\[The sandbox went away/),
    })
    expect((await batch.call('run_shell_command', { command: 'echo again' }, 'c2')).forModel).toBe('again')
  })

  test('a command whose sandbox goes away ends for the reason that the engine knows', async () => {
    const endedBefore = new SandboxError('out_of_memory', 'The kernel ended all of it.')
    const acquire = async (userId: string): Promise<Sandbox> =>
      Object.assign(await local.sandboxes.acquire(userId), { endedBefore })
    batch = new TestBatch({ sandboxes: () => ({ ...local.sandboxes, acquire }) })
    expect(await shell('echo on; sleep 0.2; kill -KILL $(ps -o ppid= -p $PPID); sleep 100')).toMatchObject({
      status: 'failed',
      reason: 'out_of_memory',
      forModel: expect.stringMatching(/^on\n\[The kernel ended all of it/),
    })
  })
})

test('command ids differ in every part', () => {
  const parts = { sessionId: 's', promptId: 'p', turn: 1, callId: 'c', attempt: 1 }
  const ids = [
    parts,
    { ...parts, sessionId: 's2' },
    { ...parts, promptId: 'p2' },
    { ...parts, turn: 2 },
    { ...parts, callId: 'c2' },
    { ...parts, attempt: 2 },
  ].map(commandId)
  expect(new Set(ids).size).toBe(ids.length)
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{32}$/)
  expect(commandId(parts)).toBe(ids[0])
})
