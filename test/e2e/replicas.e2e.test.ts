/** `./sandlot up --replicas 2` as a person types it: each process is started again alone, drained, and all end together. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readRecord } from '../../packages/cli/src/processes/pid-file.ts'
import { isRunning } from '../../packages/cli/src/processes/process-mark.ts'
import { describeOnPostgres } from '../../packages/storage/test/support/on-postgres.ts'
import { LOCAL_PROCESS, personEnvironment } from '../config.ts'
import { freePort } from './processes.ts'

const root = new URL('../..', import.meta.url).pathname

describeOnPostgres('two agents and two services of ./sandlot up', (postgres) => {
  const stack = new AsyncDisposableStack()
  let data: string
  let environment: Record<string, string>
  let port: number
  beforeAll(async () => {
    data = await mkdtemp(join(tmpdir(), 'sandlot-replicas-'))
    stack.defer(() => rm(data, { recursive: true, force: true }))
    port = await freePort()
    environment = {
      ...personEnvironment(),
      SANDLOT_DATA: data,
      ...LOCAL_PROCESS,
      SANDLOT_REPLICA: 'here',
      DATABASE_URL: await postgres.database('sandlot'),
      PORT: String(port),
    }
  }, 60_000)
  afterAll(() => stack.disposeAsync())

  function sandlot(...args: string[]) {
    const program = ['--conditions=sandlot-source', `${root}packages/cli/src/main.ts`]
    const child = spawn(`${root}node_modules/.bin/node`, [...program, ...args], {
      env: environment,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let said = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (said += text))
    const ended = once(child, 'close').then(([code]) => code as number | null)
    return { child, ended, said: () => said }
  }
  const children = () => readRecord(join(data, 'run', 'up.json'))?.children ?? {}
  const ready = async (at: number): Promise<boolean> =>
    fetch(`http://127.0.0.1:${at}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    )

  test('one is killed and comes back, one is drained and restarted, and down ends all', async () => {
    const up = sandlot('up', '--replicas', '2')
    stack.defer(async () => {
      await sandlot('down').ended
      await up.ended
    })
    await expect.poll(up.said, { timeout: 110_000 }).toContain('2 agents, and 2 services at')
    expect(up.said()).toContain(`Sandlot is ready: http://127.0.0.1:${port}/setup?token=`)
    expect(Object.keys(children()).toSorted()).toEqual(['ai-agent-1', 'ai-agent-2', 'service-1', 'service-2'])
    expect([await ready(port), await ready(port + 1)]).toEqual([true, true])

    const killed = children()['service-2']?.pid ?? 0
    process.kill(killed, 'SIGKILL')
    await expect.poll(up.said, { timeout: 10_000 }).toContain('service-2 exited unexpectedly')
    await expect.poll(() => ready(port + 1), { timeout: 20_000 }).toBe(true)
    expect(children()['service-2']?.pid).not.toBe(killed)
    expect(await ready(port)).toBe(true)

    const drain = sandlot('drain', '--replica', 'here-1')
    expect({ code: await drain.ended, said: drain.said() }).toEqual({
      code: 0,
      said: expect.stringMatching(
        /no users remain[\s\S]*ai-agent-1 \(here-1\): stop it with kill \d+/,
      ) as string,
    })
    const drained = children()['ai-agent-1']?.pid ?? 0
    process.kill(drained, 'SIGTERM')
    await expect.poll(() => children()['ai-agent-1']?.pid, { timeout: 20_000 }).not.toBe(drained)
    const unknown = sandlot('drain', '--replica', 'elsewhere')
    expect(await unknown.ended).toBe(1)
    expect(unknown.said()).toContain('No agent elsewhere is running.')

    const all = Object.values(children())
    expect(await sandlot('down').ended).toBe(0)
    expect(await up.ended).toBe(0)
    expect(all.filter((mark) => isRunning(mark))).toEqual([])
  }, 200_000)
})
