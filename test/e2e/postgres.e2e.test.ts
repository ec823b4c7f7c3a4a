/** The whole of Sandlot where chats and accounts are in PostgreSQL: the same, also over a crash of the agent. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  type FakeProvider,
  startFakeProvider,
  textAnswer,
  toolCalls,
} from '../../packages/ai-agent/test/support/fake-provider.ts'
import { describeOnPostgres } from '../../packages/storage/test/support/on-postgres.ts'
import { type Person, firstVisit, launchBrowser } from './browser.ts'
import { type RunningSandlot, startSandlot } from './processes.ts'

describeOnPostgres('on PostgreSQL', (postgres) => {
  const stack = new AsyncDisposableStack()
  let provider: FakeProvider
  let sandlot: RunningSandlot
  let ada: Person
  beforeAll(async () => {
    provider = await startFakeProvider()
    stack.defer(() => provider.close())
    sandlot = await startSandlot({
      database: await postgres.database('sandlot'),
      agent: {
        OPENAI_BASE_URL: provider.baseUrl,
        OPENAI_API_KEY: 'sk-test-canary',
        OPENAI_MODEL: 'scripted',
        SANDLOT_DEFAULT_MODE: 'yolo',
      },
    })
    stack.defer(() => sandlot.stop())
    const browser = await launchBrowser()
    stack.defer(() => browser.close())
    ada = await firstVisit(browser, sandlot)
  }, 120_000)
  afterAll(() => stack.disposeAsync())

  test('a command continues over a crash of the agent, and is found afterwards', async () => {
    const command = 'echo armadillo one; sleep 4; echo armadillo two'
    provider.add(
      toolCalls([{ id: 'call_1', name: 'run_shell_command', args: { command } }]),
      textAnswer('Both were printed.'),
    )
    await ada.say('print both')
    await ada.page.getByText('armadillo one').last().waitFor()
    await sandlot.restartAgent('SIGKILL')
    await ada.answers.filter({ hasText: 'Both were printed.' }).waitFor()
    await ada.idle()
    await ada.page.reload()
    await ada.cardIs(0, 'completed')

    const found = await ada.context.request.get('/api/search?q=armadillo')
    const { hits } = (await found.json()) as { hits: { kind: string }[] }
    expect(hits.map(({ kind }) => kind)).toEqual(['output', 'command'])
    for (const file of ['sessions.db', 'accounts.db'])
      expect(existsSync(join(sandlot.data, file))).toBe(false)
  }, 60_000)
})
