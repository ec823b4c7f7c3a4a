/** The chart on a real cluster: installed, used, upgraded and rolled back in the middle of prompts, and uninstalled. */
import { execFile, spawnSync } from 'node:child_process'
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFailed, test } from 'vitest'
import { textAnswer, toolCalls } from '../../packages/ai-agent/test/support/fake-provider.ts'
import { postgresPrograms } from '../../packages/storage/test/support/postgres.ts'
import { extent, oneRunOfThree, onlyInFullRun } from '../campaign.ts'
import { nodeEnvironment } from '../config.ts'
import { firstVisit, launchBrowser, person, type Person } from '../e2e/browser.ts'
import { noOwnCluster, ownCluster } from './cluster.ts'
import { installChart, type InstalledChart, PASSWORD } from './installed-chart.ts'
import { installOutside } from './outside-chart.ts'

const base = ['debian:bookworm-slim', 'sandlot/base:bookworm'].find(
  (image) => spawnSync('docker', ['image', 'inspect', image], { stdio: 'ignore' }).status === 0,
)
/** Limit of a test: it starts several processes one after the other. */
const TIMEOUT = extent(400_000, 1_200_000)
let leftOut: string | undefined
oneRunOfThree('the chart', (leave, why) => void (leftOut = leave ? why : undefined))
const reason =
  noOwnCluster ??
  leftOut ??
  (base === undefined ? 'no base image; run ./sandlot up once' : undefined) ??
  (postgresPrograms === undefined ? 'no PostgreSQL: apt install postgresql' : undefined)

const title = `the chart, installed by Helm (${reason ?? 'this run'})`
describe.skipIf(reason)(title, { timeout: TIMEOUT }, () => {
  const stack = new AsyncDisposableStack()
  let sandlot: InstalledChart
  let browser: Browser
  let ada: Person
  beforeAll(async () => {
    sandlot = await installChart(ownCluster(), base ?? '', stack)
    browser = await launchBrowser()
    stack.defer(() => browser.close())
  }, 2 * TIMEOUT)
  afterAll(() => stack.disposeAsync(), 120_000)

  async function keepLogs(): Promise<void> {
    mkdirSync('test-results', { recursive: true })
    const logs = ['agent', 'service', 'backup'].map((part) =>
      sandlot.kubectl('logs', '--prefix', '--tail=-1', '-l', `app.kubernetes.io/component=${part}`),
    )
    const pods = sandlot.kubectl('describe', 'pods')
    writeFileSync('test-results/failed-chart.log', (await Promise.all([...logs, pods])).join('\n'))
  }

  test('two agents and two services are ready, and the first administrator is asked and answered', async () => {
    onTestFailed(keepLogs)
    await sandlot.upgrade()
    ada = await firstVisit(browser, { url: sandlot.url, setupUrl: await sandlot.setupUrl() })
    sandlot.provider.add(textAnswer('It works on a cluster.'))
    await ada.say('Does it work?')
    await ada.answers.filter({ hasText: 'It works on a cluster.' }).waitFor()
    const readyz = (await (await fetch(`${sandlot.url}/readyz`)).json()) as { reasons: { message: string }[] }
    expect(readyz.reasons.map(({ message }) => message)).toContainEqual(
      expect.stringMatching(/^2 agents: sandlot-agent-0 .*, sandlot-agent-1 /),
    )
  })

  test('a command runs in a Pod of its person, and its file is there for the next one', async () => {
    onTestFailed(keepLogs)
    sandlot.provider.add(shell('id -u > who; cat who; cat /proc/net/dev'), textAnswer('Written.'))
    await ada.say('Who are you?')
    await ada.answers.filter({ hasText: 'Written.' }).waitFor({ timeout: TIMEOUT })
    const result = String(sandlot.provider.requests.at(-1)?.body.messages.at(-1)?.content)
    expect(result).toMatch(/^[3-5]\d{4}\b/m)
    const [home] = await claims()
    expect(home).toMatchObject({ phase: 'Bound' })
  })

  test('a Job of the CronJob makes a backup, which is restored elsewhere with a home', async ({ skip }) => {
    onlyInFullRun(skip)
    onTestFailed(keepLogs)
    await sandlot.kubectl('create', 'job', '--from=cronjob/sandlot-backup', 'now')
    await sandlot.kubectl('wait', '--for=condition=complete', 'job/now', '--timeout=15m')
    const [file = ''] = globSync(join(await volumeOf('sandlot-backups', sandlot.namespace), 'sandlot-*.tar'))

    const postgres = (...command: string[]) =>
      sandlot.kubectl('exec', 'postgres', '--', 'env', 'PGHOST=/tmp', 'PGUSER=sandlot', ...command)
    await postgres('createdb', 'restored')
    const address = await sandlot.kubectl('get', 'pod', 'postgres', '-o', 'jsonpath={.status.podIP}')
    await using restored = new AsyncDisposableStack()
    const cluster = ownCluster()
    const target = await installOutside(cluster, restored)
    const data = mkdtempSync(join(tmpdir(), 'sandlot-restored-'))
    restored.defer(() => rmSync(data, { recursive: true }))
    const env = {
      ...nodeEnvironment(),
      PATH: process.env['PATH'],
      SANDLOT_DATA: data,
      DATABASE_URL: `postgres://sandlot:${PASSWORD}@${address}/restored`,
      SANDLOT_BACKUP_PASSPHRASE: PASSWORD,
      SANDLOT_SANDBOX: 'kubernetes',
      SANDLOT_SANDBOX_IMAGE: cluster.image,
      SANDLOT_KUBERNETES_NAMESPACE: target.namespace,
      SANDLOT_KUBERNETES_KUBECONFIG: target.backupKubeconfig,
    }
    const restore = ['--conditions=sandlot-source', 'packages/backup/src/main.ts', 'restore', file]
    const { stdout } = await promisify(execFile)(process.execPath, restore, { env })
    expect(JSON.parse(stdout)).toMatchObject({ did: 'restore' })
    const answers = `select count(*) from sessions.events where json like '%It works on a cluster.%'`
    expect(Number(await postgres('psql', '-Atc', answers, 'restored'))).toBeGreaterThan(0)
    const [home] = await claims()
    const [before, after] = [
      await volumeOf(home?.name, sandlot.sandboxes),
      await volumeOf(home?.name, target.namespace),
    ]
    expect(after).not.toBe(before)
    expect(readFileSync(join(after, 'home/who'))).toEqual(readFileSync(join(before, 'home/who')))
  })

  test('an upgrade replaces every process while a command runs, which ends once and is heard', async ({
    skip,
  }) => {
    onlyInFullRun(skip)
    onTestFailed(keepLogs)
    const before = await pods()
    expect(before).toHaveLength(4)
    const command =
      'echo begun | tee -a log; while [ ! -e go ]; do sleep 0.2; done; echo ended >> log; cat log who'
    sandlot.provider.add(shell(command))
    await ada.say('Wait for me')
    const card = ada.cards.last()
    await card.filter({ hasText: 'begun' }).waitFor({ timeout: TIMEOUT })
    await sandlot.upgrade(UPGRADED)
    expect((await pods()).filter((id) => before.includes(id))).toEqual([])

    // Either chat may be the first to ask.
    sandlot.provider.add(shell('touch go'), textAnswer('Here it is.'), textAnswer('Here it is.'))
    const other = person(await ada.context.newPage())
    await other.page.goto('/')
    await other.say('Go on')
    for (const chat of [other, ada]) {
      await chat.answers.filter({ hasText: 'Here it is.' }).waitFor({ timeout: TIMEOUT })
      await chat.idle()
    }
    const results = sandlot.provider.requests.map(({ body }) => String(body.messages.at(-1)?.content))
    expect(results).toContainEqual(expect.stringMatching(/begun\s+ended\s+[3-5]\d{4}\b/))
  })

  test('a rollback replaces every process while the model answers, and the next agent asks it again', async ({
    skip,
  }) => {
    onlyInFullRun(skip)
    onTestFailed(keepLogs)
    const before = await pods()
    const asked = Promise.withResolvers<void>()
    sandlot.provider.add(() => {
      asked.resolve()
      return { steps: [], after: 'hang' }
    }, textAnswer('Here after the rollback.'))
    await ada.say('Think about it')
    await asked.promise
    await sandlot.rollback()
    await ada.answers.filter({ hasText: 'Here after the rollback.' }).waitFor({ timeout: TIMEOUT })
    await ada.idle()
    expect((await pods()).filter((id) => before.includes(id))).toEqual([])
  })

  test('what is uninstalled leaves the homes and the Secrets', async () => {
    onTestFailed(keepLogs)
    const before = await claims()
    await sandlot.uninstall()
    expect(await pods()).toEqual([])
    expect(await claims()).toEqual(before)
    expect(await sandlot.kubectl('get', 'secrets', '-o', 'name')).toContain('secret/sandlot-agent-keys')
  })

  /** Homes that a person has, and the phase of their claims. */
  async function claims(): Promise<{ name: string; phase: string }[]> {
    const found = await sandlot.kubectl(
      'get',
      'pvc',
      '-n',
      sandlot.sandboxes,
      '-l',
      'sandlot.dev/owner',
      '-o',
      'json',
    )
    const { items } = JSON.parse(found) as {
      items: { metadata: { name: string }; status: { phase: string } }[]
    }
    return items.map(({ metadata, status }) => ({ name: metadata.name, phase: status.phase }))
  }

  /** The folder of this machine that a claim has. */
  async function volumeOf(claim: string | undefined, namespace: string): Promise<string> {
    const name = ['get', 'pvc', claim ?? '', '-n', namespace, '-o', 'jsonpath={.spec.volumeName}']
    return join(ownCluster().facts.folder, 'volumes', await sandlot.kubectl(...name))
  }

  /** Ids of the Pods of our processes that are not being removed; the name of an agent comes again. */
  async function pods(): Promise<string[]> {
    const processes = 'app.kubernetes.io/component in (agent, service)'
    const found = await sandlot.kubectl('get', 'pods', '-l', processes, '-o', 'json')
    const { items } = JSON.parse(found) as {
      items: { metadata: { uid: string; deletionTimestamp?: string } }[]
    }
    return items.flatMap(({ metadata }) => (metadata.deletionTimestamp === undefined ? metadata.uid : []))
  }
})

/** The model's answer: this command. */
const shell = (command: string) =>
  toolCalls([{ id: `call-${command.length}`, name: 'run_shell_command', args: { command } }])

const UPGRADED = { agent: { env: { LOG_LEVEL: 'debug' } }, service: { env: { LOG_LEVEL: 'debug' } } }
