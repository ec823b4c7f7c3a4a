/** People and teams, as administrators see them, in a real browser. */
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { PHONE, type Look, lookAt, until, usePages } from '../fixture/pages.ts'

const { complaints, service, signedIn, url } = usePages()

async function at(path: string, look: Look = {}): Promise<Page> {
  const page = await signedIn(look)
  await page.goto(`${url()}/settings/${path}`)
  return page
}

test('of 500 people one is found by name, address, role or team, by the keyboard alone', async () => {
  for (let n = 0; n < 500; n++) {
    const role = n % 10 === 0 ? 'guest' : 'member'
    service.people.push({ id: `u${n}`, name: `Person ${n}`, email: `p${n}@example.org`, role, teams: [] })
  }
  service.teams.teams[0]?.members.push({ userId: 'u321', source: 'admin' })
  const page = await at('people')
  const rows = page.getByRole('table', { name: 'People' }).getByRole('row')
  await page.getByText('502 people').waitFor()
  expect(await rows.count()).toBe(101)
  expect(await lookAt(page, 'people')).toEqual([])
  await page.getByLabel('Find a person by name').focus()
  await page.keyboard.type('person 321')
  await page.getByText('1 person of 502').waitFor()
  await page.getByLabel('Find a person by name').fill('data')
  await page.getByText('2 people of 502').waitFor()
  await page.getByLabel('Find a person by name').fill('')
  await page.getByLabel('Role').selectOption('Guest')
  await page.getByText('50 people of 502').waitFor()
  await page.getByLabel('Role').selectOption('All roles')
  await page.getByRole('button', { name: 'Show all 502' }).click()
  expect(await rows.count()).toBe(503)
  await page.getByLabel('Find a person by name').fill('p321@')
  await until(async () => expect(await rows.count()).toBe(2))
  await page.getByLabel('Role').focus()
  for (const _ of ['invite', 'add', 'row']) await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'Person 321', exact: true }).waitFor()
  expect(new URL(page.url()).pathname).toBe('/settings/people/u321')
})

test('an invitation is made, its link shown once, and withdrawn', async () => {
  const page = await at('people', { viewport: PHONE })
  await page.getByRole('button', { name: 'Invite by link' }).click()
  const form = page.getByRole('form', { name: 'Invite by link' })
  await form.getByLabel('E-mail').fill('cid@example.org')
  await form.getByLabel('Role').selectOption('Guest')
  await form.getByLabel('Works for').selectOption('a day')
  await form.getByLabel('data').check()
  await form.getByRole('button', { name: 'Create link' }).click()
  expect(await page.getByTestId('new-invitation').textContent()).toContain('/invitation?token=')
  expect(await lookAt(page, 'people-invited-phone')).toEqual([])
  const asked = service.signIn.asked.find(({ route }) => route === 'POST /api/invitations')
  expect(asked?.body).toEqual({
    role: 'guest',
    teams: ['t_data'],
    email: 'cid@example.org',
    expiresInHours: 24,
  })
  await page.reload()
  expect(await page.getByTestId('new-invitation').count()).toBe(0)
  await page.getByRole('button', { name: 'Withdraw the invitation for cid@example.org' }).click()
  await until(() => expect(service.signIn.invitations).toEqual([]))
})

test('why a person may use something: every setting with where it comes from, also after a change', async () => {
  const page = await at('people/u_bob')
  const holds = page.getByRole('table', { name: 'Effective settings' })
  const row = (name: string) => holds.getByRole('row', { name: new RegExp(`^${name} `) }).innerText()
  await until(async () => expect(await row('Models')).toMatch(/qwen3-vl\s+team “data”/))
  expect(await row('MCP servers(?! of)')).toMatch(/flights, calendar\s+deployment default/)
  expect(await row('US dollars a day')).toMatch(/5\s+team “data”/)
  expect(await lookAt(page, 'person')).toEqual([])
  await page.getByLabel('Add Bob to a team').selectOption('web')
  await page.getByRole('button', { name: 'Take Bob out of web' }).waitFor()
  // The provider’s groups made him a member of the other, and end it.
  expect(await page.getByRole('button', { name: 'Take Bob out of data' }).count()).toBe(0)

  const form = page.getByRole('form', { name: 'What the agent may do' })
  await form.getByLabel('Models', { exact: true }).check()
  await form.getByLabel('qwen3-vl').uncheck()
  await form.getByLabel('Tokens a day').fill('200000')
  await form.getByRole('button', { name: 'Save' }).click()
  await form.getByText('Saved. Applies from the next message.').waitFor()
  await until(async () => expect(await row('Models')).toMatch(/gpt-5-mini\s+personal/))
  expect(await row('Tokens a day')).toMatch(/200,000\s+personal/)
  expect(service.teams.settings.get('person:u_bob')?.settings).toEqual({
    models: ['gpt-5-mini'],
    limits: { tokensPerDay: 200_000 },
  })
})

test('two administrators set the same: both values are shown, and one is chosen', async () => {
  const page = await at('teams/t_data')
  const form = page.getByRole('form', { name: 'What the agent may do' })
  await form
    .getByText('Inherited: YOLO: everything runs unless a rule denies it (deployment default).')
    .waitFor()
  await form.getByLabel('Highest mode').last().selectOption('Manual: reads run, everything else asks')
  const theirs = { settings: { modeCeiling: 'yolo' as const, instructions: 'Be kind.' }, revision: 4 }
  service.teams.settings.set('team:t_data', theirs)
  await form.getByRole('button', { name: 'Save', exact: true }).click()
  const conflict = form.getByRole('alert')
  await conflict.getByText('Another administrator changed this while you were editing.').waitFor()
  complaints.length = 0 // the 409
  const row = conflict.getByRole('row', { name: /Highest mode/ })
  expect(await row.innerText()).toMatch(/YOLO.*Manual/s)
  await conflict.scrollIntoViewIfNeeded()
  expect(await lookAt(page, 'team-conflict')).toEqual([])
  await conflict.getByRole('button', { name: 'Use theirs' }).click()
  expect(await form.getByLabel('Instructions').last().inputValue()).toBe('Be kind.')
  expect(service.teams.settings.get('team:t_data')).toEqual(theirs)

  await form.getByLabel('Highest mode').last().selectOption('Manual: reads run, everything else asks')
  service.teams.settings.set('team:t_data', { settings: {}, revision: 5 })
  await form.getByRole('button', { name: 'Save', exact: true }).click()
  await conflict.getByRole('button', { name: 'Overwrite with mine' }).click()
  await form.getByText('Saved.').waitFor()
  complaints.length = 0 // the 409
  const kept = { modeCeiling: 'manual', instructions: 'Be kind.' }
  expect(service.teams.settings.get('team:t_data')).toEqual({ settings: kept, revision: 6 })
})

test('what cannot be is said before it is sent; a name that is taken, after', async () => {
  const page = await at('teams/t_data')
  const form = page.getByRole('form', { name: 'What the agent may do' })
  await form.getByLabel('Sandbox network', { exact: true }).check()
  await form.getByLabel('Sandbox network').last().selectOption('None')
  await form.getByRole('button', { name: 'Save', exact: true }).click()
  await form.getByText('hosts and ask say nothing with').waitFor()
  expect(service.teams.settings.get('team:t_data')?.revision).toBe(3)
  await form.getByRole('button', { name: 'Discard' }).click()
  expect(await form.getByRole('alert').count()).toBe(0)
  await page.getByRole('link', { name: 'All teams' }).click()
  await page.getByLabel('Name of the new team').fill('web')
  await page.getByRole('button', { name: 'Create team' }).click()
  await page.getByText('There is a team “web” already.').waitFor()
  complaints.length = 0 // the 409
  expect(await lookAt(page, 'teams')).toEqual([])
})

test('a team is made, gets a member by search and single tools, is renamed, and ends', async () => {
  const page = await at('teams', { viewport: PHONE, theme: 'dark' })
  await page.getByLabel('Name of the new team').fill('ops')
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { name: 'ops', exact: true }).waitFor()
  await page.getByLabel('Find a person to add').fill('bob@')
  await page.getByRole('button', { name: 'Add Bob to ops' }).click()
  await page.getByRole('list', { name: 'Members' }).getByText('Bob', { exact: true }).waitFor()
  const form = page.getByRole('form', { name: 'What the agent may do' })
  await form.getByLabel('Tools', { exact: true }).check()
  const known = await form
    .locator('datalist option')
    .evaluateAll((all) => all.map((one) => one.getAttribute('value')))
  expect(known).toEqual(['glob', 'run_shell_command'])
  await form.getByLabel('Tool to add').fill('run_shell_command')
  await page.keyboard.press('Enter')
  await form.getByLabel('Tool run_shell_command').selectOption('Taken away')
  expect(await lookAt(page, 'team-phone-dark')).toEqual([])
  await form.getByRole('button', { name: 'Save', exact: true }).click()
  await form.getByText('Saved.').waitFor()
  const [id = ''] = service.teams.teamsOf('u_bob').filter((one) => one !== 't_data')
  expect(service.teams.settings.get(`team:${id}`)?.settings).toEqual({ tools: { run_shell_command: false } })

  const name = page.getByRole('form', { name: 'Name of the team' })
  await name.getByLabel('Name').fill('operations')
  const team = service.teams.teams.find((one) => one.id === id)
  if (team !== undefined) team.name = 'ops & more'
  await name.getByRole('button', { name: 'Rename' }).click()
  await name.getByText('Another administrator called it “ops & more” meanwhile.').waitFor()
  complaints.length = 0 // the 409
  await name.getByRole('button', { name: 'Call it “operations” all the same' }).click()
  await page.getByRole('heading', { name: 'operations', exact: true }).waitFor()
  await page.getByRole('button', { name: 'Take out Bob' }).click()
  await page.getByText('None yet.').waitFor()
  await page.getByRole('button', { name: 'Delete this team' }).click()
  await page.getByRole('button', { name: 'Delete “operations”' }).click()
  await until(async () =>
    expect(await page.getByRole('list', { name: 'Teams' }).getByRole('listitem').count()).toBe(2),
  )
})

test('a role is changed; who was first is shown, and one decides', async () => {
  const page = await at('people/u_bob')
  const role = page.getByLabel('Role of Bob')
  await role.selectOption('Guest')
  await page.getByText('no chats or sandbox of their own').waitFor()
  const bob = service.people.find(({ id }) => id === 'u_bob')
  if (bob !== undefined) bob.role = 'admin'
  await page.getByRole('button', { name: 'Save' }).first().click()
  await page.getByText('Another administrator made them administrator meanwhile.').waitFor()
  complaints.length = 0 // the 409
  expect(await lookAt(page, 'person-role-conflict')).toEqual([])
  await page.getByRole('button', { name: 'Make them guest all the same' }).click()
  await until(() => expect(bob?.role).toBe('guest'))
  await until(async () => expect(await role.inputValue()).toBe('guest'))
})

test('a person who is locked out gets a new password, which is shown once, or loses the second step', async () => {
  const page = await at('people/u_bob')
  await page.getByRole('button', { name: 'Reset password' }).click()
  await page.getByText('are signed out everywhere').waitFor()
  await page.getByRole('button', { name: 'Create new password' }).click()
  expect(await page.getByTestId('new-password').textContent()).toBe('plum-orbit-kettle-94')
  await page.getByRole('button', { name: 'Remove two-step sign-in' }).click()
  await page.getByRole('button', { name: 'Remove it' }).click()
  await page.getByText('Two-step sign-in removed.').waitFor()
})

test('while the agent is away the page says so, and the person is shown all the same', async () => {
  service.teams.agentAway = true
  const page = await at('people/u_bob')
  await page.getByText('The agent is away, so nothing can be changed.').waitFor()
  await page.getByRole('heading', { name: 'Bob', exact: true }).waitFor()
  expect(await lookAt(page, 'person-agent-away')).toEqual([])
  service.teams.agentAway = false
  // It is asked again without a click.
  await page.getByRole('form', { name: 'What the agent may do' }).waitFor()
  complaints.length = 0 // the 503s
})
