/** Changes of the workspace by a prompt, in a real browser. */
import { diffsId } from '@sandlot/shared/chat/file-changes'
import { expect, test } from 'vitest'
import { DESKTOP, lookAt, PHONE, usePages, oneLook } from '../fixture/pages.ts'
import { SessionLog } from '../fixture/session-log.ts'

const { service, openChat, signedIn } = usePages()

const BEFORE = 'def total(rows):\n    return sum(rows)\n'
const AFTER =
  'def total(rows):\n    """Of all rows that have a price."""\n    return sum(row.price for row in rows)\n'

function changed(): SessionLog {
  const log = new SessionLog()
  log.prompt('Sum up only the rows that have a price, and write a report.')
  log.text('agent_message_chunk', 'Done. The report is in `report/`.')
  log.happened({
    type: 'files_changed',
    files: [
      { path: 'notes.txt', kind: 'removed', size: 120 },
      { path: 'total.py', kind: 'changed', size: 110, lines: { added: 2, removed: 1 }, diff: true },
      {
        path: 'report/2026/a-rather-long-name-of-a-report-with-all-figures.md',
        kind: 'created',
        size: 48_000,
        lines: { added: 412, removed: 0 },
      },
      { path: 'report/2026/prices.png', kind: 'created', size: 81_230 },
    ],
    more: 12,
  })
  log.end('completed')
  service.outputs.set(
    diffsId(log.promptId),
    Buffer.from(JSON.stringify({ diffs: [{ path: 'total.py', oldText: BEFORE, newText: AFTER }] })),
  )
  return log
}

test.each(
  oneLook('changes', [
    { viewport: DESKTOP, theme: 'light' as const },
    { viewport: PHONE, theme: 'dark' as const },
  ]),
)('a prompt says what it changed, and the panel has the files and their diffs, $theme', async (look) => {
  service.add('s_changed', 'Rows with a price', changed(), { updatedAt: Date.now() })
  const page = await signedIn(look)
  service.files.set('total.py', Buffer.from(AFTER))
  await openChat(page, 's_changed')
  const line = page.getByTestId('changes-line')
  expect(await line.textContent()).toBe('16 files changedlines added: +414 lines removed: −1')
  expect(await lookAt(page, `changes-line-${look.theme}`)).toEqual([])
  await line.click()
  const panel = page.getByTestId('prompt-changes')
  await panel.getByRole('heading', { name: /^Sum up only the rows/ }).waitFor()
  await panel.getByRole('button', { name: 'Diff of total.py' }).click()
  await panel.getByText('Of all rows that have a price.').waitFor()
  await panel.getByText('and 12 more files').waitFor()
  expect(await panel.getByRole('button', { name: /notes\.txt/ }).count()).toBe(0)
  expect(await lookAt(page, `changes-panel-${look.theme}`)).toEqual([])
  await panel.getByTitle('Open total.py').click()
  await page.getByText('def total(rows):').first().waitFor()
})

test('the diff of the only file of the latest prompt is open, and can be closed', async () => {
  const log = new SessionLog()
  log.prompt('Sum up only the rows that have a price.')
  log.happened({
    type: 'files_changed',
    files: [{ path: 'total.py', kind: 'changed', size: 110, lines: { added: 2, removed: 1 }, diff: true }],
    more: 0,
  })
  log.end('completed')
  service.outputs.set(
    diffsId(log.promptId),
    Buffer.from(JSON.stringify({ diffs: [{ path: 'total.py', oldText: BEFORE, newText: AFTER }] })),
  )
  service.add('s_one', 'Rows with a price', log, { updatedAt: Date.now() })
  const page = await signedIn()
  await openChat(page, 's_one')
  await page.getByTestId('changes-line').click()
  const panel = page.getByTestId('prompt-changes')
  await panel.getByText('Of all rows that have a price.').waitFor()
  expect(await lookAt(page, 'changes-one-file')).toEqual([])
  await panel.getByRole('button', { name: 'Diff of total.py' }).click()
  await panel.getByText('Of all rows that have a price.').waitFor({ state: 'detached' })
  await page.getByRole('tab', { name: 'Terminal' }).click()
  await page.getByText('No terminal is open').waitFor()
  expect(await lookAt(page, 'terminal-empty')).toEqual([])
  await page.getByRole('tab', { name: 'App', exact: true }).click()
  await page.getByText('No app is running').waitFor()
  expect(await lookAt(page, 'app-empty')).toEqual([])
})

test('a reader of somebody else’s chat sees the names and counts, and can open nothing', async () => {
  const owner = { id: 'u_bob', name: 'Bob' }
  service.add('s_changed', 'Rows with a price', changed(), { updatedAt: Date.now(), owner, access: 'watch' })
  const page = await signedIn()
  await openChat(page, 's_changed')
  const line = page.getByTestId('changes-line')
  await line.getByRole('button', { name: /16 files changed/ }).click()
  await line.getByText('total.py').waitFor()
  expect(await line.getByRole('button').count()).toBe(1)
  expect(await lookAt(page, 'changes-reader')).toEqual([])
  await page.getByRole('button', { name: 'Workspace', exact: true }).click()
  await page.getByRole('tab', { name: 'Changes' }).click()
  const panel = page.getByTestId('prompt-changes')
  await panel.getByText('total.py').waitFor()
  expect(await panel.getByRole('button').count()).toBe(0)
})
