import { describe, expect, test } from 'vitest'
import { textAnswer, toolCalls } from '../../packages/ai-agent/test/support/fake-provider.ts'
import { person } from './browser.ts'
import { useWorld } from './fixture.ts'

const touch = (id: string, file: string) => ({
  id,
  name: 'run_shell_command',
  args: { command: `touch ${file}; ls` },
})

describe('approvals', () => {
  const world = useWorld({ SANDLOT_DEFAULT_MODE: 'manual' })

  test('approve: the full command stands above the buttons, and runs once when allowed', async () => {
    const { ada, script } = world()
    const { requests } = script(toolCalls([touch('a', 'allowed.txt')]), textAnswer('Done.'))
    await ada.say('touch it')
    const approval = ada.page.getByTestId('approval')
    await approval.waitFor()
    expect(await ada.card(0).innerText()).toContain('touch allowed.txt; ls')
    expect(requests()).toHaveLength(1)
    await approval.getByRole('button', { name: /^allow/i }).click()
    await ada.answers.filter({ hasText: 'Done.' }).waitFor()
    expect(requests()[1]?.body.messages.at(-1)?.content).toContain('allowed.txt')
  })

  test('reject with a reason: the model reads the reason, nothing ran', async () => {
    const { ada, script } = world()
    const { requests } = script(toolCalls([touch('r', 'rejected.txt')]), textAnswer('Then not.'))
    await ada.say('touch the other')
    const approval = ada.page.getByTestId('approval')
    await approval.waitFor()
    await approval.getByRole('button', { name: 'More options' }).click()
    await ada.page.getByRole('menuitem', { name: 'Deny and explain…' }).click()
    await approval.getByRole('textbox').fill('use another name')
    await approval.getByRole('textbox').press('Enter')
    await ada.answers.filter({ hasText: 'Then not.' }).waitFor()
    await ada.cardIs(0, 'failed')
    expect(requests()[1]?.body.messages.at(-1)?.content).toContain('use another name')

    const { requests: next } = script(
      toolCalls([{ id: 'l', name: 'list_directory', args: { path: '.' } }]),
      textAnswer('Listed.'),
    )
    await ada.say('list')
    await ada.answers.filter({ hasText: 'Listed.' }).waitFor()
    expect(next()[1]?.body.messages.at(-1)?.content).not.toContain('rejected.txt')
  })

  test('a pending approval survives a restart of the agent and is answered from another tab', async () => {
    const { ada, script, sandlot } = world()
    const { requests } = script(toolCalls([touch('p', 'pending.txt')]), textAnswer('Both saw it.'))
    await ada.say('touch a third')
    await ada.page.getByTestId('approval').waitFor()
    await sandlot.restartAgent('SIGTERM')
    const second = person(await ada.context.newPage())
    await second.page.goto(ada.page.url())
    await second.page
      .getByTestId('approval')
      .getByRole('button', { name: /^allow/i })
      .click()
    await ada.answers.filter({ hasText: 'Both saw it.' }).waitFor()
    await ada.page.getByTestId('approval').waitFor({ state: 'hidden' })
    expect(requests().at(-1)?.body.messages.at(-1)?.content).toContain('pending.txt')
    await second.page.close()
  })

  test('“always”: the question says why, the answer what it remembers; it holds, is listed, and is taken back', async () => {
    const { ada, script } = world()
    const make = (id: string, folder: string) => ({
      id,
      name: 'run_shell_command',
      args: { command: `ls && mkdir ${folder}` },
    })
    const approval = ada.page.getByTestId('approval')
    script(toolCalls([make('m1', 'one')]), textAnswer('Made one.'))
    await ada.say('make a folder')
    await approval.waitFor()
    expect(await approval.getByTestId('approval-why').innerText()).toBe('mkdir one may change something.')
    await approval.getByRole('button', { name: 'More options' }).click()
    await ada.page.getByRole('menuitem', { name: /^always allow\s*commands that begin with mkdir$/i }).click()
    await ada.answers.filter({ hasText: 'Made one.' }).waitFor()

    script(toolCalls([make('m2', 'two')]), textAnswer('Made two.'))
    await ada.say('make another')
    await ada.answers.filter({ hasText: 'Made two.' }).waitFor()

    await ada.page.getByRole('button', { name: /Settings$/ }).click()
    await ada.page.getByRole('link', { name: 'Approval rules' }).click()
    await ada.page.getByRole('button', { name: 'Revoke Allow commands that begin with mkdir' }).click()
    await ada.page.getByTestId('rules').getByText('No rules yet.').waitFor()
    await ada.page.keyboard.press('Escape')
    script(toolCalls([make('m3', 'three')]), textAnswer('Then not.'))
    await ada.say('and a third')
    await approval.getByRole('button', { name: /^deny/i }).click()
    await ada.answers.filter({ hasText: 'Then not.' }).waitFor()
  })

  test('two calls that ask are asked together', async () => {
    const { ada, script } = world()
    const { requests } = script(
      toolCalls([touch('t1', 'first.txt'), touch('t2', 'second.txt')]),
      textAnswer('Both done.'),
    )
    await ada.say('touch two')
    await ada.page.getByTestId('approval-bar').getByRole('button', { name: 'Allow all once' }).click()
    await ada.answers.filter({ hasText: 'Both done.' }).waitFor()
    expect(requests()[1]?.body.messages.at(-1)?.content).toContain('second.txt')
  })

  test('Stop while an approval waits, also over a kill: the call was not started, and the session continues', async () => {
    const { ada, script, sandlot } = world()
    script(toolCalls([touch('s', 'never.txt')]))
    await ada.say('touch a fourth')
    await ada.page.getByTestId('approval').waitFor()
    await sandlot.restartAgent('SIGKILL')
    await ada.page.getByTestId('stop').click()
    await ada.cardIs(0, 'failed')
    await ada.card(0).getByText('Not started').waitFor()
    await ada.idle()
    const { requests } = script(textAnswer('Going on.'))
    await ada.say('go on')
    await ada.answers.filter({ hasText: 'Going on.' }).waitFor()
    const result = requests()[0]?.body.messages.findLast(({ role }) => role === 'tool')
    expect(result?.content).toMatch(/was not started/)
  })
})
