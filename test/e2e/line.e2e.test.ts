/**
 * Two people and one place: the second sees where they stand, leaves, waits again over a crash, and an administrator
 * sees and stops.
 */
import { expect, test } from 'vitest'
import { textAnswer } from '../../packages/ai-agent/test/support/fake-provider.ts'
import { lookAt } from '../../packages/web/test/fixture/pages.ts'
import { person } from './browser.ts'
import { useWorld } from './fixture.ts'

const world = useWorld({ SANDLOT_DEFAULT_MODE: 'yolo', SANDLOT_HOST_PROMPTS: '1' })

/** An answer that begins when it is let go, and whether it was asked for. */
function held(words: string) {
  const gate = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<void>()
  const answer = async () => {
    asked.resolve()
    await gate.promise
    return textAnswer(words)
  }
  return { answer, asked: asked.promise, release: () => gate.resolve() }
}

test('the second waits in line, Stop leaves it; the overview shows what runs and stops it', async () => {
  const { ada, browser, sandlot, script } = world()
  const { origin } = new URL(ada.page.url())
  const password = 'battery staple'
  const email = 'bob@example.test'
  const made = await ada.page.request.post('/api/users', {
    data: { name: 'Bob', email, password },
    headers: { origin },
  })
  expect(made.status()).toBe(201)
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, baseURL: sandlot.url })
  const bob = person(await context.newPage())
  await bob.page.goto('/')
  await bob.page.getByLabel('E-mail').fill(email)
  await bob.page.getByLabel('Password', { exact: true }).fill(password)
  await bob.page.getByRole('button', { name: 'Sign in', exact: true }).click()
  await bob.composer.waitFor()

  const [first, again] = [held('never read'), held('never read')]
  script(first.answer, again.answer, textAnswer('Ada’s answer.'))
  await bob.say('a long one')
  await first.asked
  await ada.say('mine')
  const line = ada.page.getByText('1st in line: the one place is taken')
  await line.waitFor()
  // Also for who looks later.
  await ada.page.reload()
  await line.waitFor()
  expect(await lookAt(ada.page, 'line-light')).toEqual([])
  await ada.page.getByTestId('stop').click()
  await ada.page.getByText('Stopped while it waited in line').waitFor()

  await ada.say('mine again')
  await line.waitFor()
  await sandlot.restartAgent('SIGKILL')
  // Bob had the place, so he has it again.
  await again.asked
  await ada.page.reload()
  await line.waitFor()
  await ada.page.goto('/settings/overview')
  const prompts = ada.page.getByRole('list', { name: 'Prompts' })
  await prompts.getByText('1st in line: the one place is taken').waitFor()
  await prompts.getByText('Asking the model').waitFor()
  expect(await prompts.getByText('a long one').count()).toBe(0)
  await prompts.getByRole('link', { name: 'Mine' }).waitFor()
  expect(await lookAt(ada.page, 'overview-light')).toEqual([])
  await ada.page.emulateMedia({ colorScheme: 'dark' })
  await ada.page.setViewportSize({ width: 390, height: 844 })
  await prompts.scrollIntoViewIfNeeded()
  expect(await lookAt(ada.page, 'overview-phone-dark')).toEqual([])

  await prompts.getByRole('button', { name: 'Stop what runs for Bob' }).click()
  await ada.page.getByRole('button', { name: 'Stop', exact: true }).last().click()
  await bob.page.getByText('An administrator stopped this.').waitFor()
  // The place is Ada’s now.
  await ada.page.getByText('Nothing is running.').waitFor()
  first.release()
  again.release()
  await context.close()
}, 90_000)
