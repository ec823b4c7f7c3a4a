/** The pages before one is signed in, in a real browser. */
import { expect, test } from 'vitest'
import { PHONE, lookAt, until, usePages } from '../fixture/pages.ts'
import { PERSON } from '../fixture/service.ts'
import { CODE, RECOVERY_CODES } from '../fixture/sign-in.ts'

const { complaints, service, url, newPage, signedIn } = usePages()

const OFFER = {
  role: 'member' as const,
  email: null,
  createdBy: 'Ada Lovelace',
  expiresAt: 1_900_000_000_000,
}

function waysOf(local: 'all' | 'admins', reset = false): void {
  service.setupNeeded = false
  service.signIn.ways = {
    local,
    providers: [
      { id: 'work', name: 'Example SSO', ready: true },
      { id: 'slow', name: 'Partner login', ready: false },
    ],
    reset,
  }
}

test('a provider is one button; where passwords are for administrators the form is a quiet link', async () => {
  waysOf('admins')
  const page = await newPage()
  await page.goto(`${url()}/settings/secrets`)
  const button = page.getByRole('button', { name: 'Continue with Example SSO' })
  await button.waitFor()
  await page.getByText('Partner login didn’t respond').waitFor()
  expect(await page.getByLabel('E-mail').count()).toBe(0)
  expect(await lookAt(page, 'sign-in-providers')).toEqual([])
  await page.getByRole('button', { name: 'Sign in with a password' }).click()
  expect(await page.getByLabel('E-mail').evaluate((one) => one === document.activeElement)).toBe(true)
  await button.click()
  await page.waitForURL(/provider=work/)
  const begun = service.signIn.asked.find(({ route }) => route === 'POST /api/sign-in/providers/work')
  expect(begun?.body).toEqual({ returnTo: '/settings/secrets' })
})

test('why a provider’s sign-in failed is said where one comes back to', async () => {
  waysOf('all')
  const message = 'Example SSO does not say that your address is verified. Ask your administrator.'
  service.signIn.problems.set('p1', message)
  const page = await newPage({ viewport: PHONE, theme: 'dark' })
  await page.goto(`${url()}/sign-in?problem=p1`)
  await page.getByRole('alert').getByText(message).waitFor()
  expect(await lookAt(page, 'sign-in-problem-phone-dark')).toEqual([])
  await page.goto(`${url()}/sign-in?problem=gone`)
  await page.getByText('Sign-in failed. Try again.').waitFor()
  complaints.length = 0 // the 404
})

test('the second step: a wrong code is said, six digits are enough, a recovery code works too', async () => {
  service.setupNeeded = false
  service.signIn.account.secondFactor = true
  const page = await newPage()
  const begin = async () => {
    await page.goto(`${url()}/sign-in`)
    await page.getByLabel('E-mail').fill(PERSON.email)
    await page.getByLabel('Password', { exact: true }).fill(PERSON.password)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Two-step sign-in' }).waitFor()
  }
  await begin()
  await page.keyboard.type('000000')
  await page.keyboard.press('Enter')
  await page.getByText('That code isn’t valid.').waitFor()
  expect(await lookAt(page, 'sign-in-code')).toEqual([])
  await page.getByRole('button', { name: 'Start again' }).click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
  await begin()
  await page.keyboard.type(RECOVERY_CODES[0] ?? '')
  await page.keyboard.press('Enter')
  await page.getByTestId('composer').waitFor()
  await page.context().clearCookies()
  await begin()
  await page.keyboard.type(`${CODE.slice(0, 3)} ${CODE.slice(3)}`)
  await page.keyboard.press('Enter')
  await page.getByTestId('composer').waitFor()
})

test('a forgotten password: a mail is asked for, its link sets another one; an old link says so', async () => {
  service.setupNeeded = false
  const page = await newPage()
  await page.goto(`${url()}/sign-in`)
  await page.getByLabel('E-mail').fill(PERSON.email)
  expect(await page.getByRole('button', { name: 'Forgot your password?' }).count()).toBe(0)
  service.signIn.ways = { local: 'all', providers: [], reset: true }
  await page.reload()
  await page.getByLabel('E-mail').fill(PERSON.email)
  await page.getByRole('button', { name: 'Forgot your password?' }).click()
  expect(await page.getByLabel('E-mail').inputValue()).toBe(PERSON.email)
  await page.getByRole('button', { name: 'Send the link' }).click()
  await page.getByText(`If ${PERSON.email} has an account here`).waitFor()
  expect(await lookAt(page, 'sign-in-mailed')).toEqual([])

  for (const [token, words] of [
    ['old', 'This link was used or has expired.'],
    ['good', 'Your password is changed'],
  ]) {
    await page.goto(`${url()}/reset?token=${token}`)
    await page.getByLabel('New password', { exact: true }).fill('another good one')
    await page.getByRole('button', { name: 'Change password' }).click()
    await page.getByText(words ?? '').waitFor()
    complaints.length = 0 // the 403
  }
  await page.getByRole('link', { name: 'Go to sign in' }).click()
  await page.getByRole('heading', { name: 'Sign in' }).waitFor()
})

test('an invitation says who invites as what, and makes an account by provider or password', async () => {
  waysOf('all')
  service.signIn.offer = { ...OFFER, email: 'cid@example.org' }
  const page = await newPage()
  await page.goto(`${url()}/invitation?token=one-time`)
  await page.getByRole('heading', { name: 'Ada Lovelace invites you' }).waitFor()
  await page.getByText('You’ll join as a member.').waitFor()
  expect(await lookAt(page, 'invitation')).toEqual([])
  expect(await page.getByLabel('E-mail').inputValue()).toBe('cid@example.org')
  await page.getByLabel('Your name').fill('Cid')
  await page.getByLabel('Password', { exact: true }).fill('a first password')
  await page.getByRole('button', { name: 'Create account' }).click()
  await page.getByTestId('composer').waitFor()
  expect(new URL(page.url()).pathname).toBe('/')
  const accepted = service.signIn.asked.find(({ route }) => route === 'POST /api/invitations/accept')
  expect(accepted?.body).toEqual({
    token: 'one-time',
    name: 'Cid',
    email: 'cid@example.org',
    password: 'a first password',
  })
})

test('an invitation that is used says so; signed in, it leads on; by provider alone it has no form', async () => {
  waysOf('admins')
  const page = await newPage({ viewport: PHONE })
  await page.goto(`${url()}/invitation?token=used`)
  await page.getByText('This invitation has been used already.').waitFor()
  complaints.length = 0 // the 403
  service.signIn.offer = { ...OFFER, role: 'guest' }
  await page.reload()
  await page.getByText('as a guest').waitFor()
  expect(await page.getByLabel('Your name').count()).toBe(0)
  expect(await lookAt(page, 'invitation-guest-phone')).toEqual([])
  await page.getByRole('button', { name: 'Continue with Example SSO' }).click()
  await page.waitForURL(/provider=work/)
  await until(() =>
    expect(service.signIn.asked).toContainEqual({
      route: 'POST /api/sign-in/providers/work',
      body: { invitation: 'used' },
    }),
  )
  const known = await signedIn()
  await known.goto(`${url()}/invitation?token=one-time`)
  await known.getByRole('heading', { name: 'You’re already signed in' }).waitFor()
  expect(await lookAt(known, 'invitation-signed-in')).toEqual([])
  await known.getByRole('button', { name: 'Sign out' }).click()
  await known.getByText('as a guest').waitFor()
})
