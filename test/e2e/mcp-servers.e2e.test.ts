/** MCP servers on the page: added, signed in to, used in a chat; and what cannot be. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type OAuthServer, startOAuthServer } from '../../packages/ai-agent/test/mcp/oauth/server.ts'
import { textAnswer, toolCalls } from '../../packages/ai-agent/test/support/fake-provider.ts'
import { lookAt } from '../../packages/web/test/fixture/pages.ts'
import { useWorld } from './fixture.ts'
import { freePort } from './processes.ts'

const world = useWorld()
let guarded: OAuthServer
beforeAll(async () => {
  guarded = await startOAuthServer()
})
afterAll(() => guarded.close())

/** A server as somebody would write it in their workspace. */
const PROGRAM = `
import json, os, sys
for line in sys.stdin:
  asked = json.loads(line)
  if 'id' not in asked: continue
  if asked['method'] == 'initialize':
    result = {'protocolVersion': asked['params']['protocolVersion'], 'capabilities': {'tools': {}}, 'serverInfo': {'name': 'greeter', 'version': '1'}}
  elif asked['method'] == 'tools/list':
    result = {'tools': [{'name': 'greet', 'description': 'Says hello.', 'inputSchema': {'type': 'object', 'properties': {}}}]}
  else:
    result = {'content': [{'type': 'text', 'text': os.environ['WORD'] + ' from the sandbox'}]}
  print(json.dumps({'jsonrpc': '2.0', 'id': asked['id'], 'result': result}), flush=True)
`

/** Wide and narrow, light and dark: what axe finds, and what is wider than the screen. */
async function looks(page: Page, name: string): Promise<string[]> {
  const found: string[] = []
  for (const [look, width, colorScheme] of [
    ['wide', 1280, 'light'],
    ['phone-dark', 390, 'dark'],
  ] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    await page.setViewportSize({ width, height: 900 })
    found.push(...(await lookAt(page, `${name}-${look}`)))
  }
  await page.setViewportSize({ width: 1280, height: 800 })
  return found
}

test('servers are added, signed in to, used in a chat, and refused with a sentence', async () => {
  const { ada, sandlot, script } = world()
  const { page } = ada
  const add = async (fields: Record<string, string>, more?: () => Promise<void>) => {
    await page.getByRole('button', { name: 'Add a server' }).click()
    const form = page.getByRole('form', { name: 'New server' })
    if ('Command' in fields) await form.getByLabel('Where it is').selectOption('sandbox')
    for (const [label, value] of Object.entries(fields))
      await form.getByLabel(label, { exact: true }).fill(value)
    await more?.()
    await form.getByRole('button', { name: 'Add and test' }).click()
    return form
  }
  const line = (name: string) => page.getByRole('listitem', { name, exact: true })

  // For everybody, with a sign-in of each person.
  await page.goto('/settings/mcp')
  await add({ Name: 'calendar', Address: guarded.url }, async () => {
    await page.getByLabel('Sign-in').selectOption('oauth')
  })
  await line('calendar').getByText('Needs a sign-in').waitFor()
  await add({ Name: 'down', Address: `http://127.0.0.1:${await freePort()}/mcp` })
  await line('down').getByText('It cannot be reached').waitFor()
  await line('calendar').getByRole('button', { name: 'Sign in to calendar' }).click()
  await page.getByText('calendar connected.').waitFor()
  expect(page.url()).toBe(`${sandlot.url}/settings/mcp`)
  await line('calendar').getByText('Ready').waitFor()
  await line('calendar').getByText('2 tools').click()
  await line('calendar').getByRole('checkbox', { name: 'Offer other' }).uncheck()
  await line('calendar').getByText('2 tools, 1 of them on').waitFor()
  expect(await looks(page, 'mcp-deployment')).toEqual([])
  await line('calendar').getByRole('button', { name: 'Sign out of calendar' }).click()
  await line('calendar').getByText('Needs a sign-in').waitFor()
  await line('calendar').getByRole('button', { name: 'Sign in to calendar' }).click()
  await line('calendar').getByText('Ready').waitFor()

  // A user's own server: not in this network, not under a name that is taken.
  await page.goto('/settings/servers')
  await page.getByRole('list', { name: 'Deployment MCP servers' }).getByText('Ready').waitFor()
  await page.setViewportSize({ width: 390, height: 900 })
  await page.emulateMedia({ colorScheme: 'dark', reducedMotion: 'reduce' })
  const form = await add({ Name: 'calendar', Address: 'https://mcp.example.org/mcp' })
  await form.getByText('There is a server “calendar” already: choose another name.').waitFor()
  await form.getByLabel('Name', { exact: true }).fill('inside')
  await form.getByLabel('Address', { exact: true }).fill(guarded.url)
  await form.getByRole('button', { name: 'Add and test' }).click()
  await form.getByText('127.0.0.1 is not a public address.').waitFor()
  await form.getByRole('button', { name: 'Add a header' }).click()
  expect(await lookAt(page, 'mcp-form-phone-dark')).toEqual([])
  await page.setViewportSize({ width: 1280, height: 800 })

  // A program of one's own in the sandbox, which the agent has written.
  await page.goto('/')
  script(
    toolCalls([{ id: 'c1', name: 'write_file', args: { path: 'greeter.py', content: PROGRAM } }]),
    textAnswer('It is written.'),
  )
  await ada.say('Write me a server.')
  await ada.answers.filter({ hasText: 'It is written.' }).waitFor()
  await page.goto('/settings/servers')
  await add({ Name: 'greeter', Command: 'python3', Arguments: 'greeter.py' }, async () => {
    await page.getByRole('button', { name: 'Add a variable' }).click()
    await page.getByLabel('Name of the variable 1').fill('WORD')
    await page.getByLabel('Value of WORD').fill('Hello')
  })
  await line('greeter').getByText('1 tool').waitFor({ timeout: 30_000 })
  expect(await looks(page, 'mcp-own')).toEqual([])

  await page.goto('/')
  const { requests } = script(
    toolCalls([
      { id: 'c2', name: 'look', args: {} },
      { id: 'c3', name: 'greet', args: {} },
    ]),
    textAnswer('Both have answered.'),
  )
  await ada.say('Use them.')
  await ada.answers.filter({ hasText: 'Both have answered.' }).waitFor()
  const [first, second] = requests()
  const named = (first?.body.tools ?? []) as { function: { name: string } }[]
  expect(named.map((tool) => tool.function.name)).not.toContain('other')
  const results = (second?.body.messages ?? []).filter(({ role }) => role === 'tool')
  expect(results.map(({ content }) => content)).toEqual([
    expect.stringContaining('called look'),
    expect.stringContaining('Hello from the sandbox'),
  ])

  await page.goto('/settings/servers')
  await line('greeter').getByRole('button', { name: 'Remove greeter' }).click()
  await page.getByRole('alertdialog').getByRole('button', { name: 'Remove' }).click()
  await page.getByText('greeter removed.').waitFor()
  await line('greeter').waitFor({ state: 'detached' })
}, 90_000)
