/** The chart on a real cluster: installed, used, upgraded and rolled back in the middle of prompts, and uninstalled. */
import { spawnSync } from 'node:child_process'
import { writeFileSync, mkdirSync } from 'node:fs'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFailed, test } from 'vitest'
import { textAnswer, toolCalls } from '../../packages/ai-agent/test/support/fake-provider.ts'
import { firstVisit, launchBrowser, person, type Person } from '../e2e/browser.ts'
import { noOwnCluster, ownCluster } from './cluster.ts'
import { installChart, type InstalledChart } from './installed-chart.ts'

const base = ['debian:bookworm-slim', 'sandlot/base:bookworm'].find(
  (image) => spawnSync('docker', ['image', 'inspect', image], { stdio: 'ignore' }).status === 0,
)
const reason = noOwnCluster ?? (base === undefined ? 'no base image; run ./sandlot up once' : undefined)

describe.skipIf(reason)('the chart, installed by Helm', () => {
  const stack = new AsyncDisposableStack()
  let sandlot: InstalledChart
  let browser: Browser
  let ada: Person
  beforeAll(async () => {
    sandlot = await installChart(ownCluster(), base ?? '', stack)
    browser = await launchBrowser()
    stack.defer(() => browser.close())
  }, 600_000)
  afterAll(() => stack.disposeAsync(), 120_000)

  async function keepLogs(): Promise<void> {
    mkdirSync('test-results', { recursive: true })
    const logs = ['agent', 'service'].map((part) =>
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
  }, 300_000)

  test('a command runs in a Pod of its person, and its file is there for the next one', async () => {
    onTestFailed(keepLogs)
    sandlot.provider.add(shell('id -u > who; cat who; cat /proc/net/dev'), textAnswer('Written.'))
    await ada.say('Who are you?')
    await ada.answers.filter({ hasText: 'Written.' }).waitFor({ timeout: 120_000 })
    const result = String(sandlot.provider.requests.at(-1)?.body.messages.at(-1)?.content)
    expect(result).toMatch(/^[3-5]\d{4}\b/m)
    const [home] = await claims()
    expect(home).toMatchObject({ phase: 'Bound' })
  }, 180_000)

  test('an upgrade replaces every process while a command runs, which ends once and is heard', async () => {
    onTestFailed(keepLogs)
    const before = await pods()
    expect(before).toHaveLength(4)
    const command =
      'echo begun | tee -a log; while [ ! -e go ]; do sleep 0.2; done; echo ended >> log; cat log who'
    sandlot.provider.add(shell(command))
    await ada.say('Wait for me')
    const card = ada.cards.last()
    await card.filter({ hasText: 'begun' }).waitFor({ timeout: 60_000 })
    await sandlot.upgrade(UPGRADED)
    expect((await pods()).filter((id) => before.includes(id))).toEqual([])

    // Either chat may be the first to ask.
    sandlot.provider.add(shell('touch go'), textAnswer('Here it is.'), textAnswer('Here it is.'))
    const other = person(await ada.context.newPage())
    await other.page.goto('/')
    await other.say('Go on')
    for (const chat of [other, ada]) {
      await chat.answers.filter({ hasText: 'Here it is.' }).waitFor({ timeout: 60_000 })
      await chat.idle()
    }
    const results = sandlot.provider.requests.map(({ body }) => String(body.messages.at(-1)?.content))
    expect(results).toContainEqual(expect.stringMatching(/begun\s+ended\s+[3-5]\d{4}\b/))
  }, 400_000)

  test('a rollback replaces every process while the model answers, and the next agent asks it again', async () => {
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
    await ada.answers.filter({ hasText: 'Here after the rollback.' }).waitFor({ timeout: 60_000 })
    await ada.idle()
    expect((await pods()).filter((id) => before.includes(id))).toEqual([])
  }, 400_000)

  test('what is uninstalled leaves the homes and the Secrets', async () => {
    onTestFailed(keepLogs)
    const before = await claims()
    await sandlot.uninstall()
    expect(await pods()).toEqual([])
    expect(await claims()).toEqual(before)
    expect(await sandlot.kubectl('get', 'secrets', '-o', 'name')).toContain('secret/sandlot-agent-keys')
  }, 120_000)

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

  /** Ids of our own Pods that are not being removed; the name of an agent comes again. */
  async function pods(): Promise<string[]> {
    const found = await sandlot.kubectl('get', 'pods', '-l', 'app.kubernetes.io/name=sandlot', '-o', 'json')
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
