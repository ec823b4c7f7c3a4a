/**
 * Makes a data folder with a person, a chat, a secret, a rule and a prompt that waits for an approval. Run by
 * test/fixtures/older-data/make.sh in a checkout of an earlier version, whose own files it imports there.
 */
import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  startFakeProvider,
  textAnswer,
  toolCalls,
} from '../../packages/ai-agent/test/support/fake-provider.ts'
import { firstVisit, launchBrowser } from './browser.ts'
import { startSandlot } from './processes.ts'

const [target = ''] = process.argv.slice(2)
const provider = await startFakeProvider()
const agent = { OPENAI_BASE_URL: provider.baseUrl, OPENAI_MODEL: 'scripted', SANDLOT_DEFAULT_MODE: 'manual' }
const sandlot = await startSandlot({ agent })
const browser = await launchBrowser()
const copy = mkdtempSync(join(tmpdir(), 'sandlot-older-data-'))
try {
  const ada = await firstVisit(browser, sandlot)
  const headers = { origin: sandlot.url }
  const made = [
    await ada.context.request.put('/api/secrets/TOKEN', { data: { value: 'an old secret' }, headers }),
    await ada.context.request.post('/api/rules', {
      data: { effect: 'deny', match: { shell: 'reboot' } },
      headers,
    }),
  ]
  for (const answer of made) if (!answer.ok()) throw new Error(`${answer.url()}: ${await answer.text()}`)
  provider.add(textAnswer('Hello, Ada.'))
  await ada.say('good morning')
  await ada.answers.filter({ hasText: 'Hello, Ada.' }).waitFor()
  await ada.page.goto('/')
  await ada.composer.waitFor()
  provider.add(toolCalls([{ id: 'p', name: 'run_shell_command', args: { command: 'touch kept; ls' } }]))
  await ada.say('touch it')
  await ada.page.getByTestId('approval').waitFor()

  for (const name of ['sessions.db', 'accounts.db'])
    new DatabaseSync(join(sandlot.data, name)).exec(`VACUUM INTO '${join(copy, name)}'`)
  mkdirSync(join(copy, 'keys'))
  cpSync(join(sandlot.data, 'keys'), join(copy, 'keys'), { recursive: true })
  execFileSync('tar', ['-C', copy, '--owner=0', '--group=0', '-czf', target, '.'])
} finally {
  await browser.close()
  await sandlot.stop()
  await provider.close()
  rmSync(copy, { recursive: true })
}
