/** The person's workspace, in a real browser. */
import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { DESKTOP, PHONE, card, lookAt, until, usePages } from './fixture/pages.ts'
import { pictureOf } from './fixture/picture.ts'
import { SessionLog } from './fixture/session-log.ts'

const { complaints, service, signedIn } = usePages()

const named = (name: string, text: string) => ({ name, mimeType: 'text/plain', buffer: Buffer.from(text) })

test('files are looked at, saved, added, and replaced only when one says so', async () => {
  service.files.set('report/summary.md', Buffer.from('# All is well'))
  service.files.set('.profile', Buffer.from('umask 077'))
  service.files.set('data.csv', Buffer.from('old'))
  const page = await signedIn({ viewport: PHONE, theme: 'dark' })
  await page.getByRole('button', { name: 'Workspace', exact: true }).click()
  const list = page.getByRole('list', { name: 'Workspace' })
  await list.waitFor()
  expect(await list.getByRole('listitem').allInnerTexts()).toEqual([
    'report',
    expect.stringMatching(/^data\.csv\s+3 B/),
    expect.stringMatching(/^\.profile/),
  ])
  expect(await lookAt(page, 'files')).toEqual([])

  await page
    .getByTestId('workspace-files')
    .setInputFiles([named('a.txt', 'a'), named('data.csv', 'new'), named('b.txt', 'b')])
  const question = page.getByRole('group', { name: 'Replace data.csv?' })
  await question.waitFor()
  await list.getByText('a.txt').waitFor()
  complaints.length = 0 // the 409
  expect(await lookAt(page, 'files-replace')).toEqual([])
  await question.getByRole('button', { name: 'Cancel' }).click()
  await list.getByText('b.txt').waitFor()
  expect(service.files.get('data.csv')?.toString()).toBe('old')
  await page.getByTestId('workspace-files').setInputFiles([named('data.csv', 'new')])
  await question.getByRole('button', { name: 'Replace' }).click()
  await question.waitFor({ state: 'detached' })
  const kept = () => [...service.files].map(([path, bytes]) => `${path}=${bytes.toString()}`)
  await expect
    .poll(kept)
    .toEqual(['report/summary.md=# All is well', '.profile=umask 077', 'data.csv=new', 'a.txt=a', 'b.txt=b'])
  complaints.length = 0 // the 409

  await list.getByRole('button', { name: 'report' }).click()
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Download summary.md' }).click(),
  ])
  expect(await readFile(await download.path(), 'utf8')).toBe('# All is well')
  await page.getByRole('navigation', { name: 'Directory' }).getByRole('button', { name: 'workspace' }).click()
  await list.getByText('data.csv').waitFor()
})

test('an answer counts where it was asked, and what cannot be put holds up no other', async () => {
  service.files.set('data.csv', Buffer.from('old'))
  service.files.set('report/data.csv', Buffer.from('of the report'))
  const page = await signedIn()
  await page.getByRole('button', { name: 'Workspace', exact: true }).click()
  await page.getByTestId('workspace-files').setInputFiles([named('data.csv', 'new'), named('b.txt', 'b')])
  const question = page.getByRole('group', { name: 'Replace data.csv?' })
  await question.waitFor()
  complaints.length = 0 // the 409
  expect(await page.getByRole('button', { name: 'Add files' }).isEnabled()).toBe(false)
  await page.getByRole('list', { name: 'Workspace' }).getByRole('button', { name: 'report' }).click()
  const report = page.getByRole('list', { name: 'report' })
  await report.getByText('data.csv').waitFor()
  await question.getByRole('button', { name: 'Replace' }).click()
  await until(() => expect(service.files.get('b.txt')?.toString()).toBe('b'))
  await until(async () =>
    expect(await page.getByRole('button', { name: 'Add files' }).isEnabled()).toBe(true),
  )
  expect(service.files.get('data.csv')?.toString()).toBe('new')
  expect(service.files.get('report/data.csv')?.toString()).toBe('of the report')
  expect(service.files.has('report/b.txt')).toBe(false)
  expect(await report.getByRole('listitem').count()).toBe(1)
})

test('an empty workspace says what belongs there, and what the agent wrote is saved from its card', async () => {
  const page = await signedIn({ sessionId: 's_fixed' })
  await page.getByRole('button', { name: 'Workspace', exact: true }).click()
  await page.getByText('Nothing is here yet.').waitFor()
  await page.keyboard.press('Escape')
  const edit = card(page, 'c_edit')
  await edit.getByRole('button').first().click()
  const link = edit.getByRole('link', { name: /^Download \/workspace\// })
  expect(await link.getAttribute('href')).toMatch(/^\/api\/files\/content\?path=.+&download=1$/)
})

test.each([
  ['desktop-light', { viewport: DESKTOP, theme: 'light' as const }],
  ['phone-dark', { viewport: PHONE, theme: 'dark' as const }],
])(
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
    await page.getByText('Last year: not in your workspace any more').waitFor()
    expect(await card(page, 'c_plot').getByRole('button').first().getAttribute('aria-expanded')).toBe('false')
    await card(page, 'c_plot').getByRole('img').waitFor()
    complaints.length = 0
    expect(await lookAt(page, `made-${name}`)).toEqual([])

    const opened = page.getByRole('dialog')
    const openLink = async (link: string) => {
      await page.getByTestId('workspace-link').filter({ hasText: link }).click()
      await opened.waitFor()
    }
    await openLink('data.csv')
    await opened.getByText('May,<b>12</b>').waitFor()
    expect(await opened.getByRole('link', { name: 'Download' }).getAttribute('href')).toContain('download=1')
    expect(await lookAt(page, `made-text-${name}`)).toEqual([])
    await page.keyboard.press('Escape')
    await openLink('data.bin')
    await opened.getByText('is not shown here').waitFor()
    await page.keyboard.press('Escape')
    await openLink('old.csv')
    await opened.getByText('not in your workspace any more').waitFor()
    complaints.length = 0
    await page.keyboard.press('Escape')
    await plot.click()
    await opened.getByRole('img').waitFor()
  },
)
