/** The settings of sign-in and security, in a real browser. */
import decode from 'qr/decode.js'
import type { Locator } from 'playwright-core'
import { expect, test } from 'vitest'
import { PHONE, lookAt, until, usePages } from '../fixture/pages.ts'
import { PERSON } from '../fixture/service.ts'
import { CODE, RECOVERY_CODES } from '../fixture/sign-in.ts'

const { complaints, service, signedIn, url } = usePages()

/** The text that a phone reads from the code, which is one path of squares. */
async function scan(code: Locator): Promise<string> {
  const side = Number((await code.getAttribute('viewBox'))?.split(' ')[2])
  const path = (await code.locator('path').getAttribute('d')) ?? ''
  const [margin, scale] = [4, 4]
  const width = (side + 2 * margin) * scale
  const data = new Uint8Array(width * width * 3).fill(255)
  for (const [, x, y] of path.matchAll(/M(\d+) (\d+)/g))
    for (let row = 0; row < scale; row++) {
      const from = ((Number(y) + margin) * scale + row) * width + (Number(x) + margin) * scale
      data.fill(0, from * 3, (from + scale) * 3)
    }
  return decode({ width, height: width, data })
}

test('two-step sign-in: a code to scan, recovery codes once, and off again by the password', async () => {
  const page = await signedIn()
  await page.goto(`${url()}/settings/security`)
  const part = page.getByRole('region', { name: 'Two-step sign-in' })
  await part.getByRole('button', { name: 'Set up' }).click()
  const password = part.getByLabel('Your password', { exact: true })
  await part.locator('input:focus').waitFor()
  await page.keyboard.type('a guess')
  await page.keyboard.press('Enter')
  await part.getByText('That is not your current password.').waitFor()
  await password.fill(PERSON.password)
  await page.keyboard.press('Enter')
  const code = part.getByRole('img', { name: 'QR code' })
  await until(async () => expect(await code.locator('path').getAttribute('d')).not.toBe(''))
  expect(await scan(code)).toMatch(/^otpauth:\/\/totp\/Sandlot:ada@example\.org\?secret=JBSWY3DP/)
  await part.getByText('JBSW Y3DP').waitFor()
  expect(await lookAt(page, 'security-scan')).toEqual([])
  await part.getByLabel('Code', { exact: true }).fill('000000')
  await page.keyboard.press('Enter')
  await part.getByText('That code isn’t valid.').waitFor()
  complaints.length = 0 // the 403s
  await part.getByLabel('Code', { exact: true }).fill(CODE)
  await page.keyboard.press('Enter')
  const codes = part.getByRole('list', { name: 'Recovery codes' }).getByRole('listitem')
  await codes.first().waitFor()
  expect(await codes.allInnerTexts()).toEqual(RECOVERY_CODES)
  expect(await lookAt(page, 'security-codes')).toEqual([])
  const [saved] = await Promise.all([
    page.waitForEvent('download'),
    part.getByRole('button', { name: 'Download' }).click(),
  ])
  expect(saved.suggestedFilename()).toBe('sandlot-recovery-codes.txt')
  await part.getByRole('button', { name: 'I’ve saved them' }).click()
  await part.getByText('On', { exact: true }).waitFor()
  await part.getByRole('button', { name: 'Turn off' }).click()
  await part.getByLabel('Your password', { exact: true }).fill(PERSON.password)
  await part.getByLabel('Code', { exact: true }).fill('000000')
  await page.keyboard.press('Enter')
  await part.getByText('That code isn’t valid.').waitFor()
  complaints.length = 0 // the 403
  await part.getByLabel('Code', { exact: true }).fill(CODE)
  await page.keyboard.press('Enter')
  await part.getByRole('button', { name: 'Set up' }).waitFor()
  expect(service.signIn.account.secondFactor).toBe(false)
})

test('where one is signed in: this browser is named, another sign-in is ended', async () => {
  const page = await signedIn({ viewport: PHONE, theme: 'dark' })
  await page.goto(`${url()}/settings/security`)
  const own = page.getByRole('list', { name: 'Your sign-ins' })
  await own.getByText('This browser').waitFor()
  await own.scrollIntoViewIfNeeded()
  expect(await lookAt(page, 'security-phone-dark')).toEqual([])
  await own.getByRole('button', { name: 'Sign out: Safari on iPhone' }).click()
  await until(async () => expect(await own.getByRole('listitem').count()).toBe(1))
  expect(await own.getByRole('button').count()).toBe(0)
})

test('providers are linked and unlinked; why one was not is said; the only way in stays', async () => {
  service.signIn.ways = {
    local: 'all',
    providers: [{ id: 'work', name: 'Example SSO', ready: true }],
    reset: false,
  }
  service.signIn.problems.set('p_link', 'That account is linked to another person here.')
  const page = await signedIn()
  await page.goto(`${url()}/settings/security`)
  await page.getByRole('button', { name: 'Link Example SSO' }).click()
  const form = page.getByRole('form', { name: 'Link Example SSO' })
  await form.getByLabel('Your password', { exact: true }).fill(PERSON.password)
  await form.getByRole('button', { name: 'Continue' }).click()
  await page.getByRole('alert').getByText('That account is linked to another person here.').waitFor()
  expect(await lookAt(page, 'security-link-problem')).toEqual([])

  const linkedAt = 1_790_000_000_000
  const providers = [{ id: 'work', name: 'Example SSO', linkedAt }]
  service.signIn.account = { password: false, secondFactor: false, providers }
  await page.goto(`${url()}/settings/security`)
  await page.getByText('Set up two-step sign-in there.').waitFor()
  expect(await page.getByRole('button', { name: 'Change password' }).count()).toBe(0)
  await page.getByRole('button', { name: 'Unlink Example SSO' }).click()
  await page.getByText('This is your only way in.').waitFor()
  complaints.length = 0 // the 409
})
