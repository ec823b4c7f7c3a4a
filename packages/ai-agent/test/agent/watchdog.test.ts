import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { methods } from '@agentclientprotocol/sdk'
import { describe, expect, test } from 'vitest'
import { oneRunOfThree } from '../../../../test/campaign.ts'
import { nodeEnvironment } from '../../../../test/config.ts'
import { countsResume, takeLastEnd } from '../../src/agent/last-end.ts'
import { writeLastEnd } from '../../src/agent/last-end-file.ts'
import { AgentBench, happened, newSession, whenIdle } from '../support/agent-fixture.ts'
import { AgentFolder, type SocketClient, connectTo } from '../support/agent-process.ts'
import { startFakeProvider, textAnswer } from '../support/fake-provider.ts'

const here = (name: string): string => join(import.meta.dirname, name)

async function sessionOf(one: SocketClient): Promise<string> {
  const { sessionId } = await one.request(methods.agent.session.new, { cwd: '/workspace', mcpServers: [] })
  return String(sessionId)
}

function prompt(one: SocketClient, sessionId: string, words: string): Promise<unknown> {
  return one.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: 'text', text: words }] })
}

test('X-A2 an agent whose thread is blocked ends; only the prompt that blocked it is not resumed', async ({
  skip,
}) => {
  oneRunOfThree('X-A2', skip)
  const hang = { steps: [], after: 'hang' } as const
  const provider = await startFakeProvider([hang, textAnswer('One.')])
  await using folder = new AgentFolder()
  const env = { OPENAI_BASE_URL: provider.baseUrl, OPENAI_API_KEY: 'sk-test', OPENAI_MODEL: 'fake' }
  const preload = `--import=${pathToFileURL(here('block-in-request.ts')).href}`
  const first = await folder.listening({ ...env, NODE_OPTIONS: preload })
  using one = await connectTo(folder)
  const [innocent, guilty] = [await sessionOf(one), await sessionOf(one)]
  const lost = [prompt(one, innocent, 'go').catch(() => 'lost')]
  await expect.poll(() => provider.requests.length, { timeout: 10_000 }).toBe(1)
  lost.push(prompt(one, guilty, 'BLOCK').catch(() => 'lost'))
  await first.ended
  expect(first.child.signalCode).toBe('SIGKILL')
  expect(await Promise.all(lost)).toEqual(['lost', 'lost'])
  expect(first.stderr).toContain('The agent was blocked for 30 s')
  expect(first.stderr).toContain('block-in-request.ts')

  await folder.listening(env)
  using two = await connectTo(folder)
  for (const sessionId of [innocent, guilty])
    await two.request(methods.agent.session.load, { sessionId, cwd: '/workspace', mcpServers: [] })
  await expect.poll(() => happened(two.events, 'prompt_ended').length, { timeout: 20_000 }).toBe(2)
  expect(
    happened(two.events, 'prompt_ended').toSorted((a, b) => (a.reason < b.reason ? -1 : 1)),
  ).toMatchObject([
    { reason: 'completed' },
    { reason: 'error', cause: 'given_up', text: expect.stringContaining('blocked Sandlot for everybody') },
  ])
  expect(happened(two.events, 'prompt_resumed')).toEqual([])
  expect(provider.requests).toHaveLength(2)
  await provider.close()
}, 120_000)

test('a thread that waits in a stalled read goes on, and is ended when it is busy for as long', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sandlot-watchdog-'))
  mkdirSync(join(folder, 'run'))
  const pipe = join(folder, 'pipe')
  execFileSync('mkfifo', [pipe])
  const limitMs = 1_000
  const args = ['--conditions=sandlot-source', here('child.ts'), folder, pipe, String(limitMs)]
  const child = spawn(process.execPath, args, { env: nodeEnvironment(), stdio: 'pipe' })
  let stdout = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text))
  const ended = once(child, 'close')
  await expect.poll(() => stdout, { timeout: 20_000 }).toBe('reading\n')
  // Time that the watchdog must let pass: there is no event for what it does not do.
  await sleep(3 * limitMs)
  expect(child.signalCode).toBeNull()
  writeFileSync(pipe, 'x')
  expect(await ended).toEqual([null, 'SIGKILL'])
  expect(stdout).toBe('reading\nread\n')
  expect(takeLastEnd(folder)).toEqual({ how: 'blocked', step: { sessionId: 's', promptId: 'p' } })
  rmSync(folder, { recursive: true })
})

describe('the last end', () => {
  test('is told once; a file that says nothing blames every prompt', () => {
    const folder = mkdtempSync(join(tmpdir(), 'sandlot-last-end-'))
    mkdirSync(join(folder, 'run'))
    expect(takeLastEnd(folder)).toBeUndefined()
    writeLastEnd(folder, { how: 'left' })
    expect(readFileSync(join(folder, 'run', 'last-end.json'), 'utf8')).toBe('{"how":"left"}')
    expect(takeLastEnd(folder)).toEqual({ how: 'left' })
    expect(takeLastEnd(folder)).toBeUndefined()
    for (const cut of ['', '{"how"', '{"how":"otherwise"}']) {
      writeFileSync(join(folder, 'run', 'last-end.json'), cut)
      expect(takeLastEnd(folder)).toBeUndefined()
    }
    expect(countsResume(undefined, 'p')).toBe(true)
    expect(countsResume({ how: 'left' }, 'p')).toBe(false)
    expect(countsResume({ how: 'blocked' }, 'p')).toBe(false)
    const step = { sessionId: 's', promptId: 'p' }
    expect(countsResume({ how: 'blocked', step }, 'p')).toBe(true)
    expect(countsResume({ how: 'blocked', step }, 'another')).toBe(false)
    rmSync(folder, { recursive: true })
  })

  test('a prompt that blocked the process before is not run again, and says so', async () => {
    const hang = { steps: [], after: 'hang' } as const
    await using bench = await AgentBench.start([hang])
    const first = await bench.core()
    const { id } = await newSession(first)
    await (await first.manager.get('u_ada', id)).prompt('go')
    await expect.poll(() => bench.provider.requests.length).toBe(1)
    await first.leave()
    const core = await bench.core({ parts: { blockedAgent: () => true } })
    const session = await core.manager.get('u_ada', id)
    await whenIdle(session)
    expect(happened(session.log, 'prompt_ended')).toMatchObject([
      { reason: 'error', cause: 'given_up', text: expect.stringContaining('nothing is run again') },
    ])
    expect(bench.provider.requests).toHaveLength(1)
  })

  test('a prompt that is not to blame is resumed as often as it takes', async () => {
    const hang = { steps: [], after: 'hang' } as const
    await using bench = await AgentBench.start([hang, hang, hang, hang, hang, textAnswer('ok')])
    const parts = { resumeCounts: () => false }
    const { id } = await newSession(await bench.core({ parts }))
    for (let start = 0; start < 5; start++) {
      const core = await bench.core({ parts })
      const session = await core.manager.get('u_ada', id)
      if (start === 0) await session.prompt('go')
      await expect.poll(() => bench.provider.requests.length).toBe(start + 1)
      await core.leave()
    }
    const last = await (await bench.core({ parts })).manager.get('u_ada', id)
    await whenIdle(last)
    expect(happened(last.log, 'prompt_ended')).toMatchObject([{ reason: 'completed' }])
    expect(happened(last.log, 'prompt_resumed')).toEqual([])
  })
})
