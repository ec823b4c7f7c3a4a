/** Two agents on one database, of which one reaches another engine: a relay in front of the real one gives it another id. */
import { request as ask, type RequestOptions, type Server, createServer } from 'node:http'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { testConfig } from '../../../sandbox/test/support/config.ts'
import { describeOnPostgres } from '../../../storage/test/support/on-postgres.ts'
import { AgentFolder } from '../support/agent-process.ts'

vi.setConfig({ testTimeout: 90_000 })

const ENGINE = (testConfig.dockerHost ?? 'unix:///var/run/docker.sock').replace(/^unix:\/\//, '')
/** The id of one engine; the other's own id is requested. */
const OTHER = 'another-engine-of-this-test'

const get = (options: RequestOptions): Promise<{ status: number; body: string }> =>
  new Promise((resolve, reject) => {
    const asked = ask({ socketPath: ENGINE, ...options }, (answer) => {
      text(answer).then((body) => resolve({ status: answer.statusCode ?? 500, body }), reject)
    })
    asked.on('error', reject).end()
  })

/** Passes on questions, and changes the `ID` in what the engine says of itself. */
function relayTo(path: string, id: string): Promise<Server> {
  const server = createServer((request, response) => {
    void get({ path: request.url, method: request.method }).then(({ status, body }) => {
      const isInfo = request.url?.endsWith('/info') === true
      response.writeHead(status, { 'content-type': 'application/json', 'api-version': '1.41' })
      response.end(isInfo ? JSON.stringify({ ...(JSON.parse(body) as object), ID: id }) : body)
    })
  })
  return new Promise((resolve) => server.listen(path, () => resolve(server)))
}

describeOnPostgres('agents with two engines', (postgres) => {
  const folder = new AgentFolder()
  const relays = mkdtempSync(join(tmpdir(), 'sandlot-relay-'))
  let relay: Server
  beforeAll(async () => {
    relay = await relayTo(join(relays, 'docker.sock'), OTHER)
  })
  afterAll(async () => {
    await folder[Symbol.asyncDispose]()
    relay.closeAllConnections()
    await new Promise((resolve) => relay.close(resolve))
    rmSync(relays, { recursive: true })
  })

  test('the second does not start and names both, until the first has ended', async () => {
    const { ID } = JSON.parse((await get({ path: '/info' })).body) as { ID: string }
    const url = await postgres.database('engines')
    const start = (id: string, socket?: string) =>
      folder.start({
        DATABASE_URL: url,
        SANDLOT_REPLICA: id,
        ...(socket === undefined ? {} : { DOCKER_HOST: `unix://${socket}` }),
      })
    const first = start('first', ENGINE)
    await first.logged('the agent is ready')
    const second = start('second', join(relays, 'docker.sock'))
    expect(await second.ended).toBe(1)
    for (const name of ['first', ID, 'second', OTHER]) expect(second.stderr).toContain(name)

    // An engine that does not answer is not known: it passes, with a warning on both sides.
    const third = start('third')
    await third.logged('the agent is ready')
    expect(third.stderr).toContain('it is not known whether other agents have the same')
    const again = start('fourth', ENGINE)
    await again.logged('the agent is ready')
    expect(again.stderr).toMatch(/the engine or cluster of these agents is unknown.*/)
    expect(again.stderr).toContain('third')

    for (const one of [first, third, again]) {
      one.child.kill('SIGTERM')
      expect(await one.ended).toBe(0)
    }
    await start('second', join(relays, 'docker.sock')).logged('the agent is ready')
    expect(await postgres.rows('engines', 'select id, engine from sessions.replicas')).toEqual([
      { id: 'second', engine: OTHER },
    ])
  })
})
