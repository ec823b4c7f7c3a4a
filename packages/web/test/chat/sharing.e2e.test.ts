/** Sharing a chat, the page of a snapshot, and the settings of notices, in a real browser. */
import { expect, test } from 'vitest'
import { sample } from '../../../../test/campaign.ts'
import { DESKTOP, PHONE, card, lookAt, until, usePages } from '../fixture/pages.ts'
import { SessionLog } from '../fixture/session-log.ts'

const { service, url, complaints, newPage, signedIn } = usePages()

/** An ordinary run looks at one of them, a full run at both. */
const LOOKS = sample(
  'looks of sharing',
  [
    { theme: 'light', viewport: DESKTOP },
    { theme: 'dark', viewport: PHONE },
  ] as const,
  1,
)
const BOB = { id: 'u_bob', name: 'Bob Martin' }

test.each(LOOKS)('a chat is shared, changed and revoked with the keyboard, $theme', async (look) => {
  const page = await signedIn({ ...look, sessionId: 's_fixed' })
  await page.getByRole('button', { name: 'Chat options' }).focus()
  await page.keyboard.press('Enter')
  await page.getByRole('menuitem', { name: 'Share…' }).waitFor()
  await page.keyboard.press('Enter')
  const dialog = page.getByRole('dialog', { name: 'Share this chat' })
  await dialog.getByText('Only you see this chat.').waitFor()
  const find = dialog.getByRole('combobox', { name: 'Find people and teams' })
  await find.fill('d')
  await dialog.getByRole('option', { name: /Documentation/, selected: true }).waitFor()
  // Two people of one name are distinguished.
  await dialog.getByText('d.brown@example.org').waitFor()
  expect(await lookAt(page, `share-find-${look.theme}`)).toEqual([])
  await find.fill('bob')
  await dialog.getByRole('option', { name: /Bob Martin/, selected: true }).waitFor()
  await find.press('Enter')
  await dialog.getByRole('radio', { name: /Take part/ }).focus()
  await page.keyboard.press('Space')
  await dialog.getByLabel('What their messages may do').selectOption('auto-edit')
  await dialog.getByLabel(/^May answer approvals/).check()
  await dialog.getByRole('combobox', { name: 'Until' }).first().selectOption('week')
  expect(await lookAt(page, `share-terms-${look.theme}`)).toEqual([])
  await dialog.getByRole('button', { name: 'Share', exact: true }).click()
  const line = dialog.getByRole('list', { name: 'People with access' }).getByRole('listitem')
  await line.getByText(/Takes part · edits files, commands ask first · may approve · until/).waitFor()
  const { expiresAt, ...made } = service.sharing.shares[0] ?? { expiresAt: null }
  expect(made).toMatchObject({ kind: 'person', targetId: 'u_bob', access: 'take_part', mode: 'auto-edit' })
  expect((expiresAt ?? 0) - Date.now()).toBeGreaterThan(6 * 86_400_000)
  expect(await lookAt(page, `share-list-${look.theme}`)).toEqual([])
  await dialog.getByRole('button', { name: 'Change access of Bob Martin' }).click()
  await line.getByRole('radio', { name: /Watch/ }).check()
  await line.getByRole('button', { name: 'Save' }).click()
  await line.getByText(/^Watches · may approve · until/).waitFor()
  // Its end is as it was.
  expect(service.sharing.shares).toMatchObject([{ access: 'watch', expiresAt }])
  await dialog.getByRole('button', { name: 'Copy link to this chat' }).click()
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(`${url()}/s/s_fixed`)
  await dialog.getByRole('button', { name: 'Revoke for Bob Martin' }).click()
  await dialog.getByText('Only you see this chat.').waitFor()

  await dialog.getByLabel('Include command output').check()
  await dialog.getByRole('button', { name: 'Create link' }).click()
  const link = dialog.getByRole('list', { name: 'Links' }).getByRole('listitem')
  await link.getByText('With command output').waitFor()
  await link.scrollIntoViewIfNeeded()
  expect(await lookAt(page, `share-links-${look.theme}`)).toEqual([])
  await link.getByRole('button', { name: 'Copy link' }).click()
  const [snapshot] = service.sharing.snapshots
  expect(await page.evaluate('navigator.clipboard.readText()')).toBe(
    `${url()}/snapshots/${snapshot?.id ?? ''}`,
  )
  await link.getByRole('button', { name: /Revoke the link/ }).click()
  await until(() => expect(service.sharing.snapshots).toEqual([]))
  await page.keyboard.press('Escape')
  await until(async () => expect(await dialog.count()).toBe(0))
})

test.each(LOOKS)('a snapshot is read and nothing else, also after a sign-in, $theme', async (look) => {
  const log = new SessionLog()
  log.prompt('Which plans do we have?')
  log.call({
    toolCallId: 'c_ls',
    title: 'ls plans',
    name: 'run_shell_command',
    kind: 'execute',
    rawInput: { command: 'ls plans' },
  })
  log.started('c_ls')
  log.outcome('c_ls', { status: 'completed', rawOutput: { forModel: 'a.md\nb.md' } }, { exit: { code: 0 } })
  log.text('agent_message_chunk', 'There are **two**, in [plans](plans/a.md).')
  log.end('completed')
  service.sharing.views.set('secret', {
    title: 'Our plans',
    owner: BOB,
    upTo: log.seq,
    outputs: true,
    createdAt: Date.now(),
    expiresAt: null,
    // That it began to run is left out, as a snapshot may.
    events: log.settled.filter((_, at) => at !== 3),
    next: null,
  })
  const page = await newPage(look)
  service.setupNeeded = false
  await page.goto(`${url()}/snapshots/secret`)
  await page.getByLabel('E-mail').fill('ada@example.org')
  await page.getByLabel('Password', { exact: true }).fill('a good password')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Our plans' }).waitFor()
  await page.getByText('A chat of Bob Martin, as it was on').waitFor()
  await page.getByText('There are two').waitFor()
  expect(await page.getByTestId('message-user').innerText()).toContain('Bob Martin')
  expect(await page.getByTestId('composer').count()).toBe(0)
  expect(await page.getByTestId('workspace-link').count()).toBe(0)
  await card(page, 'c_ls').getByRole('button').first().click()
  await card(page, 'c_ls').getByText('b.md').waitFor()
  expect(await lookAt(page, `snapshot-${look.theme}`)).toEqual([])
  service.sharing.views.clear()
  await page.reload()
  await page.getByRole('alert').getByText('it has expired or was revoked').waitFor()
  complaints.length = 0
})

test.each(LOOKS)('notices are chosen by kind and way, and tried, $theme', async (look) => {
  service.notices.settings = { ...service.notices.settings, mail: false, browsers: 2 }
  service.notices.test = {
    push: { sent: 1, problems: ['The push service of a browser refused it.'] },
    mail: null,
  }
  const page = await signedIn(look)
  await page.goto(`${url()}/settings/notifications`)
  const ended = page.getByRole('checkbox', { name: 'Answer ready, by push' })
  await ended.waitFor()
  await page.getByText('E-mail isn’t set up').waitFor()
  expect(
    await page
      .getByRole('checkbox', { name: /by e-mail/ })
      .first()
      .isDisabled(),
  ).toBe(true)
  await ended.focus()
  await page.keyboard.press('Space')
  await until(() => expect(service.notices.settings.choice.ended.push).toBe(false))
  await page.getByRole('button', { name: 'Send test' }).click()
  await page.getByText('Sent to 1 browser. The push service of a browser refused it.').waitFor()
  expect(await lookAt(page, `notices-${look.theme}`)).toEqual([])
  await page.reload()
  await ended.waitFor()
  expect(await ended.isChecked()).toBe(false)
})

test('a browser that blocks pushes says so', async () => {
  const page = await newPage()
  await page.addInitScript('Object.defineProperty(Notification, "permission", { value: "denied" })')
  service.setupNeeded = false
  await page.context().addCookies([{ ...service.newSignIn(), url: url() }])
  await page.goto(`${url()}/settings/notifications`)
  await page.getByText('Your browser blocks notifications from this page.').first().waitFor()
})
