import { metaOf } from '@sandlot/shared/chat/events'
import { describe, expect, test } from 'vitest'
import { titleOf } from '../../src/session/title.ts'
import { AgentBench, ask, newSession } from '../support/agent-fixture.ts'
import { errorAnswer, textAnswer } from '../support/fake-provider.ts'

describe('a session’s first words', () => {
  test('are the first line with words, in sentence case, cut between words, never inside a character', () => {
    expect(titleOf('\n  \n make   a file\nand more')).toBe('Make a file')
    expect(titleOf('  ')).toBe('New chat')
    const long = titleOf('please look at all of the files in this folder and tell me what they are about')
    expect(long).toBe('Please look at all of the files in this folder and tell me…')
    expect(titleOf('😀'.repeat(100))).toBe(`${'😀'.repeat(60)}…`)
  })

  test('leave names of files and programs as they are written', () => {
    expect(titleOf('package.json is broken')).toBe('package.json is broken')
    expect(titleOf('iOS, or Android?')).toBe('iOS, or Android?')
    expect(titleOf('été à Paris')).toBe('Été à Paris')
  })
})

describe('a session’s name', () => {
  const named = { parts: { namesChats: true } }

  test('is asked of the model once, after the first answer, without tools, and counted', async () => {
    await using bench = await AgentBench.start([textAnswer('In May.'), textAnswer('In June.')])
    bench.provider.titles.push(
      textAnswer('**“Plans for May”.**\n', { usage: { prompt_tokens: 30, completion_tokens: 4 } }),
    )
    const core = await bench.core(named)
    const session = await newSession(core)
    await ask(session, 'when do we go?')
    await expect.poll(() => session.summary().title).toBe('Plans for May')
    await ask(session, 'and then?')
    expect(bench.provider.titleRequests).toHaveLength(1)
    const [request] = bench.provider.titleRequests
    expect(request?.body.tools).toBeUndefined()
    expect(request?.body.messages.at(-1)?.content).toBe(
      'The user:\nwhen do we go?\n\nThe assistant:\nIn May.',
    )
    const counts = session.log.filter((event) => event.sessionUpdate === 'usage_update')
    expect(counts.map((event) => [metaOf(event).usage?.input, event.used])).toEqual([
      [10, 15],
      [30, 15],
      [10, 15],
    ])
    const spent = await core.store.usage.spentSince(session.userId, 0, Date.now())
    expect(spent).toMatchObject({ turns: 3, tokens: 10 + 5 + 34 + 10 + 5 })
  })

  test('is not asked again by another process, nor where a person gave one', async () => {
    await using bench = await AgentBench.start([textAnswer('In May.'), textAnswer('Yes.'), textAnswer('No.')])
    const first = await bench.core(named)
    const session = await newSession(first)
    await ask(session, 'when?')
    await expect.poll(() => bench.provider.titleRequests.length).toBe(1)
    await first.leave()
    const second = await bench.core(named)
    const again = await second.manager.get(session.userId, session.id)
    expect(again.summary().title).toBe('When?')
    await ask(again, 'sure?')
    expect(bench.provider.titleRequests).toHaveLength(1)

    const renamed = await newSession(second)
    await renamed.rename('Mine')
    await ask(renamed, 'and this?')
    await second.leave()
    expect(bench.provider.titleRequests).toHaveLength(1)
    expect(renamed.summary().title).toBe('Mine')
  })

  test('that comes after a person renamed the chat changes nothing', async () => {
    await using bench = await AgentBench.start([textAnswer('In May.')])
    const asked = Promise.withResolvers<void>()
    const answer = Promise.withResolvers<void>()
    bench.provider.titles.push(async () => {
      asked.resolve()
      await answer.promise
      return textAnswer('Too late')
    })
    const session = await newSession(await bench.core(named))
    await ask(session, 'when?')
    await asked.promise
    await session.rename('Mine')
    answer.resolve()
    await expect
      .poll(() => session.log.filter((event) => event.sessionUpdate === 'usage_update').length)
      .toBe(2)
    expect(session.summary().title).toBe('Mine')
  })

  test.each([
    ['an error', errorAnswer(500, { error: { message: 'It is down.' } })],
    ['nothing', textAnswer('  \n')],
    ['a whole answer', textAnswer(`We go ${'very '.repeat(40)}soon.`)],
  ])('stays its first words when the model gives %s', async (_, answer) => {
    await using bench = await AgentBench.start([textAnswer('In May.')])
    bench.provider.titles.push(answer)
    const core = await bench.core(named)
    const session = await newSession(core)
    await ask(session, 'when do we go?')
    await expect.poll(() => bench.provider.titleRequests.length).toBe(1)
    await core.leave()
    expect(session.summary().title).toBe('When do we go?')
    expect(bench.provider.titleRequests).toHaveLength(1)
  })

  test('is not asked once the day’s limit is used up, nor of a chat that nobody reads', async () => {
    await using bench = await AgentBench.start([textAnswer('In May.'), textAnswer('Later.')])
    const budgets = { day: { turns: 1 } }
    const limited = await bench.core({
      parts: { namesChats: true, limitsOf: () => ({ maxTurns: 5, budgets }) },
    })
    await ask(await newSession(limited), 'when?')
    await limited.leave()
    const core = await bench.core(named)
    const { done } = await (await newSession(core)).prompt('and then?', { unattended: true })
    await done
    await core.leave()
    expect(bench.provider.titleRequests).toEqual([])
  })
})
