/** The agent as a process with real containers. */
import { join } from 'node:path'
import { methods } from '@agentclientprotocol/sdk'
import { isLive, isOutcome, metaOf } from '@sandlot/shared/chat/events'
import { EXT } from '@sandlot/shared/acp/meta'
import { createDockerBackend } from '@sandlot/sandbox/backends/docker/backend'
import { expect, onTestFinished, test } from 'vitest'
import { type GateProcess, killGate, startGateProcess } from '../../engine-gate/test/gate-process.ts'
import { happened, outcomes } from './support/agent-fixture.ts'
import { AgentFolder, connectTo } from './support/agent-process.ts'
import { startFakeProvider, textAnswer, toolCalls } from './support/fake-provider.ts'
import { deploymentKeys } from '@sandlot/shared/node/deployment-keys'

const YOLO = { _meta: { sandlot: { user: { id: 'u_ada' }, mode: 'yolo' } } }

/** When disposed, before the folder with the keys is: the containers and volumes of its deployment. */
function sandboxesOf(folder: AgentFolder): AsyncDisposable {
  return {
    async [Symbol.asyncDispose]() {
      await folder.killAll()
      const backend = createDockerBackend({ deployment: deploymentKeys(join(folder.path, 'keys')).id })
      for (const one of await backend.list({})) {
        await backend.remove(one.id)
        await backend.inventory.volumes.remove(one.name.split('-').slice(0, 3).join('-'))
      }
      await backend.inventory.close()
    },
  }
}

test('killed in the middle of a command: it runs once, goes on without us, and none of its output is lost', async () => {
  const command = 'echo begun >> runs.txt; for i in $(seq 1 40); do echo line $i; sleep 0.25; done'
  const provider = await startFakeProvider([
    toolCalls([{ id: 'c', name: 'run_shell_command', args: { command } }]),
    textAnswer('Done.'),
    toolCalls([{ id: 'd', name: 'run_shell_command', args: { command: 'cat runs.txt' } }]),
    textAnswer('Once.'),
  ])
  onTestFinished(() => provider.close())
  await using folder = new AgentFolder()
  await using _sandboxes = sandboxesOf(folder)
  const env = { OPENAI_BASE_URL: provider.baseUrl, OPENAI_MODEL: 'fake', DOCKER_HOST: '' }
  const first = await folder.listening(env)
  const one = await connectTo(folder)
  const made = await one.request(methods.agent.session.new, { cwd: '/workspace', mcpServers: [], ...YOLO })
  const sessionId = String(made['sessionId'])
  const ask = (words: string) => ({ sessionId, prompt: [{ type: 'text', text: words }] })
  const lost = one.request(methods.agent.session.prompt, ask('go')).catch(() => 'lost')
  await expect.poll(() => JSON.stringify(one.events), { timeout: 60_000 }).toContain('line 5')
  first.child.kill('SIGKILL')
  expect(await lost).toBe('lost')
  await first.ended

  await folder.listening(env)
  using two = await connectTo(folder)
  await two.request(methods.agent.session.load, { sessionId, cwd: '/workspace', mcpServers: [] })
  await expect.poll(() => happened(two.events, 'prompt_ended').length, { timeout: 60_000 }).toBe(1)
  const log = two.events.filter((event) => !isLive(event))
  expect(outcomes(log)).toEqual({ c: ['completed'] })
  const outcome = log.find(isOutcome)
  const lines = Array.from({ length: 40 }, (_, index) => `line ${index + 1}\n`).join('')
  expect(outcome?.rawOutput?.forModel).toContain(lines.trim())
  expect(outcome !== undefined && metaOf(outcome)).toMatchObject({
    exit: { code: 0 },
    outputInfo: { bytes: lines.length },
  })

  await two.request(methods.agent.session.prompt, ask('how often did it run?'))
  expect(two.events.findLast(isOutcome)?.rawOutput?.forModel).toMatch(/^begun\s*/)
  expect(two.events.findLast(isOutcome)?.rawOutput?.forModel.match(/begun/g)).toHaveLength(1)
})

test('engine-gate killed in the middle of a command: it runs on, and a new one waits for the gate', async () => {
  const command = 'for i in $(seq 1 40); do echo line $i; sleep 0.1; done'
  const provider = await startFakeProvider([
    toolCalls([{ id: 'c', name: 'run_shell_command', args: { command } }]),
    toolCalls([{ id: 'd', name: 'run_shell_command', args: { command: 'echo new' } }]),
    textAnswer('Done.'),
    textAnswer('Done.'),
  ])
  onTestFinished(() => provider.close())
  await using folder = new AgentFolder()
  await using _sandboxes = sandboxesOf(folder)
  const socket = join(folder.path, 'run', 'engine', 'docker.sock')
  const startGate = (): Promise<GateProcess> => startGateProcess(socket, { SANDLOT_DATA: folder.path })
  const gate = await startGate()
  onTestFinished(() => killGate(gate, 'SIGKILL'))
  await folder.listening({
    OPENAI_BASE_URL: provider.baseUrl,
    OPENAI_MODEL: 'fake',
    DOCKER_HOST: `unix://${socket}`,
    SANDLOT_DEPLOYMENT_FILE: join(folder.path, 'run', 'engine', 'deployment'),
  })
  using client = await connectTo(folder)
  const ask = async (): Promise<unknown> => {
    const made = await client.request(methods.agent.session.new, {
      cwd: '/workspace',
      mcpServers: [],
      ...YOLO,
    })
    const prompt = [{ type: 'text', text: 'go' }]
    return client.request(methods.agent.session.prompt, { sessionId: String(made['sessionId']), prompt })
  }
  const heard = (): string => JSON.stringify(client.events)
  const first = ask()
  await expect.poll(heard, { timeout: 60_000 }).toContain('line 5')
  await killGate(gate, 'SIGKILL')
  const second = ask()
  await expect.poll(heard, { timeout: 60_000 }).toContain('Starting the sandbox')
  const again = await startGate()
  onTestFinished(() => killGate(again, 'SIGKILL'))
  await Promise.all([first, second])
  const log = client.events.filter((event) => !isLive(event))
  expect(outcomes(log)).toEqual({ c: ['completed'], d: ['completed'] })
  const lines = Array.from({ length: 40 }, (_, index) => `line ${index + 1}\n`).join('')
  const said = log.filter(isOutcome).map((outcome) => String(outcome.rawOutput?.forModel))
  expect(new Set(said)).toEqual(new Set([lines.trim(), 'new']))
})

test('instructions of a project’s folder: a paused sandbox is woken for them, a stopped one is not started', async () => {
  const command =
    'mkdir -p docs/web; echo Root. > docs/rules.md; ln -s docs/rules.md AGENTS.md; echo Near. > docs/web/CLAUDE.md'
  const provider = await startFakeProvider([
    toolCalls([{ id: 'c', name: 'run_shell_command', args: { command: `cd /workspace; ${command}` } }]),
    ...['Made.', 'Read.', 'Read.'].map((words) => textAnswer(words)),
  ])
  onTestFinished(() => provider.close())
  await using folder = new AgentFolder()
  await using _sandboxes = sandboxesOf(folder)
  await folder.listening({
    OPENAI_BASE_URL: provider.baseUrl,
    OPENAI_MODEL: 'fake',
    DOCKER_HOST: '',
    SANDLOT_SANDBOX_PAUSE_AFTER_MS: '500',
  })
  using client = await connectTo(folder)
  const user = { id: 'u_ada', role: 'member' }
  const project = { id: 'p', name: 'P', folder: 'docs/web', instructions: '', mode: null, model: null }
  await client.request(EXT.projects, { user, ask: { do: 'put', project } })
  const made = await client.request(methods.agent.session.new, {
    cwd: '/workspace',
    mcpServers: [],
    _meta: { sandlot: { user, mode: 'yolo', project: 'p' } },
  })
  const ask = () =>
    client.request(methods.agent.session.prompt, {
      sessionId: String(made['sessionId']),
      prompt: [{ type: 'text', text: 'go' }],
    })
  const state = async () => (await client.request(EXT.sandbox, { user, ask: { do: 'view' } }))['state']
  const read = () => happened(client.events, 'instructions').at(-1)
  await ask()
  await expect.poll(state, { timeout: 60_000 }).toBe('resting')
  await ask()
  const files = [
    { path: 'AGENTS.md', bytes: 6 },
    { path: 'docs/web/CLAUDE.md', bytes: 6 },
  ]
  expect(read()).toMatchObject({ text: expect.stringMatching(/Root\.\n\nFrom [^]*Near\.$/), files })

  await client.request(EXT.sandbox, { user, ask: { do: 'stop' } })
  await ask()
  expect(read()).toMatchObject({
    text: expect.stringMatching(/ \(as read at [^)]*Z\):\n\nNear\.$/),
    files: files.map((file) => ({ ...file, readAt: expect.any(Number) })),
  })
  expect(await state()).toBe('stopped')
})
