import { describe, expect, test } from 'vitest'
import { errorAnswer, textAnswer, toolCalls } from '../../packages/ai-agent/test/support/fake-provider.ts'
import { person } from './browser.ts'
import { useWorld } from './fixture.ts'
import { eventually } from './processes.ts'

const shell = (id: string, command: string, more: Record<string, unknown> = {}) => ({
  id,
  name: 'run_shell_command',
  args: { command, ...more },
})

describe('the main job', () => {
  const world = useWorld()

  test('onAllToolCallsComplete: the second request comes after all outcomes, with every call and its result in order', async () => {
    const { ada, script } = world()
    const calls = [
      shell('call_slow', 'sleep 0.6; echo slow done'),
      { id: 'call_list', name: 'list_directory', args: { path: '.' } },
      { id: 'call_echo', name: 'echo', args: { value: 'quick' } },
    ]
    const { requests } = script(toolCalls(calls), textAnswer('All three are done.'))
    await ada.say('do three things')
    await ada.answers.filter({ hasText: 'All three are done.' }).waitFor()
    await ada.idle()

    const [first, second, ...more] = requests()
    expect(more).toEqual([])
    expect(first?.body.messages.map((message) => message.role)).toEqual(['system', 'user'])
    expect(second?.body.messages.map((message) => message.role)).toEqual([
      'system',
      'user',
      'assistant',
      'tool',
      'tool',
      'tool',
    ])
    expect(second?.body.messages.slice(0, 2)).toEqual(first?.body.messages)
    expect(second?.body.tools).toEqual(first?.body.tools)
    const [assistant, ...results] = (second?.body.messages ?? []).slice(2)
    expect(((assistant?.tool_calls ?? []) as { id: string }[]).map((call) => call.id)).toEqual(
      calls.map((call) => call.id),
    )
    expect(results.map((result) => result.tool_call_id)).toEqual(calls.map((call) => call.id))
    expect(results[0]?.content).toContain('slow done')
    expect(results[2]?.content).toContain('quick')
    for (const index of calls.keys()) await ada.cardIs(index, 'completed')
  })

  test('a second prompt relies on what the first one did', async () => {
    const { ada, script } = world()
    script(
      toolCalls([{ id: 'w', name: 'write_file', args: { path: 'note.txt', content: 'forty-two\n' } }]),
      textAnswer('Written.'),
    )
    await ada.say('write it down')
    await ada.answers.filter({ hasText: 'Written.' }).waitFor()
    await ada.idle()
    const { requests } = script(toolCalls([shell('r', 'cat note.txt')]), textAnswer('It says forty-two.'))
    await ada.say('what did you write?')
    await ada.answers.filter({ hasText: 'It says forty-two.' }).waitFor()
    const last = requests().at(-1)?.body.messages ?? []
    expect(last.map((message) => message.role)).toEqual([
      'system',
      'user',
      'assistant',
      'tool',
      'assistant',
      'user',
      'assistant',
      'tool',
    ])
    expect(last.at(-1)?.content).toContain('forty-two')
  })

  test('Stop in the middle of sleep 300: the process is gone, the call says cancelled, the next prompt works', async () => {
    const { ada, sandlot, script } = world()
    script(toolCalls([shell('s', 'setsid sleep 300 & sleep 300')]))
    await ada.say('sleep')
    await ada.cardIs(0, 'in_progress')
    await eventually('both sleeps to run', async () =>
      (await sandlot.processes()).filter((line) => line === 'sleep 300').length === 2 ? true : undefined,
    )
    await ada.page.getByTestId('stop').click()
    const card = await ada.cardIs(0, 'failed')
    await ada.idle()
    expect(await card.innerText()).toMatch(/cancelled|stopped/i)
    expect((await sandlot.processes()).filter((line) => line.includes('sleep'))).toEqual([])

    const { requests } = script(textAnswer('Still here.'))
    await ada.say('are you there?')
    await ada.answers.filter({ hasText: 'Still here.' }).waitFor()
    expect(requests()[0]?.body.messages.map((message) => message.role)).toEqual([
      'system',
      'user',
      'assistant',
      'tool',
      'assistant',
      'user',
    ])
    expect(requests()[0]?.body.messages.at(-2)?.content).toContain('You stopped this')
  })

  test('a reload in the middle of a command that prints a line a second: no line lost or doubled', async () => {
    const { ada, script, sandlot } = world()
    script(
      toolCalls([shell('l', 'for i in $(seq 1 6); do echo "line $i"; sleep 1; done')]),
      textAnswer('Six lines.'),
    )
    await ada.say('count')
    const output = ada.page.getByTestId('tool-output')
    await output.filter({ hasText: 'line 2' }).waitFor()
    await ada.page.reload()
    await output.filter({ hasText: 'line 4' }).waitFor()
    const running = await output.first().innerText()
    expect(running.match(/line \d/g)).toEqual(
      Array.from(running.match(/line \d/g) ?? [], (_, i) => `line ${i + 1}`),
    )

    // A second tab joins late and sees the same.
    const second = person(await ada.context.newPage())
    await second.page.goto(ada.page.url())
    await second.answers.filter({ hasText: 'Six lines.' }).waitFor()
    await ada.answers.filter({ hasText: 'Six lines.' }).waitFor()
    for (const page of [ada.page, second.page]) {
      await page.bringToFront()
      const card = page.getByTestId('tool-card').first()
      await page.getByTestId('stop').waitFor({ state: 'hidden' })
      if (!(await card.getByTestId('tool-output').isVisible())) await card.getByRole('button').first().click()
      await expect
        .poll(async () => (await card.getByTestId('tool-output').innerText()).match(/line \d/g), {
          timeout: 10_000,
        })
        .toEqual(['line 1', 'line 2', 'line 3', 'line 4', 'line 5', 'line 6'])
    }
    await second.page.close()
    expect(sandlot.logs()).not.toContain('"level":50')
  })

  test('a model that answers 401: the page says which setting is wrong, and never the key', async () => {
    const { ada, script, sandlot } = world()
    script(
      errorAnswer(401, {
        error: { message: 'Incorrect API key provided: sk-test-canary', code: 'invalid_api_key' },
      }),
    )
    await ada.say('hello')
    const end = ada.page.getByTestId('prompt-end')
    await end.waitFor()
    expect(await end.innerText()).toContain('OPENAI_API_KEY')
    expect(await ada.page.content()).not.toContain('sk-test-canary')
    expect(sandlot.logs()).not.toContain('sk-test-canary')
    script(textAnswer('Better now.'))
    await ada.say('again')
    await ada.answers.filter({ hasText: 'Better now.' }).waitFor()
  })

  test('arguments that are not JSON, do not fit, a tool that does not exist, a path outside: one outcome each', async () => {
    const { ada, script } = world()
    const { requests } = script(
      toolCalls([
        { id: 'bad_json', name: 'echo', args: '{"text": ' },
        { id: 'bad_shape', name: 'read_file', args: { name: 'x' } },
        { id: 'no_tool', name: 'run_shel_command', args: { command: 'true' } },
        { id: 'outside', name: 'read_file', args: { path: '../etc/passwd' } },
        { id: 'good', name: 'echo', args: { value: 'undisturbed' } },
      ]),
      textAnswer('Four went wrong.'),
    )
    await ada.say('try these')
    await ada.answers.filter({ hasText: 'Four went wrong.' }).waitFor()
    for (const index of [0, 1, 2, 3]) await ada.cardIs(index, 'failed')
    await ada.cardIs(4, 'completed')
    const results = requests()[1]?.body.messages.filter((message) => message.role === 'tool') ?? []
    expect(results.map((result) => result.tool_call_id)).toEqual([
      'bad_json',
      'bad_shape',
      'no_tool',
      'outside',
      'good',
    ])
    expect(results[2]?.content).toContain('run_shell_command')
    expect(results[4]?.content).toContain('undisturbed')
  })

  test('output beyond the limit is cut for the model and whole for the person', async () => {
    const { ada, script } = world()
    const { requests } = script(toolCalls([shell('big', 'seq 1 60000')]), textAnswer('Long.'))
    await ada.say('print a lot')
    await ada.answers.filter({ hasText: 'Long.' }).waitFor()
    const result = String(requests()[1]?.body.messages.at(-1)?.content)
    expect(result.length).toBeLessThanOrEqual(10_500)
    expect(result).toMatch(/^1\n2\n/)
    expect(result).toContain('60000')
    const file = /\/workspace\/\.tool-outputs\/[0-9a-f]{32}\.txt/.exec(result)?.[0]
    expect(file).toBeDefined()

    const card = ada.card(0)
    const link = card.getByRole('link', { name: /full output/i })
    if ((await link.count()) === 0) await card.getByRole('button').first().click()
    const url = await link.getAttribute('href')
    const whole = await ada.context.request.get(url ?? '')
    expect(await whole.text()).toBe(Array.from({ length: 60_000 }, (_, i) => `${i + 1}\n`).join(''))

    const { requests: next } = script(toolCalls([shell('tail', `tail -n 1 ${file}`)]), textAnswer('Read.'))
    await ada.say('read the end of the file')
    await ada.answers.filter({ hasText: 'Read.' }).waitFor()
    expect(next()[1]?.body.messages.at(-1)?.content).toContain('60000')
  })

  test('the agent is killed in the middle of a command: the command continues, its output and outcome are adopted', async () => {
    const { ada, script, sandlot } = world()
    const { requests } = script(
      toolCalls([
        shell(
          'k',
          'echo begun >> count.txt; for i in 1 2 3 4 5; do echo "step $i"; sleep 1; done; wc -l < count.txt',
        ),
      ]),
      textAnswer('Survived.'),
    )
    await ada.say('work through a crash')
    await ada.page.getByTestId('tool-output').filter({ hasText: 'step 2' }).waitFor()
    await sandlot.restartAgent('SIGKILL')
    await ada.answers.filter({ hasText: 'Survived.' }).waitFor({ timeout: 60_000 })
    const result = String(requests().at(-1)?.body.messages.at(-1)?.content)
    expect(result.match(/step \d/g)).toEqual(['step 1', 'step 2', 'step 3', 'step 4', 'step 5'])
    expect(result.trim().split('\n')).toContain('1')
  })
})
