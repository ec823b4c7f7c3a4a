/** One chat, three people, each at a browser of their own: with a reload, a cut and a restart in the middle. */
import { expect, test } from 'vitest'
import { textAnswer, toolCalls } from '../../packages/ai-agent/test/support/fake-provider.ts'
import { type Person, person } from './browser.ts'
import { useWorld } from './fixture.ts'

const world = useWorld({ SANDLOT_DEFAULT_MODE: 'yolo' })

const touch = (id: string, file: string) => ({
  id,
  name: 'run_shell_command',
  args: { command: `touch ${file}; ls` },
})

/** Sends a request like the page of this user. */
async function send<T>(who: Person, method: 'POST' | 'DELETE', path: string, data?: object): Promise<T> {
  const { origin } = new URL(who.page.url())
  const answer = await who.page.request.fetch(path, { method, data, headers: { origin } })
  if (!answer.ok()) throw new Error(`${method} ${path}: ${answer.status()} ${await answer.text()}`)
  return (answer.status() === 204 ? undefined : await answer.json()) as T
}

/** A new account of this name, signed in at a browser of its own. */
async function join(name: string): Promise<Person & { id: string }> {
  const { ada, browser, sandlot } = world()
  const email = `${name.toLowerCase()}@example.test`
  const password = 'battery staple'
  const { id } = await send<{ id: string }>(ada, 'POST', '/api/users', { name, email, password })
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, baseURL: sandlot.url })
  const page = await context.newPage()
  await page.goto('/')
  await page.getByLabel('E-mail').fill(email)
  await page.getByLabel('Password', { exact: true }).fill(password)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await page.getByTestId('composer').waitFor()
  return { ...person(page), id }
}

test('what one says, asks and allows, all see live; a lost share closes the chat', async () => {
  const { ada, script, sandlot } = world()
  const [bob, cleo] = [await join('Bob'), await join('Cleo')]
  script(textAnswer('Good morning.'))
  await ada.say('hello')
  await ada.answers.filter({ hasText: 'Good morning.' }).waitFor()
  const path = new URL(ada.page.url()).pathname
  const sessionId = path.split('/').at(-1) ?? ''
  const shares = `/api/sessions/${sessionId}/shares`
  await send(ada, 'POST', shares, { kind: 'person', targetId: bob.id, access: 'take_part' })
  const watching = await send<{ id: string }>(ada, 'POST', shares, {
    kind: 'person',
    targetId: cleo.id,
    access: 'watch',
  })
  for (const other of [bob, cleo]) {
    await other.page.goto(path)
    await other.answers.filter({ hasText: 'Good morning.' }).waitFor()
  }

  // The chat is in yolo, a participant's message is not: it asks, and only the owner is asked.
  const { requests } = script(toolCalls([touch('b', 'bob.txt')]), textAnswer('Bob has a file.'))
  await bob.say('touch a file')
  const allow = ada.page.getByTestId('approval').getByRole('button', { name: /^allow/i })
  await allow.waitFor()
  await cleo.page.reload()
  for (const other of [bob, cleo]) {
    await other.page.getByText('Waiting for Ada').first().waitFor()
    expect(await other.page.getByRole('button', { name: /^allow/i }).count()).toBe(0)
  }
  await sandlot.restartAgent('SIGKILL')
  await allow.click()
  for (const one of [ada, bob, cleo]) await one.answers.filter({ hasText: 'Bob has a file.' }).waitFor()
  expect(requests().at(-1)?.body.messages.at(-1)?.content).toContain('bob.txt')
  expect(requests()[0]?.body.messages.at(-1)?.content).toBe('[Bob] touch a file')
  await ada.page.getByTestId('message-user').filter({ hasText: 'touch a file' }).waitFor()

  // Cut off, and back without a reload.
  await bob.context.setOffline(true)
  script(textAnswer('While you were away.'))
  await ada.say('go on')
  await cleo.answers.filter({ hasText: 'While you were away.' }).waitFor()
  await bob.context.setOffline(false)
  await bob.answers.filter({ hasText: 'While you were away.' }).waitFor()

  await send(ada, 'DELETE', `${shares}/${watching.id}`)
  await cleo.page.getByText('no longer shared with you').first().waitFor()
  expect(await cleo.answers.count()).toBe(0)
  script(textAnswer('Only for two.'))
  await ada.say('and now')
  await bob.answers.filter({ hasText: 'Only for two.' }).waitFor()
  expect(await cleo.page.getByText('Only for two.').count()).toBe(0)
  await Promise.all([bob.context.close(), cleo.context.close()])
}, 120_000)
