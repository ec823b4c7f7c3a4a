/** Files of a message, from the composer to the transcript, in a real browser. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { DESKTOP, PHONE, lookAt, until, usePages, oneLook } from '../fixture/pages.ts'
import { SessionLog } from '../fixture/session-log.ts'

const { service, complaints, signedIn, frames } = usePages()

const file = (name: string, text: string) => ({ name, mimeType: 'text/plain', buffer: Buffer.from(text) })

test.each(
  oneLook('attached', [
    ['desktop-dark', { viewport: DESKTOP, theme: 'dark' as const }],
    ['phone-light', { viewport: PHONE, theme: 'light' as const }],
  ]),
)('files of any kind are attached and named in the message, %s', async (name, look) => {
  service.files.set('uploads/figures.csv', Buffer.from('of before'))
  const page = await signedIn({ ...look, sessionId: 's_error' })
  await page
    .getByTestId('image-files')
    .setInputFiles([file('figures.csv', '1,2'), file('a "plan"\n\u202e.md', 'plan'), file('wrong.txt', 'x')])
  const there = page.getByTestId('attachments').locator('[data-state=there]')
  await until(async () => expect(await there.count()).toBe(3))
  complaints.length = 0 // the 409 of the name that was taken
  expect(await lookAt(page, `attached-${name}`)).toEqual([])
  await page.getByRole('button', { name: 'Remove wrong.txt' }).click()
  await until(() => expect(service.files.has('uploads/wrong.txt')).toBe(false))
  expect(service.files.get('uploads/figures.csv')?.toString()).toBe('of before')
  await page.getByTestId('composer').fill('Sum them up')
  await page.getByTestId('send').click()
  const text =
    'Sum them up\n\nAttached file: /workspace/uploads/figures (2).csv\nAttached file: /workspace/uploads/a _plan___.md'
  await until(() => expect(frames('ai_chat')).toMatchObject([{ text }]))
  const said = page.getByTestId('message-user').last()
  await said.getByRole('button', { name: 'figures (2).csv' }).waitFor()
  expect(await said.getByText('Attached file').count()).toBe(0)
  expect(await lookAt(page, `attached-said-${name}`)).toEqual([])
  await said.getByRole('button', { name: 'figures (2).csv' }).click()
  await page.getByRole('heading', { name: 'figures (2).csv' }).waitFor()
  await page.getByRole('columnheader').first().waitFor()
  expect(await lookAt(page, `attached-shown-${name}`)).toEqual([])
})

test('a long text that is pasted becomes a file, unless one wants it in the message', async () => {
  const page = await signedIn()
  const composer = page.getByTestId('composer')
  const paste = (length: number) =>
    composer.evaluate(
      (field, text) => {
        const clipboardData = new DataTransfer()
        clipboardData.setData('text/plain', text)
        field.dispatchEvent(new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true }))
      },
      'long '.repeat(length / 5),
    )
  await composer.fill('before after')
  await composer.evaluate((field) => (field as HTMLTextAreaElement).setSelectionRange(7, 7))
  await paste(4_000)
  expect(service.files.size).toBe(0)
  await paste(5_000)
  await until(() => expect(service.files.get('uploads/pasted text.txt')?.length).toBe(5_000))
  await page.getByRole('button', { name: 'Put it into the message' }).click()
  await until(async () => expect((await composer.inputValue()).length).toBe(5_012))
  expect(await composer.inputValue()).toMatch(/^before long .* after$/)
  await until(() => expect(service.files.size).toBe(0))
})

test('@ names a file of the workspace, which the message then leads to', async () => {
  for (const path of ['src/main.ts', 'docs/my plan.md', 'docs/other.md'])
    service.files.set(path, Buffer.from(`of ${path}`))
  const page = await signedIn({ sessionId: 's_error' })
  const composer = page.getByTestId('composer')
  await composer.pressSequentially('Read @plan')
  const list = page.getByRole('listbox', { name: 'Files of your workspace' })
  await list.getByText('my plan.md').waitFor()
  expect(await lookAt(page, 'mention-file')).toEqual([])
  await page.keyboard.press('Enter')
  expect(await composer.inputValue()).toBe('Read "/workspace/docs/my plan.md" ')
  await composer.pressSequentially('and @main')
  await list.getByText('main.ts').waitFor()
  await page.keyboard.press('Tab')
  expect(await composer.inputValue()).toBe('Read "/workspace/docs/my plan.md" and /workspace/src/main.ts ')
  // An address of mail is none of a file.
  await composer.pressSequentially('for me@main')
  expect(await list.count()).toBe(0)
  await page.keyboard.press('Enter')
  await until(() => expect(frames('ai_chat')).toHaveLength(1))
  await page.getByTestId('named-file').filter({ hasText: 'main.ts' }).click()
  await page.getByText('of src/main.ts').waitFor()
})

test('a folder that is dropped goes to the workspace with all that is in it, and the message names it', async () => {
  const folder = join(await mkdtemp(join(tmpdir(), 'sandlot-drop-')), 'site')
  await mkdir(join(folder, 'css'), { recursive: true })
  await writeFile(join(folder, 'index.html'), '<p>')
  await writeFile(join(folder, 'css/main.css'), 'p {}')
  const page = await signedIn()
  await page.getByTestId('composer').fill('Look at this:')
  const drag = await page.context().newCDPSession(page)
  for (const type of ['dragEnter', 'dragOver', 'drop'] as const)
    await drag.send('Input.dispatchDragEvent', {
      type,
      x: 640,
      y: 300,
      data: { items: [], files: [folder], dragOperationsMask: 1 },
    })
  await until(() =>
    expect([...service.files.keys()].toSorted()).toEqual([
      'uploads/site/css/main.css',
      'uploads/site/index.html',
    ]),
  )
  await page.getByRole('treeitem', { name: 'uploads', exact: true }).waitFor()
  expect(await page.getByTestId('composer').inputValue()).toBe('Look at this:\n/workspace/uploads/site')
  await rm(dirname(folder), { recursive: true })
})

test('in a chat of another only images are attached, and files that it names are no links', async () => {
  const bob = { id: 'u_bob', name: 'Bob Martin' }
  const log = new SessionLog()
  log.prompt('Look at /workspace/a.md\n\nAttached file: /workspace/uploads/b.pdf')
  log.text('agent_message_chunk', 'I did.')
  log.end('completed')
  service.add('s_bobs', 'Of Bob', log, { owner: bob, access: 'take_part' })
  const page = await signedIn({ sessionId: 's_bobs' })
  await page.getByText('b.pdf').waitFor()
  expect(await page.getByTestId('named-file').count()).toBe(0)
  await page.getByTestId('composer').evaluate((field) => {
    const dataTransfer = new DataTransfer()
    dataTransfer.items.add(new File(['x'], 'x.pdf'))
    field.dispatchEvent(new DragEvent('drop', { dataTransfer, bubbles: true, cancelable: true }))
  })
  await page
    .getByText('Only images can be attached here: this chat’s files are in Bob Martin’s workspace.')
    .waitFor()
  expect(service.files.size).toBe(0)
})
