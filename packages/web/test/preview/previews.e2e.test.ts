/** Files as a person sees them, in a real browser: each kind, what is too much, and what must not get out. */
import { createSocket } from 'node:dgram'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sample } from '../../../../test/campaign.ts'
import { DESKTOP, lookAt, PHONE, until, usePages, oneLook } from '../fixture/pages.ts'
import { pdfOf } from '../fixture/pdf.ts'
import { pictureOf } from '../fixture/picture.ts'
import { SessionLog } from '../fixture/session-log.ts'

const { complaints, service, signedIn, openChat } = usePages()

/** Requests that a page of the workspace made. */
const caught: string[] = []
const outside = createServer((request, response) => {
  caught.push(`${request.method} ${request.url}`)
  response.setHeader('access-control-allow-origin', '*')
  response.end()
})
const stun = createSocket('udp4', () => caught.push('WebRTC'))
let away = ''
let udp = 0
beforeAll(async () => {
  await new Promise<void>((done) => outside.listen(0, '127.0.0.1', done))
  await new Promise<void>((done) => stun.bind(0, '127.0.0.1', done))
  away = `http://127.0.0.1:${(outside.address() as AddressInfo).port}`
  udp = stun.address().port
})
afterAll(() => {
  outside.close()
  stun.close()
})

/** The link of an answer does this. */
async function show(page: Page, path: string, bytes: Buffer | string): Promise<Locator> {
  service.files.set(path, Buffer.from(bytes))
  const log = new SessionLog()
  log.prompt('Where is it?')
  log.text('agent_message_chunk', `It is [here](<${path}>).`)
  log.end('completed')
  // On a phone the dock is over the chat.
  await page.keyboard.press('Escape')
  const sessionId = `s_${path.replaceAll(/\W/g, '_')}`
  service.add(sessionId, path, log)
  await openChat(page, sessionId)
  await page.getByTestId('workspace-link').filter({ hasText: 'here' }).click()
  const preview = page.getByRole('region', { name: `Preview of ${path}` })
  await preview.waitFor()
  return preview
}

const SVG =
  '<svg xmlns="http://www.w3.org/2000/svg" width="120" height="80"><script>parent.ran = true</script><rect width="120" height="80" fill="teal"/></svg>'
const NOTEBOOK = JSON.stringify({
  nbformat: 4,
  metadata: { language_info: { name: 'python' } },
  cells: [
    { cell_type: 'markdown', source: ['# Sales\n', 'By month, with $\\bar{x} = 12$.'] },
    {
      cell_type: 'code',
      execution_count: 1,
      source: 'df = read_csv("sales.csv")\ndf.plot()',
      outputs: [
        { output_type: 'stream', name: 'stdout', text: '\u001b[32mread 12 rows\u001b[0m\n' },
        {
          output_type: 'execute_result',
          data: {
            'text/html':
              '<table><tr><th>month</th><th>sales</th></tr><tr><td>May</td><td>12</td></tr></table><script>parent.ran = true</script>',
          },
        },
        { output_type: 'display_data', data: { 'image/png': pictureOf(320, 160).toString('base64') } },
        {
          output_type: 'error',
          ename: 'KeyError',
          evalue: 'x',
          traceback: ['\u001b[31mKeyError\u001b[0m: x'],
        },
      ],
    },
  ],
})
const MARKDOWN =
  '---\ntitle: Sales\n---\n# Sales\n\nThe mean is $\\bar{x} = \\frac{1}{n}\\sum_i x_i$, and\n\n$$\n\\int_0^1 x^2\\,dx = \\frac13\n$$\n\n```mermaid\nflowchart LR\n  A[Orders] --> B{Paid?}\n  B -->|yes| C[Ship]\n  B -->|no| D[Remind]\n```\n\n[back](../plot.png)\n'
const PATCH =
  'diff --git a/src/add.ts b/src/add.ts\n--- a/src/add.ts\n+++ b/src/add.ts\n@@ -1,3 +1,3 @@ export\n export function add(a, b) {\n-  return a - b\n+  return a + b\n }\n'
/** A second of silence, at so many samples. */
function wavOf(samples: number): Buffer {
  const head = Buffer.alloc(44)
  head.write('RIFF', 0)
  head.writeUInt32LE(36 + samples, 4)
  head.write('WAVEfmt ', 8)
  head.writeUInt32LE(16, 16)
  head.writeUInt16LE(1, 20)
  head.writeUInt16LE(1, 22)
  head.writeUInt32LE(samples, 24)
  head.writeUInt32LE(samples, 28)
  head.writeUInt16LE(1, 32)
  head.writeUInt16LE(8, 34)
  head.write('data', 36)
  head.writeUInt32LE(samples, 40)
  return Buffer.concat([head, Buffer.alloc(samples, 128)])
}
const csv = (rows: number) =>
  `id,city,people\n${Array.from({ length: rows }, (_, at) => `${at + 1},City ${(at * 7919) % rows},${at === 5 ? 99_000_000 : (at * 104_729) % 1_000_003}`).join('\n')}\n`

test.each(
  oneLook('previews', [
    ['desktop-light', { viewport: DESKTOP, theme: 'light' as const }],
    ['phone-dark', { viewport: PHONE, theme: 'dark' as const }],
  ]),
)(
  'a file is shown by what it is: %s',
  async (name, look) => {
    const page = await signedIn(look)
    const isWell = async (kind: string) => expect(await lookAt(page, `preview-${kind}-${name}`)).toEqual([])

    let preview = await show(page, 'plot.png', pictureOf(640, 400))
    await preview.getByText('640 × 400').waitFor()
    await isWell('image')
    await preview.getByRole('button', { name: 'Larger' }).click()
    await preview.getByRole('button', { name: /^\d+ %$/ }).waitFor()

    preview = await show(page, 'report.pdf', pdfOf(3, 'Sales have grown'))
    await preview.getByText('1 of 3 pages').waitFor()
    await preview.getByText('Sales have grown: page 1').waitFor()
    await isWell('pdf')

    preview = await show(page, 'cities.csv', csv(500))
    await preview.getByRole('cell', { name: 'City 419', exact: true }).waitFor()
    await isWell('table')

    preview = await show(page, 'docs/sales.md', MARKDOWN)
    await preview.locator('.katex-display').waitFor()
    await preview.getByRole('button', { name: /^Open Diagram/ }).waitFor()
    expect(await preview.getByTestId('workspace-link').getAttribute('title')).toBe('plot.png')
    await isWell('markdown')

    preview = await show(page, 'page.html', '<h1>Hello</h1><script>document.body.append("it runs")</script>')
    await preview.frameLocator('iframe').getByText('it runs').waitFor()
    await isWell('page')
    await preview.getByRole('button', { name: 'Source' }).click()
    await preview.getByText('document.body.append').waitFor()
  },
  150_000,
)

test('notebooks, JSON, patches, code, sounds and any other bytes are shown by what they are', async () => {
  const page = await signedIn({ theme: 'dark' })
  let preview = await show(page, 'sales.ipynb', NOTEBOOK)
  await preview.getByText('read 12 rows').waitFor()
  await preview.frameLocator('iframe').getByText('May').waitFor()
  await preview.locator('.katex').waitFor()
  expect(await lookAt(page, 'preview-notebook')).toEqual([])

  preview = await show(page, 'data.json', '{"id": 12345678901234567890, "list": [1, {"deep": null}]}')
  await preview.getByText('12345678901234567890').waitFor()
  await preview.getByRole('button', { name: 'list' }).click()
  await preview.getByText('2 items').waitFor()
  expect(await lookAt(page, 'preview-json')).toEqual([])

  preview = await show(page, 'fix.patch', PATCH)
  await preview.getByText('src/add.ts').waitFor()
  expect(await lookAt(page, 'preview-patch')).toEqual([])

  preview = await show(page, 'main.py', 'def main():\n    """Says it."""\n    print("hello")\n')
  await preview.locator('.tok-keyword', { hasText: 'def' }).waitFor()
  expect(await lookAt(page, 'preview-code')).toEqual([])

  preview = await show(page, 'tool.bin', Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 1, 2, 3]))
  await preview.getByText('7f 45 4c 46').waitFor()
  expect(await lookAt(page, 'preview-bytes')).toEqual([])

  preview = await show(page, 'note.wav', wavOf(8000))
  const sound = preview.locator('audio')
  await until(async () =>
    expect(await sound.evaluate((audio) => (audio as HTMLAudioElement).duration)).toBe(1),
  )
  expect(await lookAt(page, 'preview-sound')).toEqual([])
})

test('an answer has math and diagrams, prices stay prices, and its files are below it', async () => {
  service.files.set('report.pdf', pdfOf(1, 'Sales'))
  service.files.set('plot.png', pictureOf(640, 400))
  const log = new SessionLog()
  log.prompt('Draw it.')
  log.text(
    'agent_message_chunk',
    'With $e^{i\\pi} + 1 = 0$, prices of $5 to $10 and\n\n\\[ \\sum_{k=1}^n k \\]\n\n```mermaid\nflowchart LR\n  A[Orders] --> B{Paid?}\n  B -->|yes| C[Ship]\n  B -->|no| D[Remind]\n```\n\n```mermaid\nflowchart TD\n  A[[ --> B\n```\n\nSee [the report](report.pdf) and `/workspace/plot.png`.',
  )
  log.end('completed')
  service.add('s_drawn', 'Drawn', log)
  const page = await signedIn({ sessionId: 's_drawn' })
  const answer = page.getByTestId('message-assistant')
  await answer.locator('.katex-display').waitFor()
  await until(async () => expect(await answer.locator('.katex').count()).toBe(2))
  await answer.getByText('prices of $5 to $10').waitFor()
  const diagram = answer.getByRole('button', { name: /^Open Diagram/ }).locator('img')
  await diagram.waitFor()
  // Narrower, and it was measured before its parts were at their places.
  expect(await diagram.evaluate((image) => (image as HTMLImageElement).naturalWidth)).toBeGreaterThan(600)
  await answer.getByText('Couldn’t draw this diagram: Parse error').waitFor()
  await answer.getByRole('button', { name: 'Open plot.png' }).getByRole('img').waitFor()
  expect(await lookAt(page, 'preview-answer')).toEqual([])
  await answer.getByTestId('file-card').filter({ hasText: 'report.pdf' }).click()
  await page.getByTestId('file-preview').getByText('1 of 1 page').waitFor()
})

test('a table of 100,000 rows is sorted and filtered, and only what is on the screen exists', async () => {
  const page = await signedIn()
  const preview = await show(page, 'cities.csv', csv(100_000))
  await preview.getByText('100,000 rows').waitFor()
  await preview.getByRole('button', { name: 'people' }).click()
  await preview.getByRole('button', { name: 'people' }).click()
  await preview.getByRole('cell', { name: '99000000', exact: true }).waitFor()
  await preview.getByLabel('Show only rows with').fill('99000000')
  await preview.getByText('1 of 100,000 rows').waitFor()
  expect(await preview.getByRole('cell').allInnerTexts()).toEqual(['6', 'City 39595', '99000000'])
  await preview.getByLabel('Show only rows with').fill('')
  await preview.getByText(/^100,000 rows/).waitFor()
  expect(await page.locator('*').count()).toBeLessThan(2500)
})

test('what is broken or too much says so, and only the head of a large file is read', async () => {
  const page = await signedIn()
  let preview = await show(
    page,
    'words.csv',
    'This is a letter, and no table at all.\nIt goes on, and on, and on, and on.\n\nBye',
  )
  await preview.getByText('No columns found').waitFor()
  preview = await show(page, 'broken.ipynb', '{"cells": [')
  await preview.getByText('This notebook is damaged').waitFor()
  preview = await show(page, 'other.ipynb', '{"worksheets": []}')
  await preview.getByText('isn’t a version 4 notebook').waitFor()
  preview = await show(page, 'broken.json', '{"a": ')
  await preview.getByText('This isn’t valid JSON').waitFor()
  preview = await show(page, 'broken.pdf', '%PDF-1.7\n\0\0 and nothing else')
  await preview.getByText('This PDF is damaged').waitFor()
  preview = await show(page, 'bomb.pdf', pdfOf(1, 'x', 1_000_000))
  await preview.getByText(/too large to preview|1 of 1 page|damaged/).waitFor()
  preview = await show(page, 'broken.png', '\u0089PNG\r\n\u001A\nno')
  await preview
    .getByText(/This image is damaged|Content|as bytes|PNG/)
    .first()
    .waitFor()
  preview = await show(page, 'one-line.txt', 'x'.repeat(3_000_000))
  await preview.getByText('Showing the first 2 MiB of 2.9 MiB').waitFor()
  expect(await page.locator('*').count()).toBeLessThan(1500)
  service.files.sent = 0
  preview = await show(page, 'large.bin', Buffer.alloc(64_000_000))
  await preview.getByText('as bytes').waitFor()
  expect(service.files.sent).toBeLessThan(300_000)
  complaints.length = 0
})

/** Ways in which a diagram names something to load. */
const LOADING_DIAGRAMS = [
  'flowchart LR\n  A["<img src=ADDRESS>"] --> B',
  '%%{init: {"flowchart": {"htmlLabels": true}, "htmlLabels": true}}%%\nflowchart LR\n  A["<img src=ADDRESS> <b>x</b>"] --> B',
  '%%{init: {"securityLevel": "loose", "htmlLabels": true}}%%\nflowchart LR\n  A["<img src=ADDRESS onerror=alert(1)>"] --> B',
  '---\nconfig:\n  htmlLabels: true\n  flowchart:\n    htmlLabels: true\n---\nflowchart LR\n  A["<img src=ADDRESS>"] --> B',
  'flowchart LR\n  A["`![x](ADDRESS)`"] --> B',
  'flowchart LR\n  A@{ img: "ADDRESS", label: "x", w: 60, h: 60 } --> B',
  'flowchart LR\n  A@{ icon: "fa:star", label: "x" } --> B',
  'flowchart LR\n  A --> B\n  style A fill:url(ADDRESS)\n  classDef c background:url(ADDRESS)\n  class B c',
  '%%{init: {"themeCSS": ".node rect { fill: url(ADDRESS); background-image: url(ADDRESS) } @import url(ADDRESS);"}}%%\nflowchart LR\n  A --> B',
  '%%{init: {"themeVariables": {"primaryColor": "url(ADDRESS)"}, "fontFamily": "x;} @import url(ADDRESS); {"}}%%\nflowchart LR\n  A --> B',
  'sequenceDiagram\n  A->>B: <img src=ADDRESS>\n  Note over A: <img src=ADDRESS>',
  'classDiagram\n  class A["<img src=ADDRESS>"]\n  A : <img src=ADDRESS>',
  'stateDiagram-v2\n  s1 : <img src=ADDRESS>\n  s1 --> s2 : <img src=ADDRESS>',
  'mindmap\n  root((<img src=ADDRESS>))\n    a["<img src=ADDRESS>"]',
  'C4Context\n  Person(a, "x", "y", $sprite="ADDRESS")',
  'block-beta\n  a["<img src=ADDRESS>"]',
  'kanban\n  a[<img src=ADDRESS>]\n    b[<img src=ADDRESS>]@{ icon: "ADDRESS" }',
  'architecture-beta\n  service a(cloud)["<img src=ADDRESS>"]',
  'journey\n  title <img src=ADDRESS>\n  section <img src=ADDRESS>\n    a: 5: <img src=ADDRESS>',
  'timeline\n  title <img src=ADDRESS>\n  2002 : <img src=ADDRESS>',
]

test('a diagram loads nothing: not of the network, and not of Sandlot', async () => {
  const page = await signedIn()
  const asked: string[] = []
  page.on('request', (request) => {
    if (request.url().includes('canary')) asked.push(request.url())
  })
  const addresses = [`${away}/canary.png?n=`, '/api/files/content?path=canary.png&n=']
  const text = addresses.flatMap((address) =>
    LOADING_DIAGRAMS.map(
      (source, n) => `\`\`\`mermaid\n${source.replaceAll('ADDRESS', `${address}${n}`)}\n\`\`\``,
    ),
  )
  const preview = await show(page, 'diagrams.md', text.join('\n\n'))
  const drawn = preview.getByRole('button', { name: /^Open Diagram/ }).or(preview.getByText('Couldn’t draw'))
  await expect.poll(() => drawn.count(), { timeout: 60_000 }).toBe(text.length)
  expect(asked).toEqual([])
  complaints.length = 0
})

test('a drawing with a script is a picture', async () => {
  const page = await signedIn()
  const preview = await show(page, 'logo.svg', SVG)
  await preview.getByText('120 × 80').waitFor()
  expect(await page.evaluate('window.ran')).toBeUndefined()
  expect(await preview.getByRole('link', { name: 'Open in a new tab' }).count()).toBe(0)
})

const inSvg = (inner: string) =>
  `<svg xmlns="http://www.w3.org/2000/svg" width="100" height="100">${inner}</svg>`
/** Each of nine levels refers ten times to the one before it. */
const levels = (level: (n: number, before: string) => string) =>
  Array.from({ length: 9 }, (_, n) => level(n + 1, `a${n}`)).join('')
const tenTimes = (one: string) => one.repeat(10)
const TOO_COMPLEX: [string, string][] = [
  [
    'use',
    `<g id="a0"><rect width="1" height="1"/></g>${levels((n, before) => `<g id="a${n}">${tenTimes(`<use href="#${before}"/>`)}</g>`)}`,
  ],
  [
    'xlink',
    `<g id="a0"><rect width="1" height="1"/></g>${levels((n, before) => `<g id="a${n}">${tenTimes(`<use xmlns:x="http://www.w3.org/1999/xlink" x:href="#${before}"/>`)}</g>`)}`,
  ],
  [
    'pattern',
    `${levels((n, before) => `<pattern id="a${n}" width="1" height="1">${tenTimes(`<rect width="9" height="9" fill="url(#${before})"/>`)}</pattern>`)}<rect width="99" height="99" fill="url(#a9)"/>`,
  ],
  [
    'mask in a style',
    `${levels((n, before) => `<mask id="a${n}">${tenTimes(`<rect width="9" height="9" style="mask:url('#${before}')"/>`)}</mask>`)}<rect width="99" height="99" mask="url(#a9)"/>`,
  ],
  [
    'filter',
    `<filter id="f">${'<feTurbulence numOctaves="9"/>'.repeat(50)}</filter>${'<rect width="99" height="99" filter="url(#f)"/>'.repeat(50)}`,
  ],
  [
    'marker',
    `<marker id="m">${'<rect width="1" height="1"/>'.repeat(500)}</marker><path marker-mid="url(#m)" d="${'M1 1 '.repeat(2000)}"/>`,
  ],
  ['depth', `${'<g>'.repeat(3000)}<rect width="1" height="1"/>${'</g>'.repeat(3000)}`],
  [
    'drawing in it',
    `<image width="9" height="9" href="data:image/svg+xml,${encodeURIComponent(inSvg('<rect/>'))}"/>`,
  ],
]

test('a drawing that cannot be drawn in time is shown as text, and as a file where an answer shows it', async () => {
  const page = await signedIn()
  const [use, ...others] = TOO_COMPLEX
  const drawn = [...(use === undefined ? [] : [use]), ...sample('drawings that are too complex', others, 1)]
  for (const [name, inner] of drawn) {
    const preview = await show(page, `${name}.svg`, inSvg(inner))
    await preview.getByText('too complex to preview').waitFor()
    expect(await preview.locator('img').count(), name).toBe(0)
  }
  const log = new SessionLog()
  log.prompt('Show it')
  log.text('agent_message_chunk', '![bad](<use.svg>)\n\n![good](good.svg)')
  log.end('completed')
  const points = '<circle id="p" r="1"/>'.concat('<use href="#p" x="9"/>'.repeat(20_000))
  service.files.set('good.svg', Buffer.from(inSvg(points)))
  service.add('s_drawings', 'Drawings', log)
  await openChat(page, 's_drawings')
  await page.getByText('bad: too complex to draw here').waitFor()
  const good = page.getByTestId('workspace-image').locator('img')
  await expect.poll(() => good.evaluate((image: HTMLImageElement) => image.naturalWidth)).toBe(100)
})

test('a page of the workspace reaches nothing: not the network, not Sandlot, not the tab that it is in', async () => {
  const page = await signedIn()
  const here = page.url()
  const tries = [
    `fetch('${away}/fetch')`,
    `fetch('/api/me').then((r) => r.text()).then((text) => { document.title = text })`,
    `new Image().src = '${away}/image'`,
    `navigator.sendBeacon('${away}/beacon', 'x')`,
    `new WebSocket('${away.replace('http', 'ws')}/socket')`,
    `new Worker(URL.createObjectURL(new Blob(['fetch("${away}/worker")'])))`,
    `document.head.insertAdjacentHTML('beforeend', '<link rel=prefetch href=${away}/prefetch><style>@import url(${away}/css)</style>')`,
    `var peer = new RTCPeerConnection({ iceServers: [{ urls: 'stun:127.0.0.1:${udp}' }] }); peer.createDataChannel('x'); peer.createOffer().then((offer) => peer.setLocalDescription(offer))`,
    `window.open('${away}/popup')`,
    `top.location = '${away}/top'`,
    `parent.location.href = '${away}/parent'`,
    `document.body.insertAdjacentHTML('beforeend', '<form target=_top method=post action=${away}/form></form><iframe src=${away}/frame></iframe><a target=_top href=${away}/link>x</a>'); document.forms[0].submit(); document.links[0].click()`,
    `document.cookie`,
    `parent.document`,
    `localStorage.getItem('x')`,
  ]
  const script = tries
    .map((one) => `try { ${one}; said.push('ran') } catch (error) { said.push(error.name) }`)
    .join('\n')
  const preview = await show(
    page,
    'hostile.html',
    `<body><p id=said></p><script>const said = []; ${script}; document.querySelector('#said').textContent = said.join(' ') + ' end'</script>`,
  )
  const words = preview.frameLocator('iframe').locator('#said')
  await words.getByText('end').waitFor()
  // Cookies, the page around it and storage are what it may not even ask for.
  expect((await words.innerText()).split(' ').slice(-4)).toEqual([
    'SecurityError',
    'SecurityError',
    'SecurityError',
    'end',
  ])
  const leaving = await show(page, 'leaving.html', `<script>location.href = '${away}/leave?secret'</script>`)
  await leaving.locator('iframe').waitFor()
  const refreshing = await show(
    page,
    'refresh.html',
    `<meta http-equiv=refresh content="0;url=${away}/refresh">`,
  )
  await refreshing.locator('iframe').waitFor()
  // The page around it keeps a frame from being led away.
  const kept = /^Framing [^]*default-src 'self'/
  await until(() => expect(complaints.filter((text) => kept.test(text))).toHaveLength(2))
  expect(new URL(page.url()).origin).toBe(new URL(here).origin)
  expect(page.context().pages()).toHaveLength(1)
  expect(caught).toEqual([])
  complaints.length = 0
})
