/**
 * I09 over a whole deployment: engine, gate and agent, each with what it must keep to itself, and a store with what people
 * have entrusted to it. A command looks everywhere in its sandbox; then what the processes have logged is looked through.
 */
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer } from 'node:tls'

import { expect, onTestFinished, test } from 'vitest'

import { outcomes } from '../../packages/ai-agent/test/support/agent-fixture.ts'
import { AgentFolder, connectTo } from '../../packages/ai-agent/test/support/agent-process.ts'
import {
  startFakeProvider,
  textAnswer,
  toolCalls,
} from '../../packages/ai-agent/test/support/fake-provider.ts'
import { deploymentKeys } from '../../packages/shared/src/node/deployment-keys.ts'
import { sealingKeys, writeSealingKeys } from '../../packages/ai-agent/src/people/sealing-keys.ts'
import { killGate, startGateProcess } from '../../packages/engine-gate/test/gate-process.ts'
import { parseDockerHost } from '../../packages/sandbox/src/backends/docker/connection.ts'
import { testConfig } from '../../packages/sandbox/test/support/config.ts'
import { dockerFixture } from '../../packages/sandbox/test/support/docker-fixture.ts'
import { openSessionStore } from '../../packages/storage/src/store/open.ts'
import { campaign } from '../campaign.ts'
import { SEARCH } from './secrets.ts'

const canary = (what: string): string => `canary-${what}-${crypto.randomUUID()}`
const of = (id: string, email: string) => ({ _meta: { sandlot: { user: { id, email }, mode: 'yolo' } } })

/** One key pair that is authority, server and client; the engine behind it. Answers how the gate reaches it. */
async function engineBehindTls(folder: string): Promise<string> {
  const engine = parseDockerHost(testConfig.dockerHost)
  if (engine.kind !== 'unix') throw new Error('the engine of the tests has no Unix socket')
  const names = ['-subj', '/CN=engine', '-addext', 'subjectAltName=IP:127.0.0.1', '-days', '2', '-nodes']
  const made = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', ...names]
  execFileSync('openssl', [...made, '-keyout', 'key.pem', '-out', 'cert.pem'], { cwd: folder, stdio: 'pipe' })
  execFileSync('cp', ['cert.pem', 'ca.pem'], { cwd: folder })
  const pem = (name: string): Buffer => readFileSync(join(folder, name))
  const own = { ca: pem('ca.pem'), cert: pem('cert.pem'), key: pem('key.pem') }
  const server = createServer({ ...own, requestCert: true, ALPNProtocols: ['http/1.1'] }, (client) => {
    const inner = connect({ path: engine.socketPath, allowHalfOpen: true })
    for (const one of [client, inner])
      one.on('error', () => one.destroy()).on('close', () => (client.destroy(), inner.destroy()))
    client.pipe(inner)
    inner.pipe(client)
  })
  server.on('tlsClientError', () => {})
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('I09 nothing that the agent, the gate and the store keep to themselves is in a sandbox or in a log', async () => {
  const fixture = await dockerFixture()
  onTestFinished(() => fixture.dispose())
  const gateFolder = mkdtempSync(join(tmpdir(), 'sandlot-gate-'))
  onTestFinished(() => rmSync(gateFolder, { recursive: true, force: true }))
  await using folder = new AgentFolder()
  onTestFinished(() => folder.killAll())

  const said = {
    modelKey: `sk-${canary('model')}`,
    gateEnvironment: canary('gate'),
    agentEnvironment: canary('agent'),
    secret: canary('secret'),
    message: canary('message'),
    address: `${canary('address')}@example.org`,
    own: canary('own'),
  }
  const engine = await engineBehindTls(gateFolder)
  const socket = join(gateFolder, 'run', 'engine', 'docker.sock')
  const gate = await startGateProcess(socket, {
    SANDLOT_DATA: gateFolder,
    SANDLOT_DEPLOYMENT: fixture.deployment,
    SANDLOT_SANDBOX_IMAGE: testConfig.image,
    DOCKER_HOST: engine,
    DOCKER_CERT_PATH: gateFolder,
    DOCKER_TLS_VERIFY: '1',
    GATE_CANARY: said.gateEnvironment,
  })
  onTestFinished(() => killGate(gate, 'SIGKILL'))
  const gateKey = readFileSync(join(gateFolder, 'key.pem'), 'utf8').split('\n')[1] ?? ''

  const deploymentKey = deploymentKeys(join(folder.path, 'keys'), fixture.deployment).key
  writeSealingKeys(join(folder.path, 'keys'), [crypto.getRandomValues(new Uint8Array(32)), deploymentKey])
  const [sealingKey] = sealingKeys(join(folder.path, 'keys'), deploymentKey)
  const keys = [deploymentKey, sealingKey].map((key) => Buffer.from(key))
  const kept = [gateKey, ...Object.values(said).filter((text) => text !== said.own)]
  const needles = [...keys, ...keys.flatMap((key) => [key.toString('hex'), key.toString('base64')]), ...kept]
  const hex = [...needles, said.own].map((needle) => Buffer.from(needle).toString('hex')).join(',')
  const tops = campaign.full ? '/' : '/etc /workspace /tmp /run /dev/shm /proc /var'
  // Looks for one of the user's own too: a search that finds nothing at all proves nothing.
  const command = `python3 -c "$(cat search.py)" ${hex} ${tops}`
  const provider = await startFakeProvider([
    textAnswer('I keep it to myself.'),
    toolCalls([
      { id: 'w', name: 'write_file', args: { path: 'search.py', content: SEARCH } },
      { id: 'o', name: 'write_file', args: { path: 'own.txt', content: `x${said.own}x` } },
      { id: 's', name: 'run_shell_command', args: { command } },
    ]),
    textAnswer('Done.'),
  ])
  onTestFinished(() => provider.close())
  const agent = await folder.listening({
    LOG_LEVEL: 'trace',
    OPENAI_BASE_URL: provider.baseUrl,
    OPENAI_MODEL: 'fake',
    OPENAI_API_KEY: said.modelKey,
    AGENT_CANARY: said.agentEnvironment,
    DOCKER_HOST: `unix://${socket}`,
    SANDLOT_DEPLOYMENT: fixture.deployment,
    SANDLOT_SANDBOX_IMAGE: testConfig.image,
  })
  using client = await connectTo(folder)
  const ask = async (who: ReturnType<typeof of>, text: string): Promise<void> => {
    const made = await client.request('session/new', { cwd: '/workspace', mcpServers: [], ...who })
    const prompt = [{ type: 'text', text }]
    await client.request('session/prompt', { sessionId: made['sessionId'], prompt, ...who })
  }
  const bob = of('u_bob', said.address)
  const set = { do: 'set', name: 'TOKEN', value: said.secret }
  await client.request('_sandlot/secrets', { user: bob._meta.sandlot.user, ask: set })
  await ask(bob, said.message)
  await ask(of('u_ada', 'ada@example.org'), 'look everywhere')

  expect(outcomes(client.events)).toMatchObject({ w: ['completed'], o: ['completed'], s: ['completed'] })
  const found = client.events.findLast(
    (event) => event.sessionUpdate === 'tool_call_update' && event.toolCallId === 's' && 'rawOutput' in event,
  )
  const output = found !== undefined && 'rawOutput' in found ? (found.rawOutput?.forModel ?? '') : ''
  const [files, ...hits] = output.trim().split('\n')
  expect(hits).toEqual(['/workspace/own.txt'])
  expect(Number(files)).toBeGreaterThan(100)

  // The canaries were really used: the agent sent its key, the store has the messages, the gate has a log.
  expect(JSON.stringify(provider.requests.map(({ headers }) => headers))).toContain(said.modelKey)
  expect(gate.log()).toContain('"msg":"created"')
  await folder.killAll()
  const store = await openSessionStore(join(folder.path, 'sessions.db'))
  const [session] = await store.sessions.list('u_bob')
  expect(JSON.stringify(await store.log.read(session?.id ?? ''))).toContain(said.message)
  expect(await store.people.secrets.names('u_bob')).toMatchObject([{ name: 'TOKEN' }])
  await store.close()
  const logs = `${agent.stdout}${agent.stderr}${gate.log()}`
  expect(logs).toContain('tool_invocation_success')
  for (const needle of needles) expect(Buffer.from(logs).includes(needle)).toBe(false)
  // Nor does the file of the store have what was sealed.
  for (const name of ['sessions.db', 'sessions.db-wal']) {
    const path = join(folder.path, name)
    if (existsSync(path)) expect(readFileSync(path).includes(said.secret)).toBe(false)
  }
}, 120_000)
