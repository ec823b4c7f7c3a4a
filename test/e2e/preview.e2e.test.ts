/** An app that the agent starts in the sandbox, opened in a tab; and what it changed on the way. */
import { expect, test } from 'vitest'
import { textAnswer, toolCalls } from '../../packages/ai-agent/test/support/fake-provider.ts'
import { useWorld } from './fixture.ts'

const world = useWorld()

/** Tries what a page must not get by standing beside ours. */
const APP = `
import http.server
class App(http.server.BaseHTTPRequestHandler):
  def do_GET(self):
    self.send_response(200)
    self.send_header('Content-Type', 'text/html')
    self.send_header('Set-Cookie', 'mine=1')
    self.send_header('Set-Cookie', 'sandlot.session_token=evil; Domain=localhost')
    self.end_headers()
    self.wfile.write(('<title>My app</title><p id=asked>%s|%s</p>' % (self.path, self.headers.get('Cookie'))).encode())
http.server.ThreadingHTTPServer(('127.0.0.1', 8123), App).serve_forever()
`

test('an app in the sandbox opens at an origin of its own, and reaches nothing of ours', async () => {
  const { ada, sandlot, script } = world()
  const { page } = ada
  script(
    toolCalls([{ id: 'c1', name: 'write_file', args: { path: 'app.py', content: APP } }]),
    toolCalls([
      { id: 'c2', name: 'run_shell_command', args: { command: 'python3 app.py', background: true } },
    ]),
    textAnswer('Your app runs on port 8123.'),
  )
  await ada.say('Start my app.')
  await page.getByTestId('changes-line').filter({ hasText: '1 file created' }).click()
  // The diff of the only file is open.
  await page.getByTestId('prompt-changes').getByText('import http.server').waitFor()

  await page.getByRole('tab', { name: 'App' }).click()
  const opening = page.context().waitForEvent('page')
  await page.getByRole('link', { name: 'Open port 8123 in a new tab' }).click()
  const app = await opening
  await app.getByText('/|None').waitFor()
  const ours = new URL(sandlot.url)
  expect(new URL(app.url()).hostname).toMatch(/^[a-z2-7]{26}\.localhost$/)
  await app.goto(new URL('/again?x', app.url()).href)
  await app.getByText('/again?x|mine=1').waitFor()
  expect(await app.evaluate('document.cookie')).toBe('mine=1')

  const tried = await app.evaluate(
    `(async () => {
      const api = await fetch(${JSON.stringify(`${ours.origin}/api/me`)}, { credentials: 'include' }).then((r) => r.status, () => 'refused')
      const own = await fetch('/api/me').then((r) => r.text())
      const socket = new WebSocket(${JSON.stringify(`${ours.origin.replace('http', 'ws')}/ws`)})
      const joined = await new Promise((done) => { socket.onopen = () => done('open'); socket.onerror = () => done('refused') })
      return [api, own, joined]
    })()`,
  )
  expect(tried).toEqual(['refused', expect.stringContaining('/api/me|mine=1'), 'refused'])
  await page.reload()
  await ada.composer.waitFor()
  // Nothing of it stayed with us.
  expect((await page.context().cookies(sandlot.url)).map(({ value }) => value)).not.toContain('evil')
  await app.close()
})
