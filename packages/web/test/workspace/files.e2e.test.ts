/** The person's workspace, in a real browser. */
import { readFile } from 'node:fs/promises'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { DESKTOP, PHONE, card, lookAt, until, usePages, oneLook } from '../fixture/pages.ts'
import { pictureOf } from '../fixture/picture.ts'
import { SessionLog } from '../fixture/session-log.ts'

const { complaints, service, signedIn } = usePages()

const named = (name: string, text: string) => ({ name, mimeType: 'text/plain', buffer: Buffer.from(text) })

async function openFiles(page: Page) {
  await page.getByRole('button', { name: 'Workspace', exact: true }).click()
  const tree = page.getByRole('tree', { name: 'Workspace' })
  await tree.waitFor()
  const item = (name: string) => tree.getByRole('treeitem', { name, exact: true })
  const names = () =>
    tree
      .getByRole('treeitem')
      .evaluateAll((items) => items.map((one) => `${one.getAttribute('aria-level')} ${one.ariaLabel}`))
  const menu = async (name: string, action: string) => {
    await item(name).hover()
    await page.getByRole('button', { name: `Options for ${name}` }).click()
    await page.getByRole('menuitem', { name: action, exact: true }).click()
  }
  return { tree, item, names, menu }
}

const kept = () => [...service.files].map(([path, bytes]) => `${path}=${bytes.toString()}`).toSorted()

test.each(
  oneLook('files 1', [
    ['desktop-light', { viewport: DESKTOP, theme: 'light' as const }],
    ['phone-dark', { viewport: PHONE, theme: 'dark' as const }],
  ]),
)('the tree is walked by keys: opened, renamed, deleted and restored, %s', async (name, look) => {
  for (const path of [
    'report/2026/summary.md',
    'report/notes.txt',
    'data.csv',
    '.profile',
    'zz\u202egpj.exe',
  ])
    service.files.set(path, Buffer.from('x'))
  const page = await signedIn(look)
  const { tree, item, names } = await openFiles(page)
  await item('report').waitFor()
  expect(await names()).toEqual(['1 report', '1 data.csv', '1 zzU+202Egpj.exe', '1 .profile'])
  await tree.focus()
  for (const key of ['Home', 'ArrowRight']) await page.keyboard.press(key)
  await item('2026').waitFor()
  for (const key of ['ArrowDown', 'ArrowRight']) await page.keyboard.press(key)
  await item('summary.md').waitFor()
  expect((await names()).slice(0, 4)).toEqual(['1 report', '2 2026', '3 summary.md', '2 notes.txt'])
  expect(await lookAt(page, `files-${name}`)).toEqual([])
  for (const key of ['ArrowDown', 'F2']) await page.keyboard.press(key)
  await page.getByRole('textbox', { name: 'New name of summary.md' }).fill('all.md')
  await page.keyboard.press('Enter')
  await item('all.md').waitFor()
  expect(kept()).toContain('report/2026/all.md=x')
  // Two at once, with Shift.
  for (const key of ['Shift+ArrowDown', 'Delete']) await page.keyboard.press(key)
  await item('notes.txt').waitFor({ state: 'detached' })
  expect(kept()).toEqual(['.profile=x', 'data.csv=x', 'zz\u202egpj.exe=x'])
  await page.getByRole('button', { name: 'Undo' }).click()
  await until(() => expect(kept()).toContain('report/2026/all.md=x'))
  expect(kept()).toContain('report/notes.txt=x')
})

test('files and folders are added, and what is there is replaced only when one says so', async () => {
  service.files.set('data.csv', Buffer.from('old'))
  service.files.set('report/a.txt', Buffer.from('a'))
  const page = await signedIn()
  const { item, menu } = await openFiles(page)
  await item('data.csv').waitFor()
  service.files.refusal = (path) =>
    path === 'film'
      ? { code: 'too_large', message: '"film" does not fit: the disk quota is used up.' }
      : undefined
  await page
    .getByTestId('workspace-files')
    .setInputFiles([named('film', 'f'), named('data.csv', 'new'), named('b.txt', 'b'), named('c.txt', 'c')])
  const question = page.getByRole('group', { name: 'Replace data.csv?' })
  await question.waitFor()
  await page.getByText('the disk quota is used up').waitFor()
  await item('c.txt').waitFor()
  complaints.length = 0 // the 409 and the 413
  expect(await lookAt(page, 'files-replace')).toEqual([])
  expect(kept()).toContain('data.csv=old')
  await question.getByRole('button', { name: 'Keep both' }).click()
  await item('data (2).csv').waitFor()
  await page.getByRole('button', { name: 'Dismiss' }).click()
  await page.getByTestId('workspace-files').setInputFiles([named('data.csv', 'newest')])
  await question.getByRole('button', { name: 'Replace' }).click()
  await until(() => expect(kept()).toContain('data.csv=newest'))
  complaints.length = 0 // the 409
  await menu('report', 'New folder')
  await page.getByRole('textbox', { name: 'New name of new folder' }).fill('drafts')
  await page.keyboard.press('Enter')
  await item('drafts').waitFor()
  // More than one piece.
  const large = { ...named('large.bin', ''), buffer: Buffer.alloc(9_000_000, 'x') }
  await page.getByTestId('workspace-files').setInputFiles([large])
  await item('large.bin').waitFor()
  expect(service.files.get('large.bin')?.length).toBe(9_000_000)
})

test('entries are moved by the menu and by dragging, taken back, found, and saved', async () => {
  for (const path of ['report/a.txt', 'data.csv', 'old/b.txt']) service.files.set(path, Buffer.from(path))
  const page = await signedIn()
  const { item, menu } = await openFiles(page)
  await menu('data.csv', 'Move…')
  const dialog = page.getByRole('dialog')
  await dialog.getByRole('button', { name: 'report' }).click()
  expect(await lookAt(page, 'files-move')).toEqual([])
  await dialog.getByRole('button', { name: 'Move here' }).click()
  await until(() => expect(kept()).toContain('report/data.csv=data.csv'))
  await item('old').dragTo(item('report'))
  await until(() => expect(kept()).toContain('report/old/b.txt=old/b.txt'))
  const notice = page.getByRole('group', { name: 'Notice' }).filter({ hasText: '“old” moved.' })
  await notice.getByRole('button', { name: 'Undo' }).click()
  await until(() => expect(kept()).toContain('old/b.txt=old/b.txt'))
  await page.getByRole('searchbox', { name: 'Search for files' }).fill('a.t')
  await page.getByRole('list', { name: 'Found files' }).getByText('a.txt').waitFor()
  expect(await lookAt(page, 'files-found')).toEqual([])
  await page.getByRole('searchbox', { name: 'Search for files' }).fill('')
  await item('report').click()
  const [download] = await Promise.all([page.waitForEvent('download'), menu('data.csv', 'Download')])
  expect(await readFile(await download.path(), 'utf8')).toBe('data.csv')
})

test('a text is changed and saved; one that another has changed is not lost', async () => {
  service.files.set('note.txt', Buffer.from('one\r\ntwo\r\n'))
  const page = await signedIn()
  const { menu } = await openFiles(page)
  await menu('note.txt', 'Edit as text')
  const field = page.getByRole('textbox', { name: 'Text of note.txt' })
  await field.fill('one\nthree\n')
  expect(await lookAt(page, 'files-edit')).toEqual([])
  await page.keyboard.press('Control+s')
  await until(() => expect(kept()).toEqual(['note.txt=one\r\nthree\r\n']))
  service.files.set('note.txt', Buffer.from('theirs'))
  await field.fill('mine')
  await page.getByRole('button', { name: 'Save', exact: true }).click()
  const question = page.getByRole('group', { name: 'File changed' })
  await question.waitFor()
  complaints.length = 0 // the 409
  expect(await lookAt(page, 'files-conflict')).toEqual([])
  expect(kept()).toEqual(['note.txt=theirs'])
  await question.getByRole('button', { name: 'Overwrite with mine' }).click()
  await until(() => expect(kept()).toEqual(['note.txt=mine']))
  await field.fill('unsaved')
  await page.getByRole('button', { name: 'Close', exact: true }).click()
  await page.getByRole('button', { name: 'Keep editing' }).click()
  expect(await field.inputValue()).toBe('unsaved')
  // Nor is it lost with the panel.
  await page.getByRole('button', { name: 'Close the workspace' }).click()
  const { tree } = await openFiles(page)
  await tree.focus()
  for (const key of ['Home', 'Shift+F10']) await page.keyboard.press(key)
  await page.getByRole('menuitem', { name: 'Edit as text' }).click()
  expect(await field.inputValue()).toBe('unsaved')
  await page.getByRole('button', { name: 'Close', exact: true }).click()
  await page.getByRole('button', { name: 'Discard' }).click()
  await tree.waitFor()
})

test('what runs in the background shows in the tree and in the open file, and several are saved as one zip', async () => {
  service.files.set('log/run.txt', Buffer.from('started'))
  service.files.set('log/other.txt', Buffer.from('x'))
  const page = await signedIn()
  const { item } = await openFiles(page)
  await item('log').click()
  await item('run.txt').waitFor()
  service.files.set('log/new.txt', Buffer.from('new'))
  await item('new.txt').waitFor()
  service.files.delete('log/new.txt')
  await item('new.txt').waitFor({ state: 'detached' })
  for (const name of ['log', 'run.txt']) await item(name).click({ modifiers: ['Control'] })
  await item('other.txt').click({ modifiers: ['Control'] })
  await item('run.txt').hover()
  await page.getByRole('button', { name: 'Options for run.txt' }).click()
  const zip = page.getByRole('menuitem', { name: 'Download 2 entries as zip' })
  expect(await zip.getAttribute('href')).toBe('/api/files/zip?path=log%2Frun.txt&path=log%2Fother.txt')
  await page.keyboard.press('Escape')
  await item('run.txt').click()
  const opened = page.getByTestId('file-preview')
  await opened.getByText('started').waitFor()
  service.files.set('log/run.txt', Buffer.from('finished, and longer'))
  await opened.getByText('finished, and longer').waitFor()
  await page.getByRole('button', { name: 'Close the workspace' }).click()
  await until(() =>
    expect(service.received.findLast(({ type }) => type === 'ai_chat_watch')).toEqual({
      type: 'ai_chat_watch',
      paths: [],
    }),
  )
})

test('an empty workspace says what belongs there, and what the agent wrote is saved from its card', async () => {
  const page = await signedIn({ sessionId: 's_fixed' })
  await page.getByRole('button', { name: 'Workspace', exact: true }).click()
  await page.getByText('No files yet').waitFor()
  await page.keyboard.press('Escape')
  const edit = card(page, 'c_edit')
  await edit.getByRole('button').first().click()
  const link = edit.getByRole('link', { name: /^Download \/workspace\// })
  expect(await link.getAttribute('href')).toMatch(/^\/api\/files\/content\?path=.+&download=1$/)
})

test.each(
  oneLook('files 2', [
    ['desktop-light', { viewport: DESKTOP, theme: 'light' as const }],
    ['phone-dark', { viewport: PHONE, theme: 'dark' as const }],
  ]),
)(
  'what the agent made is shown: in its answer, and in the folded card of its call, %s',
  async (name, look) => {
    service.files.set('sales/plot.png', pictureOf(640, 400))
    service.files.set('sales/data.csv', Buffer.from('month,sales\nMay,<b>12</b>\n'))
    service.files.set('sales/data.bin', Buffer.from([0, 1, 2]))
    const log = new SessionLog()
    log.prompt('Plot the sales.')
    log.call({ toolCallId: 'c_plot', title: 'Plot the sales', name: 'plot', kind: 'execute', rawInput: {} })
    log.started('c_plot')
    const data = pictureOf(320, 200).toString('base64')
    const content = [
      { type: 'content' as const, content: { type: 'image' as const, mimeType: 'image/png', data } },
    ]
    log.outcome('c_plot', { status: 'completed', content, rawOutput: { forModel: 'done' } })
    log.text(
      'agent_message_chunk',
      [
        'Sales have grown since May:',
        '![Sales by month](sales/plot.png)',
        'The figures are in [data.csv](/workspace/sales/data.csv) and `/workspace/sales/data.bin`, those of last year in [old.csv](sales/old.csv).',
        '![Last year](sales/old.png)',
      ].join('\n\n'),
    )
    log.end('completed')
    service.add('s_made', 'Sales', log)
    const page = await signedIn({ ...look, sessionId: 's_made' })
    const plot = page.getByRole('button', { name: 'Open Sales by month' })
    await until(async () =>
      expect(await plot.locator('img').evaluate((image) => (image as HTMLImageElement).naturalWidth)).toBe(
        640,
      ),
    )
    await page.getByText('Last year: no longer in your workspace').waitFor()
    expect(await card(page, 'c_plot').getByRole('button').first().getAttribute('aria-expanded')).toBe('false')
    await card(page, 'c_plot').getByRole('img').waitFor()
    complaints.length = 0
    expect(await lookAt(page, `made-${name}`)).toEqual([])

    const opened = page.getByTestId('file-preview')
    const openLink = async (link: string) => {
      await page.getByTestId('workspace-link').filter({ hasText: link }).click()
      await opened.waitFor()
    }
    await openLink('data.csv')
    await opened.getByRole('cell', { name: '<b>12</b>' }).waitFor()
    expect(await opened.getByRole('link', { name: 'Download' }).getAttribute('href')).toContain('download=1')
    expect(await lookAt(page, `made-text-${name}`)).toEqual([])
    await page.keyboard.press('Escape')
    await openLink('data.bin')
    await opened.getByText('Can’t preview this file').waitFor()
    await page.keyboard.press('Escape')
    await openLink('old.csv')
    await opened.getByText('no longer in your workspace').waitFor()
    complaints.length = 0
    await page.keyboard.press('Escape')
    await plot.click()
    await opened.getByRole('img').waitFor()
  },
)
